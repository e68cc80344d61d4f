//! The Azure Service Operator, as far as upstream's CAPZ needs it: a `PrivateEndpoint` object for each private
//! endpoint, whose deletion deletes the private endpoint.

use std::sync::Arc;

use anyhow::{Context, Result};
use futures::future::BoxFuture;
use kube::api::{Api, DeleteParams, DynamicObject, ListParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Client, ResourceExt};
use serde_json::json;

use super::Reconcile;
use super::azure_cluster::AzureCluster;
use crate::capz_cluster::{AZURE_CLUSTER, api, entries, resource};
use crate::go_controllers::arm::Arm;

/// The operator's kind of private endpoints.
const PRIVATE_ENDPOINT: (&str, &str, &str) = ("network.azure.com", "v1api20220701", "PrivateEndpoint");
const FINALIZER: &str = "serviceoperator.azure.com/finalizer";
/// The annotation that holds the ARM id.
const RESOURCE_ID: &str = "serviceoperator.azure.com/resource-id";
/// The label of what CAPZ has made for a cluster.
const OWNED_BY: &str = "sigs.k8s.io/cluster-api-provider-azure-cluster";

/// The controller of these objects in a namespace.
pub(super) fn controller(client: &Client, namespace: &str, arm: &Arm) -> BoxFuture<'static, Result<()>> {
    let objects = api(client, namespace, PRIVATE_ENDPOINT);
    let reconciler = ServiceOperator {
        objects: objects.clone(),
        arm: arm.clone(),
    };
    super::controller(objects, resource(PRIVATE_ENDPOINT), Arc::new(reconciler))
}

struct ServiceOperator {
    objects: Api<DynamicObject>,
    arm: Arm,
}

impl Reconcile for ServiceOperator {
    async fn reconcile(&self, object: &DynamicObject) -> Result<Action> {
        if object.metadata.deletion_timestamp.is_some() && !object.finalizers().is_empty() {
            let id = object.annotations().get(RESOURCE_ID).context("no resource id")?;
            self.arm.delete(id).await?;
            let patch = Patch::Merge(json!({"metadata": {"finalizers": null}}));
            self.objects
                .patch(&object.name_any(), &PatchParams::default(), &patch)
                .await?;
        }
        Ok(Action::await_change())
    }
}

/// The name of the object of an entry.
fn object_name(entry: &str) -> String {
    let allowed = |letter: char| {
        if letter.is_ascii_alphanumeric() || letter == '-' {
            letter
        } else {
            '-'
        }
    };
    entry.to_lowercase().chars().map(allowed).collect()
}

/// Creates the objects that are missing, one for each entry.
pub(super) async fn create_objects(client: &Client, cluster: &AzureCluster<'_>) -> Result<()> {
    let owner = cluster.object;
    let (group, version, kind) = AZURE_CLUSTER;
    let (own_group, own_version, own_kind) = PRIVATE_ENDPOINT;
    let objects = api(client, &owner.namespace().unwrap_or_default(), PRIVATE_ENDPOINT);
    for (_, entry) in entries(owner) {
        let azure_name = entry["name"].as_str().unwrap_or_default();
        let name = object_name(azure_name);
        let object = json!({
            "apiVersion": format!("{own_group}/{own_version}"),
            "kind": own_kind,
            "metadata": {
                "name": name,
                "annotations": {RESOURCE_ID: cluster.network_id("privateEndpoints", azure_name)},
                "finalizers": [FINALIZER],
                "labels": {OWNED_BY: owner.name_any()},
                "ownerReferences": [{"apiVersion": format!("{group}/{version}"), "kind": kind,
                    "name": owner.name_any(), "uid": owner.uid(), "controller": true, "blockOwnerDeletion": true}],
            },
            "spec": {"azureName": azure_name, "location": entry["location"]},
        });
        let apply = PatchParams::apply("cluster-api-provider-azure-manager").force();
        objects.patch(&name, &apply, &Patch::Apply(object)).await?;
    }
    Ok(())
}

/// Asks for the deletion of all objects of a cluster.
pub(super) async fn delete_objects(client: &Client, cluster: &AzureCluster<'_>) -> Result<()> {
    let owner = cluster.object;
    let objects = api(client, &owner.namespace().unwrap_or_default(), PRIVATE_ENDPOINT);
    let own = ListParams::default().labels(&format!("{OWNED_BY}={}", owner.name_any()));
    objects.delete_collection(&DeleteParams::default(), &own).await?;
    Ok(())
}
