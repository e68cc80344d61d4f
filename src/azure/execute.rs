//! Performs the steps of a plan in order, one log line each. The only caller of put and delete.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::{info, warn};

use super::client::{Answer, Client, Condition, GATE_SHUT, Reconcile};
use super::error::ArmError;
use super::id::ResourceId;
use super::inventory::Inventory;
use super::message::shows;
use super::observation_cache::{ObservationCache, Operation};
use super::plan::{Change, Outcome, Step, Verb, Why};
use super::read::Reader;
use super::resource::{Kind, Observed, Progress, progress};
use super::write_queue::usual;

/// Carries the steps out, in this order; they are independent of each other. Remembers what came of each, and gives that.
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
            Verb::Put(_) | Verb::Delete => match waits(step, client, observations, reconcile).await {
                Some(outcome) => outcome,
                None => sent(step, client, observations, reconcile).await,
            },
        };
        all.push(outcome);
    }
    all
}

/// What stands in for a write that is not sent yet.
async fn waits(step: &Step, client: &Client, observations: &ObservationCache, reconcile: Reconcile) -> Option<Outcome> {
    let deletes = step.verb == Verb::Delete;
    if deletes && let Some(outcome) = delete_waits(step, client, observations, reconcile).await {
        return Some(outcome);
    }
    if !deletes && observations.wait_to_put_again(&step.id, Instant::now()).is_some() {
        return Some(Outcome::Nothing);
    }
    observations.wait_in_queue(step.kind, &step.id, usual(deletes), Instant::now())?;
    Some(Outcome::Nothing)
}

