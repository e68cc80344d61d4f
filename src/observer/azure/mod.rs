//! The observer's rules for clusters on Azure.

pub mod decide;
pub mod external_services;
pub mod spec;

use std::net::IpAddr;
use std::sync::Arc;

use futures::Stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;

use super::external_services::{External, Host, Target};
use super::rules::{self, PlatformRules};
use super::verdict::{Admission, SpecChange};
use super::watch;
use crate::api::hypershift::ClusterSpec;
use crate::api::markers::SERVICES;
use crate::api::{AzurePrivateLinkService, HostedControlPlane};
use crate::controllers::azure::access::Context;
use crate::controllers::private_endpoint::control_plane;
use crate::controllers::watch::Heard;
use crate::metrics::ReconcileResult;
use crate::runtime::call::ReconcileError;
use crate::runtime::requeue::Requeue;
use crate::runtime::watch::Scope;
use decide::{DesiredResource, Verdict};

/// Runs the observer for the CPO role, over the control planes on Azure. `cloud` is the Azure cloud that this process
/// serves.
pub async fn run(
    cx: Arc<Context>,
    cloud: &'static str,
    scope: Scope,
    planes: impl Stream<Item = Heard<HostedControlPlane>> + Send + 'static,
) {
    watch::run(cx, AzureRules { cloud }, scope, planes).await;
}

/// The rules for clusters on Azure.
#[derive(Debug, Clone, Copy)]
pub struct AzureRules {
    /// The cloud's name as HostedControlPlanes spell it.
    pub cloud: &'static str,
}

impl PlatformRules for AzureRules {
    type Resource = AzurePrivateLinkService;
    type Desired = DesiredResource;
    type Address = IpAddr;

    const SERVICES: [&'static str; 2] = SERVICES;
    const EXTERNALS: [External; 2] = external_services::ALL;

    fn shard_key(found: &HostedControlPlane) -> &str {
        let azure = found.spec.platform.azure.as_ref();
        let subscription = azure.and_then(|azure| azure.subscription_id.as_deref());
        subscription.unwrap_or_default()
    }

    /// Every control plane: each part that is not served is left out for a reason of its own.
    async fn admission(&self, _: &Context, _: &HostedControlPlane) -> Result<Admission, ReconcileError> {
        Ok(Admission::Admitted)
    }

    fn published(service: &str, spec: &ClusterSpec) -> bool {
        decide::published(service, spec)
    }

    fn decide(&self, service: Option<&Service>, found: &HostedControlPlane, now: Timestamp) -> Verdict {
        decide::decide(service, found, self.cloud, now)
    }

    fn host(external: External, spec: &ClusterSpec) -> Result<Host, String> {
        external_services::host(external, spec)
    }

    fn target(&self, cr: Option<&AzurePrivateLinkService>) -> Target<IpAddr> {
        external_services::target(cr)
    }

    async fn let_go(
        cx: &Context,
        found: &HostedControlPlane,
    ) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
        control_plane::let_go(cx, found).await
    }
}

impl rules::DesiredResource<AzurePrivateLinkService> for DesiredResource {
    fn resource(&self) -> &AzurePrivateLinkService {
        &self.resource
    }

    fn complaints(&self) -> &[String] {
        &self.derived.complaints
    }

    fn unmakeable(&self) -> Option<&str> {
        self.derived.unmakeable.as_deref()
    }

    fn change(&self, current: &AzurePrivateLinkService) -> SpecChange {
        decide::change(current, self)
    }
}

#[cfg(test)]
mod tests;
