//! The controller of the HO role: the load balancer's side of a private path. It observes, plans, executes and reports.

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
use uuid::Uuid;

use self::refusals::Refusals;
use crate::api::Role;
use crate::api::markers::SERVICES;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::client::Reconcile;
use crate::azure::id::ResourceId;
use crate::azure::observation_cache::LONGEST_POLL;
use crate::azure::plan::{Outcome, Step, Verb, Why};
use crate::azure::resource::{Kind, MISSED, Observed};
use crate::controllers::abandon;
use crate::controllers::cluster_index::ClusterIndex;
use crate::controllers::context::Context;
use crate::controllers::decision::{Decision, Lifecycle, deleted_at};
use crate::controllers::driver::Driver;
use crate::controllers::event;
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::DeletedCluster;
use crate::controllers::preview::{Fact, FinalizerChange};
use crate::controllers::reconciler::CustomResourceReconciler;
use crate::controllers::report::Report;
use crate::hypershift::problem::Problem;
use crate::runtime::call::ReconcileError;
use crate::runtime::event::{Event, What};
use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};
use crate::runtime::requeue::Requeue;

/// Why to reconcile at once: another prefix has to be chosen for the NAT subnet.
const PREFIX_REFUSED: &str = "nat_prefix_refused";

/// The controller of the HO role.
pub struct PrivateLinkServiceController {
    settings: plan::Settings,
    cluster_index: Arc<ClusterIndex>,
    /// By the UID of the custom resource.
    remembered: Mutex<HashMap<String, Remembered>>,
}

/// What this process observed of one custom resource and cannot read from Kubernetes or Azure again.
#[derive(Debug, Default)]
struct Remembered {
    /// Prefixes that Azure refused.
    refused: Refusals,
    /// The NAT subnet that the cluster's own Private Link Service used when it was last read.
    shown_subnet: Option<ResourceId>,
    /// Since when the Private Endpoint of HyperShift's guest side is missing from the connections.
    missing_since: Option<Instant>,
}

impl PrivateLinkServiceController {
    /// A controller with the operator's settings and the index of all clusters.
    pub fn new(settings: plan::Settings, cluster_index: Arc<ClusterIndex>) -> Self {
        Self {
            settings,
            cluster_index,
            remembered: Mutex::default(),
        }
    }

    /// Whether to reconcile at once to choose another prefix, because Azure refused the last one as overlapping:
    /// usually another cluster was quicker. The refused prefix is left out, and the next one is chosen from a fresh
    /// read of the network.
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
        let body = network
            .as_ref()
            .and_then(|network| cx.arm.observations.fresh(network, now));
        if let Some(network) = &network {
            cx.arm.observations.invalidate(network, now);
        }
        let overlaps = matches!(error.code.as_str(), "NetcfgSubnetRangesOverlap" | "NetcfgInvalidSubnet");
        let Some(prefix) = proposed(step).filter(|_| overlaps) else {
            return false;
        };
        let layout = body.as_ref().and_then(Observed::found).map(nat_prefix::layout);
        let another = self.with(uid, |known| known.refused.add(prefix, layout, now));
        if another {
            cx.arm.observations.invalidate(&step.id, now);
        }
        another
    }

    /// Remembers the subnet that the cluster's service uses. When that is gone, nothing in Azure shows whose it was.
    fn note_subnet(&self, uid: &str, decision: &Decision) {
        if let Some(shown) = decision.step(Kind::PrivateLinkService).and_then(teardown::shown_subnet) {
            self.with(uid, |known| known.shown_subnet = Some(shown));
        }
    }

    /// Drops the problem of a missing endpoint until two reads, [`MISSED`] apart, do not show it: the message asks a
    /// person to delete it.
    fn confirm_missing(&self, uid: &str, decision: &mut Decision, now: Instant) {
        let missing = |problem: &Problem| problem.reason == Reason::EndpointNotConnected;
        if !decision.problem.as_ref().is_some_and(missing) {
            return self.with(uid, |known| known.missing_since = None);
        }
        let since = self.with(uid, |known| *known.missing_since.get_or_insert(now));
        if now.saturating_duration_since(since) < MISSED {
            decision.problem = None;
            decision.requeue = Some(Requeue::new(MISSED, Requeue::POLL));
        }
    }

    /// Calls `what` with what is remembered of a custom resource.
    fn with<T>(&self, uid: &str, what: impl FnOnce(&mut Remembered) -> T) -> T {
        what(self.all_remembered().entry(uid.to_owned()).or_default())
    }

    fn all_remembered(&self) -> MutexGuard<'_, HashMap<String, Remembered>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// What a frontend is searched by, as one text: the address in the spec, and the Service's UID and addresses.
