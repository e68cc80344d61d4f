//! A hand-over while Azure answers no reads: what stood is not told to have fallen.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, conditions};
use e2e::running::Running;
use e2e::site::{SOON, alone, control};
use reqwest::Method;
use serde_json::{Value, json};

#[test]
fn hand_over_while_azure_takes_no_reads_tells_of_no_outage() {
    hand_over(json!({"status": 429, "code": "TooManyRequests", "headers": {"Retry-After": "1"}}));
}

/// It is told after the third failure and two minutes only.
#[test]
fn hand_over_while_each_read_of_azure_fails_tells_of_no_outage() {
    hand_over(json!({"status": 503, "code": "ServiceUnavailable"}));
}

fn hand_over(refused: Value) {
    alone(async move |ground| {
        let running = Running::processes(&ground).await?;
        let cluster = HostedCluster::new(&ground, "unread").with_base_domain("unread.example.com");
        cluster.create(&ground).await?;
        cluster.becomes_available(&ground, SOON).await?;
        let client = ground.client()?;
        let version = async || -> Result<_> {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            ensure!(conditions(&found).iter().all(|one| one.status == "True"), "{found:?}");
            Ok(found.metadata.resource_version)
        };
        let before = eventually("both roles say so", SOON, version).await?;

        let status = refused["status"].clone();
        let rules = json!([{"match": {"method": "GET", "times": 1_000_000}, "do": refused}]);
        control(&ground, Method::PUT, "/faults", rules).await?;
        let since = ground.oracle().last_call().await?;
        let running = running.hand_over(&ground).await?;
        // Whoever asks again has told of the first answer.
        eventually("both roles ask again and again", SOON, || async {
            let calls = ground.oracle().journal(since).await?;
            for client in [HO_CLIENT, CPO_CLIENT] {
                let own = calls.iter().filter(|call| call.principal.as_deref() == Some(client));
                let refused = own.filter(|call| status == call.status).count();
                ensure!(refused > 6, "{refused} refused reads of {client}");
            }
            Ok(())
        })
        .await?;
        ensure!(version().await? == before, "the custom resource was written");

        control(&ground, Method::PUT, "/faults", json!([])).await?;
        cluster.delete(&ground, SOON).await?;
        running.stop().await
    });
}
