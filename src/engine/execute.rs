//! Executes steps in order, with one log line each. The only caller of put and delete.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::{info, warn};

use super::client::{Accepted, CloudClient, Condition, Execution, Reconcile, WriteError, WriteTarget};
use super::cloud::{Cloud, Key, ResourceKind};
use super::failure::Failure;
use super::inventory::Inventory;
use super::observation_cache::{ObservationCache, Operation};
use super::plan::{Change, Outcome, Step, Verb, Why};
use super::read::Reader;
use super::resource::{Observed, Progress};

/// Executes the steps in this order; they are independent of each other. Stores the outcome of each in the observation
/// cache, and returns it.
pub async fn run<C: Cloud>(
    steps: &[Step<C>],
    client: &impl CloudClient<C>,
    observations: &ObservationCache<C>,
    reconcile: Reconcile,
) -> Vec<Outcome<C>> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let outcome = match &step.verb {
            Verb::Wait => Outcome::Nothing,
            Verb::Refuse => {
                info!(verb = "refuse", kind = step.kind.label(), id = %step.key, reason = %step.why, "left alone");
                Outcome::Nothing
            }
            Verb::Keep => {
                if let (Some(body), Why::UpToDate) = (&step.found, &step.why) {
                    observations.prove(&step.key, body);
                }
                // Of what is not there another object may still want a create that was refused.
                let is_own = step.found.is_some() || observations.is_deleted(&step.key);
                let change = is_own.then(|| observations.confirm(&step.key)).flatten();
                let change = change.filter(|_| step.found.is_some());
                change.map_or(Outcome::Nothing, Outcome::Reached)
            }
            Verb::Put(_) | Verb::Delete => match postponed(step, client, observations, reconcile).await {
                Some(outcome) => outcome,
                None => send(step, client, observations, reconcile).await,
            },
        };
        all.push(outcome);
    }
    all
}

/// The outcome of a write that is not to be sent yet; none if it is to be sent now.
async fn postponed<C: Cloud>(
    step: &Step<C>,
    client: &impl CloudClient<C>,
    observations: &ObservationCache<C>,
    reconcile: Reconcile,
) -> Option<Outcome<C>> {
    let deletes = step.verb == Verb::Delete;
    let replaces = matches!(step.why, Why::Replace(_));
    if replaces
        && observations
            .wait_to_replace(step.kind, &step.key, Instant::now())
            .is_some()
    {
        return Some(Outcome::Nothing);
    }
    if deletes && let Some(outcome) = postponed_delete(step, client, observations, reconcile).await {
        return Some(outcome);
    }
    if !deletes && observations.wait_to_put_again(&step.key, Instant::now()).is_some() {
        return Some(Outcome::Nothing);
    }
    observations.wait_in_queue(step.kind, &step.key, deletes, Instant::now())?;
    Some(Outcome::Nothing)
}

/// Sends a write and stores its outcome in the observation cache.
async fn send<C: Cloud>(
    step: &Step<C>,
    client: &impl CloudClient<C>,
    observations: &ObservationCache<C>,
    reconcile: Reconcile,
) -> Outcome<C> {
    let began = Instant::now();
    let target = WriteTarget {
        kind: step.kind,
        key: &step.key,
        found: step.found.as_ref(),
    };
    let answered = match &step.verb {
        Verb::Put(body) => client
            .put(reconcile, target, body, &condition(step))
            .await
            .map(|answer| put_outcome(step, observations, answer)),
        _ => client
            .delete(reconcile, target, &delete_condition(step))
            .await
            .map(|answer| delete_outcome(step, observations, &answer)),
    };
    observations.leave_queue(step.kind, &step.key, Instant::now());
    let outcome = match answered {
        Ok(outcome) => {
            observations.changing(&step.key, Change::of(&step.why));
            outcome
        }
        Err(WriteError::NotLeading) => Outcome::GateShut,
        Err(WriteError::Failed(error)) => {
            let failed = match step.verb {
                Verb::Delete => ObservationCache::delete_failed,
                _ => ObservationCache::write_failed,
            };
            failed(observations, step.kind, &step.key, &error, Instant::now());
            Outcome::Failed(error)
        }
    };
    log(step, &outcome, reconcile, began.elapsed());
    outcome
}

/// The outcome of a delete that is not to be sent again yet: it is under way, or was refused just now. A read shows
/// that, but not of what only the parent's body shows: then the operation is polled here.
async fn postponed_delete<C: Cloud>(
    step: &Step<C>,
    client: &impl CloudClient<C>,
    observations: &ObservationCache<C>,
    reconcile: Reconcile,
) -> Option<Outcome<C>> {
    let shown_by_parent = step.kind.rules().shown_by_parent;
    let observed = match observations.fresh(&step.key, Instant::now()) {
        None if shown_by_parent => {
            let operation = observations.operation(&step.key)?;
            let inventory = &Inventory::default();
            let reader = Reader {
                client,
                observations,
                inventory,
                reconcile,
            };
            reader.deleting(step.kind, &step.key, &operation).await
        }
        known => known?,
    };
    match observed {
        Observed::Pending => Some(Outcome::Accepted),
        Observed::DeleteFailed(error) | Observed::ReadFailed(error) if shown_by_parent => Some(Outcome::Failed(error)),
        _ => None,
    }
}

/// The precondition of a write. A write over a resource holds only for the version that was read. That a resource is
/// new is a precondition only where the cloud is known to honour it.
fn condition<C: Cloud>(step: &Step<C>) -> Condition {
    match &step.found {
        Some(found) => C::version(found).map_or(Condition::Any, |version| Condition::Unchanged(version.to_owned())),
        None if step.kind.rules().create_if_new => Condition::New,
        None => Condition::Any,
    }
}

