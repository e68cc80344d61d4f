//! A Service that waits long for its address, and gets a host name before: reconciled when it changes, not in a loop.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::shared_env::{SOON, SharedEnv, patch, situation};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

const NAME: &str = "private-router";

/// How often the guest side has asked the API server about the cluster's control plane.
fn reconciles(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<usize> {
    let log = std::fs::read_to_string(shared_env.test_env.control_plane().audit_log())?;
    // The last line may be half written.
    let lines = log.rsplit_once('\n').context("an audit log")?.0.lines();
    let path = format!(
        "/namespaces/{}/hostedcontrolplanes/{}",
        cluster.control_plane_namespace(),
        cluster.name()
    );
    let events: Vec<Value> = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
    let asks = |event: &&Value| {
        let agent = event["userAgent"].as_str().unwrap_or_default();
        let uri = event["requestURI"].as_str().unwrap_or_default();
        agent.starts_with("hyperlink") && event["verb"] == "get" && uri.ends_with(&path)
    };
    Ok(events.iter().filter(asks).count())
}

/// Fails unless the cluster needs almost no reconciles, and has neither a custom resource nor calls to Azure.
async fn is_idle(shared_env: &SharedEnv, cluster: &HostedCluster, before: usize) -> Result<()> {
    let more = reconciles(shared_env, cluster)? - before;
    ensure!(more <= 5, "{more} passes over a cluster that does not change");
    let client = shared_env.test_env.client()?;
    ensure!(cluster.get_link_service(&client).await?.is_none(), "a custom resource");
    shared_env.nobody_asked_about(cluster).await
}

fn services(client: &kube::Client, cluster: &HostedCluster) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"));
    Api::namespaced_with(client.clone(), &cluster.control_plane_namespace(), &kind)
}

#[test]
fn service_waits_gets_a_host_name_and_then_an_address() {
    situation(async |shared_env| {
        // The cloud provider leaves Services of another class alone.
        let class = json!({"spec": {"loadBalancerClass": "example.com/slow"}});
        let cluster = HostedCluster::new(&shared_env.test_env, "addressless").with_services(class);
        cluster.create(&shared_env.test_env).await?;
        // For as long as the creation of another cluster takes.
        let before = reconciles(shared_env, &cluster)?;
        let other_cluster = HostedCluster::new(&shared_env.test_env, "beside-a-wait");
        other_cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&other_cluster).await?;
        is_idle(shared_env, &cluster, before).await?;

        let client = shared_env.test_env.client()?;
        let api = services(&client, &cluster);
        let named = json!({"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}});
        api.patch_status(NAME, &PatchParams::default(), &Patch::Merge(&named))
            .await?;
        // For as long as the deletion of the other cluster takes.
        let before = reconciles(shared_env, &cluster)?;
        other_cluster.delete(&shared_env.test_env, SOON).await?;
        is_idle(shared_env, &cluster, before).await?;

        // The class can change only together with the type.
        patch(
            &api,
            NAME,
            json!({"spec": {"type": "ClusterIP", "loadBalancerClass": null}}),
        )
        .await?;
        patch(&api, NAME, json!({"spec": {"type": "LoadBalancer"}})).await?;
        shared_env.heals(&cluster).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[]).await
    });
}
