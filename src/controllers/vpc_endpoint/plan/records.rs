//! The records of the endpoint: those that the custom resource is to have, and those that it is to have no longer.

use std::collections::BTreeSet;

use kube::ResourceExt;

use super::{Basis, Building, MOST_FORMER, Stop, shown_service};
use crate::aws::kinds::Kind;
use crate::aws::kinds::records::{Records, ReleasedRecords};
use crate::aws::slot::{Scope, Slot};
use crate::controllers::aws::{Needs, Step};
use crate::controllers::event;
use crate::controllers::vpc_endpoint::inputs::Guest;
use crate::controllers::vpc_endpoint::zone;
use crate::engine::failure::{Class, Failure as _};
use crate::engine::plan::{ensure_absent, ensure_present};
use crate::hypershift::aws::ids::{endpoint_suffix, is_id, service_id};
use crate::hypershift::aws::intent::{CpoIntent, FormerZone};
use crate::hypershift::aws::names;
use crate::hypershift::aws::scopes::Access;
use crate::hypershift::identity::Identity;
use crate::hypershift::problem::Problem;

/// The names of the custom resource's records: of those that it can have, all that are recorded, shown or desired.
pub(crate) fn known_names(basis: Basis<'_>, identity: &Identity, recorded: &CpoIntent) -> Vec<String> {
    let cr = basis.cr.name_any();
    let shown = basis.cr.status.as_ref().map(|status| status.dns_names.as_slice());
    let named: BTreeSet<&String> = recorded.record_names.iter().chain(shown.unwrap_or_default()).collect();
    let desired = basis.inputs.guest.as_ref().ok();
    let desired = desired.map(|guest| names::record_names(&cr, &identity.name, guest.api_server_is_routed));
    let desired = desired.unwrap_or_default();
    let possible = possible_names(basis, identity).into_iter();
    possible
        .filter(|name| named.contains(name) || desired.contains(name))
        .collect()
}

/// The names of all records that the custom resource can have.
fn possible_names(basis: Basis<'_>, identity: &Identity) -> BTreeSet<String> {
    let cr = basis.cr.name_any();
    let possible = [true, false].map(|routed| names::record_names(&cr, &identity.name, routed));
    possible.into_iter().flatten().collect()
}

/// The records in a slot that lead to an endpoint of the custom resource: to these DNS names, to one whose id is
/// recorded or shown, or to one of its endpoint services. Whoever else has a record of the name keeps it.
pub(crate) fn released(
    basis: Basis<'_>,
    recorded: &CpoIntent,
    slot: Slot,
    dns_names: BTreeSet<String>,
) -> ReleasedRecords {
    let status = basis.cr.status.as_ref();
    let shown = status.and_then(|status| status.endpoint_id.as_deref());
    let shown = shown.filter(|id| is_id("vpce", id));
    let ids = [shown, recorded.endpoint_id(), recorded.former_endpoint_id()];
    let services = recorded.service_names().into_iter().rev().take(MOST_FORMER + 1);
    let services = services.chain(shown_service(basis).map(String::as_str));
    ReleasedRecords {
        slot,
        endpoint_names: dns_names.into_iter().collect(),
        endpoint_ids: ids.into_iter().flatten().map(str::to_owned).collect(),
        service_ids: services
            .filter_map(|name| service_id(name, basis.region))
            .map(str::to_owned)
            .collect(),
    }
}

/// The records of these names in a zone, which lead to an endpoint that is not known yet.
pub(super) fn to_endpoint(basis: Basis<'_>, guest: &Guest, zone: &str, names: &[&str]) -> Records {
    Records {
        slot: Slot::records(&guest.zone_account, zone, names),
        target: String::new(),
        endpoint_suffix: endpoint_suffix(basis.region.partition()),
    }
}

/// Checks that the operator's file allows records in a zone that was recorded.
pub(crate) fn check_zone(basis: Basis<'_>, account: &Scope, zone: &str) -> Result<(), Problem> {
    const RECORDED: &str = "what was recorded";
    match &basis.inputs.access {
        Access::AsNamed(_) => Ok(()),
        Access::Refused(problem) => Err(problem.clone()),
        Access::Allowed(scopes) => {
            scopes.check_account(RECORDED, account)?;
            scopes.check_zone(RECORDED, zone)
        }
    }
}

/// Whether these steps outdate what was observed of the records of another slot. Those of a custom resource change with
/// the strategy of the API server, and a write to some shows in the slot of that write alone. What has observed nothing
/// outdates nothing, and where both slots show nothing, neither is outdated: the custom resources of a cluster share
/// names, in the zones of before too.
pub(crate) fn outdates_records(steps: &[Step], key: &Slot, is_absent: bool) -> bool {
    let mut records = steps.iter().filter(|step| step.kind == Kind::Records);
    let has_observed = |step: &Step| match step.gone() {
        true => !is_absent,
        false => step.found.is_some() || step.writes(),
    };
    let outdates = |step: &Step| step.key.shares_records(key) && has_observed(step);
    records.clone().all(|step| step.key != *key) && records.any(outdates)
}

