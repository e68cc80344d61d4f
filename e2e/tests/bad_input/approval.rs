//! Connections that their owner has not approved.

use anyhow::{Context, Result};
use e2e::hosted_cluster::HostedCluster;
use serde_json::{Value, json};

use e2e::site::{Site, situation};

/// The connection of the cluster's endpoint, as its owner sees it.
async fn connection(site: &Site, cluster: &HostedCluster) -> Result<Value> {
    let prefix = format!("{}/privateEndpointConnections/", cluster.link_service(&site.ground));
    let mut found = site.ground.oracle().resources(&prefix).await?;
    found.pop().context("no connection")
}

async fn decide(site: &Site, cluster: &HostedCluster, status: &str) -> Result<()> {
    let mut connection = connection(site, cluster).await?;
    connection["properties"]["privateLinkServiceConnectionState"] = json!({"status": status, "description": "e2e"});
    let id = connection["id"].as_str().context("no id")?.to_owned();
    site.ground.oracle().drift_put(&id, &connection).await
}

#[test]
fn connection_that_becomes_pending_is_reported_until_it_is_approved() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "pending");
        cluster.create(&site.ground).await?;
        site.heals(&cluster).await?;
        decide(site, &cluster, "Pending").await?;
        let conditions = ["AzurePrivateEndpointAvailable", "AzurePrivateLinkServiceAvailable"];
        site.refuses_all(&cluster, &conditions, "PrivateEndpointConnectionNotApproved")
            .await?;
        site.says(&cluster, conditions[0], "PrivateEndpointConnectionNotApproved")
            .await?;
        decide(site, &cluster, "Approved").await?;
        site.heals_and_goes(&cluster).await
    });
}

#[test]
fn rejected_connection_is_made_anew() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "rejected");
        cluster.create(&site.ground).await?;
        site.heals(&cluster).await?;
        let before = connection(site, &cluster).await?;
        decide(site, &cluster, "Rejected").await?;
        e2e::eventually("there is another connection", e2e::site::SOON, || async {
            let now = connection(site, &cluster).await?;
            anyhow::ensure!(now["id"] != before["id"], "{now}");
            Ok(())
        })
        .await?;
        site.heals_and_goes(&cluster).await
    });
}
