//! The part of a reconcile that all controllers share: decide, record the intent, execute, release, and requeue.

mod at_rest;
mod gone;
mod reconcile;
mod rounds;

use std::collections::HashSet;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::Patch;
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use self::gone::surely_gone;
pub use self::reconcile::Driver;
use super::abandon;
use super::context::Context;
use super::decision::Decision;
use super::facts::{Facts, Needs};
use super::observe::until_decided;
use super::reconciler::ServedResource;
use super::report::fingerprint;
use crate::engine::client::Reconcile;
use crate::engine::cloud::Cloud;
use crate::engine::execute;
use crate::engine::failure::{Class, Failure};
use crate::engine::observation_cache::ObservationCache;
use crate::engine::plan::{Outcome, Step, Why};
use crate::engine::resource::Observed;
use crate::hypershift::intent::{self, OwnFields};
use crate::metrics::KubeVerb;
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::event::Event;
use crate::runtime::requeue::Requeue;

/// What was read of the cloud this shortly before a reconcile counts as read in it. After a conflict the next reconcile
/// begins at once.
const COUNTS_AS_READ: Duration = Duration::from_millis(500);

/// When a reconcile began, and the deletion that it serves.
#[derive(Debug, Clone, Copy)]
pub struct Times {
    /// When the reconcile began.
    pub began: Instant,
    /// When the deletion began, if one is served and this process' clock reaches back so far.
    pub deleting_since: Option<Instant>,
}

/// Makes a decision. Whatever it would write because of cached observations is read again first. So is, before a
/// deleted custom resource is released, what was last observed as gone before its deletion.
pub async fn decided<R: ServedResource, X>(
    cx: &Context<R>,
    mut reconcile: Reconcile,
    facts: &mut Facts<R::Cloud>,
    mut times: Times,
    decide: &mut impl FnMut(&Facts<R::Cloud>) -> Result<(Decision<R::Cloud>, X), Needs<R::Cloud>>,
) -> (Decision<R::Cloud>, X) {
    let mut read_again = HashSet::new();
    let just_now = times.began.checked_sub(COUNTS_AS_READ).unwrap_or(times.began);
    loop {
        let (decision, extra) = until_decided(cx, reconcile, facts, decide).await;
        if !reconcile.urgency.is_awaited() && !decision.is_as_desired() {
            // What was only put off may be what the decision lacks.
            reconcile = reconcile.awaited();
            facts.forget_unread();
            continue;
        }
        let mut invalidated = execute::invalidate_cached(&decision.steps, &cx.cloud.observations, just_now);
        if let Some(since) = times.deleting_since.take_if(|_| decision.nothing_left()) {
            invalidated.extend(execute::invalidate_gone(&decision.steps, &cx.cloud.observations, since));
        }
        // Each resource is read again only once: a second read would show nothing better.
        invalidated.retain(|id| read_again.insert(id.clone()));
        if invalidated.is_empty() {
            return (decision, extra);
        }
        invalidated.iter().for_each(|id| drop(facts.reads.remove(id)));
    }
}

/// Converts a time to this process' monotonic clock; none if it lies before that clock began.
fn to_instant(since: Timestamp, began: Instant) -> Option<Instant> {
    let past = Duration::try_from(Timestamp::now().duration_since(since)).unwrap_or_default();
    began.checked_sub(past)
}

pub(super) fn api<R: ServedResource>(cx: &Context<R>, cr: &R) -> Api<R> {
    Api::namespaced(cx.runtime.kube.clone(), &cr.namespace().unwrap_or_default())
}

/// The objects on which Events about a custom resource are written.
pub(super) fn event_targets<R: ServedResource>(cr: &R, also: Option<&ObjectReference>) -> Vec<ObjectReference> {
    std::iter::once(cr.object_ref(&())).chain(also.cloned()).collect()
}

/// The outcome of each step for the status. A step that the cloud refused stays refused while a new try is only
/// accepted, or the condition would change with every try.
pub fn as_reported<C: Cloud>(
    observations: &ObservationCache<C>,
    steps: &[Step<C>],
    outcomes: &[Outcome<C>],
) -> Vec<Outcome<C>> {
    let reported = steps.iter().zip(outcomes).map(|(step, outcome)| {
        let tried = *outcome == Outcome::Accepted || (*outcome == Outcome::Nothing && step.why == Why::InProgress);
        let refused = observations.failing(&step.key).filter(|_| tried);
        let refused = refused.filter(|last| matches!(last.class(), Class::Invalid | Class::Denied));
        refused.map_or_else(|| outcome.clone(), Outcome::Failed)
    });
    reported.collect()
}

/// How often a write is tried when others write the object at the same time.
pub(super) const TRIES: usize = 3;

/// Records the intent and the role's own fields, on the object as it is now if others have changed it meanwhile.
async fn record<R: ServedResource>(
    cx: &Context<R>,
    mut cr: R,
    intent: Option<&str>,
    fields: &OwnFields,
) -> Result<R, ReconcileError> {
    for _ in 1..TRIES {
        match record_once(cx, cr.clone(), intent, fields).await {
            Err(error) if error.conflict() => cr = reread_after_conflict(cx, &cr, error).await?,
            recorded => return recorded,
        }
    }
    record_once(cx, cr, intent, fields).await
}

