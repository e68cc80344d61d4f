//! New control planes wait for the gates of their AzureCluster, before the real manager of kubeadm control planes.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_env::KubeadmManager;
use e2e::hyperlink::Hyperlink;
use e2e::{CapzEnv, crds, eventually, scenario};
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, ListParams, Patch};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};

use crate::kubeadm::shows_pause;
use crate::{SOON, has_event};

const NAMESPACE: &str = "gates";
pub(crate) const PAUSED: &str = "cluster.x-k8s.io/paused";
const PAUSED_HERE: &str = "hyperlink.hypershift.openshift.io/capz-paused";
/// Within this time, a control plane begins once its gates are open.
const BEGINS: Duration = Duration::from_secs(10);
pub(crate) const GATES: [(&str, &str); 1] = [("azure-cluster-gates", "VNetReady,SubnetsReady")];

/// Waits until a control plane has just these annotations of a pause.
pub(crate) async fn is_paused(
    env: &CapzEnv,
    cluster: &CapzCluster,
    paused: Option<&str>,
    here: Option<&str>,
) -> Result<()> {
    let api = cluster.control_planes(&env.client()?);
    eventually("the pause is as expected", SOON, || async {
        let found = api.get(cluster.name()).await?;
        let shown = [PAUSED, PAUSED_HERE].map(|name| found.annotations().get(name).map(String::as_str));
        ensure!(shown == [paused, here], "{shown:?}");
        Ok(())
    })
    .await
}

/// What the manager of kubeadm control planes has made for a cluster.
async fn made(env: &CapzEnv, cluster: &CapzCluster) -> Result<Vec<String>> {
    let client = env.client()?;
    let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("cluster.x-k8s.io", "v1beta2", "Machine"));
    let machines: Api<DynamicObject> = Api::namespaced_with(client, NAMESPACE, &kind);
    let authority = secrets.get_opt(&format!("{}-ca", cluster.name())).await?;
    let own = ListParams::default().labels(&format!("cluster.x-k8s.io/cluster-name={}", cluster.name()));
    let machines = machines.list(&own).await?.items;
    let names = authority.map(|secret| secret.name_any()).into_iter();
    Ok(names.chain(machines.iter().map(ResourceExt::name_any)).collect())
}

/// Two new control planes: one that is held for its gates from its creation on, and one that a person has paused.
async fn paused_from_the_start(env: &CapzEnv) -> Result<[CapzCluster; 2]> {
    let held = json!({"metadata": {"annotations": {PAUSED: "true", PAUSED_HERE: "new"}}});
    let theirs = json!({"metadata": {"annotations": {PAUSED: "true"}}});
    let both = [("gated", held), ("foreign", theirs)]
        .map(|(name, patch)| CapzCluster::workload(NAMESPACE, name, LoadBalancer::Internal).with_control_plane(patch));
    for cluster in &both {
        cluster.create_objects(env).await?;
        cluster.set_provisioned(env).await?;
    }
    Ok(both)
}

#[test]
fn control_plane_begins_when_its_gates_are_open() {
    scenario(async {
        if !crds::capi::are_real() {
            e2e::scenario::skipped("no CRDs of CAPZ at hand, so none of Cluster API are installed");
            return Ok(());
        }
        let env = CapzEnv::local(Preset::Fast).await?;
        let management = CapzCluster::management(NAMESPACE, "mc", LoadBalancer::Internal);
        management.create(&env).await?;
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &GATES).await?;
        let [gated, foreign] = paused_from_the_start(&env).await?;
        is_paused(&env, &gated, Some("true"), Some("VNetReady,SubnetsReady")).await?;
        let manager = KubeadmManager::start(&env, NAMESPACE).await?;
        gated
            .set_conditions(&env, &[("VNetReady", "True"), ("SubnetsReady", "False")])
            .await?;
        is_paused(&env, &gated, Some("true"), Some("SubnetsReady")).await?;
        for cluster in [&gated, &foreign] {
            shows_pause(&env, cluster).await?;
        }
        let begun = made(&env, &gated).await?;
        ensure!(begun.is_empty(), "before its gates are open: {begun:?}");

        for cluster in [&gated, &foreign] {
            cluster
                .set_conditions(&env, &[("VNetReady", "True"), ("SubnetsReady", "True")])
                .await?;
        }
        eventually("it begins", BEGINS, || async {
            let begun = made(&env, &gated).await?;
            ensure!(!begun.is_empty(), "{}", manager.process().log_tail());
            Ok(())
        })
        .await?;
        is_paused(&env, &gated, None, None).await?;
        is_paused(&env, &foreign, Some("true"), None).await?;
        has_event(&env, NAMESPACE, "PauseNotOurs", "somebody else has paused").await?;
        let begun = made(&env, &foreign).await?;
        ensure!(begun.is_empty(), "a person's pause has ended: {begun:?}");
        hyperlink.stop().await
    });
}

