//! NAT subnets that cannot serve, and one that others came to use.

use anyhow::ensure;
use e2e::azure_sim::HO_CLIENT;
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use serde_json::json;

use e2e::site::{SOON, Site, alone, situation};

#[test]
fn given_subnet_with_network_policies() {
    situation(async |site| {
        let id = format!("{}/subnets/policed", site.ground.azure().management_vnet);
        let subnet = |policies: &str| json!({"properties": {"addressPrefix": "10.226.0.0/24", "privateLinkServiceNetworkPolicies": policies}});
        site.ground.oracle().drift_put(&id, &subnet("Enabled")).await?;
        let cluster = HostedCluster::new(&site.ground, "policed").with_nat_subnet(&id);
        cluster.create(&site.ground).await?;
        site.says(&cluster, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        site.ground.oracle().drift_put(&id, &subnet("Disabled")).await?;
        site.heals_and_goes(&cluster).await?;
        let calls = site.ground.oracle().journal(0).await?;
        let written = calls
            .iter()
            .find(|call| call.is_write() && call.path.eq_ignore_ascii_case(&id));
        ensure!(written.is_none(), "a given subnet was written: {written:?}");
        Ok(())
    });
}

#[test]
fn given_subnet_that_does_not_exist() {
    situation(async |site| {
        let id = format!("{}/subnets/later", site.ground.azure().management_vnet);
        let cluster = HostedCluster::new(&site.ground, "subnetless").with_nat_subnet(&id);
        cluster.create(&site.ground).await?;
        site.says(&cluster, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        let subnet = json!({"properties": {
            "addressPrefix": "10.227.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
        site.ground.oracle().drift_put(&id, &subnet).await?;
        site.heals_and_goes(&cluster).await
    });
}

#[test]
fn given_subnet_outside_the_load_balancers_network() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "outside");
        let id = cluster.subnet();
        let cluster = cluster.with_nat_subnet(&id);
        cluster.create(&site.ground).await?;
        site.says(&cluster, "AzurePLSCreated", "NATSubnetCreationFailed")
            .await?;
        // The guest's side goes on meanwhile.
        let calls = site.calls_about(&cluster).await?;
        let written = calls
            .iter()
            .find(|call| call.is_write() && call.principal.as_deref() == Some(HO_CLIENT));
        ensure!(written.is_none(), "{written:?}");
        // The field can never change: a cluster made anew without it heals.
        cluster.delete(&site.ground, SOON).await?;
        site.nothing_is_left_of(&cluster, &[]).await?;
        let cluster = HostedCluster::new(&site.ground, "outside");
        cluster.create(&site.ground).await?;
        site.heals_and_goes(&cluster).await
    });
}

#[test]
fn our_subnet_that_others_use_stays() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "crowded");
        cluster.create(&site.ground).await?;
        site.heals(&cluster).await?;
        let subnet = cluster.own_nat_subnet(&site.ground);
        let azure = site.ground.azure();
        let network = format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network",
            azure.management_subscription, azure.management_group
        );
        let balancer = format!("{network}/loadBalancers/guest-of-crowded");
        let frontend =
            json!({"name": "theirs", "properties": {"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}}});
        let body = json!({"location": azure.location, "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": [frontend]}});
        site.ground.oracle().drift_put(&balancer, &body).await?;
        let before = site.seen(&balancer).await?;
        cluster.delete(&site.ground, SOON).await?;
        ensure!(site.seen(&balancer).await? == before, "their load balancer was changed");
        ensure!(
            site.ground.resource_ids().await?.contains(&subnet.to_lowercase()),
            "the subnet is gone"
        );
        site.nothing_is_left_of(&cluster, &[&subnet]).await
    });
}

/// All clusters of the network use it, and it is never written.
#[test]
fn one_subnet_for_all_clusters_of_a_network() {
    alone(async |ground| {
        let id = format!("{}/subnets/shared", ground.azure().management_vnet);
        let flags = [("resync", "3s"), ("nat-subnet-id", id.as_str())];
        let ho = Hyperlink::start(&ground, Role::Ho, "ho", &flags).await?;
        let cpo = Hyperlink::start(&ground, Role::Cpo, "cpo", &[("resync", "3s")]).await?;
        let site = Site { ground, ho, cpo };
        let first = HostedCluster::new(&site.ground, "first-of-two");
        first.create(&site.ground).await?;
        site.says(&first, "AzurePLSCreated", "NATSubnetCreationFailed").await?;
        let subnet = json!({"properties": {
            "addressPrefix": "10.228.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}});
        site.ground.oracle().drift_put(&id, &subnet).await?;
        site.heals(&first).await?;
        let second = site.lives("second-of-two").await?;
        for cluster in [&first, &second] {
            cluster.delete(&site.ground, SOON).await?;
            site.nothing_is_left_of(cluster, &[&id]).await?;
        }
        let calls = site.ground.oracle().journal(0).await?;
        let written = calls
            .iter()
            .find(|call| call.is_write() && call.path.to_lowercase().contains("/subnets/"));
        ensure!(written.is_none(), "a subnet was written: {written:?}");
        Ok(())
    });
}
