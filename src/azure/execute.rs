//! Performs the steps of a plan in order, one log line each. The only caller of put and delete.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use tracing::{info, warn};

use super::client::{Answer, Client, Condition, GATE_SHUT, Pass};
use super::error::ArmError;
use super::id::ResourceId;
use super::inventory::Inventory;
use super::look::Looker;
use super::memory::{Memory, Operation};
use super::message::shows;
use super::plan::{Change, Done, Step, Verb, Why};
use super::resource::{Kind, Progress, Seen, progress};
use super::turns::usual;

/// Carries the steps out, in this order; they are independent of each other. Remembers what came of each, and gives that.
pub async fn run(steps: &[Step], client: &Client, memory: &Memory, pass: Pass) -> Vec<Done> {
    let mut all = Vec::with_capacity(steps.len());
    for step in steps {
        let done = match &step.verb {
            Verb::Wait => Done::Nothing,
            Verb::Refuse => {
                info!(verb = "refuse", kind = step.kind.label(), id = %step.id, reason = %step.why, "left alone");
                Done::Nothing
            }
            Verb::Keep => {
                if let (Some(body), Why::AsWanted) = (&step.found, &step.why) {
                    memory.prove(&step.id, body);
                }
                let change = memory.kept(&step.id).filter(|_| step.found.is_some());
                change.map_or(Done::Nothing, Done::Reached)
            }
            Verb::Put(_) | Verb::Delete => match waits(step, client, memory, pass).await {
                Some(done) => done,
                None => sent(step, client, memory, pass).await,
            },
        };
        all.push(done);
    }
    all
}

/// What stands in for a write that is not sent yet.
async fn waits(step: &Step, client: &Client, memory: &Memory, pass: Pass) -> Option<Done> {
    let deletes = step.verb == Verb::Delete;
    if deletes && let Some(done) = delete_waits(step, client, memory, pass).await {
        return Some(done);
    }
    if !deletes && memory.wait_to_put_again(&step.id, Instant::now()).is_some() {
        return Some(Done::Nothing);
    }
    memory.wait_for_turn(step.kind, &step.id, usual(deletes), Instant::now())?;
    Some(Done::Nothing)
}

/// Sends a write and remembers what came of it.
async fn sent(step: &Step, client: &Client, memory: &Memory, pass: Pass) -> Done {
    let began = Instant::now();
    let answered = match &step.verb {
        Verb::Put(body) => client
            .put(pass, step.kind, &step.id, body, &condition(step))
            .await
            .map(|answer| put_done(step, memory, answer)),
        _ => client
            .delete(pass, step.kind, &step.id, &delete_condition(step))
            .await
            .map(|answer| delete_done(step, memory, &answer)),
    };
    memory.turn_is_over(step.kind, &step.id, Instant::now());
    let done = match answered {
        Ok(done) => {
            memory.changing(&step.id, Change::of(&step.why));
            done
        }
        Err(error) if error.code == GATE_SHUT => Done::GateShut,
        Err(error) => {
            let failed = match step.verb {
                Verb::Delete => Memory::delete_failed,
                _ => Memory::write_failed,
            };
            failed(memory, step.kind, &step.id, &error, Instant::now());
            Done::Failed(error)
        }
    };
    log(step, &done, pass, began.elapsed());
    done
}