/// The precondition of a delete: of what may hold something, that it is unchanged since it was read.
fn delete_condition<C: Cloud>(step: &Step<C>) -> Condition {
    if step.kind.rules().delete_if_unchanged && step.found.is_some() {
        condition(step)
    } else {
        Condition::Any
    }
}

fn put_outcome<C: Cloud>(step: &Step<C>, observations: &ObservationCache<C>, answer: Accepted<C>) -> Outcome<C> {
    let now = Instant::now();
    let wait = answer.retry_after.unwrap_or(step.kind.rules().pace);
    let operation = Operation {
        id: answer.operation,
        began: now,
        deletes: false,
    };
    let is_new = step.found.is_none();
    let is_ready = |body: &Value| C::progress(body) == Progress::Ready && (step.kind.rules().in_force)(body);
    match answer.shown {
        Some(body) if answer.execution != Execution::Running && is_ready(&body) => {
            let ended = Operation { id: None, ..operation };
            observations.began(step.kind, &step.key, ended, is_new);
            observations.ready(step.kind, &step.key, Observed::Found(body), now);
            observations.read_soon(&step.key, now);
            if step.kind.rules().read_after_put {
                observations.invalidate(&step.key, now);
            }
            Outcome::Ready
        }
        shown => {
            observations.began(step.kind, &step.key, operation, is_new);
            if let Some(parent) = step.key.parent().filter(|_| step.kind.rules().put_changes_parent) {
                observations.invalidate(&parent, now);
            }
            let observed = shown.map_or(Observed::Pending, Observed::Found);
            observations.in_progress(step.kind, &step.key, observed, wait, now);
            Outcome::Accepted
        }
    }
}

fn delete_outcome<C: Cloud>(step: &Step<C>, observations: &ObservationCache<C>, answer: &Accepted<C>) -> Outcome<C> {
    let now = Instant::now();
    let wait = answer.retry_after.unwrap_or(step.kind.rules().pace);
    if let Some(parent) = step.key.parent().filter(|_| step.kind.rules().shown_by_parent) {
        observations.expedite(&parent, wait, now);
    }
    if matches!(step.why, Why::Replace(_)) {
        observations.replaced(step.kind, &step.key, now);
    }
    // The rest stays: the next read shows the resource, though the delete is carried out.
    let stays = step.why == Why::PartUnwanted;
    if !stays {
        let operation = Operation {
            id: answer.operation.clone(),
            began: now,
            deletes: true,
        };
        observations.began(step.kind, &step.key, operation, false);
    }
    observations.in_progress(step.kind, &step.key, Observed::Pending, wait, now);
    if answer.execution != Execution::NothingThere && !stays {
        observations.delete_accepted(&step.key, answer.operation.clone());
    }
    if answer.execution == Execution::Complete && step.kind.rules().deleted_at_once {
        observations.delete_ended(&step.key, true);
    }
    if answer.execution == Execution::Running {
        return Outcome::Accepted;
    }
    // Only the next read shows whether it is gone.
    observations.invalidate(&step.key, now);
    Outcome::Ready
}

fn log<C: Cloud>(step: &Step<C>, outcome: &Outcome<C>, reconcile: Reconcile, took: Duration) {
    let verb = if step.verb == Verb::Delete { "delete" } else { "put" };
    let kind = step.kind.label();
    let key = &step.key;
    // JSON lines have no wider numbers: as a u128 it would be a text.
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let correlation_id = reconcile.correlation;
    match outcome {
        Outcome::Failed(error) => {
            let status = error.status();
            let class = error.class().label();
            let code = error.code();
            let text = error.text();
            warn!(verb, kind, id = %key, reason = %step.why, status, code, class, text, took_ms, %correlation_id, "step failed");
        }
        Outcome::GateShut => warn!(verb, kind, id = %key, reason = %step.why, "not leading: not sent"),
        _ => {
            info!(verb, kind, id = %key, reason = %step.why, accepted = *outcome == Outcome::Accepted, took_ms, %correlation_id, "step");
        }
    }
}

/// Invalidates the resources that these steps would write, leave to others, or not touch yet, if they were last read
/// before `since`. Returns their keys: before such a decision the resource itself is read. A failed write that has to
/// wait before it is tried again delays no delete.
pub fn invalidate_cached<C: Cloud>(
    steps: &[Step<C>],
    observations: &ObservationCache<C>,
    since: Instant,
) -> Vec<C::Key> {
    let decisive = steps
        .iter()
        .filter(|step| step.writes() || step.left() || step.unproven())
        .map(Step::observed_at);
    invalidate(decisive, observations, since)
}

/// Invalidates the resources that these steps count as gone, if they were last read before `since`. Returns their keys.
/// When nothing else is left, the custom resource that names them is deleted too.
pub fn invalidate_gone<C: Cloud>(steps: &[Step<C>], observations: &ObservationCache<C>, since: Instant) -> Vec<C::Key> {
    invalidate(
        steps.iter().filter(|step| step.gone()).map(Step::observed_at),
        observations,
        since,
    )
}

fn invalidate<C: Cloud>(
    keys: impl Iterator<Item = C::Key>,
    observations: &ObservationCache<C>,
    since: Instant,
) -> Vec<C::Key> {
    let outdated: Vec<C::Key> = keys.filter(|key| observations.was_read_before(key, since)).collect();
    for key in &outdated {
        observations.invalidate(key, since);
    }
    outdated
}

#[cfg(test)]
mod tests;
