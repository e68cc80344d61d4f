//! The Services from which external-dns publishes the host names of a cluster that has no public side: one per host
//! name, which points to the cluster's endpoint. Pure.
//!
//! A Service is owned if it has both the label and the control plane as its owner; any other Service of that name is
//! not changed.

use std::fmt::Display;

use k8s_openapi::api::core::v1::{Service, ServiceSpec};
use kube::ResourceExt;
use serde_json::{Value, json};

use super::verdict::owner;
use crate::api::hypershift::{ClusterSpec, PublishedService, PublishingType};
use crate::api::markers::{EXTERNAL_HOST_ANNOTATION, EXTERNAL_VALUE};
use crate::api::{HostedControlPlane, Reason};
use crate::hypershift::host_names::dns_name;

/// One of these Services.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct External {
    /// Name of the Service.
    pub name: &'static str,
    /// What it publishes, as the control plane names it.
    pub service: &'static str,
    /// The label that it has.
    pub label: &'static str,
}

/// All external Services that a control plane can have, with this label.
pub const fn all(label: &'static str) -> [External; 2] {
    [
        External {
            name: "kube-apiserver-private-external",
            service: "APIServer",
            label,
        },
        External {
            name: "oauth-private-external",
            service: "OAuthServer",
            label,
        },
    ]
}

/// What should be published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Host {
    /// This host name.
    Named(String),
    /// No host name.
    None,
    /// Hyperlink does not decide it.
    NotOurs,
}

/// The host name that a control plane gives a Service that the router publishes. `Err` if it is not a DNS name, and
/// counts as none.
pub fn routed_host(external: External, spec: &ClusterSpec) -> Result<Host, String> {
    let published = spec
        .services
        .iter()
        .filter(|s| s.service.as_deref() == Some(external.service));
    let mut hosts = published.filter_map(PublishedService::host);
    match hosts.find(|(by, _)| *by == PublishingType::Route) {
        None => Ok(Host::None),
        Some((_, host)) if dns_name(host).is_none() => Err(format!(
            "the host name of {} is not a DNS name: it is not published",
            external.service
        )),
        Some((_, host)) => Ok(Host::Named(host.to_owned())),
    }
}

/// Reasons that mean that the names belong to another cluster. Any other reason that role `ho` reports may pass in a
/// moment.
pub const CLAIMED: [Reason; 2] = [Reason::HostNameClaimed, Reason::DuplicateIdentity];

/// Where the host names may point.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Target<A> {
    /// To this address, or host name.
    At(A),
    /// Not known now: an existing Service stays.
    Unsure,
    /// Nowhere any more.
    Gone,
    /// Nowhere, not even while the cluster is paused: another cluster has what it names.
    Refused,
}

/// What to do about a Service.
#[derive(Debug, Clone, PartialEq)]
pub enum ServiceStep {
    /// It stays as it is.
    Keep,
    /// It is to be created.
    Create(Box<Service>),
    /// It is to be changed by this guarded merge patch.
    Patch(Value),
    /// It is to be deleted, provided that it is still as it was read.
    Delete,
    /// It stays, though it should point elsewhere: it belongs to somebody else.
    Refuse,
}

/// The step from what was found to what is desired.
pub fn step<A: Display>(
    external: External,
    host: &Host,
    target: Target<A>,
    found: Option<&Service>,
    by: &HostedControlPlane,
) -> ServiceStep {
    match (found, host, target) {
        (_, Host::NotOurs, _) => ServiceStep::Keep,
        (None, Host::Named(host), Target::At(address)) => {
            ServiceStep::Create(Box::new(service(external, host, &address.to_string(), by)))
        }
        (None, ..) => ServiceStep::Keep,
        (Some(found), Host::Named(_), Target::At(_)) if !is_owned(external, found, by) => ServiceStep::Refuse,
        (Some(found), ..) if !is_owned(external, found, by) || found.metadata.deletion_timestamp.is_some() => {
            ServiceStep::Keep
        }
        (Some(_), Host::None, _) | (Some(_), _, Target::Gone | Target::Refused) => ServiceStep::Delete,
        (Some(found), Host::Named(host), Target::Unsure) if published_host(found) != Some(host) => ServiceStep::Delete,
        (Some(_), Host::Named(_), Target::Unsure) => ServiceStep::Keep,
        (Some(found), Host::Named(host), Target::At(address)) => {
            change(found, host, &address.to_string()).map_or(ServiceStep::Keep, ServiceStep::Patch)
        }
    }
}

fn is_owned(external: External, found: &Service, by: &HostedControlPlane) -> bool {
    let labelled = found
        .labels()
        .get(external.label)
        .is_some_and(|value| value == EXTERNAL_VALUE);
    let mut owners = found.owner_references().iter();
    labelled && owners.any(|owner| Some(&owner.uid) == by.metadata.uid.as_ref())
}

fn published_host(found: &Service) -> Option<&String> {
    found.annotations().get(EXTERNAL_HOST_ANNOTATION)
}

fn service(external: External, host: &str, address: &str, by: &HostedControlPlane) -> Service {
    let mut service = Service {
        spec: Some(ServiceSpec {
            type_: Some("ExternalName".to_owned()),
            external_name: Some(address.to_owned()),
            ..ServiceSpec::default()
        }),
        ..Service::default()
    };
    service.metadata.name = Some(external.name.to_owned());
    service.metadata.namespace = by.namespace();
    service
        .labels_mut()
        .insert(external.label.to_owned(), EXTERNAL_VALUE.to_owned());
    service
        .annotations_mut()
        .insert(EXTERNAL_HOST_ANNOTATION.to_owned(), host.to_owned());
    service.metadata.owner_references = Some(vec![owner(by)]);
    service
}

/// The patch of the owned fields that differ; labels and annotations of others stay.
fn change(found: &Service, host: &str, address: &str) -> Option<Value> {
    let spec = found.spec.clone().unwrap_or_default();
    let up_to_date = spec.type_.as_deref() == Some("ExternalName")
        && spec.external_name.as_deref() == Some(address)
        && published_host(found).is_some_and(|published| published == host);
    (!up_to_date).then(|| {
        let annotations = json!({EXTERNAL_HOST_ANNOTATION: host});
        json!({
            "metadata": {"resourceVersion": found.metadata.resource_version, "annotations": annotations},
            "spec": {"type": "ExternalName", "externalName": address},
        })
    })
}
