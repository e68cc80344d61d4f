//! HyperShift's part in the life of one private hosted cluster: what its operators create in the management cluster,
//! and in which order they delete it. Hyperlink's part is not here.

mod creation;
mod custom_resource;
mod deletion;
mod names;
mod objects;

use anyhow::{Context, Result};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use kube::core::{ApiResource, GroupVersionKind};
use serde_json::{Value, json};
use uuid::Uuid;

pub use self::custom_resource::{Condition, conditions};
pub(crate) use self::deletion::delete_namespace;
pub use self::deletion::release;
pub(crate) use self::objects::merge;
use crate::Target;

/// The namespace of the HostedClusters in a test environment.
pub const NAMESPACE: &str = "clusters";
/// The subscription that, in the simulator, may connect to every Private Link Service with a NAT subnet of its own.
pub const ADDITIONAL_SUBSCRIPTION: &str = "44444444-4444-4444-8444-444444444444";
/// The name of the router's Service and of its custom resource.
pub const ROUTER: &str = "private-router";
/// The name of OAuth's Service, if it has a load balancer of its own, and of its custom resource.
pub const OAUTH: &str = "oauth-openshift";
pub(crate) const HYPERSHIFT_FINALIZER: &str = "hypershift.openshift.io/finalizer";

/// A private hosted cluster. All names derive from its name, so that one target can hold many.
#[derive(Clone, Debug)]
pub struct HostedCluster {
    name: String,
    namespace: String,
    base_domain: Option<String>,
    nat_subnet: Option<String>,
    oauth_load_balancer: bool,
    hosted_cluster_patch: Option<Value>,
    control_plane_patch: Value,
    service_patch: Value,
    location: String,
    tenant: String,
    subscription: String,
    additional_subscription: String,
}

impl HostedCluster {
    /// A cluster without a base domain, whose NAT subnet Hyperlink creates.
    pub fn new(target: &Target, name: &str) -> Self {
        let azure = target.azure();
        Self {
            name: target.name(name),
            namespace: target.hosted_clusters().to_owned(),
            base_domain: None,
            nat_subnet: None,
            oauth_load_balancer: false,
            hosted_cluster_patch: Some(json!({})),
            control_plane_patch: json!({}),
            service_patch: json!({}),
            location: azure.location.clone(),
            tenant: azure.tenant.clone(),
            subscription: azure.guest_subscription.clone(),
            additional_subscription: azure.additional_subscription.clone(),
        }
    }

    /// Publishes the API and OAuth under this domain.
    #[must_use]
    pub fn with_base_domain(mut self, domain: &str) -> Self {
        self.base_domain = Some(domain.to_owned());
        self
    }

    /// Names a NAT subnet (an ARM id), which has to exist.
    #[must_use]
    pub fn with_nat_subnet(mut self, id: &str) -> Self {
        self.nat_subnet = Some(id.to_owned());
        self
    }

    /// Puts the guest into another subscription.
    #[must_use]
    pub fn in_subscription(mut self, id: &str) -> Self {
        self.subscription = id.to_owned();
        self
    }

    /// Publishes OAuth with a load balancer of its own.
    #[must_use]
    pub fn with_oauth_load_balancer(mut self) -> Self {
        self.oauth_load_balancer = true;
        self
    }

    /// Applies this merge patch (RFC 7396) to the HostedCluster before it is created.
    #[must_use]
    pub fn with_hosted_cluster(mut self, patch: Value) -> Self {
        self.hosted_cluster_patch = Some(patch);
        self
    }

    /// Creates no HostedCluster; [`HostedCluster::create_hosted_cluster`] does so later.
    #[must_use]
    pub fn without_hosted_cluster(mut self) -> Self {
        self.hosted_cluster_patch = None;
        self
    }

    /// Applies this merge patch (RFC 7396) to the HostedControlPlane before it is created.
    #[must_use]
    pub fn with_control_plane(mut self, patch: Value) -> Self {
        self.control_plane_patch = patch;
        self
    }

    /// Applies this merge patch (RFC 7396) to each Service before it is created.
    #[must_use]
    pub fn with_services(mut self, patch: Value) -> Self {
        self.service_patch = patch;
        self
    }

    /// The name of HostedCluster and HostedControlPlane.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The namespace of the HostedControlPlane.
    pub fn control_plane_namespace(&self) -> String {
        format!("{}-{}", self.namespace, self.name)
    }

    /// The cluster id, which is `spec.clusterID`.
    pub fn cluster_id(&self) -> String {
        Uuid::new_v5(&Uuid::NAMESPACE_DNS, self.name.as_bytes()).to_string()
    }

    /// The infra id, which is `spec.infraID`; the guest's resource group has the same name.
    pub fn infra_id(&self) -> String {
        let id = self.cluster_id();
        format!("{}-{}", self.name, id.get(..5).unwrap_or_default())
    }

    /// The names of the Services with an internal load balancer, for which Hyperlink has to create custom resources.
    pub fn services(&self) -> &'static [&'static str] {
        if self.oauth_load_balancer {
            &[ROUTER, OAUTH]
        } else {
            &[ROUTER]
        }
    }

    /// Publishes one of the control plane's services by a route with this host name, or with none, as only the control
    /// plane's own operators can.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn publish(&self, client: &kube::Client, service: &str, host: Option<&str>) -> Result<()> {
        let api = self.api(client, "HostedControlPlane", &self.control_plane_namespace());
        let mut found = api.get(&self.name).await?;
        let services = found.data["spec"]["services"].as_array_mut().context("no services")?;
        let one = services.iter_mut().find(|one| one["service"] == service);
        one.context("no such service")?["servicePublishingStrategy"] = match host {
            Some(host) => json!({"type": "Route", "route": {"hostname": host}}),
            None => json!({"type": "Route"}),
        };
        let patch = json!({"spec": {"services": found.data["spec"]["services"]}});
        api.patch(&self.name, &PatchParams::default(), &Patch::Merge(patch))
            .await?;
        Ok(())
    }

    /// The objects of one of HyperShift's kinds in a namespace.
    pub fn api(&self, client: &kube::Client, kind: &str, namespace: &str) -> Api<DynamicObject> {
        let kind = ApiResource::from_gvk(&GroupVersionKind::gvk("hypershift.openshift.io", "v1beta1", kind));
        Api::namespaced_with(client.clone(), namespace, &kind)
    }
}
