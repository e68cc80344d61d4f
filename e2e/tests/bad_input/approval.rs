//! Connections that their owner has not approved.

use anyhow::{Context, Result};
use e2e::hosted_cluster::HostedCluster;
use serde_json::{Value, json};

use e2e::shared_env::{SharedEnv, situation};

/// The connection of the cluster's endpoint, as the owner of the Private Link Service sees it.
async fn connection(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<Value> {
    let prefix = format!(
        "{}/privateEndpointConnections/",
        cluster.link_service(&shared_env.test_env)
    );
    let mut found = shared_env.test_env.oracle().resources(&prefix).await?;
    found.pop().context("no connection")
}

async fn decide(shared_env: &SharedEnv, cluster: &HostedCluster, status: &str) -> Result<()> {
    let mut connection = connection(shared_env, cluster).await?;
    connection["properties"]["privateLinkServiceConnectionState"] = json!({"status": status, "description": "e2e"});
    let id = connection["id"].as_str().context("no id")?.to_owned();
    shared_env.test_env.oracle().drift_put(&id, &connection).await
}

#[test]
fn pending_connection_is_reported_until_it_is_approved() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "pending");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        decide(shared_env, &cluster, "Pending").await?;
        let conditions = ["AzurePrivateEndpointAvailable", "AzurePrivateLinkServiceAvailable"];
        shared_env
            .refuses_all(&cluster, &conditions, "PrivateEndpointConnectionNotApproved")
            .await?;
        shared_env
            .has_condition(&cluster, conditions[0], "PrivateEndpointConnectionNotApproved")
            .await?;
        decide(shared_env, &cluster, "Approved").await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn rejected_connection_is_recreated() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "rejected");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let before = connection(shared_env, &cluster).await?;
        decide(shared_env, &cluster, "Rejected").await?;
        e2e::eventually("there is another connection", e2e::shared_env::SOON, || async {
            let now = connection(shared_env, &cluster).await?;
            anyhow::ensure!(now["id"] != before["id"], "{now}");
            Ok(())
        })
        .await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
