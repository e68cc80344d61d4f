//! The largest number that is allowed, and one more.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::shared_env::{MANAGEMENT_SIDE, SOON, SharedEnv, situation};
use rstest::rstest;
use serde_json::{Value, json};

fn ids(count: usize) -> Vec<String> {
    let id = |n| format!("{n:08x}-aaaa-4aaa-8aaa-aaaaaaaaaaaa");
    (1..=count).map(id).collect()
}

fn subscriptions(count: usize) -> Value {
    let list = ids(count);
    json!({"spec": {"platform": {"azure": {"private": {"privateLink": {"additionalAllowedSubscriptions": list}}}}}})
}

/// Allows this cluster that many subscriptions in the operator's file.
fn allow(shared_env: &SharedEnv, name: &str, count: usize) -> Result<()> {
    let file = shared_env.test_env.dir().join("allow-scopes.json");
    let mut allowed: Value = serde_json::from_str(&std::fs::read_to_string(&file)?)?;
    let entry = json!({"namespace": NAMESPACE, "names": [name], "additionalAllowedSubscriptions": ids(count),
        "scopes": [format!("/subscriptions/{}", shared_env.test_env.azure().guest_subscription)]});
    let entries = allowed["hostedClusters"].as_array_mut().context("no entries")?;
    entries.push(entry);
    // Nobody reads half of it.
    let whole = file.with_extension("new");
    std::fs::write(&whole, allowed.to_string())?;
    Ok(std::fs::rename(whole, file)?)
}

#[test]
fn as_many_subscriptions_as_the_definition_allows() {
    situation(async |shared_env| {
        allow(shared_env, "many-allowed", 50)?;
        let cluster = HostedCluster::new(&shared_env.test_env, "many-allowed")
            .with_hosted_cluster(subscriptions(50))
            .with_control_plane(subscriptions(50));
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let service = shared_env
            .test_env
            .oracle()
            .resources(&cluster.link_service(&shared_env.test_env))
            .await?;
        for list in ["visibility", "autoApproval"] {
            let allowed = &service.first().context("none")?["properties"][list]["subscriptions"];
            // The guest's own subscription is added.
            ensure!(allowed.as_array().map(Vec::len) == Some(51), "{list} {allowed}");
        }
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[rstest]
#[case::one_more("one-more-allowed", 51)]
#[case::as_many_as_azure_takes("hundred-allowed", 100)]
#[case::more_than_azure_takes("hundred-one-allowed", 101)]
fn more_subscriptions_than_the_definition_allows(#[case] name: &str, #[case] count: usize) {
    if e2e::reference::directory("hypershift-crds").is_none() {
        return e2e::scenario::skipped("the real definition of HostedControlPlane is not at hand");
    }
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, name).with_control_plane(subscriptions(count));
        cluster.create_namespaces(&shared_env.test_env).await?;
        let refused = cluster.create_control_plane(&shared_env.test_env).await;
        let error = format!("{:#}", refused.err().context("it was accepted")?);
        ensure!(error.contains("additionalAllowedSubscriptions"), "{error}");
        shared_env.nobody_asked_about(&cluster).await
    });
}

/// The NAT subnet is `<infraID>-pls-nat`, and Azure takes 80 characters.
#[rstest]
#[case::longest("long-enough", 72, true)]
#[case::one_more("too-long", 73, false)]
fn name_of_the_nat_subnet(#[case] name: &str, #[case] length: usize, #[case] fits: bool) {
    situation(async |shared_env| {
        let infra: String = name.chars().chain(std::iter::repeat('x')).take(length).collect();
        let long = json!({"spec": {"infraID": infra}});
        let cluster = HostedCluster::new(&shared_env.test_env, name)
            .with_hosted_cluster(long.clone())
            .with_control_plane(long);
        cluster.create(&shared_env.test_env).await?;
        let subnet = format!(
            "{}/subnets/{infra}-pls-nat",
            shared_env.test_env.azure().management_vnet
        );
        if fits {
            shared_env.heals(&cluster).await?;
            ensure!(
                shared_env
                    .test_env
                    .resource_ids()
                    .await?
                    .contains(&subnet.to_lowercase())
            );
        } else {
            shared_env
                .refuses_all(&cluster, &MANAGEMENT_SIDE, "InvalidSpec")
                .await?;
            let calls = shared_env.test_env.oracle().journal(0).await?;
            ensure!(!calls.iter().any(|call| call.path.contains(&infra)), "{infra}");
        }
        // The id can never change: the only remedy is to delete the cluster, and that works.
        cluster.delete(&shared_env.test_env, SOON).await?;
        ensure!(
            !shared_env
                .test_env
                .resource_ids()
                .await?
                .contains(&subnet.to_lowercase()),
            "{subnet}"
        );
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}