#[test]
fn pause_ends_with_the_creation_of_the_control_plane() {
    scenario(async {
        let env = CapzEnv::local(Preset::Fast).await?;
        let management = CapzCluster::management(NAMESPACE, "mc", LoadBalancer::Internal);
        let cluster = CapzCluster::workload(NAMESPACE, "wc", LoadBalancer::Internal);
        for cluster in [&management, &cluster] {
            cluster.create_objects(&env).await?;
        }
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &GATES).await?;
        is_paused(&env, &cluster, Some("true"), Some("VNetReady,SubnetsReady")).await?;
        // Somebody lets it go on, and it is held again as long as it has not begun.
        let resumed = Patch::Merge(json!({"metadata": {"annotations": {PAUSED: null}}}));
        let api = cluster.control_planes(&env.client()?);
        api.patch(cluster.name(), &Default::default(), &resumed).await?;
        is_paused(&env, &cluster, Some("true"), Some("VNetReady,SubnetsReady")).await?;
        cluster.set_initialized(&env, true).await?;
        is_paused(&env, &cluster, None, None).await?;
        hyperlink.stop().await
    });
}

/// Waits until the process has reconciled control planes.
async fn are_reconciled(hyperlink: &Hyperlink) -> Result<()> {
    let series = "hyperlink_reconcile_total{controller=\"kubeadm_control_plane\",result=\"ready\"} ";
    eventually("control planes are reconciled", SOON, || async {
        let (_, metrics) = hyperlink.page("/metrics").await?;
        let count = metrics.lines().find_map(|line| line.strip_prefix(series));
        ensure!(count.is_some_and(|count| count != "0"), "{count:?}");
        Ok(())
    })
    .await
}

#[test]
fn control_plane_waits_once_it_is_served() {
    scenario(async {
        let env = CapzEnv::local(Preset::Fast).await?;
        let management = CapzCluster::management(NAMESPACE, "mc", LoadBalancer::Public);
        let new = |name: &str, metadata: Value| {
            CapzCluster::workload(NAMESPACE, name, LoadBalancer::Internal)
                .with_control_plane(json!({"metadata": metadata}))
        };
        let owned = new("owned", json!({}));
        let orphan = new("orphan", json!({"ownerReferences": null}));
        let ended = new("ended", json!({"finalizers": ["example.com/theirs"]}));
        for cluster in [&management, &owned, &orphan, &ended] {
            cluster.create_objects(&env).await?;
        }
        let api = owned.control_planes(&env.client()?);
        let owners = api.get("owned").await?.metadata.owner_references;
        api.delete("ended", &Default::default()).await?;
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "first", &GATES).await?;
        are_reconciled(&hyperlink).await?;
        is_paused(&env, &owned, None, None).await?;

        let private = json!({"spec": {"networkSpec": {"apiServerLB": {"type": "Internal"}}}});
        management.patch(&env, &private).await?;
        is_paused(&env, &owned, Some("true"), Some("VNetReady,SubnetsReady")).await?;
        is_paused(&env, &orphan, None, None).await?;
        let mut owner = owners.context("no owner")?.remove(0);
        let clusters = orphan.clusters(&env.client()?);
        owner.name = "orphan".to_owned();
        owner.uid = clusters.get("orphan").await?.uid().context("no uid")?;
        let adopted = Patch::Merge(json!({"metadata": {"ownerReferences": [owner]}}));
        api.patch("orphan", &Default::default(), &adopted).await?;
        is_paused(&env, &orphan, Some("true"), Some("VNetReady,SubnetsReady")).await?;
        is_paused(&env, &ended, None, None).await?;
        hyperlink.stop().await
    });
}
