//! The real manager of kubeadm control planes, whose pause is what Hyperlink sets.

use anyhow::{Result, ensure};
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_env::{KubeadmManager, situation};
use e2e::{CapzEnv, crds, eventually};
use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use serde_json::json;

use crate::SOON;

const PAUSED: &str = "cluster.x-k8s.io/paused";

/// Waits until the manager has reconciled a control plane that is paused.
pub(crate) async fn shows_pause(env: &CapzEnv, cluster: &CapzCluster) -> Result<()> {
    let control_planes = cluster.control_planes(&env.client()?);
    eventually("the pause is shown", SOON, || async {
        let found = control_planes.get(cluster.name()).await?;
        let conditions = found.data["status"]["conditions"]
            .as_array()
            .cloned()
            .unwrap_or_default();
        let shown = conditions
            .iter()
            .any(|one| one["type"] == "Paused" && one["status"] == "True");
        ensure!(shown, "{conditions:?}");
        Ok(())
    })
    .await
}

#[test]
fn kubeadm_leaves_a_paused_control_plane_alone() {
    situation(|env| async move {
        if !crds::capi::are_real() {
            e2e::scenario::skipped("no CRDs of CAPZ at hand, so none of Cluster API are installed");
            return Ok(());
        }
        let namespace = "kubeadm";
        let patch = json!({"metadata": {"annotations": {PAUSED: "true"}}});
        let paused = CapzCluster::workload(namespace, "paused", LoadBalancer::Internal).with_control_plane(patch);
        let other = CapzCluster::workload(namespace, "other", LoadBalancer::Internal);
        for cluster in [&paused, &other] {
            cluster.create_objects(env).await?;
            cluster.set_provisioned(env).await?;
        }
        let manager = KubeadmManager::start(env, namespace).await?;
        let secrets: Api<Secret> = Api::namespaced(env.client()?, namespace);
        let has_authority = async |name: &str| {
            let found = secrets.get_opt(&format!("{name}-ca")).await?;
            ensure!(found.is_some(), "no Secret of {name}\n{}", manager.process().log_tail());
            Ok(())
        };
        eventually("the other control plane has an authority", SOON, || {
            has_authority("other")
        })
        .await?;
        shows_pause(env, &paused).await?;
        ensure!(
            has_authority("paused").await.is_err(),
            "it is created in spite of the pause"
        );

        let resumed = kube::api::Patch::Merge(json!({"metadata": {"annotations": {PAUSED: null}}}));
        let control_planes = paused.control_planes(&env.client()?);
        control_planes.patch("paused", &Default::default(), &resumed).await?;
        eventually("the resumed one has an authority", SOON, || has_authority("paused")).await?;
        manager.process().check()
    });
}
