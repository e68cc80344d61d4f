//! HO: the load balancer's side of a private path. Observes, plans, executes, reports.

mod connecting;
pub mod frontend;
pub mod nat_prefix;
mod observe;
mod ownership;
pub mod plan;
mod preview;
mod refusals;
mod revocation;
#[cfg(test)]
mod samples;
pub mod status;
mod subnet;
pub mod teardown;
mod their_endpoint;

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use self::refusals::Refusals;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::client::Reconcile;
use crate::azure::id::ResourceId;
use crate::azure::observation_cache::LONGEST_POLL;
use crate::azure::plan::{Outcome, Step, Verb, Why};
use crate::azure::resource::{Kind, MISSED, Observed};
use crate::controllers::abandon;
use crate::controllers::cluster_index::ClusterIndex;
use crate::controllers::context::Context;
use crate::controllers::decision::{Decision, Lifecycle, Problem, deleted_at};
use crate::controllers::driver::{self, Executed, ReconcileError};
use crate::controllers::event::{self, Event, What};
use crate::controllers::identity::DeletedCluster;
use crate::controllers::run::{self, Reconciler};
use crate::controllers::write_status::write_status;

/// The controller of the HO role.
pub struct PrivateLinkServiceController {
    settings: plan::Settings,
    cluster_index: Arc<ClusterIndex>,
    /// By the UID of the custom resource.
    remembered: Mutex<HashMap<String, Remembered>>,
}

/// What this process has seen of one custom resource's path, and nothing tells any more.
#[derive(Debug, Default)]
struct Remembered {
    /// Prefixes that Azure refused.
    refused: Refusals,
    /// The NAT subnet that a service proven ours was seen to use.
    shown_subnet: Option<ResourceId>,
    /// Since when the endpoint of HyperShift's guest side is not among the connections.
    missing_since: Option<Instant>,
}

impl PrivateLinkServiceController {
    /// With the operator's settings, among the neighbours that are watched.
    pub fn new(settings: plan::Settings, cluster_index: Arc<ClusterIndex>) -> Self {
        Self {
            settings,
            cluster_index,
            remembered: Mutex::default(),
        }
    }

    async fn build(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: AzurePrivateLinkService,
        inputs: &plan::PrivateLinkServiceInputs,
    ) -> Result<run::ReconcileOutcome, ReconcileError> {
        let uid = cr.metadata.uid.clone().unwrap_or_default();
        let refused = self.with(&uid, |known| known.refused.standing(Instant::now()));
        let also = inputs.hosted_cluster.as_ref();
        if inputs.identity.is_ok() {
            tell_of_unconfirmed(cx, &cr, inputs).await;
        }
        let outcome = driver::carry_out(cx, reconcile, cr, also, None, driver::go_on, |cr, facts| {
            plan::build(cr, inputs, facts, &self.settings, &refused)
        });
        let Executed {
            mut decision,
            extra: found,
            outcomes,
            cr,
        } = outcome.await?;
        cx.awaiting.note(&cr, &decision.steps, &outcomes);
        self.note_subnet(&uid, &decision);
        self.miss_twice(&uid, &mut decision, Instant::now());
        slow_down(cx, &uid, &awaited(&cr, inputs), &mut decision);
        let mut wait = driver::requeue_after(cx, &decision, Instant::now());
        if self.chooses_again(cx, &uid, &decision.steps, &outcomes) {
            wait = Duration::ZERO;
        }
        if decision.paused {
            return Ok(run::ReconcileOutcome::waiting(cr, wait));
        }
        let report = status::after_build(
            &cr,
            &decision,
            &found,
            &driver::as_reported(&cx.observations, &decision.steps, &outcomes),
        );
        let cr = write_status(cx, cr, also, &report).await?;
        Ok(run::ReconcileOutcome::reported(cr, wait, &report, &decision, &outcomes))
    }

