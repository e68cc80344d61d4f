//! What the CPO role does for an AWSEndpointService that is not deleted: security group, endpoint, records. Pure.

use kube::ResourceExt;
use serde_json::{Value, json};

use super::inputs::{Guest, VpcEndpointInputs};
use super::{subnets, zone};
use crate::api::markers::CPO_INTENT;
use crate::api::markers::aws::ENDPOINT_DNS_NAME;
use crate::api::{AWSEndpointService, Reason};
use crate::aws::body::{state, texts};
use crate::aws::cloud::{Aws, Observed};
use crate::aws::kinds::Kind;
use crate::aws::kinds::records::Records;
use crate::aws::kinds::vpc_endpoint::dns_name;
use crate::aws::region::Region;
use crate::aws::slot::Slot;
use crate::controllers::aws::{Decision, Facts, Needs, Step};
use crate::controllers::event;
use crate::engine::cloud::Cloud;
use crate::engine::plan::{Why, ensure_absent, ensure_present};
use crate::engine::resource::{Owned, Progress};
use crate::hypershift::aws::ids::service_id;
use crate::hypershift::aws::intent::{CpoIntent, client_token, next_nonce};
use crate::hypershift::aws::{names, problem};
use crate::hypershift::intent::{self, OwnFields};
use crate::hypershift::problem::Problem;

mod owned;
mod records;
mod several;

pub(super) use owned::{owned_endpoint, owned_group};
pub(super) use records::{check_zone, known_names, outdates_records, released};

/// The most endpoint services and zones of before that are recorded, or read: they change seldom, and the intent may
/// be forged.
pub(super) const MOST_FORMER: usize = 4;

/// What a decision for one custom resource is made from.
#[derive(Debug, Clone, Copy)]
pub(super) struct Basis<'a> {
    /// The custom resource.
    pub(super) cr: &'a AWSEndpointService,
    /// What Kubernetes shows around it.
    pub(super) inputs: &'a VpcEndpointInputs,
    /// What AWS shows.
    pub(super) facts: &'a Facts,
    /// The region that this process serves.
    pub(super) region: &'a Region,
}

/// Why a part of a decision stops before its steps are known.
#[derive(Debug)]
pub(super) enum Stop {
    /// A problem prevents the steps.
    Blocked(Problem),
    /// Facts are missing.
    Needs(Needs),
}

impl From<Problem> for Stop {
    fn from(problem: Problem) -> Self {
        Self::Blocked(problem)
    }
}

impl From<Needs> for Stop {
    fn from(needs: Needs) -> Self {
        Self::Needs(needs)
    }
}

/// What to do for a custom resource that is not deleted.
pub(super) fn build(basis: Basis<'_>) -> Result<Decision, Needs> {
    // A paused cluster is not judged.
    if let (Some(problem), None) = (&basis.inputs.vouched.refusal, &basis.inputs.paused) {
        return Ok(Decision::stuck(problem.clone()));
    }
    let guest = match &basis.inputs.guest {
        Ok(guest) => guest,
        Err(problem) => return Ok(Decision::stuck(problem.clone())),
    };
    if let Some(problem) = &basis.inputs.paused {
        return Ok(Decision::paused(problem.clone()));
    }
    if has_moved(basis, guest) {
        return Ok(Decision::stuck(problem::guest_moved()));
    }
    let mut building = Building {
        basis,
        guest,
        recorded: recorded(basis, guest),
        decision: Decision::default(),
    };
    match building.add_steps() {
        Ok(()) => {}
        Err(Stop::Blocked(problem)) => {
            building.decision.requeue = problem.requeue();
            building.decision.problem = Some(problem);
        }
        Err(Stop::Needs(needs)) => return Err(needs),
    }
    let mut decision = building.decision;
    decision.intent = Some(intent::write(&building.recorded));
    decision.own_fields = own_fields(basis, &decision);
    Ok(decision)
}

