//! NAT subnets that cannot be used, and one that others have come to use.

use anyhow::ensure;
use e2e::azure_sim::HO_CLIENT;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use serde_json::json;

use e2e::shared_env::{SOON, SharedEnv, alone, situation};

#[test]
fn given_subnet_with_network_policies() {
    situation(async |shared_env| {
        let id = format!("{}/subnets/policed", shared_env.test_env.azure().management_vnet);
        let subnet = |policies: &str| json!({"properties": {"addressPrefix": "10.226.0.0/24", "privateLinkServiceNetworkPolicies": policies}});
        shared_env.test_env.oracle().drift_put(&id, &subnet("Enabled")).await?;
        let cluster = HostedCluster::new(&shared_env.test_env, "policed").with_nat_subnet(&id);
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .has_condition(&cluster, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        shared_env.test_env.oracle().drift_put(&id, &subnet("Disabled")).await?;
        shared_env.heals_and_is_deleted(&cluster).await?;
        let calls = shared_env.test_env.oracle().journal(0).await?;
        let written = calls
            .iter()
            .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(&id));
        ensure!(written.is_none(), "a given subnet was written: {written:?}");
        Ok(())
    });
}

#[test]
fn given_subnet_that_does_not_exist() {
    situation(async |shared_env| {
        let id = format!("{}/subnets/later", shared_env.test_env.azure().management_vnet);
        let cluster = HostedCluster::new(&shared_env.test_env, "subnetless").with_nat_subnet(&id);
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .has_condition(&cluster, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        let subnet = json!({"properties": {
            "addressPrefix": "10.227.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
        shared_env.test_env.oracle().drift_put(&id, &subnet).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn given_subnet_outside_the_load_balancers_network() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "outside");
        let id = cluster.subnet();
        let cluster = cluster.with_nat_subnet(&id);
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .has_condition(&cluster, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        // The guest side continues meanwhile.
        let calls = shared_env.calls_about(&cluster).await?;
        let written = calls
            .iter()
            .find(|call| call.is_write() && call.principal.as_deref() == Some(HO_CLIENT));
        ensure!(written.is_none(), "{written:?}");
        // The field can never change: a recreated cluster without it heals.
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await?;
        let cluster = HostedCluster::new(&shared_env.test_env, "outside");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn our_subnet_that_others_use_stays() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "crowded");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let subnet = cluster.own_nat_subnet(&shared_env.test_env);
        let azure = shared_env.test_env.azure();
        let network = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network",
            azure.management_subscription, azure.management_group
        );
        let balancer = format!("{network}/loadBalancers/guest-of-crowded");
        let frontend =
            json!({"name": "theirs", "properties": {"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}}});
        let body = json!({"location": azure.location, "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": [frontend]}});
        shared_env.test_env.oracle().drift_put(&balancer, &body).await?;
        let before = shared_env.observed(&balancer).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        ensure!(
            shared_env.observed(&balancer).await? == before,
            "their load balancer was changed"
        );
        ensure!(
            shared_env
                .test_env
                .resource_ids()
                .await?
                .contains(&subnet.to_lowercase()),
            "the subnet is gone"
        );
        shared_env.nothing_is_left_of(&cluster, &[&subnet]).await
    });
}

/// All clusters of the network use the subnet of the setting, and it is never written.
#[test]
fn one_subnet_for_all_clusters_of_a_network() {
    alone(async |test_env| {
        let id = format!("{}/subnets/shared", test_env.azure().management_vnet);
        let flags = [("resync", "3s"), ("nat-subnet-id", id.as_str())];
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &flags).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &[("resync", "3s")]).await?;
        let shared_env = SharedEnv { test_env, ho, cpo };
        let first = HostedCluster::new(&shared_env.test_env, "first-of-two");
        first.create(&shared_env.test_env).await?;
        shared_env
            .has_condition(&first, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        let subnet = json!({"properties": {
            "addressPrefix": "10.228.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
        shared_env.test_env.oracle().drift_put(&id, &subnet).await?;
        shared_env.heals(&first).await?;
        let second = shared_env.lives("second-of-two").await?;
        for cluster in [&first, &second] {
            cluster.delete(&shared_env.test_env, SOON).await?;
            shared_env.nothing_is_left_of(cluster, &[&id]).await?;
        }
        let calls = shared_env.test_env.oracle().journal(0).await?;
        let written = calls
            .iter()
            .find(|call| call.is_write() && call.path.to_lowercase().contains("/subnets/"));
        ensure!(written.is_none(), "a subnet was written: {written:?}");
        Ok(())
    });
}