fn awaited(cr: &AzurePrivateLinkService, inputs: &plan::PrivateLinkServiceInputs) -> String {
    let service = inputs.service.as_ref();
    let addresses = service.map(|service| service.addresses.iter().collect::<BTreeSet<_>>());
    let uid = service.map(|service| &service.uid);
    format!("{:?} {uid:?} {addresses:?}", cr.spec.load_balancer_ip)
}

/// Requeues ever less often while only others can help. For a frontend the waits start again only when what it is
/// searched by changes (`awaited`), and not with the rest of the custom resource.
fn slow_down(cx: &Context, uid: &str, awaited: &str, decision: &mut Decision) {
    let missing = [
        Reason::WaitingForLoadBalancer,
        Reason::AmbiguousLoadBalancer,
        Reason::EndpointNotConnected,
    ];
    let problem = decision.problem.as_ref();
    let problem = problem.filter(|problem| missing.contains(&problem.reason));
    let Some((problem, first)) = problem.and_then(|problem| Some((problem, problem.requeue_after?))) else {
        return cx.polls.over(uid);
    };
    let now = Instant::now();
    let after = match problem.reason {
        Reason::EndpointNotConnected => cx.polls.wait(uid, first, now),
        _ => cx.polls.wait_with(uid, awaited, first, now),
    };
    decision.requeue = Some(Requeue::new(after, problem.reason.as_str()));
}

/// Emits an Event on the HostedCluster if a lock stops the deletion of the guest's side: the namespace accepts none.
async fn report_guest_lock(cx: &Context, cr: &AzurePrivateLinkService, hosted: Option<&ObjectReference>) {
    let note = format!(
        "the guest's side cannot be deleted: ScopeLocked; {}",
        abandon::LOCKED_STAYS
    );
    let note = Some(note).filter(|_| abandon::guest_is_locked(cr));
    let new = cx
        .runtime
        .events
        .begins(&cr.uid().unwrap_or_default(), "guest lock", note.as_deref());
    if let (true, Some(note), Some(hosted)) = (new, note, hosted) {
        let event = Event::new(What::Refused, note);
        cx.runtime.events.emit(std::slice::from_ref(hosted), &[event]).await;
    }
}

/// Emits an Event if the custom resource names subscriptions that the HostedCluster does not.
async fn report_unconfirmed(cx: &Context, cr: &AzurePrivateLinkService, inputs: &plan::PrivateLinkServiceInputs) {
    let more = inputs.connecting.unconfirmed(cr);
    let note = format!("{more} of spec.additionalAllowedSubscriptions are not the HostedCluster's and may not connect");
    let event = (more > 0).then(|| Event::new(What::Refused, note));
    cx.runtime
        .events
        .stands(&cr.object_ref(&()), "unconfirmed subscriptions", event)
        .await;
}

