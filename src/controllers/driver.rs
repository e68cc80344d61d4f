//! What every pass has in common: decide, record the intent, execute, release, and when to look again.

mod gone;

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;

pub use self::gone::surely_gone;
use super::abandon;
use super::context::Context;
use super::decision::Decision;
use super::event::{self, Event};
use super::facts::{Facts, Needs};
use super::intent;
use super::observe::until_decided;
use super::report::fingerprint;
use crate::api::AzurePrivateLinkService;
use crate::azure::client::Reconcile;
use crate::azure::error::Class;
use crate::azure::execute;
use crate::azure::observation_cache::ObservationCache;
use crate::azure::plan::{Outcome, Step, Why};
use crate::azure::resource::{Kind, Observed};
use crate::metrics::{KubeResource, KubeVerb};

/// Every call but a watch ends after this long.
const PATIENCE: Duration = Duration::from_secs(30);
/// What was read so shortly before a reconcile counts as read in it: one that met a conflict begins again at once.
const JUST_NOW: Duration = Duration::from_millis(500);
/// Rounds of one pass; each brings at least one resource to rest.
const ROUNDS: usize = 16;

/// Why a pass could not go on.
#[derive(Debug, thiserror::Error)]
pub enum ReconcileError {
    /// The API server refused or did not answer.
    #[error("Kubernetes: {0}")]
    Kube(#[from] kube::Error),
    /// What was to be changed had been read just before, and somebody has removed it since.
    #[error("Kubernetes: somebody removed the object first")]
    Gone,
    /// The API server did not answer in time.
    #[error("Kubernetes: no answer in time")]
    Timeout,
    /// The first list of a kind has not come yet, and a part of it is not to decide on.
    #[error("not all {0} are known yet; /readyz says why")]
    Unlisted(&'static str),
}

impl ReconcileError {
    /// Whether somebody else changed or removed the object first: nothing is wrong, the pass is run again.
    pub fn conflict(&self) -> bool {
        matches!(self, Self::Gone) || self.refused_with(409)
    }

    /// Whether the API server does not take the object as it is.
    pub fn invalid(&self) -> bool {
        self.refused_with(422)
    }

    /// The status fields for which the API server does not take the object.
    pub(super) fn invalid_fields(&self) -> Vec<&str> {
        let status = match self {
            Self::Kube(kube::Error::Api(status)) if self.invalid() => status,
            _ => return Vec::new(),
        };
        let causes = status.details.iter().flat_map(|details| &details.causes);
        causes.filter_map(|cause| cause.field.strip_prefix("status.")).collect()
    }

    fn refused_with(&self, code: u16) -> bool {
        matches!(self, Self::Kube(kube::Error::Api(status)) if status.code == code)
    }
}

/// Bounds the time of one Kubernetes call.
pub async fn within<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, ReconcileError> {
    tokio::time::timeout(PATIENCE, call)
        .await
        .map_err(|_| ReconcileError::Timeout)?
        .map_err(ReconcileError::Kube)
}

/// The same for a change, or the deletion, of an object that was read just before.
pub async fn changing<T>(call: impl Future<Output = kube::Result<T>>) -> Result<T, ReconcileError> {
    within(call).await.map_err(|error| {
        if error.refused_with(404) {
            ReconcileError::Gone
        } else {
            error
        }
    })
}

/// What came of a decision.
pub struct Executed<X> {
    /// The last decision.
    pub decision: Decision,
    /// What the controller decided besides.
    pub extra: X,
    /// What became of each step.
    pub outcomes: Vec<Outcome>,
    /// The object as it was last written.
    pub cr: AzurePrivateLinkService,
}

/// Decides; what would be written on the strength of memory is read before. So is, before a custom resource that goes is let
/// go, what was last seen to be gone while it stayed.
pub async fn decided<X>(
    cx: &Context,
    reconcile: Reconcile,
    facts: &mut Facts,
    (began, mut deleting_since): (Instant, Option<Instant>),
    decide: &mut impl FnMut(&Facts) -> Result<(Decision, X), Needs>,
) -> (Decision, X) {
    let mut read_again = HashSet::new();
    let just_now = began.checked_sub(JUST_NOW).unwrap_or(began);
    loop {
        let (decision, extra) = until_decided(cx, reconcile, facts, decide).await;
        let mut doubted = execute::invalidate_cached(&decision.steps, &cx.observations, just_now);
        if let Some(since) = deleting_since.take_if(|_| decision.nothing_left()) {
            doubted.extend(execute::invalidate_gone(&decision.steps, &cx.observations, since));
        }
        // What a read could not show better the first time, it does not the second.
        doubted.retain(|id| read_again.insert(id.clone()));
        if doubted.is_empty() {
            return (decision, extra);
        }
        doubted.iter().for_each(|id| drop(facts.reads.remove(id)));
    }
}

/// The same moment by this process' clock; none if it lies before that clock began.
fn by_our_clock(since: Timestamp, began: Instant) -> Option<Instant> {
    let past = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
    began.checked_sub(past)
}

/// Decides and executes, again and again as long as something comes to rest at once.
///
/// Before the first write the intent is recorded. What has changed is said on the custom resource and on `also`.
/// `deleting_since` is since when what is decided on goes, if it does. `recorded` is asked once finalizer and intent stand, before the first
/// write to Azure; its error ends the reconcile.
pub async fn carry_out<X, R: Future<Output = Result<(), ReconcileError>>>(
    cx: &Context,
    reconcile: Reconcile,
    mut cr: AzurePrivateLinkService,
    also: Option<&ObjectReference>,
    deleting_since: Option<Timestamp>,
    recorded: impl Fn(AzurePrivateLinkService) -> R,
    mut decide: impl FnMut(&AzurePrivateLinkService, &Facts) -> Result<(Decision, X), Needs>,
) -> Result<Executed<X>, ReconcileError> {
    let began = Instant::now();
    let since = (began, deleting_since.and_then(|since| by_our_clock(since, began)));
    let (mut facts, mut rounds) = (Facts::default(), 0);
    loop {
        let (mut decision, extra) = decided(cx, reconcile, &mut facts, since, &mut |facts| decide(&cr, facts)).await;
        gone::hold_back(cx, &cr, &mut decision.steps, Instant::now());
        if let Some(intent) = decision
            .intent
            .as_deref()
            .filter(|_| intent::due(&cr, cx.role, &decision.steps))
        {
            let known = cr.annotations().contains_key(cx.role.intent_annotation());
            cr = record(cx, cr, intent).await?;
            recorded(cr.clone()).await?;
            let adopted = event::adopted(&decision.steps).filter(|_| !known);
            cx.events.say(&told(&cr, also), adopted.as_slice()).await;
        }
        let outcomes = execute::run(&decision.steps, &cx.arm, &cx.observations, reconcile).await;
        cx.events
            .say(&told(&cr, also), &changes(cx, &decision.steps, &outcomes))
            .await;
        let exhausted = event::call_budget_exhausted(&decision.steps, &outcomes);
        cx.events.stands(&cr.object_ref(&()), "call budget", exhausted).await;
        rounds += 1;
        let came_to_rest = decision
            .steps
            .iter()
            .zip(&outcomes)
            // A service shows the end of its connections later.
            .any(|(step, outcomes)| step.writes() && *outcomes == Outcome::Ready && step.kind != Kind::Connection);
        // Somebody else wrote since the look; who does so again has to be waited out.
        let outdated = rounds == 1 && outdated(cx, &decision.steps, &outcomes);
        if !(came_to_rest || outdated) || rounds == ROUNDS {
            return Ok(Executed {
                decision,
                extra,
                outcomes,
                cr,
            });
        }
        for step in decision.steps.iter().filter(|step| step.writes()) {
            facts.reads.remove(&step.id);
        }
        facts.inside.clear();
    }
}

/// For [`carry_out`] where nothing is to be asked.
pub async fn go_on(_: AzurePrivateLinkService) -> Result<(), ReconcileError> {
    Ok(())
}

/// Doubts what was changed by others between the look and the write; whether there is such a thing.
fn outdated(cx: &Context, steps: &[Step], outcomes: &[Outcome]) -> bool {
    let mut any = false;
    for (step, outcomes) in steps.iter().zip(outcomes) {
        let refused = matches!(outcomes, Outcome::Failed(error) if error.status == 412);
        if refused && cx.observations.refused_once(&step.id) {
            cx.observations.invalidate(&step.id, Instant::now());
            any = true;
        }
    }
    any
}

pub(super) fn api(cx: &Context, cr: &AzurePrivateLinkService) -> Api<AzurePrivateLinkService> {
    Api::namespaced(cx.kube.clone(), &cr.namespace().unwrap_or_default())
}

/// Whom Events about a custom resource are said to.
pub(super) fn told(cr: &AzurePrivateLinkService, also: Option<&ObjectReference>) -> Vec<ObjectReference> {
    std::iter::once(cr.object_ref(&())).chain(also.cloned()).collect()
}

/// What has come to be as wanted, counted and told.
fn changes(cx: &Context, steps: &[Step], outcomes: &[Outcome]) -> Vec<Event> {
    let changed = steps
        .iter()
        .zip(outcomes)
        .filter_map(|(step, outcomes)| match outcomes {
            Outcome::Reached(change) => {
                cx.metrics.changed(step.kind, &step.id, change);
                Some(event::changed(step.kind, &step.id, change))
            }
            _ => None,
        });
    changed.collect()
}

/// What became of each step, as a status tells it: what Azure refused and has only taken again is refused still, or the
/// condition would change with every try.
pub fn as_reported(observations: &ObservationCache, steps: &[Step], outcomes: &[Outcome]) -> Vec<Outcome> {
    let refused = |step: &Step| {
        let last = observations.failing(&step.id)?;
        matches!(last.class, Class::Invalid | Class::Denied).then_some(Outcome::Failed(last))
    };
    let told = steps.iter().zip(outcomes).map(|(step, outcomes)| {
        let tried = *outcomes == Outcome::Accepted || (*outcomes == Outcome::Nothing && step.why == Why::InProgress);
        refused(step).filter(|_| tried).unwrap_or_else(|| outcomes.clone())
    });
    told.collect()
}

/// Tries of a write, when others write the object at the same time.
pub(super) const TRIES: usize = 3;

/// Records the intent, on the object as it is now if others have changed it meanwhile.
async fn record(
    cx: &Context,
    mut cr: AzurePrivateLinkService,
    intent: &str,
) -> Result<AzurePrivateLinkService, ReconcileError> {
    for _ in 1..TRIES {
        match record_once(cx, cr.clone(), intent).await {
            Err(error) if error.conflict() => cr = anew(cx, &cr, error).await?,
            recorded => return recorded,
        }
    }
    record_once(cx, cr, intent).await
}

/// The object as it is now, after a conflict: a pass is dear, and another one might meet the next change. Where something has
/// changed that is worth a pass, or the object is gone, what was decided no longer holds: the conflict stays one.
pub(super) async fn anew(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    conflict: ReconcileError,
) -> Result<AzurePrivateLinkService, ReconcileError> {
    let (published, moment) = (
        cx.published.of(&cr.uid().unwrap_or_default()),
        Instant::now().into_std(),
    );
    let decided_on = |cr: &AzurePrivateLinkService| fingerprint(cr, cx.role, &published, moment);
    let now = within(api(cx, cr).get_opt(&cr.name_any())).await?;
    now.filter(|now| decided_on(now) == decided_on(cr)).ok_or(conflict)
}

/// Writes finalizer and intent in one guarded patch, unless they stand.
async fn record_once(
    cx: &Context,
    cr: AzurePrivateLinkService,
    intent: &str,
) -> Result<AzurePrivateLinkService, ReconcileError> {
    match intent::patch(&cr, cx.role, intent) {
        Some(patch) => patch_object(cx, &cr, &patch).await,
        None => Ok(cr),
    }
}

/// Takes the role's finalizer and intent away, in one guarded patch, and says what has become of what was made.
pub async fn release(
    cx: &Context,
    cr: AzurePrivateLinkService,
    also: Option<&ObjectReference>,
    events: &[Event],
) -> Result<AzurePrivateLinkService, ReconcileError> {
    let finalizer = cx.role.finalizer();
    let patch = intent::release_patch(&cr, cx.role);
    let released = patch_object(cx, &cr, &patch).await?;
    tracing::info!(namespace = cr.namespace(), name = cr.name_any(), finalizer, "released");
    cx.events.say(&told(&released, also), events).await;
    Ok(released)
}

async fn patch_object(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    patch: &serde_json::Value,
) -> Result<AzurePrivateLinkService, ReconcileError> {
    let params = cx.patch_params();
    let patched = changing(api(cx, cr).patch(&cr.name_any(), &params, &Patch::Merge(patch))).await?;
    cx.metrics.kube_write(KubeResource::PrivateLinkService, KubeVerb::Patch);
    Ok(patched)
}

/// When the next pass is due: with the first resource that is to be looked at again, or when the decision says so.
///
/// What was not looked at because it waits for another one does not count: it would be due again and again. A connection
/// counts as itself, not as its service: one whose removal was refused is due before that.
pub fn requeue_after(cx: &Context, decision: &Decision, now: Instant) -> Duration {
    let looked_at = |step: &&Step| step.found.is_some() || !matches!(step.why, Why::Needs(_));
    let looked_at = decision.steps.iter().filter(looked_at);
    let resources = cx.observations.next_read(looked_at.map(|step| &step.id));
    let rest = resources.map(|due| due.saturating_duration_since(now));
    let lists = decision
        .steps
        .iter()
        .filter_map(|step| unread_list(cx, step, now))
        .min();
    [rest, lists, decision.again, Some(cx.resync)]
        .into_iter()
        .flatten()
        .min()
        .unwrap_or(cx.resync)
}

/// Has what a lock forbids tried once more when the lock has stood so long that it is left.
pub fn await_locks(cx: &Context, decision: &Decision, outcomes: &[Outcome], now: Instant) {
    for step in abandon::locked(decision, outcomes) {
        let rest = abandon::OVERDUE.checked_sub(cx.observations.failing_for(&step.id, now));
        if let Some(rest) = rest.filter(|rest| !rest.is_zero()) {
            cx.observations.expedite(&step.id, rest, now);
        }
    }
}

/// When a list that a step depends on, and that could not be read, may be asked for again: nothing else keeps that, and only a list
/// that is read ends it. A zone that is gone shows with its own next look.
fn unread_list(cx: &Context, step: &Step, now: Instant) -> Option<Duration> {
    let key = step.id.to_string();
    match &step.why {
        Why::Unread(error) if error.class != Class::Gone => {
            let of_its_own = matches!(cx.observations.fresh(&step.id, now), Some(Observed::ReadFailed(_)));
            (!of_its_own).then(|| cx.polls.wait(&key, error.delay(1), now))
        }
        _ => {
            if step.gone() || !cx.observations.list_is_unread(&step.id) {
                cx.polls.over(&key);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests;
