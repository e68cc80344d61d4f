//! The zone that `hypershift create infra` makes for an administrator, and a base domain that is equal to it, above or
//! below it.

use anyhow::{Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::shared_env::{SOON, SharedEnv, situation};
use rstest::rstest;
use serde_json::json;

/// The zone `<name>.example.com` in the cluster's group, linked to the workers' network.
async fn infra_zone(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<String> {
    let oracle = shared_env.test_env.oracle();
    cluster.create_guest_network(&shared_env.test_env).await?;
    let zone = format!(
        "{}/providers/Microsoft.Network/privateDnsZones/{}.example.com",
        cluster.resource_group(),
        cluster.name()
    );
    let tags = json!({"owner": "administrator"});
    oracle
        .drift_put(&zone, &json!({"location": "global", "tags": tags}))
        .await?;
    let link = json!({"location": "global", "tags": tags, "properties": {
        "virtualNetwork": {"id": cluster.vnet()}, "registrationEnabled": false}});
    oracle
        .drift_put(&format!("{zone}/virtualNetworkLinks/{}", cluster.name()), &link)
        .await?;
    let record = json!({"properties": {"ttl": 60, "aRecords": [{"ipv4Address": "192.0.2.1"}]}});
    oracle.drift_put(&format!("{zone}/A/www"), &record).await?;
    Ok(zone)
}

#[rstest]
#[case::above("domain-above", "example.com")]
#[case::below("domain-below", "apps.domain-below.example.com")]
fn zones_nested_in_one_another_share_a_network(#[case] name: &str, #[case] base: &str) {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, name).with_base_domain(base);
        let zone = infra_zone(shared_env, &cluster).await?;
        let before = shared_env.observed(&zone).await?;
        // HyperShift's part makes the group and the network again, as they are.
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        ensure!(
            shared_env.observed(&zone).await? == before,
            "the administrator's zone was changed"
        );
        cluster.delete(&shared_env.test_env, SOON).await?;
        ensure!(
            shared_env.observed(&zone).await? == before,
            "the administrator's zone was changed"
        );
        shared_env.nothing_is_left_of(&cluster, &[&zone]).await
    });
}

#[test]
fn zone_of_the_administrator_is_never_considered_owned() {
    situation(async |shared_env| {
        let cluster =
            HostedCluster::new(&shared_env.test_env, "domain-equal").with_base_domain("domain-equal.example.com");
        let zone = infra_zone(shared_env, &cluster).await?;
        let before = shared_env.observed(&zone).await?;
        cluster.create(&shared_env.test_env).await?;
        let conditions = ["AzurePrivateDNSAvailable", "AzurePrivateLinkServiceAvailable"];
        shared_env.refuses_all(&cluster, &conditions, "NotOurs").await?;
        ensure!(
            shared_env.observed(&zone).await? == before,
            "the administrator's zone was changed"
        );
        // The administrator makes room.
        shared_env.test_env.oracle().drift_delete(&zone).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
