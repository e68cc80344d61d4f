//! What the CPO role reports: its three conditions and its status fields, also after a failure. Pure.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::dns::{DesiredZone, Part, part_of};
use super::plan::Names;
use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Role};
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_endpoint::{Approval, address, approval};
use crate::azure::plan::{Outcome, Step, Why};
use crate::controllers::abandon;
use crate::controllers::azure::Decision;
use crate::controllers::custom_resource::CustomResource;
use crate::controllers::decision::error_of;
use crate::controllers::report::{Report, fails, fails_unless_unread};
use crate::controllers::step_problem::{blocking_problem, first_problem, step_problem};
use crate::engine::failure::Class;
use crate::hypershift::conditions::NewCondition;
use crate::hypershift::problem::Problem;

/// The report of a reconcile that makes or repairs the guest's side.
pub fn after_build(cr: &AzurePrivateLinkService, decision: &Decision, names: &Names, outcomes: &[Outcome]) -> Report {
    let generation = cr.metadata.generation;
    let steps: Vec<(&Step, &Outcome)> = decision.steps.iter().zip(outcomes).collect();
    let endpoint = endpoint_problem(decision, &steps);
    let dns = decision.problem.clone().or_else(|| {
        let problems = steps
            .iter()
            .filter_map(|(step, outcome)| Some((*step, dns_problem(&names.zones, step, outcome)?)));
        first_problem(endpoint.as_ref(), problems)
    });
    let endpoint_holds = NewCondition::holds(
        ConditionType::AzurePrivateEndpointAvailable,
        "Private Endpoint is available",
        generation,
    );
    let own = vec![
        holds_unless(cr, endpoint_holds, endpoint),
        holds_unless(cr, dns_holds(names, generation), dns),
    ];
    finish(cr, own, fields(&steps, names))
}

fn holds_unless(cr: &AzurePrivateLinkService, holds: NewCondition, problem: Option<Problem>) -> NewCondition {
    match problem {
        None => holds,
        Some(problem) => fails_unless_unread(cr, holds.kind, &problem),
    }
}

/// The condition for names that are as desired. A second controller is reported before what it writes: as long as the
/// result is right, nothing is written against it.
fn dns_holds(names: &Names, generation: Option<i64>) -> NewCondition {
    let mut reason = Reason::AzureSuccess;
    let mut text = "Private DNS zones and A records are available".to_owned();
    if let Some(manager) = &names.other_controller {
        reason = Reason::OtherControllerActive;
        text = format!("available, but {manager} serves this cluster too; stop one of the two");
    } else if let Some(zone) = &names.shadowing {
        reason = Reason::ZoneShadowsBaseDomain;
        text = format!("available, but the zone {zone} hides public names of the cluster from the guest");
    }
    NewCondition {
        reason,
        ..NewCondition::holds(ConditionType::AzurePrivateDNSAvailable, text, generation)
    }
}

/// The report of a reconcile that deletes the guest's side.
pub fn after_teardown(cr: &AzurePrivateLinkService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let steps = decision.steps.iter().zip(outcomes);
    let (endpoint, dns): (Vec<_>, Vec<_>) = steps.partition(|(step, _)| step.kind == Kind::PrivateEndpoint);
    let own = vec![
        deleting(cr, ConditionType::AzurePrivateEndpointAvailable, decision, endpoint),
        deleting(cr, ConditionType::AzurePrivateDNSAvailable, decision, dns),
    ];
    finish(cr, own, Map::new())
}

/// A condition while these steps delete what it is about.
fn deleting(
    cr: &AzurePrivateLinkService,
    kind: ConditionType,
    decision: &Decision,
    steps: Vec<(&Step, &Outcome)>,
) -> NewCondition {
    let problem = blocking_problem(decision, steps, |_| Reason::DeletionFailed);
    let problem = problem.unwrap_or_else(|| Problem::new(Reason::Deleting, "deleted"));
    fails(kind, &abandon::noted(cr, Role::Cpo, problem), cr.metadata.generation)
}

fn finish(cr: &AzurePrivateLinkService, mut own: Vec<NewCondition>, fields: Map<String, Value>) -> Report {
    own.extend(cr.summary(&own));
    Report {
        conditions: own,
        fields,
    }
}

fn endpoint_problem(decision: &Decision, steps: &[(&Step, &Outcome)]) -> Option<Problem> {
    if let Some(problem) = &decision.problem {
        return Some(problem.clone());
    }
    let Some((step, outcome)) = steps.iter().find(|(step, _)| step.kind == Kind::PrivateEndpoint) else {
        let text = "the Private Endpoint has not been looked at yet";
        return Some(Problem::new(Reason::Provisioning, text));
    };
    if step.why.waits_for_others() && **outcome == Outcome::Nothing {
        let text = "the Private Link Service has no alias yet";
        return Some(Problem::new(Reason::WaitingForPrivateLinkService, text));
    }
    let failure = match step.why {
        Why::Unread(_) => Reason::PrivateEndpointGetFailed,
        _ => Reason::PrivateEndpointCreationFailed,
    };
    step_problem(step, outcome, failure).or_else(|| match step.ready() {
        Some(body) => connection_problem(body),
        None => Some(Problem::new(
            Reason::Provisioning,
            "the Private Endpoint is being provisioned",
        )),
    })
}

