//! Least privilege, measured: what role `capz` uses in a life is what its files grant, verb by verb in Kubernetes and
//! action by action in Azure.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};
use e2e::azure_sim::shipped_actions;
use e2e::azure_sim::used::used_actions;
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::{API_SERVER_IP, Settings};
use e2e::capz_env::FEDERATED_CLIENT;
use e2e::hyperlink::Hyperlink;
use e2e::rights::{Right, audit, granted_by, used_rights};
use e2e::{crds, eventually, roles, scenario};
use kube::ResourceExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::GroupVersionKind;
use kube::discovery::ApiResource;
use serde_json::json;

use crate::fleet::{Fleet, NAMESPACE, entry, workload};
use crate::{SOON, has_event, is_gone};

/// The files beside that of the role itself.
const MORE: [&str; 3] = [
    "role-capz-gates.yaml",
    "role-capz-secrets.yaml",
    "role-capz-delete.yaml",
];

/// The rights without the names of objects, and without those of leader election: they are the same for all roles.
fn own(rights: BTreeSet<Right>) -> BTreeSet<Right> {
    let unnamed = |right: Right| right.split(' ').take(2).collect::<Vec<_>>().join(" ");
    let mut own: BTreeSet<Right> = rights.into_iter().map(unnamed).collect();
    own.retain(|right| !right.contains("/leases ") || right.ends_with(" list"));
    own
}

/// A Cluster on a managed control plane, which does not exist.
fn managed(infrastructure: &str, control_plane: &str) -> CapzCluster {
    let name = infrastructure.to_lowercase();
    let reference = |kind: &str| json!({"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": kind, "name": name});
    CapzCluster::workload(NAMESPACE, &name, LoadBalancer::Public).with_cluster(json!({"spec": {
        "infrastructureRef": reference(infrastructure), "controlPlaneRef": reference(control_plane)}}))
}

/// A life in which all that the files are for happens.
async fn life(fleet: &Fleet) -> Result<()> {
    let env = &fleet.env;
    fleet.create_management().await?;
    let selector = json!({"spec": {"allowedNamespaces": {"list": null,
        "selector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}}}}});
    let cluster = workload("wc", IdentityType::WorkloadIdentity).with_identity(selector);
    let secret = workload("secret", IdentityType::ServicePrincipal);
    let hidden = workload("hidden", IdentityType::WorkloadIdentity).with_links(0);
    let managed = [
        managed("AzureManagedCluster", "AzureManagedControlPlane"),
        managed("AzureASOManagedCluster", "AzureASOManagedControlPlane"),
    ];
    roles::install_capz_in(env.control_plane().admin(), MORE[2], NAMESPACE).await?;
    let flags = [
        ("resync", "10s"),
        ("azure-cluster-gates", "PrivateLinksReady"),
        ("delete-dropped-endpoints", "true"),
    ];
    let hyperlink = Hyperlink::start_capz(env, &fleet.management, &[NAMESPACE], "first", &flags).await?;
    for cluster in [&cluster, &secret, &hidden] {
        cluster.create(env).await?;
    }
    for cluster in &managed {
        cluster.create_cluster(env).await?;
    }
    fleet.is_connected(&cluster).await?;
    fleet.is_connected(&secret).await?;
    hidden.annotate(env, API_SERVER_IP, Some("10.0.0.4")).await?;
    let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("azure.upbound.io", "v1beta1", "ProviderConfig"));
    let configs: Api<DynamicObject> = Api::all_with(env.client()?, &kind);
    let drifted = Patch::Merge(json!({"spec": {"clientID": "somebody"}}));
    configs.patch("wc", &PatchParams::default(), &drifted).await?;
    eventually("the ProviderConfig is repaired", SOON, || async {
        let found = configs.get("wc").await?;
        ensure!(found.data["spec"]["clientID"] != "somebody", "{}", found.name_any());
        Ok(())
    })
    .await?;
    eventually("the address without a link is removed", SOON, || async {
        let found = hidden.annotation(env, API_SERVER_IP).await?;
        ensure!(found.is_none(), "{found:?}");
        Ok(())
    })
    .await?;
    cluster.delete(env, SOON).await?;
    is_gone(env, &fleet.management.endpoint(&entry(&cluster))).await?;
    has_event(env, NAMESPACE, "Deleted", "whose entry was removed, is being deleted").await?;
    hyperlink.stop().await
}

#[test]
fn rights_used_in_a_life_are_the_rights_granted() {
    scenario(async {
        let fleet = Fleet::beside(Settings::UPSTREAM, LoadBalancer::Internal).await?;
        crds::serve_provider_configs(&fleet.env.client()?, true).await?;
        let before = audit(fleet.env.control_plane())?.len();
        life(&fleet).await?;
        let audited = audit(fleet.env.control_plane())?;
        let granted = own(granted_by("capz", &MORE)?);
        let used = own(used_rights(&audited[before..], "capz")?);
        let missing: Vec<_> = used.difference(&granted).collect();
        let unused: Vec<_> = granted.difference(&used).collect();
        ensure!(
            missing.is_empty() && unused.is_empty(),
            "missing: {missing:?}; not used: {unused:?}"
        );
        let calls = fleet.env.oracle().journal(0).await?;
        let in_azure = used_actions(&calls, FEDERATED_CLIENT)?;
        let shipped = BTreeSet::from_iter(shipped_actions("capz")?);
        ensure!(in_azure == shipped, "used: {in_azure:?}; granted: {shipped:?}");
        fleet.only_reads().await?;
        fleet.stop().await
    });
}
