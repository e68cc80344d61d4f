//! A custom resource that leads to no cluster, to another one, or to names that Azure does not accept: its conditions
//! report it, and Azure is not called, except for a service for which the HostedCluster may have revoked something.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::test_env::Call;
use kube::api::{Api, DeleteParams, DynamicObject, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use e2e::shared_env::{ALL, MANAGEMENT_SIDE, SOON, SharedEnv, patch, refused, situation};

const ANNOTATION: &str = "hypershift.openshift.io/cluster";

fn annotated(value: Value) -> Value {
    json!({"metadata": {"annotations": {ANNOTATION: value}}})
}

/// Fails unless all conditions become False for this reason, and Azure was asked only whether the HostedCluster's
/// service exists.
async fn is_refused(shared_env: &SharedEnv, cluster: &HostedCluster, reason: &str) -> Result<()> {
    shared_env.refuses_all(cluster, &ALL, reason).await?;
    let service = cluster.link_service(&shared_env.test_env);
    let reads_the_service = |call: &Call| !call.is_write() && call.path.eq_ignore_ascii_case(&service);
    let calls = shared_env.calls_about(cluster).await?;
    ensure!(calls.len() <= 1 && calls.iter().all(reads_the_service), "{calls:?}");
    Ok(())
}

async fn correct_control_plane(shared_env: &SharedEnv, cluster: &HostedCluster, with: Value) -> Result<()> {
    let client = shared_env.test_env.client()?;
    let api = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    patch(&api, cluster.name(), with).await.map(drop)
}

#[rstest]
#[case::missing("unnamed", Value::Null, "InvalidSpec")]
#[case::not_a_name("misnamed", json!("no-slash"), "InvalidSpec")]
#[case::of_another_cluster("straying", json!("clusters/other"), "IdentityMismatch")]
fn cluster_annotation_that_does_not_lead_home(#[case] name: &str, #[case] annotation: Value, #[case] reason: &str) {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, name).with_control_plane(annotated(annotation));
        cluster.create(&shared_env.test_env).await?;
        is_refused(shared_env, &cluster, reason).await?;
        shared_env.has_condition(&cluster, "AzurePLSCreated", reason).await?;
        correct_control_plane(shared_env, &cluster, annotated(json!(format!("{NAMESPACE}/{name}")))).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn annotation_points_nowhere() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "nowhere").without_hosted_cluster();
        cluster.create(&shared_env.test_env).await?;
        is_refused(shared_env, &cluster, "HostedClusterNotFound").await?;
        shared_env
            .has_condition(&cluster, "AzurePLSCreated", "HostedClusterNotFound")
            .await?;
        cluster.create_hosted_cluster(&shared_env.test_env).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn hosted_cluster_and_control_plane_disagree_on_the_cluster_id() {
    situation(async |shared_env| {
        let other = json!({"spec": {"clusterID": "99999999-9999-4999-8999-999999999999"}});
        let cluster = HostedCluster::new(&shared_env.test_env, "torn").with_control_plane(other);
        cluster.create(&shared_env.test_env).await?;
        is_refused(shared_env, &cluster, "IdentityMismatch").await?;
        let calls = shared_env.test_env.oracle().journal(0).await?;
        ensure!(
            !calls.iter().any(|call| call.path.contains("99999999-9999")),
            "asked for the other id"
        );
        correct_control_plane(
            shared_env,
            &cluster,
            json!({"spec": {"clusterID": cluster.cluster_id()}}),
        )
        .await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn infra_id_makes_a_name_over_80_characters() {
    situation(async |shared_env| {
        let long = json!({"spec": {"infraID": "x".repeat(80)}});
        let cluster = HostedCluster::new(&shared_env.test_env, "infra-long")
            .with_hosted_cluster(long.clone())
            .with_control_plane(long);
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .refuses_all(&cluster, &MANAGEMENT_SIDE, "InvalidSpec")
            .await?;
        let calls = shared_env.test_env.oracle().journal(0).await?;
        ensure!(!calls.iter().any(|call| call.path.contains(&"x".repeat(80))));
        // The id can never change: the only remedy is to delete the cluster, and that works.
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}

/// A custom resource as somebody else's observer might have made it.
async fn foreign_made(
    shared_env: &SharedEnv,
    cluster: &HostedCluster,
    name: &str,
    network: &str,
) -> Result<Api<DynamicObject>> {
    let client = shared_env.test_env.client()?;
    let namespace = cluster.control_plane_namespace();
    let owner = cluster
        .api(&client, "HostedControlPlane", &namespace)
        .get(cluster.name())
        .await?;
    let azure = shared_env.test_env.azure();
    let object = json!({
        "apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
        "metadata": {"name": name, "annotations": {ANNOTATION: format!("{NAMESPACE}/{}", cluster.name())},
            "ownerReferences": [{"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
                "name": cluster.name(), "uid": owner.metadata.uid, "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"subscriptionID": azure.guest_subscription, "resourceGroupName": cluster.infra_id(),
            "location": azure.location, "loadBalancerIP": "10.224.0.4", "baseDomain": "apps.example.com",
            "guestVNetID": network, "guestSubnetID": format!("{network}/subnets/default")},
    });
    let api = cluster.api(&client, "AzurePrivateLinkService", &namespace);
    api.create(&PostParams::default(), &serde_json::from_value(object)?)
        .await?;
    Ok(api)
}

async fn all_refused(api: &Api<DynamicObject>, name: &str, reason: &str) -> Result<()> {
    eventually(&format!("{name} is refused"), SOON, || async {
        refused(&api.get(name).await?, &ALL, reason)
    })
    .await
}

async fn delete(api: &Api<DynamicObject>, name: &str) -> Result<()> {
    api.delete(name, &DeleteParams::default()).await?;
    eventually(&format!("{name} is gone"), SOON, || async {
        ensure!(api.get_opt(name).await?.is_none(), "it is there");
        Ok(())
    })
    .await
}

#[test]
fn arm_id_that_does_not_parse() {
    situation(async |shared_env| {
        let network = |cluster: &HostedCluster| format!("{}%2fx", cluster.vnet());
        let cluster = HostedCluster::new(&shared_env.test_env, "unparsable");
        // The cluster's own objects have the same id, so that the id is wrong and not the scope.
        let azure = json!({"vnetID": network(&cluster), "subnetID": format!("{}/subnets/default", network(&cluster))});
        let azure = json!({"spec": {"platform": {"azure": azure}}});
        let cluster = cluster.with_hosted_cluster(azure.clone()).with_control_plane(azure);
        cluster.create(&shared_env.test_env).await?;
        let api = foreign_made(shared_env, &cluster, "private-router", &network(&cluster)).await?;
        all_refused(&api, "private-router", "InvalidSpec").await?;
        shared_env.nobody_asked_about(&cluster).await?;
        // The field is immutable: the custom resource can only be deleted.
        delete(&api, "private-router").await?;
        shared_env.nobody_asked_about(&cluster).await
    });
}

#[test]
fn custom_resource_makes_a_name_over_80_characters() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "long-named").with_base_domain("long.example.com");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let name = "r".repeat(60);
        let api = foreign_made(shared_env, &cluster, &name, &cluster.vnet()).await?;
        all_refused(&api, &name, "InvalidSpec").await?;
        let calls = shared_env.calls_about(&cluster).await?;
        let asked = calls.iter().find(|call| call.path.contains(&name));
        ensure!(asked.is_none(), "{asked:?}");
        delete(&api, &name).await?;
        // The cluster's valid custom resource is not affected.
        let client = shared_env.test_env.client()?;
        cluster.get_link_service(&client).await?.context("no custom resource")?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
