//! The AzureCluster of Cluster API's Azure provider (CAPZ): how a cluster lies in Azure.
//!
//! Lists keep the positions of their items, bad ones included: single items are patched by position.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::NamespaceResourceScope;
use serde::Deserialize;

use super::CapiCondition;
use crate::api::lenient::{good_items, or_default, positioned_items};

/// A cluster in Azure, of which the spec's fields of networks and the conditions are read.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct AzureCluster {
    /// Standard metadata of Kubernetes.
    #[serde(default)]
    pub metadata: ObjectMeta,
    /// How it should be.
    #[serde(default, deserialize_with = "or_default")]
    pub spec: AzureClusterSpec,
    /// How it is; none where the field is absent.
    #[serde(default, deserialize_with = "or_default")]
    pub status: Option<AzureClusterStatus>,
}

resource!(
    AzureCluster,
    "infrastructure.cluster.x-k8s.io",
    "v1beta1",
    "azureclusters",
    NamespaceResourceScope
);

/// What is read of an AzureCluster's spec.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AzureClusterSpec {
    /// The cluster's subscription.
    #[serde(rename = "subscriptionID", deserialize_with = "or_default")]
    pub subscription_id: Option<String>,
    /// The cluster's resource group; absent means the cluster's name.
    #[serde(deserialize_with = "or_default")]
    pub resource_group: Option<String>,
    /// The cluster's region.
    #[serde(deserialize_with = "or_default")]
    pub location: Option<String>,
    /// `AzurePublicCloud`, `AzureUSGovernmentCloud`, …; absent means public.
    #[serde(deserialize_with = "or_default")]
    pub azure_environment: Option<String>,
    /// As whom Azure is called for the cluster.
    #[serde(deserialize_with = "or_default")]
    pub identity_ref: Option<IdentityRef>,
    /// The cluster's networks.
    #[serde(deserialize_with = "or_default")]
    pub network_spec: NetworkSpec,
}

/// `spec.identityRef`: the AzureClusterIdentity of a cluster.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, Deserialize)]
#[serde(default)]
pub struct IdentityRef {
    /// The kind that it names; absent means AzureClusterIdentity.
    #[serde(deserialize_with = "or_default")]
    pub kind: Option<String>,
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: Option<String>,
    /// Its namespace; absent means that of the cluster.
    #[serde(deserialize_with = "or_default")]
    pub namespace: Option<String>,
}

/// `spec.networkSpec`: the cluster's networks.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct NetworkSpec {
    /// The load balancer of the API server; absent means a public one.
    #[serde(rename = "apiServerLB", deserialize_with = "or_default")]
    pub api_server_lb: Option<ApiServerLoadBalancer>,
    /// The subnets.
    #[serde(deserialize_with = "positioned_items")]
    pub subnets: Vec<Subnet>,
}

/// `spec.networkSpec.apiServerLB`: the load balancer of the API server.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ApiServerLoadBalancer {
    /// `Internal` or `Public`; absent means public.
    #[serde(rename = "type", deserialize_with = "or_default")]
    pub kind: Option<String>,
    /// The Private Link Services that CAPZ makes for it.
    #[serde(deserialize_with = "good_items")]
    pub private_links: Vec<PrivateLink>,
}

/// `spec.networkSpec.apiServerLB.privateLinks[]`: one Private Link Service.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct PrivateLink {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: Option<String>,
    /// The subscriptions that may connect.
    #[serde(deserialize_with = "good_items")]
    pub allowed_subscriptions: Vec<String>,
    /// The subscriptions whose connections need no approval.
    #[serde(deserialize_with = "good_items")]
    pub auto_approved_subscriptions: Vec<String>,
}

/// `spec.networkSpec.subnets[]`: one subnet, with the private endpoints that CAPZ makes in it.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Subnet {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// `node`, `control-plane`, `bastion` or `cluster`.
    #[serde(deserialize_with = "or_default")]
    pub role: String,
    /// The private endpoints; none where the field is absent.
    #[serde(deserialize_with = "or_default")]
    pub private_endpoints: Option<Entries>,
}

impl Subnet {
    /// The private endpoints in it.
    pub fn entries(&self) -> &[Entry] {
        self.private_endpoints.as_ref().map_or(&[], |entries| &entries.0)
    }
}

