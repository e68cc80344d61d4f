//! The names of a hosted cluster's parts: in Azure, and for its workers.

use super::{HostedCluster, OAUTH, ROUTER};
use crate::Target;

impl HostedCluster {
    /// ARM id of the resource group that the cluster's resources are in.
    pub fn resource_group(&self) -> String {
        format!(
            "/subscriptions/{}/resourceGroups/{}",
            self.subscription,
            self.infra_id()
        )
    }

    /// ARM id of the workers' VNet.
    pub fn vnet(&self) -> String {
        format!(
            "{}/providers/Microsoft.Network/virtualNetworks/{}",
            self.resource_group(),
            self.name
        )
    }

    /// ARM id of the workers' subnet.
    pub fn subnet(&self) -> String {
        format!("{}/subnets/default", self.vnet())
    }

    /// ARM id of the router's Private Link Service, which Hyperlink has to create.
    pub fn link_service(&self, target: &Target) -> String {
        self.link_service_of(target, ROUTER)
    }

    /// ARM id of the Private Link Service of a custom resource.
    pub fn link_service_of(&self, target: &Target, service: &str) -> String {
        let azure = target.azure();
        let infix = if service == ROUTER {
            String::new()
        } else {
            format!("{service}-")
        };
        format!(
            "/subscriptions/{}/resourceGroups/{}/providers/Microsoft.Network/privateLinkServices/pls-{infix}{}",
            azure.management_subscription,
            azure.management_group,
            self.cluster_id()
        )
    }

    /// ARM id of the NAT subnet that Hyperlink has to create, unless one is given.
    pub fn own_nat_subnet(&self, target: &Target) -> String {
        format!("{}/subnets/{}-pls-nat", target.azure().management_vnet, self.infra_id())
    }

    /// ARM id of the router's Private Endpoint, which Hyperlink has to create.
    pub fn endpoint(&self) -> String {
        self.endpoint_of(ROUTER)
    }

    /// ARM id of the Private Endpoint of a custom resource.
    pub fn endpoint_of(&self, service: &str) -> String {
        format!(
            "{}/providers/Microsoft.Network/privateEndpoints/{service}-pe",
            self.resource_group()
        )
    }

    /// ARM ids of the private DNS zones that Hyperlink has to create.
    pub fn zones(&self) -> Vec<String> {
        let names = std::iter::once(format!("{}.hypershift.local", self.name)).chain(self.base_domain.clone());
        names
            .map(|name| {
                format!(
                    "{}/providers/Microsoft.Network/privateDnsZones/{name}",
                    self.resource_group()
                )
            })
            .collect()
    }

    /// The names under which a worker has to reach the control plane.
    pub fn host_names(&self) -> Vec<String> {
        let name = &self.name;
        let mut names = vec![
            format!("api.{name}.hypershift.local"),
            format!("x.apps.{name}.hypershift.local"),
        ];
        if let Some(domain) = &self.base_domain {
            names.push(format!("api-{name}.{domain}"));
            names.push(format!("oauth-{name}.{domain}"));
        }
        names
    }

    /// The Service that a worker has to reach under one of [`HostedCluster::host_names`]; `<namespace>/<name>`.
    pub fn service_behind(&self, host_name: &str) -> String {
        let oauth = host_name.starts_with(&format!("oauth-{}.", self.name));
        let service = if oauth && self.oauth_load_balancer {
            OAUTH
        } else {
            ROUTER
        };
        format!("{}/{service}", self.control_plane_namespace())
    }
}
