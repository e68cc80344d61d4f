//! What the observer decides on a control plane and its Services, on every cloud. Pure.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::OwnerReference;
use kube::{Resource, ResourceExt};
use serde_json::Value;

use crate::api::hypershift::ClusterSpec;
use crate::api::{HostedControlPlane, pause};
use crate::hypershift::identity;
use crate::runtime::requeue::Requeue;

/// The decision on a control plane and one of its Services.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict<D> {
    /// Hyperlink does not serve it; why.
    Ignore(&'static str),
    /// It cannot be served yet; why, and when to reconcile again if no event arrives.
    Wait(&'static str, Option<Requeue>),
    /// It cannot be served as it is; what is wrong.
    Unfit(String),
    /// This custom resource should exist.
    Desired(Box<D>),
}

/// What an existing custom resource has to change.
#[derive(Debug, Clone, PartialEq)]
pub enum SpecChange {
    /// Nothing has to change.
    None,
    /// It has to change by this guarded merge patch.
    Patch(Value),
    /// Nothing may be changed: somebody else created it. Even an owner cannot be added without the right to delete it.
    Foreign,
}

/// The decision on a control plane as a whole.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Admission {
    /// Its Services and host names are decided on, one by one.
    Admitted,
    /// Hyperlink does not serve it.
    Ignored,
    /// It cannot be served as it is; what is wrong.
    Refused(String),
}

/// Why no custom resource is kept for a control plane now, whatever its Service is.
pub fn check_control_plane<D>(found: &HostedControlPlane, now: Timestamp) -> Result<(), Verdict<D>> {
    if found.metadata.deletion_timestamp.is_some() {
        return Err(Verdict::Ignore("the control plane is being deleted"));
    }
    match identity::paused(&found.spec, now) {
        Some(problem) => Err(Verdict::Wait("the cluster is paused", problem.requeue())),
        None => Ok(()),
    }
}

/// Why a Service gets no custom resource now, whatever its load balancer is.
pub fn check_service<D>(service: &Service, found: &HostedControlPlane) -> Result<(), Verdict<D>> {
    if service.metadata.deletion_timestamp.is_some() {
        return Err(Verdict::Wait("the Service is being deleted", None));
    }
    let mut owners = service.owner_references().iter();
    if !owners.any(|owner| Some(&owner.uid) == found.metadata.uid.as_ref()) {
        let why = "the HostedControlPlane does not own the Service";
        return Err(Verdict::Wait(why, None));
    }
    Ok(())
}

/// What is wrong with the field that pauses a cluster.
pub fn pause_complaint(spec: &ClusterSpec) -> Option<String> {
    let given = spec.paused_until.as_deref()?;
    let wrong = "pausedUntil is neither true or false nor an RFC 3339 time: the cluster is not paused";
    (!pause::understood(given)).then(|| wrong.to_owned())
}

/// The owner reference to a control plane, for what is created for it.
pub fn owner(found: &HostedControlPlane) -> OwnerReference {
    OwnerReference {
        api_version: HostedControlPlane::api_version(&()).into_owned(),
        kind: HostedControlPlane::kind(&()).into_owned(),
        name: found.name_any(),
        uid: found.metadata.uid.clone().unwrap_or_default(),
        controller: Some(true),
        block_owner_deletion: Some(true),
    }
}
