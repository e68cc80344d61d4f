//! Processes that share the clusters, and one that serves all of them.

use std::path::Path;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, CPO_TWIN};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SOON, alone, calls_about};
use e2e::test_env::Credential;
use e2e::{TestEnv, eventually};
use hyperlink::hypershift::shard::Shard;
use serde_json::json;

use crate::leaders::{FLAGS, repaired_by};

/// A number of shards of which different ones have these subscriptions, and which.
fn split(subscriptions: [&str; 2]) -> Result<[String; 2]> {
    let shard = |number: u16, of: u16| format!("{number}/{of}");
    let owner = |key: &str, of: u16| {
        (1..=of).find(|number| shard(*number, of).parse::<Shard>().is_ok_and(|shard| shard.has(key)))
    };
    let numbers = (2..10).map(|of| (of, subscriptions.map(|key| owner(key, of))));
    let mut splits = numbers.filter_map(|(of, [one, two])| Some([shard(one?, of), shard(two?, of)]));
    splits.find(|[one, two]| one != two).context("no number splits them")
}

/// A guest side that serves one shard, or all clusters.
async fn guest_side(
    test_env: &TestEnv,
    name: &str,
    identity: &Credential,
    scopes: &Path,
    shard: Option<&str>,
) -> Result<Hyperlink> {
    let program = e2e::binaries::executable("hyperlink")?;
    let scopes = scopes.to_str().context("the path")?;
    let own = [("allow-scopes", scopes)];
    let flags: Vec<_> = FLAGS
        .iter()
        .chain(&own)
        .copied()
        .chain(shard.map(|shard| ("shard", shard)))
        .collect();
    Hyperlink::start_as(
        &program,
        test_env,
        Role::Cpo,
        name,
        test_env.admin().path(),
        identity,
        &flags,
    )
    .await
}

/// Who has written about a cluster since the call of this number.
async fn writers(test_env: &TestEnv, cluster: &HostedCluster, since: u64) -> Result<Vec<String>> {
    let calls = calls_about(test_env, cluster, since).await?;
    let guests = [CPO_CLIENT, CPO_TWIN];
    let mut writers: Vec<String> = calls.into_iter().filter_map(|call| call.principal).collect();
    writers.retain(|client| guests.contains(&client.as_str()));
    writers.sort();
    writers.dedup();
    Ok(writers)
}

#[test]
fn each_shard_serves_its_clusters_and_another_number_waits() {
    alone(async |test_env| {
        let azure = test_env.azure();
        let subscriptions = [
            azure.guest_subscription.as_str(),
            azure.other_guest_subscription.as_str(),
        ];
        let shards = split(subscriptions)?;
        let clusters = [
            HostedCluster::new(&test_env, "first"),
            HostedCluster::new(&test_env, "second").in_subscription(&azure.other_guest_subscription),
        ];
        let scopes = test_env.dir().join("both.json");
        let allowed = subscriptions.map(|id| format!("/subscriptions/{id}"));
        let allowed = json!({"hostedClusters": [{"namespace": test_env.hosted_clusters(), "scopes": allowed,
            "additionalAllowedSubscriptions": [azure.additional_subscription]}]});
        std::fs::write(&scopes, allowed.to_string())?;
        let _ho = Hyperlink::start(&test_env, Role::Ho, "ho", &FLAGS).await?;
        let first = guest_side(&test_env, "cpo-first", &azure.cpo, &scopes, Some(&shards[0])).await?;
        let second = guest_side(&test_env, "cpo-second", &azure.cpo_twin, &scopes, Some(&shards[1])).await?;
        for cluster in &clusters {
            cluster.create(&test_env).await?;
        }
        for (cluster, client) in clusters.iter().zip([CPO_CLIENT, CPO_TWIN]) {
            cluster.becomes_available(&test_env, SOON).await?;
            ensure!(repaired_by(&test_env, cluster).await? == client);
            ensure!(writers(&test_env, cluster, 0).await? == [client], "{}", cluster.name());
        }

        let whole = guest_side(&test_env, "cpo-whole", &azure.cpo, &scopes, None).await?;
        let waits = |why: String| {
            let whole = &whole;
            async move {
                eventually("it stands by", SOON, || async {
                    let (_, text) = whole.page("/readyz").await?;
                    ensure!(text.contains(&why), "{text}");
                    Ok(())
                })
                .await
            }
        };
        let of = shards[0].split_once('/').context("no number")?.1;
        waits(format!("standing by, {of} shards leads")).await?;
        first.stop().await?;
        let since = test_env.oracle().last_call().await?;
        // The first shard's clusters have nobody until the last of the shards has ended.
        ensure!(repaired_by(&test_env, &clusters[1]).await? == CPO_TWIN);
        ensure!(writers(&test_env, &clusters[0], since).await?.is_empty());
        second.stop().await?;
        whole.leading(SOON).await?;
        for cluster in &clusters {
            ensure!(repaired_by(&test_env, cluster).await? == CPO_CLIENT);
        }
        Ok(())
    });
}