    async fn teardown(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: AzurePrivateLinkService,
        inputs: &plan::PrivateLinkServiceInputs,
    ) -> Result<run::ReconcileOutcome, ReconcileError> {
        let also = inputs.hosted_cluster.as_ref();
        tell_of_guest_lock(cx, &cr, also).await;
        let since = deleted_at(&cr);
        let outcome = driver::carry_out(cx, reconcile, cr, also, since, driver::go_on, |cr, facts| {
            let decision = teardown::teardown(cr, inputs, facts, &self.settings, Timestamp::now())?;
            self.note_subnet(&cr.uid().unwrap_or_default(), &decision);
            Ok((decision, ()))
        });
        let Executed {
            decision, outcomes, cr, ..
        } = outcome.await?;
        cx.awaiting.note(&cr, &decision.steps, &outcomes);
        let failing = |step: &Step| cx.observations.failing_for(&step.id, Instant::now());
        let abandoned = abandon::permission(&cr, cx.role, &decision, &outcomes, &failing);
        let certain = driver::surely_gone(cx, reconcile, &decision).await;
        if (decision.nothing_left() && certain) || abandoned.is_some() {
            decision.steps.iter().for_each(|step| cx.observations.forget(&step.id));
            let said = match abandoned {
                Some(event) => [vec![event], event::left(&decision)].concat(),
                // Somebody recorded ids that another cluster has.
                None if inputs.deleted_cluster == DeletedCluster::OfAnother => {
                    vec![event::not_looked_at(
                        "the ids that are known belong to another HostedCluster",
                    )]
                }
                None => event::released(&decision),
            };
            return Ok(run::ReconcileOutcome::released(
                driver::release(cx, cr, also, &said).await?,
            ));
        }
        expedite_subnet(cx, &decision);
        driver::await_locks(cx, &decision, &outcomes, Instant::now());
        let wait = driver::requeue_after(cx, &decision, Instant::now());
        let report = status::after_teardown(&cr, &decision, &outcomes);
        let cr = write_status(cx, cr, also, &report).await?;
        Ok(run::ReconcileOutcome::unsettled(cr, wait, &decision, &outcomes))
    }

    /// A prefix that Azure did not take is not tried again, and the next one is chosen in the network as it is then:
    /// another cluster was quicker. Whether to do so at once.
    fn chooses_again(&self, cx: &Context, uid: &str, steps: &[Step], outcomes: &[Outcome]) -> bool {
        let mut steps = steps.iter().zip(outcomes);
        let Some((step, outcome)) = steps.find(|(step, _)| step.kind == Kind::Subnet) else {
            return false;
        };
        if step.ready().is_some() {
            self.with(uid, |known| known.refused = Refusals::default());
            return false;
        }
        let Outcome::Failed(error) = outcome else {
            return false;
        };
        let now = Instant::now();
        let network = step.id.parent();
        let body = network.as_ref().and_then(|network| cx.observations.fresh(network, now));
        if let Some(network) = &network {
            cx.observations.invalidate(network, now);
        }
        let overlaps = matches!(error.code.as_str(), "NetcfgSubnetRangesOverlap" | "NetcfgInvalidSubnet");
        let Some(prefix) = proposed(step).filter(|_| overlaps) else {
            return false;
        };
        let layout = body.as_ref().and_then(Observed::found).map(nat_prefix::layout);
        let another = self.with(uid, |known| known.refused.add(prefix, layout, now));
        if another {
            cx.observations.invalidate(&step.id, now);
        }
        another
    }

    /// What the cluster's service uses now; once the service is gone nothing in Azure tells whose the subnet was.
    fn note_subnet(&self, uid: &str, decision: &Decision) {
        if let Some(shown) = decision.step(Kind::PrivateLinkService).and_then(teardown::shown_subnet) {
            self.with(uid, |known| known.shown_subnet = Some(shown));
        }
    }

    /// An endpoint is missed only when two reads, some seconds apart, do not show it: a person is told to delete it.
    fn miss_twice(&self, uid: &str, decision: &mut Decision, now: Instant) {
        let missing = |problem: &Problem| problem.reason == Reason::EndpointNotConnected;
        if !decision.problem.as_ref().is_some_and(missing) {
            return self.with(uid, |known| known.missing_since = None);
        }
        let since = self.with(uid, |known| *known.missing_since.get_or_insert(now));
        if now.saturating_duration_since(since) < MISSED {
            (decision.problem, decision.again) = (None, Some(MISSED));
        }
    }

    /// What is remembered of a custom resource.
    fn with<T>(&self, uid: &str, what: impl FnOnce(&mut Remembered) -> T) -> T {
        what(self.all_remembered().entry(uid.to_owned()).or_default())
    }

