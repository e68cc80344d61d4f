//! What the observer does differently on each cloud.

use std::fmt::Display;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;

use super::external_services::{External, Host, Target};
use super::verdict::{Admission, SpecChange, Verdict};
use crate::api::HostedControlPlane;
use crate::api::hypershift::ClusterSpec;
use crate::controllers::context::Context;
use crate::controllers::reconciler::ServedResource;
use crate::metrics::ReconcileResult;
use crate::runtime::call::ReconcileError;
use crate::runtime::requeue::Requeue;

/// The rules of one cloud. What is not async is pure.
pub trait PlatformRules: Send + Sync + 'static {
    /// The custom resource that a Service gets.
    type Resource: ServedResource;
    /// What such a custom resource should be.
    type Desired: DesiredResource<Self::Resource>;
    /// Where external Services point.
    type Address: Clone + Display + Send + Sync;

    /// The Services that may get a custom resource, which has the same name.
    const SERVICES: [&'static str; 2];
    /// The external Services.
    const EXTERNALS: [External; 2];

    /// The text by which the shards of the role divide control planes. The watched object, of which only a part is
    /// kept, gives the same text.
    fn shard_key(found: &HostedControlPlane) -> &str;

    /// Whether a control plane that is not being deleted is served.
    ///
    /// # Errors
    /// The API server cannot be reached, or refuses.
    fn admission(
        &self,
        cx: &Context<Self::Resource>,
        found: &HostedControlPlane,
    ) -> impl Future<Output = Result<Admission, ReconcileError>> + Send;

    /// Whether the cluster publishes anything through the Service of this name now.
    fn published(service: &str, spec: &ClusterSpec) -> bool;

    /// Decides on a control plane and one of its Services.
    fn decide(&self, service: Option<&Service>, found: &HostedControlPlane, now: Timestamp) -> Verdict<Self::Desired>;

    /// The host name that a control plane gives an external Service. `Err` if it is not a DNS name, and counts as none.
    fn host(external: External, spec: &ClusterSpec) -> Result<Host, String>;

    /// Where host names may point, by the custom resource `private-router`.
    fn target(&self, cr: Option<&Self::Resource>) -> Target<Self::Address>;

    /// Releases a control plane that is being deleted.
    ///
    /// # Errors
    /// The API server cannot be reached, or refuses.
    fn let_go(
        cx: &Context<Self::Resource>,
        found: &HostedControlPlane,
    ) -> impl Future<Output = Result<(ReconcileResult, Option<Requeue>), ReconcileError>> + Send;
}

/// A custom resource that should exist.
pub trait DesiredResource<R>: Send + Sync {
    /// The custom resource as it would be created.
    fn resource(&self) -> &R;

    /// The problems of values that are left as they are.
    fn complaints(&self) -> &[String];

    /// Why it may not be created, though an existing one may be changed.
    fn unmakeable(&self) -> Option<&str>;

    /// The change that makes `current` as desired, as far as it may be changed.
    fn change(&self, current: &R) -> SpecChange;
}
