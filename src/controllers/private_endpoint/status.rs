//! What the CPO role reports: its three conditions and its status fields, also after a failure. Pure.

use std::net::IpAddr;

use serde_json::{Map, Value, json};

use super::dns::{ADDRESS, DesiredZone, Part, part_of};
use super::plan::Names;
use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Role};
use crate::azure::error::{ArmError, Class};
use crate::azure::kinds::private_endpoint::{Approval, address, approval};
use crate::azure::plan::{Outcome, Step, Why};
use crate::azure::resource::Kind;
use crate::conditions::{self, NewCondition};
use crate::controllers::abandon;
use crate::controllers::decision::{Decision, blocking_problem, first_problem, step_problem};
use crate::controllers::report::{Report, fails, fails_unless_unread};
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
    let condition = |kind, problem: &Option<Problem>, (reason, holds): (Reason, String)| match problem {
        None => NewCondition {
            reason,
            ..NewCondition::holds(kind, holds, generation)
        },
        Some(problem) => fails_unless_unread(cr, kind, problem),
    };
    let own = vec![
        condition(
            ConditionType::AzurePrivateEndpointAvailable,
            &endpoint,
            (Reason::AzureSuccess, "Private Endpoint is available".to_owned()),
        ),
        condition(ConditionType::AzurePrivateDNSAvailable, &dns, names_hold(names)),
    ];
    let fields = fields(&steps, names);
    finish(cr, own, fields)
}

/// Reason and message for names that are as desired. A second controller is reported before what it writes: as long as
/// the result is right, nothing is written against it.
fn names_hold(names: &Names) -> (Reason, String) {
    if let Some(manager) = &names.other_controller {
        let text = format!("available, but {manager} serves this cluster too; stop one of the two");
        return (Reason::OtherControllerActive, text);
    }
    match &names.shadowing {
        None => (
            Reason::AzureSuccess,
            "Private DNS zones and A records are available".to_owned(),
        ),
        Some(zone) => (
            Reason::ZoneShadowsBaseDomain,
            format!("available, but the zone {zone} hides public names of the cluster from the guest"),
        ),
    }
}

/// The report of a reconcile that deletes the guest's side.
pub fn after_teardown(cr: &AzurePrivateLinkService, decision: &Decision, outcomes: &[Outcome]) -> Report {
    let generation = cr.metadata.generation;
    let problem = |of_condition: fn(Kind) -> bool| {
        let steps = decision
            .steps
            .iter()
            .zip(outcomes)
            .filter(|(step, _)| of_condition(step.kind));
        let found = blocking_problem(decision, steps, |_| Reason::DeletionFailed);
        let found = found.unwrap_or_else(|| Problem::new(Reason::Deleting, "deleted"));
        abandon::noted(cr, Role::Cpo, found)
    };
    let own = vec![
        fails(
            ConditionType::AzurePrivateEndpointAvailable,
            &problem(|kind| kind == Kind::PrivateEndpoint),
            generation,
        ),
        fails(
            ConditionType::AzurePrivateDNSAvailable,
            &problem(|kind| kind != Kind::PrivateEndpoint),
            generation,
        ),
    ];
    finish(cr, own, Map::new())
}

fn finish(cr: &AzurePrivateLinkService, mut own: Vec<NewCondition>, fields: Map<String, Value>) -> Report {
    let current = cr
        .status
        .as_ref()
        .map(|status| status.conditions.as_slice())
        .unwrap_or_default();
    own.push(conditions::summary(current, &own, cr.metadata.generation));
    Report {
        conditions: own,
        fields,
    }
}

fn endpoint_problem(decision: &Decision, steps: &[(&Step, &Outcome)]) -> Option<Problem> {
    if let Some(problem) = &decision.problem {
        return Some(problem.clone());
    }
    let waiting = |reason, text: &str| Some(Problem::new(reason, text));
    let Some((step, outcome)) = steps.iter().find(|(step, _)| step.kind == Kind::PrivateEndpoint) else {
        return waiting(Reason::Provisioning, "the Private Endpoint has not been looked at yet");
    };
    if let (Why::Needs(_), Outcome::Nothing) = (&step.why, outcome) {
        return waiting(
            Reason::WaitingForPrivateLinkService,
            "the Private Link Service has no alias yet",
        );
    }
    let failure = if matches!(step.why, Why::Unread(_)) {
        Reason::PrivateEndpointGetFailed
    } else {
        Reason::PrivateEndpointCreationFailed
    };
    if let Some(problem) = step_problem(step, outcome, failure) {
        return Some(problem);
    }
    let Some(body) = step.ready() else {
        return waiting(Reason::Provisioning, "the Private Endpoint is being provisioned");
    };
    match (approval(body), address(body)) {
        (Approval::Approved, Some(_)) => None,
        (Approval::Approved, None) => waiting(
            Reason::WaitingForPrivateEndpoint,
            "the Private Endpoint has no address yet",
        ),
        (state, _) => waiting(
            Reason::PrivateEndpointConnectionNotApproved,
            &format!(
                "the connection is {}, not Approved; approve it on the Private Link Service or allow the subscription",
                state.word()
            ),
        ),
    }
}

fn dns_problem(zones: &[DesiredZone], step: &Step, outcome: &Outcome) -> Option<Problem> {
    let part = part_of(zones, step)?;
    let failure = match (part, step.kind) {
        (Part::Internal, Kind::Zone) => Reason::DNSZoneCreationFailed,
        (Part::Internal, Kind::ZoneLink) => Reason::VNetLinkCreationFailed,
        (Part::Internal, _) => Reason::ARecordCreationFailed,
        (Part::BaseDomain, Kind::Zone) => Reason::BaseDomainDNSZoneCreationFailed,
        (Part::BaseDomain, Kind::ZoneLink) => Reason::BaseDomainVNetLinkCreationFailed,
        (Part::BaseDomain, _) => Reason::BaseDomainARecordCreationFailed,
    };
    if linked_to_other_zone(step, outcome) {
        let text = format!(
            "another zone named {} is linked to the virtual network",
            step.id.parent()?.name()
        );
        return Some(Problem::new(Reason::VNetLinkedToOtherZone, text));
    }
    let problem = step_problem(step, outcome, failure)?;
    let reason = if step.why == Why::Needs(ADDRESS) {
        Reason::WaitingForPrivateEndpoint
    } else {
        problem.reason
    };
    Some(Problem { reason, ..problem })
}

/// A link that Azure refuses for good as invalid overlaps with another zone of the same name.
fn linked_to_other_zone(step: &Step, outcome: &Outcome) -> bool {
    let error = match outcome {
        Outcome::Failed(error) => Some(error),
        _ => step.why.error(),
    };
    let invalid = |error: &ArmError| error.class == Class::Invalid && error.code == "BadRequest";
    step.kind == Kind::ZoneLink && error.is_some_and(invalid)
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
            fields.insert(field.to_owned(), json!(step.id.to_string()));
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
    own.map_or(step.kind == Kind::PrivateEndpoint, |zone| zone.zone.id == step.id)
}

/// The status field for the id of a step's resource.
fn id_field(step: &Step, zones: &[DesiredZone]) -> Option<&'static str> {
    match (step.kind, part_of(zones, step)) {
        (Kind::PrivateEndpoint, _) => Some("privateEndpointID"),
        (Kind::Zone, Some(Part::Internal)) => Some("privateDNSZoneID"),
        (Kind::Zone, Some(Part::BaseDomain)) => Some("baseDomainDNSZoneID"),
        _ => None,
    }
}

#[cfg(test)]
mod tests;
