//! A Cluster API that serves its kinds in an older version alone, and one that is upgraded.

use anyhow::{Result, ensure};
use e2e::azure_sim::Preset;
use e2e::capz_cluster::{CapzCluster, LoadBalancer};
use e2e::capz_env::{FEDERATED_CLIENT, TENANT, WORKLOAD};
use e2e::hyperlink::Hyperlink;
use e2e::{CapzEnv, crds, eventually, scenario};
use kube::ResourceExt;
use kube::api::{Api, ApiResource, DynamicObject, GroupVersionKind, Patch};
use serde_json::json;

use crate::SOON;
use crate::gates::{GATES, PAUSED, is_paused};
use crate::provider_configs::{FINALIZER, has_ids};

const NAMESPACE: &str = "versions";

/// A kind of Cluster API in the older version.
fn older(env: &CapzEnv, group: &str, kind: &str) -> Result<Api<DynamicObject>> {
    let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, "v1beta1", kind));
    Ok(Api::namespaced_with(env.client()?, NAMESPACE, &resource))
}

#[test]
fn older_cluster_api_is_served_until_it_is_upgraded() {
    scenario(async {
        if !crds::capi::are_real() {
            e2e::scenario::skipped("no CRDs of CAPZ at hand, so there is one version of Cluster API");
            return Ok(());
        }
        let env = CapzEnv::local(Preset::Fast).await?;
        let client = env.client()?;
        crds::serve_provider_configs(&client, true).await?;
        let management = CapzCluster::management(NAMESPACE, "versions-mc", LoadBalancer::Internal);
        let cluster = CapzCluster::workload(NAMESPACE, "versions-wc", LoadBalancer::Public);
        for cluster in [&management, &cluster] {
            cluster.create_objects(&env).await?;
        }
        crds::capi::serve_version(&client, "v1beta1").await?;
        let flags = [GATES[0], ("resync", "5s")];
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "older", &flags).await?;
        has_ids(&env, cluster.name(), [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        let found = older(&env, "cluster.x-k8s.io", "Cluster")?.get(cluster.name()).await?;
        ensure!(found.finalizers().iter().any(|one| one == FINALIZER));
        let control_planes = older(&env, "controlplane.cluster.x-k8s.io", "KubeadmControlPlane")?;
        let has_pause = async |expected: bool| {
            eventually("its pause is as expected", SOON, || async {
                let found = control_planes.get(cluster.name()).await?;
                let is_paused = found.annotations().contains_key(PAUSED);
                ensure!(is_paused == expected, "{:?}", found.annotations());
                Ok(())
            })
            .await
        };
        has_pause(true).await?;
        // The field has another name in the newer version.
        let begun = Patch::Merge(json!({"status": {"initialized": true}}));
        control_planes
            .patch_status(cluster.name(), &Default::default(), &begun)
            .await?;
        has_pause(false).await?;

        crds::capi::serve_version(&client, "v1beta2").await?;
        let status = hyperlink.process().wait(SOON).await?;
        ensure!(!status.success(), "{status}");
        let log = hyperlink.process().log_tail();
        ensure!(log.contains("Cluster API is served as v1beta2 now"), "{log}");
        let second = CapzCluster::workload(NAMESPACE, "versions-new", LoadBalancer::Public);
        second.create_objects(&env).await?;
        let hyperlink = Hyperlink::start_capz(&env, &management, &[NAMESPACE], "newer", &flags).await?;
        is_paused(&env, &second, Some("true"), Some("VNetReady,SubnetsReady")).await?;
        has_ids(&env, second.name(), [FEDERATED_CLIENT, WORKLOAD, TENANT]).await?;
        hyperlink.stop().await
    });
}