/// Whether records need not be recorded any more: others have them, or they are surely gone. A single read that does
/// not find them may be behind.
fn is_over(basis: Basis<'_>, step: &Step) -> bool {
    step.left() || (step.gone() && basis.facts.surely_gone.contains(&step.key))
}

impl Building<'_> {
    /// Adds the step for the records, if the custom resource has any.
    pub(super) fn records(
        &mut self,
        names: &[&str],
        endpoint: Option<String>,
        early: Option<Result<String, Problem>>,
    ) -> Result<(), Stop> {
        let Self { basis, guest, .. } = *self;
        let Some(early) = early else {
            return Ok(());
        };
        let mut desired = Records {
            target: endpoint.clone().unwrap_or_default(),
            ..to_endpoint(basis, guest, "", names)
        };
        let zone = match (early, &endpoint) {
            (Ok(zone), _) => zone,
            (Err(_), Some(_)) => zone::find(basis, guest, &self.recorded, names, Some(&desired))?,
            (Err(problem), None) => return Err(problem.into()),
        };
        self.recorded.enter_zone(&zone);
        desired.slot = Slot::records(&guest.zone_account, &zone, names);
        let step = match &endpoint {
            Some(_) if self.waits_for_the_endpoint(&desired)? => {
                Step::needs(Kind::Records, desired.slot, "the endpoint")
            }
            Some(_) => ensure_present(&desired, basis.facts.read(Kind::Records, &desired.slot)?),
            None => Step::needs(Kind::Records, desired.slot, "the endpoint"),
        };
        self.decision.steps.push(step);
        self.leave_former_zones()?;
        match endpoint {
            Some(endpoint) => self.release_unwanted(names, &zone, endpoint),
            None => Ok(()),
        }
    }

    /// Whether records lead elsewhere, and the endpoint is not available yet: what they lead to may still serve.
    fn waits_for_the_endpoint(&self, desired: &Records) -> Result<bool, Needs> {
        let mut endpoints = self.decision.steps.iter().rev();
        let endpoint = endpoints.find(|step| step.kind == Kind::VpcEndpoint);
        if endpoint.is_some_and(|step| step.ready().is_some() || step.writes()) {
            return Ok(false);
        }
        let observed = self.basis.facts.read(Kind::Records, &desired.slot)?;
        Ok(observed.found().is_some_and(|records| !desired.lead_to_target(records)))
    }

    /// Adds the steps that delete the records in zones of before, and says of which zones they stay. A zone stays
    /// recorded until it surely has none.
    fn leave_former_zones(&mut self) -> Result<(), Needs> {
        let Self { basis, guest, .. } = *self;
        let names = possible_names(basis, &guest.identity);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        let (mut stays, mut is_final) = (Vec::new(), true);
        for former in self.recorded.former_zones.clone() {
            let recorded = self.recorded.of_zone(&former);
            let scope = basis.inputs.recorded_zone_scope(&recorded);
            let Some((scope, zone)) = scope.zip(recorded.zone_id()) else {
                self.forget_zone(&former);
                continue;
            };
            let stay = |why: &str| format!("records {} may stay in hosted zone {zone}: {why}", names.join(", "));
            if let Err(problem) = check_zone(basis, &scope, zone) {
                stays.push(stay(&problem.message));
                continue;
            }
            let released = released(basis, &recorded, Slot::records(&scope, zone, &names), BTreeSet::new());
            let step = ensure_absent(&released, basis.facts.read(Kind::Records, &released.slot)?);
            if is_over(basis, &step) || (!step.gone() && zone::is_gone(basis, &scope, zone, &names)?) {
                self.forget_zone(&former);
                continue;
            }
            if let Some(error) = step.why.error() {
                is_final &= error.class() == Class::Denied;
                stays.push(stay(&error.to_string()));
            }
            self.decision.steps.push(step);
        }
        if is_final {
            self.decision.standing.push(("former zones", event::left_out(&stays)));
        }
        self.decision.left_out.extend(stays);
        Ok(())
    }

    /// Forgets a zone of before, which has no records of the custom resource.
    fn forget_zone(&mut self, former: &FormerZone) {
        self.recorded.former_zones.retain(|zone| zone != former);
        self.decision.forgets = true;
    }

    /// Adds the step that deletes the records that the custom resource had and is to have no longer. Each stays
    /// recorded until it is surely gone, or somebody else's.
    fn release_unwanted(&mut self, desired: &[&str], zone: &str, endpoint: String) -> Result<(), Stop> {
        let Self { basis, guest, .. } = *self;
        let had = &self.recorded.record_names;
        let unwanted: Vec<&str> = had
            .iter()
            .map(String::as_str)
            .filter(|name| !desired.contains(name))
            .collect();
        if unwanted.is_empty() {
            return Ok(());
        }
        let slot = Slot::records(&guest.zone_account, zone, &unwanted);
        let released = released(basis, &self.recorded, slot, BTreeSet::from([endpoint]));
        let step = ensure_absent(&released, basis.facts.read(Kind::Records, &released.slot)?);
        if is_over(basis, &step) {
            self.recorded.record_names = desired.iter().map(ToString::to_string).collect();
            self.decision.forgets = true;
        }
        self.decision.steps.push(step);
        Ok(())
    }
}
