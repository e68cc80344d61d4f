//! A cluster that is deleted while Azure denies access.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use kube::api::{Api, DeleteParams, DynamicObject};
use serde_json::{Value, json};

use e2e::shared_env::{SOON, SharedEnv, patch, situation};

const ABANDON: &str = "hyperlink.hypershift.openshift.io/abandon";

/// A fault rule: Azure denies each DELETE of the cluster's Private Link Service.
fn denied(cluster: &HostedCluster) -> Value {
    json!([{"match": {"method": "DELETE", "path": format!("pls-{}", cluster.cluster_id()), "times": 1_000_000},
        "do": {"status": 403, "code": "AuthorizationFailed", "message": "no"}}])
}

async fn lives(shared_env: &SharedEnv, name: &str) -> Result<(HostedCluster, Api<DynamicObject>)> {
    let cluster = HostedCluster::new(&shared_env.test_env, name);
    cluster.create(&shared_env.test_env).await?;
    shared_env.heals(&cluster).await?;
    let client = shared_env.test_env.client()?;
    let api = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
    Ok((cluster, api))
}

async fn is_gone(api: &Api<DynamicObject>, uid: Option<&String>) -> Result<()> {
    eventually("the custom resource is gone", SOON, || async {
        let found = api.get_opt("private-router").await?;
        ensure!(
            found.is_none_or(|found| found.metadata.uid.as_ref() != uid),
            "it is there"
        );
        Ok(())
    })
    .await
}

#[test]
fn denied_deletion_is_let_go_by_a_word_alone() {
    situation(async |shared_env| {
        let (cluster, api) = lives(shared_env, "abandoned").await?;
        shared_env.faults(denied(&cluster)).await?;
        let before = api.get("private-router").await?.metadata.uid;
        let client = shared_env.test_env.client()?;
        let planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        planes.delete(cluster.name(), &DeleteParams::default()).await?;
        api.delete("private-router", &DeleteParams::default()).await?;
        shared_env
            .has_condition(&cluster, "AzurePLSCreated", "DeletionFailed")
            .await?;
        let annotation =
            |uid: &str| json!({"metadata": {"annotations": {ABANDON: format!("{uid}/ho/the subscription is gone")}}});
        patch(&api, "private-router", annotation("another")).await?;
        eventually("the word that does not count is answered", SOON, || async {
            let found = api.get("private-router").await?;
            ensure!(
                found.data.to_string().contains("does not begin with the uid"),
                "{}",
                found.data
            );
            Ok(())
        })
        .await?;
        patch(&api, "private-router", annotation(before.as_deref().context("no uid")?)).await?;
        is_gone(&api, before.as_ref()).await?;
        shared_env.observed(&cluster.link_service(&shared_env.test_env)).await?;
        shared_env.faults(json!([])).await?;
        shared_env
            .test_env
            .oracle()
            .drift_delete(&cluster.link_service(&shared_env.test_env))
            .await?;
        shared_env
            .test_env
            .oracle()
            .drift_delete(&cluster.own_nat_subnet(&shared_env.test_env))
            .await?;
        cluster.delete(&shared_env.test_env, SOON).await
    });
}
