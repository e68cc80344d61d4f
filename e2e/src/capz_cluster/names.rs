//! What the cluster's resources are named, as CAPZ derives it from the cluster's name.

use super::{CapzCluster, LoadBalancer, NODE_SUBNET};

/// The domain below which each cluster has a zone.
pub const BASE_DOMAIN: &str = "k8s.example.com";

impl CapzCluster {
    /// ARM id of its resource group.
    pub fn resource_group(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}",
            self.subscription, self.resource_group
        )
    }

    /// The name of its resource group.
    pub fn resource_group_name(&self) -> &str {
        &self.resource_group
    }

    /// ARM id of a resource of Microsoft.Network in its resource group.
    pub fn network_id(&self, kind: &str, name: &str) -> String {
        format!("{}/providers/Microsoft.Network/{kind}/{name}", self.resource_group())
    }

    /// ARM id of its VNet.
    pub fn vnet(&self) -> String {
        self.network_id("virtualNetworks", &self.vnet_name())
    }

    pub(super) fn vnet_name(&self) -> String {
        format!("{}-vnet", self.name)
    }

    /// ARM id of the subnet of its nodes.
    pub fn node_subnet(&self) -> String {
        format!("{}/subnets/{NODE_SUBNET}", self.vnet())
    }

    /// The name of the load balancer of its API server.
    pub fn load_balancer_name(&self) -> String {
        match self.load_balancer {
            LoadBalancer::Internal => format!("{}-internal-lb", self.name),
            LoadBalancer::Public => format!("{}-public-lb", self.name),
        }
    }

    /// ARM id of the load balancer of its API server.
    pub fn load_balancer_id(&self) -> String {
        self.network_id("loadBalancers", &self.load_balancer_name())
    }

    /// The names of the frontends, one for each link, and at least one.
    pub(super) fn frontends(&self) -> Vec<String> {
        let first = format!("{}-frontEnd", self.load_balancer_name());
        let others = (2..=self.links.len()).map(|number| format!("{first}-{number}"));
        let others: Vec<_> = others.collect();
        std::iter::once(first).chain(others).collect()
    }

    /// ARM id of the Private Link Service of a link.
    pub fn link_service(&self, link: &str) -> String {
        self.network_id("privateLinkServices", link)
    }

    /// ARM id of the private endpoint of an entry.
    pub fn endpoint(&self, entry: &str) -> String {
        self.network_id("privateEndpoints", entry)
    }

    /// The name of the Private Link Service of a management cluster's gateway.
    pub fn gateway_link(&self) -> String {
        format!("{}-gateway-privatelink", self.name)
    }

    /// ARM id of the load balancer of a management cluster's gateway.
    pub(super) fn gateway_load_balancer(&self) -> String {
        self.network_id("loadBalancers", "kubernetes-internal")
    }

    /// Its private zone.
    pub fn zone_name(&self) -> String {
        format!("{}.{BASE_DOMAIN}", self.name)
    }

    /// The host name of its API server.
    pub fn api_host(&self) -> String {
        format!("api.{}", self.zone_name())
    }

    /// A host name behind a management cluster's gateway.
    pub fn gateway_host(&self) -> String {
        format!("observability.{}", self.zone_name())
    }

    /// What stands behind the frontends of its API server, as `reachable` names it.
    pub fn api_service(&self) -> String {
        format!("{}/kube-apiserver", self.name)
    }

    /// What stands behind a management cluster's gateway, as `reachable` names it.
    pub fn gateway_service(&self) -> String {
        format!("{}/gateway", self.name)
    }
}
