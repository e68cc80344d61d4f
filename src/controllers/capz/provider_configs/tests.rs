//! What is written for a Cluster, and what is not.

use serde_json::{Value, json};

use super::super::identities::Identities;
use super::super::tests::{NAMESPACE, Server, context, identity_settings, store};
use super::*;
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

/// Reconciles a Cluster once; `azure_cluster` is what it is made of.
async fn reconcile(server: &Server, azure_cluster: &Sample, cluster: Value) -> Reconciled {
    let mut cx = context(server, &[&management(), azure_cluster]);
    cx.identities = Identities::new(identity_settings(), store([identity()]));
    let provider = Provider::new(server.runtime(), Arc::new(cx));
    provider.is_served.store(true, Ordering::Relaxed);
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
