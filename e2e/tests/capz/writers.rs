//! Others that write AzureClusters: CAPZ from an outdated read, Helm; and what becomes of a dropped entry's endpoint.

use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::capz_cluster::{CapzCluster, LoadBalancer, NODE_SUBNET};
use e2e::capz_controllers::{Capz, Settings, link_entry, upgrade};
use e2e::capz_env::situation;
use e2e::{CapzEnv, eventually};
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::{SOON, becomes_true, endpoint_becomes, is_gone};

/// A management cluster and a private workload cluster whose link is ready, with an entry for it that has become a
/// private endpoint.
struct Connected {
    management: CapzCluster,
    capz: Capz,
    entry: String,
}

impl Connected {
    async fn new(env: &CapzEnv, namespace: &str, settings: Settings) -> Result<Self> {
        let management = CapzCluster::management(namespace, &format!("{namespace}-mc"), LoadBalancer::Public);
        let workload = CapzCluster::workload(namespace, &format!("{namespace}-wc"), LoadBalancer::Internal);
        management.create(env).await?;
        workload.create(env).await?;
        let capz = Capz::start(env, &[namespace], settings).await?;
        becomes_true(env, &workload, "PrivateLinksReady").await?;
        let entry = link_entry(&management, &workload, workload.links()[0].name());
        management.add_entry(env, &entry).await?;
        let entry = entry["name"].as_str().unwrap().to_owned();
        endpoint_becomes(env, &management, &entry, "Approved").await?;
        Ok(Self {
            management,
            capz,
            entry,
        })
    }
}

fn service_operator(env: &CapzEnv, namespace: &str) -> Result<Api<DynamicObject>> {
    let kind = GroupVersionKind::gvk("network.azure.com", "v1api20220701", "PrivateEndpoint");
    Ok(Api::namespaced_with(
        env.client()?,
        namespace,
        &ApiResource::from_gvk(&kind),
    ))
}

#[test]
fn fork_deletes_the_endpoint_of_a_dropped_entry() {
    situation(|env| async move {
        let Connected {
            management,
            capz,
            entry,
        } = Connected::new(env, "fork", Settings::FORK).await?;
        management.remove_entry(env, &entry).await?;
        is_gone(env, &management.endpoint(&entry)).await?;
        capz.stop().await
    });
}

#[test]
fn upstream_leaves_an_endpoint_until_its_object_is_deleted() {
    situation(|env| async move {
        let Connected {
            management,
            capz,
            entry,
        } = Connected::new(env, "upstream", Settings::UPSTREAM).await?;
        let objects = service_operator(env, "upstream")?;
        eventually("it has an object", SOON, || async {
            Ok(objects.get(&entry).await.map(drop)?)
        })
        .await?;
        management.remove_entry(env, &entry).await?;
        // A later entry, which becomes an endpoint, shows that CAPZ has read the removal.
        let later = management.entry("later", "later", &format!("{}-none", management.vnet()));
        management.add_entry(env, &later).await?;
        eventually("CAPZ has read both", SOON, || async {
            let found = management.conditions(env, "PrivateEndpointsReady").await?;
            ensure!(found.iter().any(|one| one["status"] == "False"), "{found:?}");
            Ok(())
        })
        .await?;
        ensure!(!env.oracle().resources(&management.endpoint(&entry)).await?.is_empty());
        objects.delete(&entry, &DeleteParams::default()).await?;
        is_gone(env, &management.endpoint(&entry)).await?;
        capz.stop().await
    });
}

#[test]
fn late_capz_with_outdated_reads_catches_up() {
    situation(|env| async move {
        let settings = Settings {
            stale_by: 3,
            delay: Duration::from_millis(200),
            ..Settings::FORK
        };
        let cluster = CapzCluster::workload("late", "late", LoadBalancer::Internal);
        cluster.create(env).await?;
        let capz = Capz::start(env, &["late"], settings).await?;
        becomes_true(env, &cluster, "PrivateLinksReady").await?;
        eventually("each subnet has its id", SOON, || async {
            let subnets = cluster.get(env).await?.data["spec"]["networkSpec"]["subnets"].clone();
            let mut all = subnets.as_array().unwrap().iter();
            ensure!(all.all(|subnet| subnet["id"].is_string()), "{subnets}");
            Ok(())
        })
        .await?;
        capz.stop().await
    });
}

#[test]
fn outdated_read_of_capz_drops_the_last_entry() {
    situation(|env| async move {
        let Connected {
            management,
            capz,
            entry,
        } = Connected::new(env, "outdated", Settings::FORK).await?;
        becomes_true(env, &management, "PrivateEndpointsReady").await?;
        let service = "/subscriptions/none/resourceGroups/none/providers/Microsoft.Network/privateLinkServices/none";
        capz.pause();
        management
            .add_entry(env, &management.entry("new", "new", service))
            .await?;
        capz.rewrite_subnets(&management, 0).await?;
        ensure!(management.entry_names(env).await? == [entry.as_str(), "new"]);
        capz.rewrite_subnets(&management, 1).await?;
        ensure!(management.entry_names(env).await? == [entry.as_str()]);
        capz.stop().await
    });
}

#[test]
fn outdated_read_of_capz_drops_conditions_of_others() {
    situation(|env| async move {
        let Connected { management, capz, .. } = Connected::new(env, "conditions", Settings::FORK).await?;
        becomes_true(env, &management, "PrivateEndpointsReady").await?;
        capz.pause();
        management.set_conditions(env, &[("Another", "True")]).await?;
        capz.rewrite_conditions(&management, 0).await?;
        management.has_true(env, "Another").await?;
        capz.rewrite_conditions(&management, 1).await?;
        ensure!(management.conditions(env, "Another").await?.is_empty());
        management.has_true(env, "PrivateEndpointsReady").await?;
        capz.stop().await
    });
}

#[test]
fn helm_replaces_all_subnets() {
    situation(|env| async move {
        let Connected {
            management,
            capz,
            entry,
        } = Connected::new(env, "helm", Settings::FORK).await?;
        capz.pause();
        ensure!(management.entry_names(env).await? == [entry]);
        let values = json!([{"name": NODE_SUBNET, "role": "node", "cidrBlocks": ["10.0.0.0/17"],
            "serviceEndpoints": [{"service": "Microsoft.Storage", "locations": ["*"]}]}]);
        upgrade(env, &management, &values).await?;
        let subnets: Value = management.get(env).await?.data["spec"]["networkSpec"]["subnets"].clone();
        ensure!(subnets == values, "{subnets}");
        capz.stop().await
    });
}

#[test]
fn paused_capz_makes_endpoints_when_it_resumes() {
    situation(|env| async move {
        let Connected {
            management,
            capz,
            entry,
        } = Connected::new(env, "pause", Settings::FORK).await?;
        capz.pause();
        management.remove_entry(env, &entry).await?;
        let since = env.oracle().last_call().await?;
        management.annotate(env, "example.com/event", Some("one")).await?;
        ensure!(!env.oracle().resources(&management.endpoint(&entry)).await?.is_empty());
        let calls = env.oracle().journal(since).await?;
        ensure!(!calls.iter().any(|call| call.path.contains("pause-mc")), "{calls:?}");
        capz.resume();
        is_gone(env, &management.endpoint(&entry)).await?;
        capz.stop().await
    });
}