/// Whether something was made elsewhere. What is made here would be recorded in its stead, and that be left behind.
fn has_moved(basis: Basis<'_>, guest: &Guest) -> bool {
    let known: Option<CpoIntent> = intent::read(basis.cr.annotations().get(CPO_INTENT));
    let status = basis.cr.status.as_ref();
    let is_shown = status.is_some_and(|status| status.endpoint_id.is_some() || status.security_group_id.is_some());
    known.is_some_and(|known| {
        let made = is_shown || known.endpoint_id.is_some() || known.security_group_id.is_some();
        made && known.identity() == guest.identity && known.is_elsewhere(&guest.account, &guest.vpc)
    })
}

/// What is known of the endpoints to endpoint services of before, the worst last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Former {
    /// There is none of the cluster's.
    Gone,
    /// One cannot be read. That stops no repair, but no endpoint is created beside it.
    Unread,
    /// One is there.
    There,
}

impl Former {
    fn of(step: &Step) -> Self {
        match step.why {
            _ if step.gone() || step.left() => Self::Gone,
            Why::Unread(_) => Self::Unread,
            _ => Self::There,
        }
    }
}

/// A decision in the making.
struct Building<'a> {
    basis: Basis<'a>,
    guest: &'a Guest,
    recorded: CpoIntent,
    decision: Decision,
}

