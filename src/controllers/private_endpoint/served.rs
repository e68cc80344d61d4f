//! Whether a custom resource is served: what vouches for its cluster, and which scope it may name. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use super::plan::{ControlPlane, ControlPlaneState, DesiredResources, Voucher, desired_resources};
use crate::api::hypershift::AzurePlatform;
use crate::api::{AzurePrivateLinkService, AzurePrivateLinkServiceStatus, Reason, Role, Status};
use crate::azure::arm::id::same;
use crate::controllers::azure::Decision;
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::azure::summary;
use crate::hypershift::conditions;
use crate::hypershift::problem::Problem;

/// For whom a custom resource is served, and what it is to have.
pub struct Served<'a> {
    /// The control plane.
    pub control_plane: &'a ControlPlane,
    /// The desired resources.
    pub desired: DesiredResources,
}

/// What a custom resource is served with, or why it is not.
pub fn served<'a>(cr: &AzurePrivateLinkService, state: &'a ControlPlaneState) -> Result<Served<'a>, Box<Decision>> {
    let control_plane = state.control_plane.as_ref().map_err(|problem| stuck(problem.clone()))?;
    if let Some(problem) = &state.paused {
        return Err(Box::new(Decision::paused(problem.clone())));
    }
    // A problem of the cluster itself is reported before a scope that it may not use.
    let refusal = match &state.voucher {
        Voucher::Conditions => not_vouched_for(cr),
        Voucher::HostedCluster(vouched) => vouched.refusal.clone(),
    };
    if let Some(problem) = refusal {
        return Err(stuck(problem));
    }
    // An id that does not parse lies outside every scope.
    let desired = desired_resources(cr, &control_plane.identity, &state.siblings)
        .map_err(|error| stuck(Problem::new(Reason::InvalidSpec, error.to_string())))?;
    match state.refused.clone().or_else(|| state.outside(cr)) {
        Some(problem) => Err(stuck(problem)),
        None => Ok(Served { control_plane, desired }),
    }
}

fn stuck(problem: Problem) -> Box<Decision> {
    Box::new(Decision::stuck(problem))
}

impl ControlPlaneState {
    /// The first field of a custom resource that lies outside what the HostedCluster names, or the HostedControlPlane
    /// where the former is not read or does not exist.
    pub(super) fn outside(&self, cr: &AzurePrivateLinkService) -> Option<Problem> {
        if let Some(azure) = self.vouched().and_then(|vouched| vouched.azure.as_ref()) {
            return outside(cr, azure, "HostedCluster");
        }
        let control_plane = self.control_plane.as_ref().ok()?;
        outside(cr, &control_plane.azure, "HostedControlPlane")
    }
}

/// The reasons for which the HO role refuses a cluster as such, beyond its own half of the path.
const REFUSALS: [Reason; 7] = [
    Reason::InvalidSpec,
    Reason::HostedClusterNotFound,
    Reason::HostedControlPlaneNotFound,
    Reason::IdentityMismatch,
    Reason::DuplicateIdentity,
    Reason::HostNameClaimed,
    Reason::CloudMismatch,
];

/// Where only the HO role reads the HostedCluster: what that role refuses is not served here either, and nothing begins
/// before it has reported.
fn not_vouched_for(cr: &AzurePrivateLinkService) -> Option<Problem> {
    let refused = verdicts(cr).find(|(reason, _)| REFUSALS.contains(reason));
    if let Some((reason, condition)) = refused {
        return Some(Problem::new(reason, condition.message.clone()));
    }
    if cr.status.as_ref().is_some_and(ho_has_reported) {
        return None;
    }
    let text = "the management side has not looked at the cluster yet";
    Some(Problem::new(Reason::WaitingForPrivateLinkService, text))
}

fn ho_has_reported(status: &AzurePrivateLinkServiceStatus) -> bool {
    status.private_link_service_alias.is_some()
        || status.private_endpoint_id.is_some()
        || ho_conditions(status).next().is_some()
}

/// The conditions that the HO role owns.
fn ho_conditions(status: &AzurePrivateLinkServiceStatus) -> impl Iterator<Item = &Condition> {
    AzurePrivateLinkService::conditions_of(Role::Ho).filter_map(|kind| conditions::get(&status.conditions, kind))
}

/// The reasons of the HO role's conditions that are False.
fn verdicts(cr: &AzurePrivateLinkService) -> impl Iterator<Item = (Reason, &Condition)> {
    let refused = cr.status.iter().flat_map(ho_refusals);
    refused.filter_map(|condition| Some((Reason::parse(&condition.reason)?, condition)))
}

/// The HO role's conditions that are False and up to date.
fn ho_refusals(status: &AzurePrivateLinkServiceStatus) -> impl Iterator<Item = &Condition> {
    let refused = ho_conditions(status).filter(|condition| condition.status == Status::False.as_str());
    refused.filter(|condition| !summary::is_overtaken(condition, &status.conditions))
}

/// Whether the HO role refuses the cluster for this reason.
pub fn refused_for(cr: &AzurePrivateLinkService, reason: Reason) -> bool {
    verdicts(cr).any(|(refused, _)| refused == reason)
}

/// The first field that lies outside what an object of this kind names.
fn outside(cr: &AzurePrivateLinkService, azure: &AzurePlatform, kind: &str) -> Option<Problem> {
    let spec = &cr.spec;
    let fields = [
        ("subscriptionID", &spec.subscription_id, &azure.subscription_id),
        ("resourceGroupName", &spec.resource_group_name, &azure.resource_group),
        ("guestVNetID", &spec.guest_vnet_id, &azure.vnet_id),
        ("guestSubnetID", &spec.guest_subnet_id, &azure.subnet_id),
    ];
    for (field, given, named) in fields {
        if !named.as_deref().is_some_and(|named| same(given, named)) {
            let text = format!("{field} is not that of the {kind}");
            return Some(Problem::new(Reason::ScopeNotAllowed, text));
        }
    }
    None
}