/// What stands in for a delete that is not to be repeated yet: it is under way, or, of a connection, was refused just now. A
/// read shows that of all other kinds; a connection is only listed by its service, so its operation is polled here.
async fn delete_waits(step: &Step, client: &Client, memory: &Memory, pass: Pass) -> Option<Done> {
    let seen = match memory.recall(&step.id, Instant::now()) {
        None if step.kind == Kind::Connection => {
            let operation = memory.operation(&step.id)?;
            let inventory = &Inventory::default();
            let looker = Looker {
                client,
                memory,
                inventory,
                pass,
            };
            looker.deleting(step.kind, &step.id, &operation).await
        }
        known => known?,
    };
    match seen {
        Seen::Pending => Some(Done::Accepted),
        Seen::DeleteFailed(error) | Seen::ReadFailed(error) if step.kind == Kind::Connection => {
            Some(Done::Failed(error))
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

fn put_done(step: &Step, memory: &Memory, answer: Answer) -> Done {
    let now = Instant::now();
    let wait = answer.retry_after.unwrap_or_else(|| step.kind.pace());
    let readable = shows(&answer.body, &step.id);
    let at_rest = readable && answer.status != 202 && progress(&answer.body) == Progress::Settled;
    if at_rest {
        memory.began(
            step.kind,
            &step.id,
            Operation {
                url: None,
                began: now,
                deletes: false,
            },
            step.found.is_none(),
        );
        memory.resting(step.kind, &step.id, Seen::Found(answer.body), now);
        memory.look_soon(&step.id, now);
        if step.kind == Kind::Endpoint {
            // The answer to a PUT does not show the address.
            memory.doubt(&step.id, now);
        }
        return Done::Settled;
    }
    let operation = Operation {
        url: answer.operation,
        began: now,
        deletes: false,
    };
    memory.began(step.kind, &step.id, operation, step.found.is_none());
    if let Some(network) = step.id.parent().filter(|_| step.kind == Kind::Subnet) {
        // The next prefix is chosen beside this one.
        memory.doubt(&network, now);
    }
    let seen = if readable {
        Seen::Found(answer.body)
    } else {
        Seen::Pending
    };
    memory.moving(step.kind, &step.id, seen, wait, now);
    Done::Accepted
}

fn delete_done(step: &Step, memory: &Memory, answer: &Answer) -> Done {
    let now = Instant::now();
    if step.kind == Kind::Connection
        && let Some(service) = step.id.parent()
    {
        // Connections are seen at their service only.
        memory.hasten(&service, answer.retry_after.unwrap_or_else(|| step.kind.pace()), now);
    }
    let operation = Operation {
        url: answer.operation.clone(),
        began: now,
        deletes: true,
    };
    let wait = answer.retry_after.unwrap_or_else(|| step.kind.pace());
    memory.began(step.kind, &step.id, operation, false);
    memory.moving(step.kind, &step.id, Seen::Pending, wait, now);
    if answer.status != 204 {
        memory.took_delete(&step.id, answer.operation.clone());
    }
    if answer.status == 202 {
        return Done::Accepted;
    }
    // Gone is what the next read shows.
    memory.doubt(&step.id, now);
    Done::Settled
}

fn log(step: &Step, done: &Done, pass: Pass, took: Duration) {
    let verb = if step.verb == Verb::Delete { "delete" } else { "put" };
    let (kind, id, took_ms) = (step.kind.label(), &step.id, took.as_millis());
    let correlation_id = pass.correlation;
    match done {
        Done::Failed(ArmError {
            class,
            status,
            code,
            text,
            ..
        }) => {
            warn!(verb, kind, %id, reason = %step.why, status, code, class = class.label(), text, took_ms, %correlation_id, "step failed");
        }
        Done::GateShut => warn!(verb, kind, %id, reason = %step.why, "not leading: not sent"),
        _ => {
            info!(verb, kind, %id, reason = %step.why, accepted = *done == Done::Accepted, took_ms, %correlation_id, "step");
        }
    }
}

/// Drops what is remembered of resources that these steps would write, leave to others, or not touch yet, on the strength of
/// memory alone. Gives their ids: before such a decision the resource itself is read. When a write that failed may be tried
/// again is nothing to wait for where it is to go.
pub fn doubt_remembered(steps: &[Step], memory: &Memory, since: Instant) -> Vec<ResourceId> {
    let weighty = steps
        .iter()
        .filter(|step| step.writes() || step.left() || step.unproven())
        .map(Step::seen_at);
    doubt(weighty, memory, since)
}

/// The same of resources that these steps take for gone, which was seen before `since`: when nothing else is left, the object
/// that tells of them goes too.
pub fn doubt_gone(steps: &[Step], memory: &Memory, since: Instant) -> Vec<ResourceId> {
    doubt(
        steps.iter().filter(|step| step.gone()).map(Step::seen_at),
        memory,
        since,
    )
}

fn doubt(ids: impl Iterator<Item = ResourceId>, memory: &Memory, since: Instant) -> Vec<ResourceId> {
    let remembered: Vec<ResourceId> = ids.filter(|id| memory.only_remembered(id, since)).collect();
    for id in &remembered {
        memory.doubt(id, since);
    }
    remembered
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::azure::error::Class;
    use crate::azure::mark::Marks;
    use crate::azure::plan::away;
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
        let seen = || Some(serde_json::json!({"etag": "W/\"1\""}));
        for kind in [
            Kind::LinkService,
            Kind::Endpoint,
            Kind::Subnet,
            Kind::Zone,
            Kind::Record,
        ] {
            assert_eq!(
                condition(&step(kind, seen())),
                Condition::Unchanged("W/\"1\"".to_owned())
            );
        }
        assert_eq!(condition(&step(Kind::LinkService, None)), Condition::Any);
        assert_eq!(condition(&step(Kind::Zone, None)), Condition::New);
    }

    #[tokio::test(start_paused = true)]
    async fn what_was_gone_before_the_object_went_is_looked_at_again() {
        let memory = Memory::new(Duration::from_secs(100), Duration::from_secs(100));
        let id = |name: &str| {
            let base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateEndpoints";
            ResourceId::parse(&format!("{base}/{name}")).unwrap()
        };
        let (before, after) = (id("before"), id("after"));
        let steps = [&before, &after].map(|id| Step {
            kind: Kind::Endpoint,
            id: id.clone(),
            verb: Verb::Keep,
            why: Why::AsWanted,
            found: None,
        });
        let began = Instant::now();
        memory.resting(Kind::Endpoint, &before, Seen::Absent, began);
        let goes = began + Duration::from_secs(1);
        memory.resting(Kind::Endpoint, &after, Seen::Absent, goes);
        assert_eq!(doubt_remembered(&steps, &memory, goes), []);
        assert_eq!(doubt_gone(&steps, &memory, goes), std::slice::from_ref(&before));
        assert_eq!(memory.recall(&before, goes), None);
        assert_eq!(memory.recall(&after, goes), Some(Seen::Absent));
    }

    #[tokio::test(start_paused = true)]
    async fn what_could_not_be_written_is_looked_at_as_soon_as_it_is_to_go() {
        let memory = Memory::new(Duration::from_secs(100), Duration::from_secs(100));
        let zone = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z";
        let id = ResourceId::parse(&format!("{zone}/virtualNetworkLinks/l")).unwrap();
        let link = ZoneLink {
            id: id.clone(),
            marks: Marks::default(),
            virtual_network: ResourceId::parse(zone).unwrap(),
            proven: false,
        };
        let denied = ArmError::own(Class::Denied, "AuthorizationFailed");
        let failed = Instant::now();
        let wait = memory.write_failed(Kind::ZoneLink, &id, &denied, failed);
        assert_eq!(wait, Duration::from_secs(60));
        let goes = failed + Duration::from_secs(1);
        let steps = [away(&link, &memory.recall(&id, goes).unwrap())];
        assert_eq!(doubt_remembered(&steps, &memory, goes), std::slice::from_ref(&id));
        assert_eq!(memory.recall(&id, goes), None);
        // Its operation, which this look asks about, has failed too: once in a pass is enough.
        memory.write_failed(Kind::ZoneLink, &id, &denied, goes);
        assert_eq!(doubt_remembered(&steps, &memory, goes), []);
    }

    #[tokio::test(start_paused = true)]
    async fn connection_is_not_deleted_on_the_strength_of_an_old_look_at_its_service() {
        let memory = Memory::new(Duration::from_secs(100), Duration::from_secs(100));
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
        memory.resting(Kind::LinkService, &service, Seen::Found(Value::Null), looked);
        assert_eq!(doubt_remembered(&steps, &memory, looked), []);
        let later = looked + Duration::from_secs(1);
        assert_eq!(doubt_remembered(&steps, &memory, later), std::slice::from_ref(&service));
        assert_eq!(memory.recall(&service, later), None);
    }
}
