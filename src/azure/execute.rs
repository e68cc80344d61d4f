//! Executes steps in order, with one log line each. The only caller of put and delete.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::{info, warn};

use super::client::{Answer, Client, Condition, Reconcile};
use super::error::{ArmError, WriteError};
use super::id::ResourceId;
use super::inventory::Inventory;
use super::message::shows;
use super::observation_cache::{ObservationCache, Operation};
use super::plan::{Change, Outcome, Step, Verb, Why};
use super::read::Reader;
use super::resource::{Observed, Progress, progress};
use super::write_queue::usual;

/// Executes the steps in this order; they are independent of each other. Stores the outcome of each in the observation
/// cache, and returns it.
pub async fn run(
    steps: &[Step],
    client: &Client,
    observations: &ObservationCache,
    reconcile: Reconcile,
) -> Vec<Outcome> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let outcome = match &step.verb {
            Verb::Wait => Outcome::Nothing,
            Verb::Refuse => {
                info!(verb = "refuse", kind = step.kind.label(), id = %step.id, reason = %step.why, "left alone");
                Outcome::Nothing
            }
            Verb::Keep => {
                if let (Some(body), Why::UpToDate) = (&step.found, &step.why) {
                    observations.prove(&step.id, body);
                }
                let change = observations.confirm(&step.id).filter(|_| step.found.is_some());
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
async fn postponed(
    step: &Step,
    client: &Client,
    observations: &ObservationCache,
    reconcile: Reconcile,
) -> Option<Outcome> {
    let deletes = step.verb == Verb::Delete;
    if deletes && let Some(outcome) = postponed_delete(step, client, observations, reconcile).await {
        return Some(outcome);
    }
    if !deletes && observations.wait_to_put_again(&step.id, Instant::now()).is_some() {
        return Some(Outcome::Nothing);
    }
    observations.wait_in_queue(step.kind, &step.id, usual(deletes), Instant::now())?;
    Some(Outcome::Nothing)
}

/// Sends a write and stores its outcome in the observation cache.
async fn send(step: &Step, client: &Client, observations: &ObservationCache, reconcile: Reconcile) -> Outcome {
    let began = Instant::now();
    let answered = match &step.verb {
        Verb::Put(body) => client
            .put(reconcile, step.kind, &step.id, body, &condition(step))
            .await
            .map(|answer| put_outcome(step, observations, answer)),
        _ => client
            .delete(reconcile, step.kind, &step.id, &delete_condition(step))
            .await
            .map(|answer| delete_outcome(step, observations, &answer)),
    };
    observations.leave_queue(step.kind, &step.id, Instant::now());
    let outcome = match answered {
        Ok(outcome) => {
            observations.changing(&step.id, Change::of(&step.why));
            outcome
        }
        Err(WriteError::NotLeading) => Outcome::GateShut,
        Err(WriteError::Failed(error)) => {
            let failed = match step.verb {
                Verb::Delete => ObservationCache::delete_failed,
                _ => ObservationCache::write_failed,
            };
            failed(observations, step.kind, &step.id, &error, Instant::now());
            Outcome::Failed(error)
        }
    };
    log(step, &outcome, reconcile, began.elapsed());
    outcome
}

/// The outcome of a delete that is not to be sent again yet: it is under way, or was refused just now. A read shows
/// that, but not of what only the parent's body shows: then the operation is polled here.
async fn postponed_delete(
    step: &Step,
    client: &Client,
    observations: &ObservationCache,
    reconcile: Reconcile,
) -> Option<Outcome> {
    let shown_by_parent = step.kind.spec().shown_by_parent;
    let observed = match observations.fresh(&step.id, Instant::now()) {
        None if shown_by_parent => {
            let operation = observations.operation(&step.id)?;
            let inventory = &Inventory::default();
            let reader = Reader {
                client,
                observations,
                inventory,
                reconcile,
            };
            reader.deleting(step.kind, &step.id, &operation).await
        }
        known => known?,
    };
    match observed {
        Observed::Pending => Some(Outcome::Accepted),
        Observed::DeleteFailed(error) | Observed::ReadFailed(error) if shown_by_parent => Some(Outcome::Failed(error)),
        _ => None,
    }
}

/// The precondition of a write. A write over a resource holds only for the version that was read. For Microsoft.Network
/// that was observed, for private DNS it is documented
/// (<https://learn.microsoft.com/rest/api/dns/privatedns/record-sets/create-or-update>). That a resource is new is a
/// precondition only where Azure is known to honour it.
fn condition(step: &Step) -> Condition {
    let etag = |found: &Value| found.get("etag").and_then(Value::as_str).map(str::to_owned);
    match &step.found {
        Some(found) => etag(found).map_or(Condition::Any, Condition::Unchanged),
        None if step.kind.spec().create_if_new => Condition::New,
        None => Condition::Any,
    }
}

/// The precondition of a delete: of what may hold something, that it is unchanged since it was read.
fn delete_condition(step: &Step) -> Condition {
    if step.kind.spec().delete_if_unchanged && step.found.is_some() {
        condition(step)
    } else {
        Condition::Any
    }
}

fn put_outcome(step: &Step, observations: &ObservationCache, answer: Answer) -> Outcome {
    let now = Instant::now();
    let wait = answer.retry_after.unwrap_or_else(|| step.kind.pace());
    let readable = shows(&answer.body, &step.id);
    let is_ready = readable && answer.status != 202 && progress(&answer.body) == Progress::Ready;
    if is_ready {
        observations.began(
            step.kind,
            &step.id,
            Operation {
                url: None,
                began: now,
                deletes: false,
            },
            step.found.is_none(),
        );
        observations.ready(step.kind, &step.id, Observed::Found(answer.body), now);
        observations.read_soon(&step.id, now);
        if step.kind.spec().read_after_put {
            observations.invalidate(&step.id, now);
        }
        return Outcome::Ready;
    }
    let operation = Operation {
        url: answer.operation,
        began: now,
        deletes: false,
    };
    observations.began(step.kind, &step.id, operation, step.found.is_none());
    if let Some(parent) = step.id.parent().filter(|_| step.kind.spec().put_changes_parent) {
        observations.invalidate(&parent, now);
    }
    let observed = if readable {
        Observed::Found(answer.body)
    } else {
        Observed::Pending
    };
    observations.in_progress(step.kind, &step.id, observed, wait, now);
    Outcome::Accepted
}

fn delete_outcome(step: &Step, observations: &ObservationCache, answer: &Answer) -> Outcome {
    let now = Instant::now();
    let wait = answer.retry_after.unwrap_or_else(|| step.kind.pace());
    if let Some(parent) = step.id.parent().filter(|_| step.kind.spec().shown_by_parent) {
        observations.expedite(&parent, wait, now);
    }
    let operation = Operation {
        url: answer.operation.clone(),
        began: now,
        deletes: true,
    };
    observations.began(step.kind, &step.id, operation, false);
    observations.in_progress(step.kind, &step.id, Observed::Pending, wait, now);
    if answer.status != 204 {
        observations.delete_accepted(&step.id, answer.operation.clone());
    }
    if answer.status == 202 {
        return Outcome::Accepted;
    }
    // Only the next read shows whether it is gone.
    observations.invalidate(&step.id, now);
    Outcome::Ready
}

fn log(step: &Step, outcome: &Outcome, reconcile: Reconcile, took: Duration) {
    let verb = if step.verb == Verb::Delete { "delete" } else { "put" };
    let (kind, id) = (step.kind.label(), &step.id);
    // JSON lines have no wider numbers: as a u128 it would be a text.
    let took_ms = u64::try_from(took.as_millis()).unwrap_or(u64::MAX);
    let correlation_id = reconcile.correlation;
    match outcome {
        Outcome::Failed(ArmError {
            class,
            status,
            code,
            text,
            ..
        }) => {
            warn!(verb, kind, %id, reason = %step.why, status, code, class = class.label(), text, took_ms, %correlation_id, "step failed");
        }
        Outcome::GateShut => warn!(verb, kind, %id, reason = %step.why, "not leading: not sent"),
        _ => {
            info!(verb, kind, %id, reason = %step.why, accepted = *outcome == Outcome::Accepted, took_ms, %correlation_id, "step");
        }
    }
}

/// Invalidates the resources that these steps would write, leave to others, or not touch yet, if they were last read
/// before `since`. Returns their ids: before such a decision the resource itself is read. A failed write that has to
/// wait before it is tried again delays no delete.
pub fn invalidate_cached(steps: &[Step], observations: &ObservationCache, since: Instant) -> Vec<ResourceId> {
    let decisive = steps
        .iter()
        .filter(|step| step.writes() || step.left() || step.unproven())
        .map(Step::observed_at);
    invalidate(decisive, observations, since)
}

/// Invalidates the resources that these steps count as gone, if they were last read before `since`. Returns their ids.
/// When nothing else is left, the custom resource that names them is deleted too.
pub fn invalidate_gone(steps: &[Step], observations: &ObservationCache, since: Instant) -> Vec<ResourceId> {
    invalidate(
        steps.iter().filter(|step| step.gone()).map(Step::observed_at),
        observations,
        since,
    )
}

fn invalidate(
    ids: impl Iterator<Item = ResourceId>,
    observations: &ObservationCache,
    since: Instant,
) -> Vec<ResourceId> {
    let outdated: Vec<ResourceId> = ids.filter(|id| observations.was_read_before(id, since)).collect();
    for id in &outdated {
        observations.invalidate(id, since);
    }
    outdated
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::error::Class;
    use crate::azure::kinds::Kind;
    use crate::azure::kinds::zone_link::ZoneLink;
    use crate::azure::owner_tags::OwnerTags;
    use crate::azure::plan::ensure_absent;

    #[test]
    fn write_over_a_resource_holds_only_for_the_observed_version() {
        let step = |kind, found: Option<Value>| Step {
            kind,
            id: ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/x/y").unwrap(),
            verb: Verb::Put(Value::Null),
            why: Why::Absent,
            found,
        };
        let observed = || Some(serde_json::json!({"etag": "W/\"1\""}));
        for kind in [
            Kind::PrivateLinkService,
            Kind::PrivateEndpoint,
            Kind::Subnet,
            Kind::Zone,
            Kind::Record,
        ] {
            assert_eq!(
                condition(&step(kind, observed())),
                Condition::Unchanged("W/\"1\"".to_owned())
            );
        }
        assert_eq!(condition(&step(Kind::PrivateLinkService, None)), Condition::Any);
        assert_eq!(condition(&step(Kind::Zone, None)), Condition::New);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_gone_before_the_object_was_deleted_is_read_again() {
        let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
        let id = |name: &str| {
            let base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateEndpoints";
            ResourceId::parse(&format!("{base}/{name}")).unwrap()
        };
        let (before, after) = (id("before"), id("after"));
        let steps = [&before, &after].map(|id| Step {
            kind: Kind::PrivateEndpoint,
            id: id.clone(),
            verb: Verb::Keep,
            why: Why::UpToDate,
            found: None,
        });
        let began = Instant::now();
        observations.ready(Kind::PrivateEndpoint, &before, Observed::Absent, began);
        let deleted_at = began + Duration::from_secs(1);
        observations.ready(Kind::PrivateEndpoint, &after, Observed::Absent, deleted_at);
        assert_eq!(invalidate_cached(&steps, &observations, deleted_at), []);
        assert_eq!(
            invalidate_gone(&steps, &observations, deleted_at),
            std::slice::from_ref(&before)
        );
        assert_eq!(observations.fresh(&before, deleted_at), None);
        assert_eq!(observations.fresh(&after, deleted_at), Some(Observed::Absent));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_written_is_read_as_soon_as_it_is_deleted() {
        let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
        let zone = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z";
        let id = ResourceId::parse(&format!("{zone}/virtualNetworkLinks/l")).unwrap();
        let link = ZoneLink {
            id: id.clone(),
            owner_tags: OwnerTags::default(),
            virtual_network: ResourceId::parse(zone).unwrap(),
            proven: false,
        };
        let denied = ArmError::own(Class::Denied, "AuthorizationFailed");
        let failed = Instant::now();
        let wait = observations.write_failed(Kind::ZoneLink, &id, &denied, failed);
        assert_eq!(wait, Duration::from_secs(60));
        let deleted_at = failed + Duration::from_secs(1);
        let steps = [ensure_absent(&link, &observations.fresh(&id, deleted_at).unwrap())];
        assert_eq!(
            invalidate_cached(&steps, &observations, deleted_at),
            std::slice::from_ref(&id)
        );
        assert_eq!(observations.fresh(&id, deleted_at), None);
        // The poll of its operation in this read has failed too: one read in a reconcile is enough.
        observations.write_failed(Kind::ZoneLink, &id, &denied, deleted_at);
        assert_eq!(invalidate_cached(&steps, &observations, deleted_at), []);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_not_deleted_by_an_old_read_of_its_service() {
        let observations = ObservationCache::new(Duration::from_secs(100), Duration::from_secs(100));
        let base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/pls";
        let id = ResourceId::parse(&format!("{base}/privateEndpointConnections/pe.1")).unwrap();
        let service = ResourceId::parse(base).unwrap();
        let steps = [Step {
            kind: Kind::Connection,
            id,
            verb: Verb::Delete,
            why: Why::Unwanted,
            found: None,
        }];
        let read_at = Instant::now();
        observations.ready(
            Kind::PrivateLinkService,
            &service,
            Observed::Found(Value::Null),
            read_at,
        );
        assert_eq!(invalidate_cached(&steps, &observations, read_at), []);
        let later = read_at + Duration::from_secs(1);
        assert_eq!(
            invalidate_cached(&steps, &observations, later),
            std::slice::from_ref(&service)
        );
        assert_eq!(observations.fresh(&service, later), None);
    }
}