/// Expedites the read of a NAT subnet that waits for the addresses of a deleted service: first soon, then ever later.
fn expedite_subnet(cx: &Context, decision: &Decision) {
    if let Some(step) = decision.step(Kind::Subnet)
        && step.found.is_some()
        && matches!(step.why, Why::Needs(_))
    {
        let (service, now) = (decision.step(Kind::PrivateLinkService), Instant::now());
        let gone_for = service.and_then(|service| cx.arm.observations.gone_for(&service.id, now));
        let wait = (gone_for.unwrap_or_default() / 5).clamp(Kind::Subnet.pace(), LONGEST_POLL);
        cx.arm.observations.expedite(&step.id, wait, now);
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
    type Object = AzurePrivateLinkService;
    type Context = Context;
    type Inputs = plan::PrivateLinkServiceInputs;

    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;

    async fn inputs(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
    ) -> Result<(Self::Inputs, String), ReconcileError> {
        let mut inputs = observe::read_inputs(cx, cr, &self.cluster_index, &self.settings).await?;
        let fingerprint = observe::fingerprint(&inputs);
        let uid = cr.uid().unwrap_or_default();
        inputs.shown_subnet = self.with(&uid, |known| known.shown_subnet.clone());
        Ok((inputs, fingerprint))
    }

    async fn reconcile(
        &self,
        cx: &Context,
        correlation: Uuid,
        cr: AzurePrivateLinkService,
        inputs: Self::Inputs,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        let driver = Driver {
            controller: self,
            cx,
            reconcile: Reconcile {
                correlation,
                ..Reconcile::begin()
            },
            inputs: &inputs,
        };
        driver.reconcile(cr).await
    }

    fn forget(&self, uid: &str) {
        self.all_remembered().remove(uid);
    }
}

impl CustomResourceReconciler for PrivateLinkServiceController {
    type Found = Option<plan::Found>;

    fn lifecycle(&self, cr: &AzurePrivateLinkService, _: &Self::Inputs) -> Lifecycle {
        Lifecycle::of(Role::Ho, cr, cr.metadata.deletion_timestamp.is_some())
    }

    fn deleting_since(&self, cr: &AzurePrivateLinkService, _: &Self::Inputs) -> Option<Timestamp> {
        deleted_at(cr)
    }

    fn decide(
        &self,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
        facts: &Facts,
    ) -> Result<(Decision, Self::Found), Needs> {
        if lifecycle == Lifecycle::Teardown {
            let decision = teardown::teardown(cr, inputs, facts, &self.settings, Timestamp::now())?;
            return Ok((decision, None));
        }
        let uid = cr.uid().unwrap_or_default();
        let refused = self.with(&uid, |known| known.refused.active(Instant::now()));
        let (decision, found) = plan::build(cr, inputs, facts, &self.settings, &refused)?;
        Ok((decision, Some(found)))
    }

    fn report(
        &self,
        _: Lifecycle,
        cr: &AzurePrivateLinkService,
        decision: &Decision,
        found: &Self::Found,
        outcomes: &[Outcome],
    ) -> Report {
        match found {
            Some(found) => status::after_build(cr, decision, found, outcomes),
            None => status::after_teardown(cr, decision, outcomes),
        }
    }

    fn known(&self, inputs: &Self::Inputs) -> Vec<Fact> {
        preview::known(inputs)
    }

    fn holds(&self, _: Lifecycle, _: &AzurePrivateLinkService, _: &Self::Inputs) -> Vec<FinalizerChange> {
        Vec::new()
    }

    fn also<'a>(&self, inputs: &'a Self::Inputs) -> Option<&'a ObjectReference> {
        inputs.hosted_cluster.as_ref()
    }

    async fn prepare(
        &self,
        cx: &Context,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> Result<(), ReconcileError> {
        if lifecycle == Lifecycle::Teardown {
            report_guest_lock(cx, cr, inputs.hosted_cluster.as_ref()).await;
        } else if inputs.identity.is_ok() {
            report_unconfirmed(cx, cr, inputs).await;
        }
        Ok(())
    }

    fn note(&self, cr: &AzurePrivateLinkService, decision: &Decision) {
        self.note_subnet(&cr.uid().unwrap_or_default(), decision);
    }

    fn remember(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
        decision: &mut Decision,
        outcomes: &[Outcome],
    ) -> Option<Requeue> {
        cx.awaiting.note(cr, &decision.steps, outcomes);
        if cr.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let uid = cr.uid().unwrap_or_default();
        self.confirm_missing(&uid, decision, Instant::now());
        slow_down(cx, &uid, &awaited(cr, inputs), decision);
        let at_once = self.chooses_again(cx, &uid, &decision.steps, outcomes);
        at_once.then(|| Requeue::new(Duration::ZERO, PREFIX_REFUSED))
    }

    fn expedite(&self, cx: &Context, lifecycle: Lifecycle, _: &AzurePrivateLinkService, decision: &Decision) {
        if lifecycle == Lifecycle::Teardown {
            expedite_subnet(cx, decision);
        }
    }

    fn last_events(&self, inputs: &Self::Inputs, decision: &Decision) -> Vec<Event> {
        if inputs.deleted_cluster == DeletedCluster::OfAnother {
            // Somebody recorded ids that another cluster has.
            return vec![event::not_read(
                "the ids that are known belong to another HostedCluster",
            )];
        }
        event::released(decision)
    }
}

#[cfg(test)]
mod tests;
