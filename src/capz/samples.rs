//! Clusters for tests: a management cluster and workload clusters with private API servers.

use serde_json::{Value, json};

use crate::api::capi::AzureCluster;
use crate::api::markers::capz::{FINALIZER, LEDGER};

/// The subscription of the management cluster.
pub(crate) const MANAGEMENT_SUBSCRIPTION: &str = "00000000-0000-0000-0000-00000000000a";
/// The subscription of workload clusters.
pub(crate) const WORKLOAD_SUBSCRIPTION: &str = "11111111-1111-1111-1111-111111111111";

/// An AzureCluster in the making.
#[derive(Clone)]
pub(crate) struct Sample(pub(crate) Value);

/// A private management cluster with one subnet, which serves nobody yet.
pub(crate) fn management() -> Sample {
    Sample(json!({
        "metadata": {"name": "mc", "namespace": "org-giantswarm", "uid": "uid-mc", "resourceVersion": "100",
            "creationTimestamp": "2026-01-01T00:00:00Z", "annotations": {"example.com/theirs": "kept"}},
        "spec": {"subscriptionID": MANAGEMENT_SUBSCRIPTION, "location": "westeurope", "resourceGroup": "mc",
            "identityRef": {"kind": "AzureClusterIdentity", "name": "mc"},
            "networkSpec": {"apiServerLB": {"type": "Internal"},
                "subnets": [{"name": "test-subnet", "role": "node"}]}},
        "status": {}}))
}

/// A private workload cluster that has its finalizer, with one link that the management cluster may use, which is ready.
pub(crate) fn workload(name: &str) -> Sample {
    let link = json!({"name": format!("{name}-api-privatelink"), "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION],
        "autoApprovedSubscriptions": [MANAGEMENT_SUBSCRIPTION]});
    Sample(json!({
        "metadata": {"name": name, "namespace": "org-giantswarm", "uid": format!("uid-{name}"), "resourceVersion": "1",
            "creationTimestamp": "2026-01-02T00:00:00Z", "finalizers": [FINALIZER]},
        "spec": {"subscriptionID": WORKLOAD_SUBSCRIPTION, "location": "westeurope", "resourceGroup": name,
            "identityRef": {"kind": "AzureClusterIdentity", "name": name},
            "networkSpec": {"apiServerLB": {"type": "Internal", "privateLinks": [link]},
                "subnets": [{"name": "nodes", "role": "node"}]}},
        "status": {"conditions": [{"type": "PrivateLinksReady", "status": "True",
            "lastTransitionTime": "2026-01-02T00:00:00Z"}]}}))
}

/// The entry that the reference makes for the link of a sample.
pub(crate) fn entry(workload: &str) -> Value {
    let id = format!(
        "/subscriptions/{WORKLOAD_SUBSCRIPTION}/resourceGroups/{workload}/providers/Microsoft.Network/privateLinkServices/{workload}-api-privatelink"
    );
    json!({"name": format!("{workload}-api-privatelink-privateendpoint"), "location": "westeurope",
        "manualApproval": false, "privateLinkServiceConnections": [
            {"name": format!("{workload}-api-privatelink-connection"), "privateLinkServiceID": id}]})
}

impl Sample {
    /// The object as the API server shows it.
    pub(crate) fn cluster(&self) -> AzureCluster {
        serde_json::from_value(self.0.clone()).unwrap()
    }

    /// With something else at this path.
    pub(crate) fn with(mut self, path: &str, value: Value) -> Self {
        let (parent, name) = path.rsplit_once('/').unwrap();
        self.0.pointer_mut(parent).unwrap()[name] = value;
        self
    }

    pub(crate) fn links(self, links: Value) -> Self {
        self.with("/spec/networkSpec/apiServerLB/privateLinks", links)
    }

    pub(crate) fn ledger(mut self, text: &str) -> Self {
        self.0["metadata"]["annotations"][LEDGER] = json!(text);
        self
    }

    /// With these entries in its first subnet.
    pub(crate) fn entries(self, entries: Value) -> Self {
        self.with("/spec/networkSpec/subnets/0/privateEndpoints", entries)
    }

    /// With a deletion timestamp.
    pub(crate) fn deleting(self) -> Self {
        self.with("/metadata/deletionTimestamp", json!("2026-01-03T00:00:00Z"))
    }

    pub(crate) fn public(self) -> Self {
        self.with("/spec/networkSpec/apiServerLB/type", json!("Public"))
    }
}