    fn all_remembered(&self) -> MutexGuard<'_, HashMap<String, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What the frontend is searched for with.
fn awaited(cr: &AzurePrivateLinkService, inputs: &plan::PrivateLinkServiceInputs) -> String {
    let service = inputs.service.as_ref();
    let addresses = service.map(|service| service.addresses.iter().collect::<BTreeSet<_>>());
    let uid = service.map(|service| &service.uid);
    format!("{:?} {uid:?} {addresses:?}", cr.spec.load_balancer_ip)
}

/// What only others can bring about is asked for ever less often. A frontend comes for what it is searched for with: whatever else
/// of the custom resource changes is no reason to ask again.
fn slow_down(cx: &Context, uid: &str, awaited: &str, decision: &mut Decision) {
    let missing = [
        Reason::WaitingForLoadBalancer,
        Reason::AmbiguousLoadBalancer,
        Reason::EndpointNotConnected,
    ];
    let problem = decision.problem.as_ref();
    let problem = problem.filter(|problem| missing.contains(&problem.reason));
    let Some((problem, first)) = problem.and_then(|problem| Some((problem, problem.again?))) else {
        return cx.polls.over(uid);
    };
    let now = Instant::now();
    decision.again = Some(match problem.reason {
        Reason::EndpointNotConnected => cx.polls.wait(uid, first, now),
        _ => cx.polls.wait_with(uid, awaited, first, now),
    });
}

/// Says on the HostedCluster that a lock keeps the guest's side from being deleted: the namespace takes no more Events.
async fn tell_of_guest_lock(cx: &Context, cr: &AzurePrivateLinkService, hosted: Option<&ObjectReference>) {
    let note = format!(
        "the guest's side cannot be deleted: ScopeLocked; {}",
        abandon::LOCKED_STAYS
    );
    let note = Some(note).filter(|_| abandon::guest_is_locked(cr));
    let new = cx
        .events
        .begins(&cr.uid().unwrap_or_default(), "guest lock", note.as_deref());
    if let (true, Some(note), Some(hosted)) = (new, note, hosted) {
        let event = Event::new(What::Refused, note);
        cx.events.say(std::slice::from_ref(hosted), &[event]).await;
    }
}

/// Says that the custom resource names subscriptions that the HostedCluster does not.
async fn tell_of_unconfirmed(cx: &Context, cr: &AzurePrivateLinkService, inputs: &plan::PrivateLinkServiceInputs) {
    let more = inputs.connecting.unconfirmed(cr);
    let note = format!("{more} of spec.additionalAllowedSubscriptions are not the HostedCluster's and may not connect");
    let event = (more > 0).then(|| Event::new(What::Refused, note));
    cx.events
        .stands(&cr.object_ref(&()), "unconfirmed subscriptions", event)
        .await;
}

/// What the addresses of a service that just went hold up is read again soon, and ever later.
fn expedite_subnet(cx: &Context, decision: &Decision) {
    if let Some(step) = decision.step(Kind::Subnet)
        && step.found.is_some()
        && matches!(step.why, Why::Needs(_))
    {
        let (service, now) = (decision.step(Kind::PrivateLinkService), Instant::now());
        let gone_for = service.and_then(|service| cx.observations.gone_for(&service.id, now));
        let wait = (gone_for.unwrap_or_default() / 5).clamp(Kind::Subnet.pace(), LONGEST_POLL);
        cx.observations.expedite(&step.id, wait, now);
    }
}

/// The prefix that a step would give a subnet.
fn proposed(step: &Step) -> Option<Ipv4Net> {
    match &step.verb {
        Verb::Put(body) => body.pointer("/properties/addressPrefix")?.as_str()?.parse().ok(),
        _ => None,
    }
}

impl Reconciler for PrivateLinkServiceController {
    type Inputs = plan::PrivateLinkServiceInputs;

    async fn inputs(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
    ) -> Result<(Self::Inputs, String), ReconcileError> {
        let mut inputs = observe::surroundings(cx, cr, &self.cluster_index, &self.settings).await?;
        let fingerprint = observe::fingerprint(&inputs);
        let uid = cr.uid().unwrap_or_default();
        inputs.shown_subnet = self.with(&uid, |known| known.shown_subnet.clone());
        Ok((inputs, fingerprint))
    }

    async fn reconcile(
        &self,
        cx: &Context,
        reconcile: Reconcile,
        cr: AzurePrivateLinkService,
        inputs: Self::Inputs,
    ) -> Result<run::ReconcileOutcome, ReconcileError> {
        match Lifecycle::of(cx.role, &cr, cr.metadata.deletion_timestamp.is_some()) {
            Lifecycle::Build => self.build(cx, reconcile, cr, &inputs).await,
            Lifecycle::Teardown => self.teardown(cx, reconcile, cr, &inputs).await,
            Lifecycle::Nothing => Ok(run::ReconcileOutcome::released(cr)),
        }
    }

    fn forget(&self, uid: &str) {
        self.all_remembered().remove(uid);
    }
}

#[cfg(test)]
mod tests;
