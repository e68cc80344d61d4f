//! Through which Services workers reach a control plane on AWS, and under which names.

use super::AwsHostedCluster;
use crate::hosted_cluster::ROUTER;

/// The Service of an API server that has a load balancer of its own.
pub const KUBE_API_SERVER: &str = "kube-apiserver-private";

impl AwsHostedCluster {
    /// Has the API server behind a load balancer of its own, beside the router.
    #[must_use]
    pub fn with_own_api_server(mut self) -> Self {
        self.services.push(KUBE_API_SERVER);
        self.api_server_is_routed = false;
        self
    }

    /// Has the API server behind the router, and a Service of its own for it all the same.
    #[must_use]
    pub fn with_stale_api_server(mut self) -> Self {
        self.services.push(KUBE_API_SERVER);
        self
    }

    /// Has no router.
    #[must_use]
    pub fn without_router(mut self) -> Self {
        self.services.retain(|name| *name != ROUTER);
        self
    }

    /// The names of the Services with a load balancer, and so of the custom resources.
    pub fn services(&self) -> &[&'static str] {
        &self.services
    }

    /// The names under which a worker has to reach the control plane.
    pub fn host_names(&self) -> Vec<String> {
        let zone = self.zone_name();
        let apps = self.services.contains(&ROUTER).then(|| format!("x.apps.{zone}"));
        std::iter::once(format!("api.{zone}")).chain(apps).collect()
    }

    /// The Service that a worker has to reach under one of [`AwsHostedCluster::host_names`]; `<namespace>/<name>`.
    pub fn service_behind(&self, host_name: &str) -> String {
        let is_own = host_name.starts_with("api.") && !self.api_server_is_routed;
        let service = if is_own { KUBE_API_SERVER } else { ROUTER };
        format!("{}/{service}", self.control_plane_namespace())
    }

    /// The first of them.
    pub(super) fn first_service(&self) -> &'static str {
        self.services.first().copied().unwrap_or(ROUTER)
    }

    /// The TCP port of a Service.
    pub(crate) fn port(service: &str) -> u16 {
        if service == KUBE_API_SERVER { 6443 } else { 443 }
    }
}