impl Building<'_> {
    fn add_steps(&mut self) -> Result<(), Stop> {
        let Self { basis, guest, .. } = *self;
        let group = self.security_group()?;
        let names = names::record_names(&basis.cr.name_any(), &guest.identity.name, guest.api_server_is_routed);
        let names: Vec<&str> = names.iter().map(String::as_str).collect();
        self.recorded.record_names = known_names(basis, &guest.identity, &self.recorded);
        // Known before there is an endpoint, a zone costs no time later.
        let early = match names.is_empty() {
            true => None,
            false => zone_or_problem(zone::find(basis, guest, &self.recorded, &names, None))?,
        };
        if let Some(Ok(zone)) = &early {
            self.recorded.enter_zone(zone);
        }
        let former = self.remove_former()?;
        let service = service_name(basis)?;
        let slot = Slot::vpc_endpoint(&guest.account, &guest.vpc, service);
        let endpoint = match group {
            Some(group) if former < Former::There && !(former == Former::Unread && self.is_to_create(&slot)?) => {
                let zone = early.as_ref().and_then(|zone| zone.as_ref().ok());
                let records = zone.map(|zone| records::to_endpoint(basis, guest, zone, &names));
                self.endpoint(service, &group, records)?
            }
            _ => {
                let what = if former > Former::Gone {
                    "the endpoint of before to go"
                } else {
                    "the security group"
                };
                self.decision
                    .steps
                    .push(Step::needs(Kind::VpcEndpoint, slot.clone(), what));
                None
            }
        };
        self.records(&names, endpoint, early)?;
        self.delete_further(&slot)
    }

    /// Adds the step for the security group; its id, once it is ready.
    fn security_group(&mut self) -> Result<Option<String>, Stop> {
        let desired = owned::security_group(self.basis, self.guest)?;
        let step = ensure_present(&desired, self.basis.facts.read(Kind::SecurityGroup, &desired.slot)?);
        let id = step.ready().map(|body| Aws::instance(body).to_owned());
        if id.is_some() {
            self.recorded.security_group_id.clone_from(&id);
        }
        self.decision.steps.push(step);
        Ok(id)
    }

    /// Adds the steps that delete endpoints to the endpoint services of before. One that surely has none is forgotten: it
    /// would be read for ever.
    fn remove_former(&mut self) -> Result<Former, Needs> {
        let Self { basis, guest, .. } = *self;
        let current = shown_service(basis);
        let mut all = Former::Gone;
        for former in self.recorded.endpoint_service_names.clone() {
            if current.is_none() || current == Some(&former) {
                continue;
            }
            let owned = owned::endpoint_of(basis, guest, &former);
            let step = ensure_absent(&owned, basis.facts.read(Kind::VpcEndpoint, owned.key())?);
            // Until no zone of before is left, the name proves that a record there is the cluster's.
            let is_over = basis.facts.surely_gone.contains(&step.key) && self.recorded.former_zones.is_empty();
            if step.gone() && is_over {
                self.recorded.endpoint_service_names.retain(|name| *name != former);
                self.decision.forgets = true;
                continue;
            }
            all = all.max(Former::of(&step));
            self.decision.steps.push(step);
        }
        Ok(all)
    }

    /// Whether the endpoint is not there yet.
    fn is_to_create(&self, slot: &Slot) -> Result<bool, Needs> {
        Ok(*self.basis.facts.read(Kind::VpcEndpoint, slot)? == Observed::Absent)
    }

    /// Adds the step for the endpoint; its DNS name, once it is ready.
    fn endpoint(&mut self, service: &str, group: &str, records: Option<Records>) -> Result<Option<String>, Stop> {
        let Self { basis, guest, .. } = *self;
        let mut desired = owned::endpoint_of(basis, guest, service);
        desired.kept = several::kept(basis, &self.recorded, &desired, records)?;
        let observed = basis.facts.read(Kind::VpcEndpoint, &desired.slot)?;
        let found = observed.found().map(|body| desired.own_part(body));
        let attached = found
            .as_deref()
            .map(|body| texts(body, "SubnetIds"))
            .unwrap_or_default();
        let chosen = subnets::choose(basis, guest, &attached)?;
        self.record_service(service);
        if *observed == Observed::Absent {
            begin_create(&mut self.recorded, basis, basis.facts.is_token_spent(&desired.slot));
        }
        desired.security_group = group.to_owned();
        desired.subnets = chosen.ids;
        self.tell_left_out(chosen.left_out, !chosen.provisional);
        desired.zones = chosen.zones;
        desired.may_be_refused = chosen.may_be_refused;
        let uid = basis.cr.uid().unwrap_or_default();
        desired.client_token = client_token(&uid, Kind::VpcEndpoint, &self.recorded.endpoint_nonce);
        let step = ensure_present(&desired, observed);
        // Before it is available: nothing leads there yet, and resolvers have the answer in time.
        let on_its_way = step.found.as_ref().filter(|body| !step.left() && is_usable(body));
        let name = on_its_way.and_then(dns_name).map(str::to_owned);
        // Also of one that is never ready: with its client token AWS creates no other one.
        if let Some(body) = step.found.as_ref().filter(|_| !step.left()) {
            self.recorded.endpoint_id = Some(Aws::instance(body).to_owned());
        }
        self.decision.problem = step
            .found
            .as_ref()
            .filter(|_| !step.left())
            .and_then(|body| not_connected(&state(body)));
        self.decision.steps.push(step);
        Ok(name)
    }

    /// Says which subnets are left out; they stand in an Event if a later read cannot show others.
    fn tell_left_out(&mut self, subnets: Vec<String>, is_final: bool) {
        let text = (!subnets.is_empty()).then(|| format!("subnets left out: {}", subnets.join("; ")));
        let texts = Vec::from_iter(text);
        if is_final {
            self.decision.standing.push(("left out", event::left_out(&texts)));
        }
        self.decision.left_out.extend(texts);
    }

    /// Records that an endpoint to this service is about to be created, or is there.
    fn record_service(&mut self, service: &str) {
        let names = &mut self.recorded.endpoint_service_names;
        names.retain(|name| name != service);
        names.push(service.to_owned());
        let more = names.len().saturating_sub(MOST_FORMER + 1);
        names.drain(..more);
    }
}

fn zone_or_problem(found: Result<String, Stop>) -> Result<Option<Result<String, Problem>>, Stop> {
    match found {
        Ok(zone) => Ok(Some(Ok(zone))),
        Err(Stop::Blocked(problem)) => Ok(Some(Err(problem))),
        Err(needs) => Err(needs),
    }
}