/// Sends a write and remembers what came of it.
async fn sent(step: &Step, client: &Client, observations: &ObservationCache, reconcile: Reconcile) -> Outcome {
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
        Err(error) if error.code == GATE_SHUT => Outcome::GateShut,
        Err(error) => {
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

/// What stands in for a delete that is not to be repeated yet: it is under way, or, of a connection, was refused just now. A
/// read shows that of all other kinds; a connection is only listed by its service, so its operation is polled here.
async fn delete_waits(
    step: &Step,
    client: &Client,
    observations: &ObservationCache,
    reconcile: Reconcile,
) -> Option<Outcome> {
    let observed = match observations.fresh(&step.id, Instant::now()) {
        None if step.kind == Kind::Connection => {
            let operation = observations.operation(&step.id)?;
            let inventory = &Inventory::default();
            let looker = Reader {
                client,
                observations,
                inventory,
                reconcile,
            };
            looker.deleting(step.kind, &step.id, &operation).await
        }
        known => known?,
    };
    match observed {
        Observed::Pending => Some(Outcome::Accepted),
        Observed::DeleteFailed(error) | Observed::ReadFailed(error) if step.kind == Kind::Connection => {
            Some(Outcome::Failed(error))
        }
        _ => None,
    }
}

/// A write over something holds only for what was seen; of Microsoft.Network that is observed, of private DNS documented
/// (<https://learn.microsoft.com/rest/api/dns/privatedns/record-sets/create-or-update>). Only private DNS is known to heed
/// that something shall be new.
fn condition(step: &Step) -> Condition {
    let etag = |found: &Value| found.get("etag").and_then(Value::as_str).map(str::to_owned);
    match &step.found {
        Some(found) => etag(found).map_or(Condition::Any, Condition::Unchanged),
        None if matches!(step.kind, Kind::Zone | Kind::ZoneLink | Kind::Record) => Condition::New,
        None => Condition::Any,
    }
}

/// What others put into a zone after it was read is not deleted with it. Of other kinds nothing is known to be in them.
fn delete_condition(step: &Step) -> Condition {
    match step.kind {
        Kind::Zone if step.found.is_some() => condition(step),
        _ => Condition::Any,
    }
}

fn put_outcome(step: &Step, observations: &ObservationCache, answer: Answer) -> Outcome {
    let now = Instant::now();
    let wait = answer.retry_after.unwrap_or_else(|| step.kind.pace());
    let readable = shows(&answer.body, &step.id);
    let at_rest = readable && answer.status != 202 && progress(&answer.body) == Progress::Ready;
    if at_rest {
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
        if step.kind == Kind::PrivateEndpoint {
            // The answer to a PUT does not show the address.
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
    if let Some(network) = step.id.parent().filter(|_| step.kind == Kind::Subnet) {
        // The next prefix is chosen beside this one.
        observations.invalidate(&network, now);
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
    if step.kind == Kind::Connection
        && let Some(service) = step.id.parent()
    {
        // Connections are seen at their service only.
        observations.expedite(&service, answer.retry_after.unwrap_or_else(|| step.kind.pace()), now);
    }
    let operation = Operation {
        url: answer.operation.clone(),
        began: now,
        deletes: true,
    };
    let wait = answer.retry_after.unwrap_or_else(|| step.kind.pace());
    observations.began(step.kind, &step.id, operation, false);
    observations.in_progress(step.kind, &step.id, Observed::Pending, wait, now);
    if answer.status != 204 {
        observations.delete_accepted(&step.id, answer.operation.clone());
    }
    if answer.status == 202 {
        return Outcome::Accepted;
    }
    // Gone is what the next read shows.
    observations.invalidate(&step.id, now);
    Outcome::Ready
}

fn log(step: &Step, outcome: &Outcome, reconcile: Reconcile, took: Duration) {
    let verb = if step.verb == Verb::Delete { "delete" } else { "put" };
    let (kind, id, took_ms) = (step.kind.label(), &step.id, took.as_millis());
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

/// Drops what is remembered of resources that these steps would write, leave to others, or not touch yet, on the strength of
/// memory alone. Gives their ids: before such a decision the resource itself is read. When a write that failed may be tried
/// again is nothing to wait for where it is to go.
pub fn invalidate_cached(steps: &[Step], observations: &ObservationCache, since: Instant) -> Vec<ResourceId> {
    let weighty = steps
        .iter()
        .filter(|step| step.writes() || step.left() || step.unproven())
        .map(Step::observed_at);
    invalidate(weighty, observations, since)
}

/// The same of resources that these steps take for gone, which was seen before `since`: when nothing else is left, the object
/// that tells of them goes too.
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
    let remembered: Vec<ResourceId> = ids.filter(|id| observations.only_remembered(id, since)).collect();
    for id in &remembered {
        observations.invalidate(id, since);
    }
    remembered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::error::Class;
    use crate::azure::owner_tags::OwnerTags;
    use crate::azure::plan::ensure_absent;
    use crate::azure::zone_link::ZoneLink;

    #[test]
    fn write_over_something_holds_only_for_what_was_seen() {
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
    async fn what_was_gone_before_the_object_went_is_looked_at_again() {
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
        let goes = began + Duration::from_secs(1);
        observations.ready(Kind::PrivateEndpoint, &after, Observed::Absent, goes);
        assert_eq!(invalidate_cached(&steps, &observations, goes), []);
        assert_eq!(
            invalidate_gone(&steps, &observations, goes),
            std::slice::from_ref(&before)
        );
        assert_eq!(observations.fresh(&before, goes), None);
        assert_eq!(observations.fresh(&after, goes), Some(Observed::Absent));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_written_is_looked_at_as_soon_as_it_is_to_go() {
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
        let goes = failed + Duration::from_secs(1);
        let steps = [ensure_absent(&link, &observations.fresh(&id, goes).unwrap())];
        assert_eq!(
            invalidate_cached(&steps, &observations, goes),
            std::slice::from_ref(&id)
        );
        assert_eq!(observations.fresh(&id, goes), None);
        // Its operation, which this look asks about, has failed too: once in a pass is enough.
        observations.write_failed(Kind::ZoneLink, &id, &denied, goes);
        assert_eq!(invalidate_cached(&steps, &observations, goes), []);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_not_deleted_on_the_strength_of_an_old_look_at_its_service() {
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
        let looked = Instant::now();
        observations.ready(Kind::PrivateLinkService, &service, Observed::Found(Value::Null), looked);
        assert_eq!(invalidate_cached(&steps, &observations, looked), []);
        let later = looked + Duration::from_secs(1);
        assert_eq!(
            invalidate_cached(&steps, &observations, later),
            std::slice::from_ref(&service)
        );
        assert_eq!(observations.fresh(&service, later), None);
    }
}