/// Why nobody can connect through an endpoint that is as desired.
fn connection_problem(body: &Value) -> Option<Problem> {
    let state = approval(body);
    if state != Approval::Approved {
        let text = format!(
            "the connection is {}, not Approved; approve it on the Private Link Service or allow the subscription",
            state.word()
        );
        return Some(Problem::new(Reason::PrivateEndpointConnectionNotApproved, text));
    }
    if address(body).is_none() {
        let text = "the Private Endpoint has no address yet";
        return Some(Problem::new(Reason::WaitingForPrivateEndpoint, text));
    }
    None
}

fn dns_problem(zones: &[DesiredZone], step: &Step, outcome: &Outcome) -> Option<Problem> {
    let part = part_of(zones, step)?;
    let failure = match (part, step.kind) {
        (Part::Internal, Kind::PrivateDnsZone) => Reason::DNSZoneCreationFailed,
        (Part::Internal, Kind::VirtualNetworkLink) => Reason::VNetLinkCreationFailed,
        (Part::Internal, _) => Reason::ARecordCreationFailed,
        (Part::BaseDomain, Kind::PrivateDnsZone) => Reason::BaseDomainDNSZoneCreationFailed,
        (Part::BaseDomain, Kind::VirtualNetworkLink) => Reason::BaseDomainVNetLinkCreationFailed,
        (Part::BaseDomain, _) => Reason::BaseDomainARecordCreationFailed,
    };
    if linked_to_other_zone(step, outcome) {
        let text = format!(
            "another zone named {} is linked to the virtual network",
            step.key.parent()?.name()
        );
        return Some(Problem::new(Reason::VNetLinkedToOtherZone, text));
    }
    let mut problem = step_problem(step, outcome, failure)?;
    if matches!(step.why, Why::NeedsValue(Kind::PrivateEndpoint, _)) {
        problem.reason = Reason::WaitingForPrivateEndpoint;
    }
    Some(problem)
}

/// A link that Azure refuses for good as invalid overlaps with another zone of the same name.
fn linked_to_other_zone(step: &Step, outcome: &Outcome) -> bool {
    let error = error_of(step, outcome).filter(|_| step.kind == Kind::VirtualNetworkLink);
    error.is_some_and(|error| error.class == Class::Invalid && error.code == "BadRequest")
}

/// The status fields: the ids of observed, owned resources, and null for those that are absent or of others. A known
/// address stays until another is known.
fn fields(steps: &[(&Step, &Outcome)], names: &Names) -> Map<String, Value> {
    let mut fields = Map::new();
    for (step, _) in steps {
        let Some(field) = id_field(step, &names.zones) else {
            continue;
        };
        let is_cleared = step.left() || step.why == Why::Absent;
        if let Some(body) = step.ready() {
            fields.insert(field.to_owned(), json!(step.key.to_string()));
            let address = address(body).filter(|_| step.kind == Kind::PrivateEndpoint);
            if let Some(address) = address.as_ref().map(IpAddr::to_string) {
                fields.insert("privateEndpointIP".into(), json!(address));
            }
            if names_the_zone(step, names) {
                fields.insert("dnsZoneName".into(), json!(names.internal_zone));
            }
        } else if is_cleared {
            fields.insert(field.to_owned(), Value::Null);
            if step.left() && names_the_zone(step, names) {
                fields.insert("dnsZoneName".into(), Value::Null);
            }
        }
    }
    fields
}

/// Whether this step decides if the status names the internal zone. HyperShift's own operator deletes by that name:
/// also for custom resources that have no such zone, and never for one whose zone is of others.
fn names_the_zone(step: &Step, names: &Names) -> bool {
    let own = names.zones.iter().find(|zone| zone.part == Part::Internal);
    own.map_or(step.kind == Kind::PrivateEndpoint, |zone| zone.zone.id == step.key)
}

/// The status field for the id of a step's resource.
fn id_field(step: &Step, zones: &[DesiredZone]) -> Option<&'static str> {
    match (step.kind, part_of(zones, step)) {
        (Kind::PrivateEndpoint, _) => Some("privateEndpointID"),
        (Kind::PrivateDnsZone, Some(Part::Internal)) => Some("privateDNSZoneID"),
        (Kind::PrivateDnsZone, Some(Part::BaseDomain)) => Some("baseDomainDNSZoneID"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