/// What was recorded for this cluster, where it is now.
fn recorded(basis: Basis<'_>, guest: &Guest) -> CpoIntent {
    let known: Option<CpoIntent> = intent::read(basis.cr.annotations().get(CPO_INTENT));
    let same_zone = |known: &CpoIntent| {
        let account = known.zone_scope();
        account.is_some_and(|account| account.is_same_place(&guest.zone_account))
    };
    let mut known = known
        .filter(|known| known.identity() == guest.identity)
        .unwrap_or_default();
    if !same_zone(&known) {
        known.leave_zone();
    }
    let more = known.former_zones.len().saturating_sub(MOST_FORMER);
    known.former_zones.drain(..more);
    let mut endpoint_service_names = known.endpoint_service_names;
    // Whoever may write the annotation must not have endpoints to AWS's own services deleted.
    endpoint_service_names.retain(|name| service_id(name, basis.region).is_some());
    endpoint_service_names.drain(..endpoint_service_names.len().saturating_sub(MOST_FORMER + 1));
    CpoIntent {
        account: guest.account.account.clone(),
        zone_account: guest.zone_account.account.clone(),
        region: guest.account.region.clone(),
        vpc: guest.vpc.clone(),
        endpoint_role: guest.account.role.as_ref().map(ToString::to_string),
        records_role: guest.zone_account.role.as_ref().map(ToString::to_string),
        zone_id: known.zone_id,
        former_zones: known.former_zones,
        endpoint_service_names,
        endpoint_id: known.endpoint_id,
        security_group_id: known.security_group_id,
        endpoint_nonce: known.endpoint_nonce,
        record_names: known.record_names,
        ..CpoIntent::of(&guest.identity)
    }
}

/// Records that an endpoint is about to be created. The id of the one before, if one is known, makes its client token
/// another one: with the same token AWS may answer with the endpoint that is gone.
fn begin_create(recorded: &mut CpoIntent, basis: Basis<'_>, is_token_spent: bool) {
    let status = basis.cr.status.as_ref();
    let shown = status.and_then(|status| status.endpoint_id.clone());
    let before = recorded.endpoint_id.take().or(shown);
    recorded.endpoint_nonce = next_nonce(&recorded.endpoint_nonce, before.as_deref(), is_token_spent);
}

/// The name of the endpoint service that role `ho` publishes.
fn shown_service(basis: Basis<'_>) -> Option<&String> {
    let name = basis.cr.status.as_ref()?.endpoint_service_name.as_ref();
    name.filter(|name| service_id(name, basis.region).is_some())
}

/// The same; without one, the security group and the zone are all that can be prepared.
fn service_name(basis: Basis<'_>) -> Result<&String, Problem> {
    let waiting = || Problem::new(Reason::Provisioning, "the endpoint waits for the endpoint service");
    shown_service(basis).ok_or_else(waiting)
}

/// Whether an endpoint carries traffic, or is about to.
fn is_usable(body: &Value) -> bool {
    matches!(Aws::progress(body), Progress::Ready | Progress::InProgress) && not_connected(&state(body)).is_none()
}

/// The problem with an endpoint in a state in which it carries nothing, and that does not pass by itself soon.
fn not_connected(state: &str) -> Option<Problem> {
    match state {
        "pendingacceptance" => Some(problem::not_accepted()),
        "rejected" | "expired" => Some(problem::rejected(state)),
        "failed" => Some(problem::endpoint_failed()),
        _ => None,
    }
}

/// What the role keeps on the custom resource itself, as far as it differs: the DNS name of the endpoint.
fn own_fields(basis: Basis<'_>, decision: &Decision) -> OwnFields {
    let mut fields = OwnFields::default();
    let endpoint = decision.step(Kind::VpcEndpoint).and_then(Step::ready);
    let name = endpoint.and_then(dns_name);
    if let Some(name) =
        name.filter(|name| basis.cr.annotations().get(ENDPOINT_DNS_NAME).map(String::as_str) != Some(name))
    {
        fields.annotations.insert(ENDPOINT_DNS_NAME.to_owned(), json!(name));
    }
    fields
}

#[cfg(test)]
mod tests;
