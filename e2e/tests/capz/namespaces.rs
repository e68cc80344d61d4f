//! A process for the workload clusters of one namespace, beside the operator that serves those of another.

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_controllers::{CONDITION, FINALIZER, ReferenceOperator};
use e2e::hyperlink::Hyperlink;
use e2e::scenario;
use kube::ResourceExt;
use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMESPACE, entry};
use crate::{SOON, becomes_true};

const SERVED: &str = "org-served";
const OTHER: &str = "org-other";

/// All of a cluster that Hyperlink could have changed.
async fn state(fleet: &Fleet, cluster: &CapzCluster) -> Result<Value> {
    let object = cluster.get(&fleet.env).await?;
    Ok(
        json!({"spec": object.data["spec"], "conditions": object.data["status"]["conditions"],
        "finalizers": object.finalizers(), "annotations": object.annotations()}),
    )
}

async fn leads_both_ways(fleet: &Fleet, cluster: &CapzCluster) -> Result<()> {
    let management = &fleet.management;
    fleet.is_reachable(&cluster.vnet(), &management.gateway_host()).await?;
    fleet.is_reachable(&management.vnet(), &cluster.api_host()).await
}

/// Fails if Hyperlink has ever written a cluster.
async fn never_written(fleet: &Fleet, cluster: &CapzCluster) -> Result<()> {
    let object = cluster.get(&fleet.env).await?;
    let managers = object.managed_fields().iter().filter_map(|one| one.manager.as_deref());
    let all: Vec<_> = managers.collect();
    ensure!(!all.is_empty(), "no managers");
    ensure!(!all.iter().any(|manager| manager.starts_with("hyperlink")), "{all:?}");
    Ok(())
}

#[test]
fn one_namespace_is_served_and_another_left_as_it_is() {
    scenario(async {
        let fleet = Fleet::across(&[SERVED, OTHER]).await?;
        let (env, management) = (&fleet.env, &fleet.management);
        let cluster = |namespace: &str, name: &str| CapzCluster::workload(namespace, name, LoadBalancer::Internal);
        let (served, old, new) = (cluster(SERVED, "served"), cluster(OTHER, "old"), cluster(OTHER, "new"));
        for other in [&old, &new] {
            other.create(env).await?;
            becomes_true(env, other, "PrivateLinksReady").await?;
        }
        ReferenceOperator::new(env, management).await?.serve(env, &old).await?;
        leads_both_ways(&fleet, &old).await?;
        // From then on CAPZ writes nothing more.
        becomes_true(env, &old, "PrivateEndpointsReady").await?;
        let before = (state(&fleet, &old).await?, fleet.entry_text(&entry(&old)).await?);

        // It has listed the others before this one is created.
        let flags = [("resync", "10s"), ("namespace", SERVED)];
        let all = [NAMESPACE, SERVED, OTHER];
        fleet.create_namespace(SERVED).await?;
        let hyperlink = Hyperlink::start_capz(env, management, &all, "first", &flags).await?;
        served.create(env).await?;
        fleet.is_connected(&served).await?;
        fleet.has_entries_and(&[entry(&served)], &[entry(&old)]).await?;

        served.delete(env, SOON).await?;
        fleet.has_entries_and(&[], &[entry(&old)]).await?;
        let after = (state(&fleet, &old).await?, fleet.entry_text(&entry(&old)).await?);
        ensure!(after == before, "{after:?} is not {before:?}");
        leads_both_ways(&fleet, &old).await?;
        let object = new.get(env).await?;
        ensure!(!object.finalizers().iter().any(|one| one == FINALIZER), "it is held");
        ensure!(new.conditions(env, CONDITION).await?.is_empty());
        for other in [&old, &new] {
            never_written(&fleet, other).await.context("in the other namespace")?;
        }
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
