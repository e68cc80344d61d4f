//! Which control planes are paused and which are left alone, and what is written.

use rstest::rstest;

use super::*;
use crate::capz::samples::{Sample, management, workload};
use crate::controllers::capz::tests::{NAMESPACE, Server, store};

const GATE: &str = "NotMet";

/// A new control plane of Cluster `wc`, with this merged into it.
fn control_plane(patch: &Value) -> Value {
    let owner = json!({"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "wc", "uid": "c",
        "controller": true});
    let mut object = json!({"metadata": {"name": "wc", "namespace": NAMESPACE, "uid": "k", "resourceVersion": "1",
        "ownerReferences": [owner]}});
    json_patch::merge(&mut object, patch);
    object
}

fn cluster(patch: &Value) -> Cluster {
    let mut object = json!({"metadata": {"name": "wc", "namespace": NAMESPACE, "uid": "c"}, "spec": {
        "infrastructureRef": {"apiGroup": "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "wc"}}});
    json_patch::merge(&mut object, patch);
    serde_json::from_value(object).unwrap()
}

/// What a reconcile of a control plane is decided on, as the watches show it.
struct Shown {
    control_plane: Value,
    clusters: Vec<Cluster>,
    azure_clusters: Vec<Sample>,
    reference: ReferenceLease,
}

impl Default for Shown {
    /// All that makes a control plane wait: its AzureCluster does not have the condition.
    fn default() -> Self {
        Self {
            control_plane: control_plane(&json!({})),
            clusters: vec![cluster(&json!({}))],
            azure_clusters: vec![management(), workload("wc")],
            reference: ReferenceLease::free(),
        }
    }
}

impl Shown {
    /// The control plane has this besides.
    fn with(patch: Value) -> Self {
        Self {
            control_plane: control_plane(&patch),
            ..Self::default()
        }
    }

    /// These are all AzureClusters.
    fn among(azure_clusters: Vec<Sample>) -> Self {
        Self {
            azure_clusters,
            ..Self::default()
        }
    }

    /// The Cluster has this besides.
    fn with_cluster(patch: Value) -> Self {
        Self {
            clusters: vec![cluster(&patch)],
            ..Self::default()
        }
    }

    fn server(&self) -> Server {
        let server = Server::default();
        server.put::<KubeadmControlPlane>(&self.control_plane);
        server
    }

    /// Reconciles the control plane once.
    async fn reconcile(self, server: &Server) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
        let keeper = Gatekeeper {
            runtime: server.runtime(),
            management: format!("{NAMESPACE}/mc").parse().unwrap(),
            gates: vec![GATE.to_owned()],
            azure_clusters: store(self.azure_clusters.iter().map(Sample::cluster)),
            reference: self.reference,
        };
        let object: KubeadmControlPlane = serde_json::from_value(self.control_plane).unwrap();
        keeper.reconcile(&object, &store(self.clusters)).await
    }
}

fn paused(here: Option<&str>) -> Value {
    let mut annotations = json!({PAUSED: "true"});
    if let Some(gates) = here {
        annotations[PAUSED_HERE] = json!(gates);
    }
    json!({"metadata": {"annotations": annotations}})
}

fn initialized() -> Value {
    json!({"status": {"initialization": {"controlPlaneInitialized": true}}})
}

fn deleting() -> Value {
    json!({"metadata": {"deletionTimestamp": "2026-01-03T00:00:00Z"}})
}

#[tokio::test]
async fn new_control_plane_waits_for_its_gate() {
    let shown = Shown::default();
    let server = shown.server();
    let ended = shown.reconcile(&server).await.unwrap();
    assert_eq!(
        ended,
        (ReconcileResult::Ready, None),
        "the condition's change is an event"
    );
    let found = server.get::<KubeadmControlPlane>("wc");
    assert_eq!(
        found["metadata"]["annotations"],
        json!({PAUSED: "true", PAUSED_HERE: GATE})
    );
    assert_eq!(server.changed(), ["wc"], "both by one patch");
}

#[rstest]
#[case::public_management_cluster(Shown::among(vec![management().public(), workload("wc")]))]
#[case::no_management_cluster(Shown::among(vec![workload("wc")]))]
#[case::deleting(Shown::with(deleting()))]
#[case::initialized(Shown::with(initialized()))]
#[case::no_owner(Shown::with(json!({"metadata": {"ownerReferences": null}})))]
#[case::owner_that_is_no_controller(Shown::with(json!({"metadata": {"ownerReferences": [{"apiVersion": "v1",
    "kind": "Cluster", "name": "wc", "uid": "c"}]}})))]
#[case::owner_of_another_kind(Shown::with(json!({"metadata": {"ownerReferences": [{"apiVersion": "v1",
    "kind": "ConfigMap", "name": "wc", "uid": "c", "controller": true}]}})))]
#[case::no_cluster(Shown { clusters: Vec::new(), ..Shown::default() })]
#[case::paused_cluster(Shown::with_cluster(json!({"spec": {"paused": true}})))]
#[case::nothing_made_yet(Shown::with_cluster(json!({"spec": {"infrastructureRef": null}})))]
#[case::managed_by_azure(Shown::with_cluster(json!({"spec": {"infrastructureRef": {"kind": "AzureManagedCluster"}}})))]
#[case::no_azure_cluster(Shown::among(vec![management()]))]
#[case::paused_by_somebody(Shown::with(paused(None)))]
#[case::waits_already(Shown::with(paused(Some(GATE))))]
#[tokio::test]
async fn control_plane_is_left_alone(#[case] shown: Shown) {
    let server = shown.server();
    shown.reconcile(&server).await.unwrap();
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

fn is_open() -> Vec<Sample> {
    let met = workload("wc").with("/status/conditions", json!([{"type": GATE, "status": "True"}]));
    vec![management(), met]
}

#[tokio::test]
async fn own_pause_ends_and_no_other_does() {
    let mut begun = paused(Some(GATE));
    json_patch::merge(&mut begun, &initialized());
    for (patch, azure_clusters, left) in [
        (paused(Some(GATE)), is_open(), json!({})),
        (begun, vec![management(), workload("wc")], json!({})),
        (paused(None), is_open(), json!({PAUSED: "true"})),
    ] {
        let shown = Shown {
            azure_clusters,
            ..Shown::with(patch)
        };
        let server = shown.server();
        shown.reconcile(&server).await.unwrap();
        assert_eq!(server.get::<KubeadmControlPlane>("wc")["metadata"]["annotations"], left);
    }
}

#[tokio::test]
async fn pause_that_cannot_be_written_is_tried_again() {
    let shown = Shown::default();
    let server = shown.server();
    server.refuse(true);
    assert!(shown.reconcile(&server).await.is_err());
}

#[tokio::test]
async fn control_plane_that_has_begun_meanwhile_is_not_paused() {
    let server = Server::default();
    server.put::<KubeadmControlPlane>(&control_plane(&initialized()));
    Shown::default().reconcile(&server).await.unwrap();
    server.put::<KubeadmControlPlane>(&control_plane(&json!({"metadata": {"uid": "another"}})));
    Shown::default().reconcile(&server).await.unwrap();
    assert_eq!(server.changed(), <[&str; 0]>::default());
}

#[tokio::test]
async fn control_plane_is_left_to_another_operator_that_leads() {
    let shown = Shown {
        reference: ReferenceLease::default(),
        ..Shown::default()
    };
    let server = shown.server();
    let (result, requeue) = shown.reconcile(&server).await.unwrap();
    assert_eq!(result, ReconcileResult::Waiting);
    assert!(requeue.is_some());
    assert_eq!(server.changed(), <[&str; 0]>::default());
}