/// Reads the object again after a conflict: a reconcile is expensive, and another one might meet the next change.
/// Returns the conflict if the object is gone or something has changed that needs a reconcile: the decision is no
/// longer valid.
pub(super) async fn reread_after_conflict<R: ServedResource>(
    cx: &Context<R>,
    cr: &R,
    conflict: ReconcileError,
) -> Result<R, ReconcileError> {
    let published = cx.published.of(&cr.uid().unwrap_or_default());
    let moment = Instant::now().into_std();
    let decided_on = fingerprint(cr, cx.role, &published, moment);
    let now = within(api(cx, cr).get_opt(&cr.name_any())).await?;
    now.filter(|now| fingerprint(now, cx.role, &published, moment) == decided_on)
        .ok_or(conflict)
}

/// Writes finalizer, intent and fields in one guarded patch, unless the first two are there already and there are no
/// fields.
async fn record_once<R: ServedResource>(
    cx: &Context<R>,
    cr: R,
    intent: Option<&str>,
    fields: &OwnFields,
) -> Result<R, ReconcileError> {
    match intent::patch(&cr, cx.role, R::finalizer(cx.role), intent, fields) {
        Some(patch) => patch_object(cx, &cr, &patch).await,
        None => Ok(cr),
    }
}

/// Removes the role's finalizer and intent in one guarded patch, then forgets the resources of `steps` and emits
/// `events`, which report what became of them. A patch that fails is repeated with what was observed until then.
///
/// What is left to others, and what was gone without a delete from here, is not forgotten: the object may have named a
/// resource that another one has, and that one needs to know what was written and refused.
pub async fn release<R: ServedResource>(
    cx: &Context<R>,
    cr: R,
    also: Option<&ObjectReference>,
    steps: &[Step<R::Cloud>],
    events: &[Event],
) -> Result<R, ReconcileError> {
    let finalizer = R::finalizer(cx.role);
    let patch = intent::release_patch(&cr, cx.role, finalizer);
    let released = patch_object(cx, &cr, &patch).await?;
    let observations = &cx.cloud.observations;
    let is_anothers = |step: &Step<R::Cloud>| step.left() || (step.gone() && !observations.is_deleted(&step.key));
    let own = steps.iter().filter(|step| !is_anothers(step));
    own.for_each(|step| observations.forget(&step.key));
    tracing::info!(namespace = cr.namespace(), name = cr.name_any(), finalizer, "released");
    cx.runtime.events.emit(&event_targets(&released, also), events).await;
    Ok(released)
}

async fn patch_object<R: ServedResource>(
    cx: &Context<R>,
    cr: &R,
    patch: &serde_json::Value,
) -> Result<R, ReconcileError> {
    let params = cx.runtime.patch_params();
    let patched = changing(api(cx, cr).patch(&cr.name_any(), &params, &Patch::Merge(patch))).await?;
    cx.runtime.metrics.kube_write(R::WRITES, KubeVerb::Patch);
    Ok(patched)
}

/// When the next reconcile is due: when the first resource is due to be read again, or as the decision says.
///
/// A resource that was not read because it waits for another one, or its caller has no call left, does not count: it
/// would always be due. What only a parent shows counts by itself, not by its parent: if its removal was refused, it is
/// due earlier.
pub fn requeue<R: ServedResource>(cx: &Context<R>, decision: &Decision<R::Cloud>, now: Instant) -> Requeue {
    let steps = decision.steps.iter();
    let is_of_caller = |step: &&Step<R::Cloud>| matches!(&step.why, Why::Unread(error) if error.is_of_caller());
    let were_read = steps.filter(|step| step.found.is_some() || !step.why.waits_for_others());
    let were_read = were_read.filter(|step| !is_of_caller(step));
    let next_read = cx.cloud.observations.next_read(were_read.map(|step| &step.key));
    let resources = next_read.map(|due| Requeue::new(due.saturating_duration_since(now), Requeue::READ_DUE));
    let lists = decision
        .steps
        .iter()
        .filter_map(|step| unread_list(cx, step, now))
        .min();
    let lists = lists.map(|after| Requeue::new(after, Requeue::LIST_DUE));
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    let others = [resources, lists, decision.requeue].into_iter().flatten();
    resync.or_earlier(Requeue::earliest(others))
}

/// Expedites what a lock forbids, so that it is tried once more when the lock has lasted so long that the resource is
/// left.
pub fn await_locks<R: ServedResource>(
    cx: &Context<R>,
    decision: &Decision<R::Cloud>,
    outcomes: &[Outcome<R::Cloud>],
    now: Instant,
) {
    for step in abandon::locked(decision, outcomes) {
        let remaining = abandon::LEFT_AFTER.checked_sub(cx.cloud.observations.failing_for(&step.key, now));
        if let Some(remaining) = remaining.filter(|remaining| !remaining.is_zero()) {
            cx.cloud.observations.expedite(&step.key, remaining, now);
        }
    }
}

/// How long until something else than its resource that could not be read, and that a step depends on, is read again:
/// a list, or the proof of an owner. Nothing else records that, and only a successful read ends it. A zone that is gone
/// shows with its own next read.
fn unread_list<R: ServedResource>(cx: &Context<R>, step: &Step<R::Cloud>, now: Instant) -> Option<Duration> {
    let key = step.key.to_string();
    match &step.why {
        // The caller waits, whatever it asks for: who names something else each time has no more kept for each.
        Why::Unread(error) if error.is_of_caller() => Some(error.delay(1)),
        Why::Unread(error) if error.class() != Class::Gone || step.found.is_some() => {
            let resource_unread = matches!(
                cx.cloud.observations.fresh(&step.key, now),
                Some(Observed::ReadFailed(_))
            );
            (!resource_unread).then(|| cx.polls.wait(&key, error.delay(1), now))
        }
        _ => {
            if step.gone() || !cx.cloud.observations.list_is_unread(&step.key) {
                cx.polls.over(&key);
            }
            None
        }
    }
}

#[cfg(test)]
mod tests;
