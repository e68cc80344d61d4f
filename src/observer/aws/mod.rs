//! The observer's rules for clusters on AWS.
//!
//! The custom resource has no owner and no annotation of the observer's: role `ho` names the cluster there, and deletes
//! the custom resource of a cluster that is not private any more.

pub mod decide;
pub mod external_services;

use std::sync::Arc;

use futures::Stream;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;

use super::external_services::{External, Host, Target};
use super::rules::{self, PlatformRules};
use super::verdict::{Admission, SpecChange};
use super::watch;
use crate::api::hypershift::ClusterSpec;
use crate::api::markers::aws::SERVICES;
use crate::api::{AWSEndpointService, HostedControlPlane};
use crate::aws::region::Region;
use crate::controllers::aws::access::Context;
use crate::controllers::watch::Heard;
use crate::hypershift::owner;
use crate::metrics::ReconcileResult;
use crate::runtime::call::ReconcileError;
use crate::runtime::requeue::Requeue;
use crate::runtime::watch::Scope;
use decide::{DesiredResource, Verdict};

/// Runs the observer for the CPO role, over the control planes on AWS. `region` is the region that this process serves.
pub async fn run(
    cx: Arc<Context>,
    region: Region,
    scope: Scope,
    planes: impl Stream<Item = Heard<HostedControlPlane>> + Send + 'static,
) {
    watch::run(cx, AwsRules { region }, scope, planes).await;
}

/// The rules for clusters on AWS.
#[derive(Debug, Clone)]
pub struct AwsRules {
    /// The region that this process serves.
    pub region: Region,
}

impl PlatformRules for AwsRules {
    type Resource = AWSEndpointService;
    type Desired = DesiredResource;
    type Address = String;

    const SERVICES: [&'static str; 2] = SERVICES;
    const EXTERNALS: [External; 2] = external_services::ALL;

    fn shard_key(found: &HostedControlPlane) -> &str {
        found.metadata.namespace.as_deref().unwrap_or_default()
    }

    async fn admission(&self, cx: &Context, found: &HostedControlPlane) -> Result<Admission, ReconcileError> {
        if found.spec.aws().is_none() {
            return Ok(Admission::Ignored);
        }
        let namespace = found.namespace().unwrap_or_default();
        let only = owner::only_control_plane(&cx.runtime.kube, &namespace).await?;
        let problem = only.err().map(|problem| problem.message);
        Ok(decide::admission(&found.spec, problem, &self.region))
    }

    /// Either of them, while the cluster is private.
    fn published(_: &str, spec: &ClusterSpec) -> bool {
        decide::is_private(spec)
    }

    fn decide(&self, service: Option<&Service>, found: &HostedControlPlane, now: Timestamp) -> Verdict {
        decide::decide(service, found, &self.region, now)
    }

    fn host(external: External, spec: &ClusterSpec) -> Result<Host, String> {
        external_services::host(external, spec)
    }

    fn target(&self, cr: Option<&AWSEndpointService>) -> Target<String> {
        external_services::target(cr, &self.region)
    }

    /// Nothing: the role has no finalizer on it.
    async fn let_go(_: &Context, _: &HostedControlPlane) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
        Ok((ReconcileResult::Ready, None))
    }
}

impl rules::DesiredResource<AWSEndpointService> for DesiredResource {
    fn resource(&self) -> &AWSEndpointService {
        &self.resource
    }

    fn complaints(&self) -> &[String] {
        &self.complaints
    }

    fn unmakeable(&self) -> Option<&str> {
        None
    }

    fn change(&self, current: &AWSEndpointService) -> SpecChange {
        decide::change(current, self)
    }
}

#[cfg(test)]
mod tests;
