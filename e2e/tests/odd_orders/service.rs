//! A Service that waits long for its address, and gets a host name before: looked at when it changes, not in a loop.

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::site::{SOON, Site, patch, situation};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

const NAME: &str = "private-router";

/// How often the guest side has asked the API server about the cluster's control plane.
fn passes(site: &Site, cluster: &HostedCluster) -> Result<usize> {
    let log = std::fs::read_to_string(site.ground.control_plane().audit_log())?;
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

/// The cluster makes no work, and nobody takes it for more than it is.
async fn rests(site: &Site, cluster: &HostedCluster, before: usize) -> Result<()> {
    let more = passes(site, cluster)? - before;
    ensure!(more <= 5, "{more} passes over a cluster that does not change");
    let client = site.ground.client()?;
    ensure!(cluster.get_link_service(&client).await?.is_none(), "a custom resource");
    site.nobody_asked_about(cluster).await
}

fn services(client: &kube::Client, cluster: &HostedCluster) -> Api<DynamicObject> {
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("", "v1", "Service"));
    Api::namespaced_with(client.clone(), &cluster.control_plane_namespace(), &kind)
}

#[test]
fn service_waits_gets_a_host_name_and_then_an_address() {
    situation(async |site| {
        // The cloud provider leaves Services of another class alone.
        let class = json!({"spec": {"loadBalancerClass": "example.com/slow"}});
        let cluster = HostedCluster::new(&site.ground, "addressless").with_services(class);
        cluster.create(&site.ground).await?;
        // As long as another cluster comes up.
        let before = passes(site, &cluster)?;
        let neighbour = HostedCluster::new(&site.ground, "beside-a-wait");
        neighbour.create(&site.ground).await?;
        site.heals(&neighbour).await?;
        rests(site, &cluster, before).await?;

        let client = site.ground.client()?;
        let api = services(&client, &cluster);
        let named = json!({"status": {"loadBalancer": {"ingress": [{"hostname": "lb.example.com"}]}}});
        api.patch_status(NAME, &PatchParams::default(), &Patch::Merge(&named))
            .await?;
        // As long as it goes.
        let before = passes(site, &cluster)?;
        neighbour.delete(&site.ground, SOON).await?;
        rests(site, &cluster, before).await?;

        // A class can change only on the way over another type.
        patch(
            &api,
            NAME,
            json!({"spec": {"type": "ClusterIP", "loadBalancerClass": null}}),
        )
        .await?;
        patch(&api, NAME, json!({"spec": {"type": "LoadBalancer"}})).await?;
        site.heals(&cluster).await?;
        cluster.delete(&site.ground, SOON).await?;
        site.nothing_is_left_of(&cluster, &[]).await
    });
}
