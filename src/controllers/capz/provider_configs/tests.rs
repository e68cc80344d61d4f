//! What is written for a Cluster, and what is not.

use serde_json::{Value, json};

use super::super::identities::Identities;
use super::super::reference_lease::ReferenceLease;
use super::super::tests::{NAMESPACE, Server, context, identity_settings, store};
use super::*;
use crate::api::capi::AzureManagedControlPlane;
use crate::capz::samples::{Sample, management, workload};

fn cluster(patch: &Value) -> Value {
    let mut object = json!({"metadata": {"name": "wc", "namespace": NAMESPACE, "uid": "c", "resourceVersion": "1"},
        "spec": {"infrastructureRef": {"kind": "AzureCluster", "name": "wc"}}});
    json_patch::merge(&mut object, patch);
    object
}

fn identity() -> AzureClusterIdentity {
    let object = json!({"metadata": {"name": "wc", "namespace": NAMESPACE, "uid": "i"},
        "spec": {"type": "WorkloadIdentity", "tenantID": "123", "clientID": "456",
            "allowedNamespaces": {"list": [NAMESPACE]}}});
    serde_json::from_value(object).unwrap()
}

/// A provider for Clusters made of this AzureCluster.
fn provider(server: &Server, azure_cluster: &Sample, reference: ReferenceLease) -> Provider {
    let mut cx = context(server, &[&management(), azure_cluster]);
    cx.identities = Identities::new(identity_settings(), store([identity()]));
    cx.reference = reference;
    let provider = Provider::new(server.runtime(), Arc::new(cx));
    assert!(provider.begins(true));
    provider
}

/// Reconciles a Cluster once; `azure_cluster` is what it is made of.
async fn reconcile(server: &Server, azure_cluster: &Sample, cluster: Value) -> Reconciled {
    let provider = provider(server, azure_cluster, ReferenceLease::free());
    provider.reconcile(&serde_json::from_value(cluster).unwrap()).await
}

#[tokio::test]
async fn cluster_is_held_before_it_has_a_provider_config() {
    let server = Server::default();
    server.put::<Cluster>(&cluster(&json!({})));
    reconcile(&server, &workload("wc"), cluster(&json!({}))).await.unwrap();
    assert_eq!(server.changed(), ["wc", "providerconfigs"]);
    let finalizers = &server.get::<Cluster>("wc")["metadata"]["finalizers"];
    assert_eq!(*finalizers, json!([PROVIDER_CONFIG_FINALIZER]));
}

#[tokio::test]
async fn paused_cluster_has_no_provider_config() {
    let (server, paused) = (Server::default(), cluster(&json!({"spec": {"paused": true}})));
    server.put::<Cluster>(&paused);
    reconcile(&server, &workload("wc"), paused).await.unwrap();
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test]
async fn cluster_that_is_gone_has_no_provider_config() {
    let server = Server::default();
    let ended = reconcile(&server, &workload("wc"), cluster(&json!({}))).await;
    assert!(ended.is_err_and(|error| error.conflict()));
    server.put::<Cluster>(&cluster(&json!({"metadata": {"uid": "another"}})));
    let ended = reconcile(&server, &workload("wc"), cluster(&json!({}))).await;
    assert!(ended.is_err_and(|error| error.conflict()));
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test]
async fn cluster_without_an_identity_is_read_again_with_the_resync() {
    let server = Server::default();
    server.put::<Cluster>(&cluster(&json!({})));
    let without = workload("wc").with("/spec/identityRef", json!(null));
    let (result, requeue) = reconcile(&server, &without, cluster(&json!({}))).await.unwrap();
    assert_eq!(result, ReconcileResult::Refused);
    assert_eq!(requeue.map(|requeue| requeue.why), Some(Requeue::RESYNC));
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test]
async fn cluster_named_default_has_no_provider_config() {
    let (server, default) = (Server::default(), cluster(&json!({"metadata": {"name": "default"}})));
    server.put::<Cluster>(&default);
    let (result, _) = reconcile(&server, &workload("wc"), default).await.unwrap();
    assert_eq!(result, ReconcileResult::Refused);
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test]
async fn other_operator_that_leads_writes_the_provider_configs() {
    let server = Server::default();
    let deletes = cluster(
        &json!({"metadata": {"name": "gone", "deletionTimestamp": "2026-01-05T00:00:00Z",
        "finalizers": [PROVIDER_CONFIG_FINALIZER]}}),
    );
    let provider = provider(&server, &workload("wc"), ReferenceLease::default());
    for object in [cluster(&json!({})), deletes] {
        server.put::<Cluster>(&object);
        let (result, again) = provider
            .reconcile(&serde_json::from_value(object).unwrap())
            .await
            .unwrap();
        assert_eq!(result, ReconcileResult::Waiting);
        assert!(again.is_some());
    }
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test]
async fn provider_configs_that_are_served_again_are_read_again() {
    let (server, object) = (
        Server::default(),
        cluster(&json!({"metadata": {"finalizers": [PROVIDER_CONFIG_FINALIZER]}})),
    );
    server.put::<Cluster>(&object);
    let provider = provider(&server, &workload("wc"), ReferenceLease::free());
    let object: Cluster = serde_json::from_value(object).unwrap();
    let reconcile = || provider.reconcile(&object);
    for _ in 0..2 {
        reconcile().await.unwrap();
    }
    assert_eq!(server.changed(), ["providerconfigs"]);
    assert!(!provider.begins(false));
    reconcile().await.unwrap();
    assert!(provider.begins(true) && !provider.begins(true));
    reconcile().await.unwrap();
    assert_eq!(server.changed(), ["providerconfigs", "providerconfigs"]);
}

#[tokio::test]
async fn identity_wakes_the_clusters_that_were_read_with_it() {
    let server = Server::default();
    let managed = cluster(&json!({"metadata": {"name": "managed", "uid": "m"}, "spec": {
        "infrastructureRef": {"kind": "AzureManagedCluster", "name": "managed"},
        "controlPlaneRef": {"kind": "AzureManagedControlPlane", "name": "managed"}}}));
    server.put::<Cluster>(&managed);
    server.put::<AzureManagedControlPlane>(&json!({"metadata": {"name": "managed", "namespace": NAMESPACE},
        "spec": {"subscriptionID": "s", "identityRef": {"name": "wc"}}}));
    let provider = provider(&server, &workload("wc"), ReferenceLease::free());
    let managed: Cluster = serde_json::from_value(managed).unwrap();
    assert_eq!(provider.identity(&managed), None);
    provider.reconcile(&managed).await.unwrap();
    let expected = format!("{NAMESPACE}/wc");
    assert_eq!(provider.identity(&managed).map(|name| name.to_string()), Some(expected));
    assert_eq!(server.changed(), ["managed", "providerconfigs"]);
}