/// `spec.networkSpec.subnets[].privateEndpoints`: private endpoints in one subnet.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Entries(#[serde(deserialize_with = "positioned_items")] pub Vec<Entry>);

/// `spec.networkSpec.subnets[].privateEndpoints[]`: a private endpoint that CAPZ makes.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Entry {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: String,
    /// Its region.
    #[serde(deserialize_with = "or_default")]
    pub location: Option<String>,
    /// What it connects to; none where the field is absent.
    #[serde(deserialize_with = "or_default")]
    pub private_link_service_connections: Option<Vec<Connection>>,
    /// Whether the owner of the Private Link Service has to approve the connection.
    #[serde(deserialize_with = "or_default")]
    pub manual_approval: Option<bool>,
}

impl Entry {
    /// What it connects to.
    pub fn connections(&self) -> &[Connection] {
        self.private_link_service_connections.as_deref().unwrap_or_default()
    }
}

/// `privateLinkServiceConnections[]`: a connection to a Private Link Service.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Connection {
    /// Its name.
    #[serde(deserialize_with = "or_default")]
    pub name: Option<String>,
    /// ARM id of the Private Link Service.
    #[serde(rename = "privateLinkServiceID", deserialize_with = "or_default")]
    pub private_link_service_id: Option<String>,
    /// What the owner of the Private Link Service reads with the request.
    #[serde(deserialize_with = "or_default")]
    pub request_message: Option<String>,
}

/// What is read of an AzureCluster's status.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
#[serde(default)]
pub struct AzureClusterStatus {
    /// The conditions; none where the field is absent.
    #[serde(deserialize_with = "or_default")]
    pub conditions: Option<Conditions>,
}

/// `status.conditions`: the conditions of a cluster, which all controllers share.
#[derive(Debug, Clone, Default, PartialEq, Deserialize)]
pub struct Conditions(#[serde(deserialize_with = "positioned_items")] pub Vec<CapiCondition>);

impl AzureCluster {
    /// The conditions.
    pub fn conditions(&self) -> &[CapiCondition] {
        let conditions = self.status.as_ref().and_then(|status| status.conditions.as_ref());
        conditions.map_or(&[], |conditions| &conditions.0)
    }

    /// The first condition of this type.
    pub fn condition(&self, kind: &str) -> Option<&CapiCondition> {
        self.conditions().iter().find(|condition| condition.kind == kind)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn strange_items_keep_the_positions_of_the_others() {
        let cluster: AzureCluster =
            serde_json::from_value(json!({"metadata": {"name": "mc"}, "spec": {"networkSpec": {
            "subnets": [7, null, {"name": "nodes", "role": "node", "privateEndpoints": [null, {"name": "a",
                "privateLinkServiceConnections": [{"privateLinkServiceID": 7, "name": "c"}]}]}]}},
            "status": {"conditions": ["x", {"type": "Ready", "status": "True"}]}}))
            .unwrap();
        let subnets = &cluster.spec.network_spec.subnets;
        assert_eq!((subnets.len(), subnets[2].role.as_str()), (3, "node"));
        let entry = &subnets[2].entries()[1];
        assert_eq!(
            (entry.name.as_str(), entry.connections()[0].name.as_deref()),
            ("a", Some("c"))
        );
        assert!(subnets[0].private_endpoints.is_none() && subnets[1].entries().is_empty());
        assert!(cluster.conditions()[1].is_true() && cluster.condition("Ready").is_some());
    }

    #[test]
    fn strange_shapes_are_read_as_absent() {
        let cluster: AzureCluster = serde_json::from_value(json!({"spec": {"subscriptionID": 7, "identityRef": "x",
            "networkSpec": {"apiServerLB": "x", "subnets": {}}}, "status": 7}))
        .unwrap();
        assert_eq!(cluster, AzureCluster::default());
        let null = json!({"metadata": {}, "spec": {"networkSpec": {"apiServerLB": {"privateLinks": null,
            "type": null}, "subnets": null}}});
        let cluster: AzureCluster = serde_json::from_value(null).unwrap();
        assert_eq!(
            cluster.spec.network_spec.api_server_lb,
            Some(ApiServerLoadBalancer::default())
        );
    }
}
