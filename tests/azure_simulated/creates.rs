//! Creates in private DNS: accepted before anything can be read, so only the operation shows their progress.

use std::time::Duration;

use hyperlink::azure::cloud::Observed;
use hyperlink::azure::plan::{Outcome, Why};
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::{Verb, ensure_present};
use serde_json::json;

use crate::desired::{zone, zone_link};
use crate::sim::Sim;

/// Answers to PUTs ask for the next read after one second.
fn impatient(sim: &Sim, more: serde_json::Value) {
    let mut action = json!({"headers": {"retry-after": "1"}});
    action
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    sim.fault("PUT", action);
}

#[tokio::test(start_paused = true)]
async fn create_that_cannot_be_read_yet_is_awaited_by_its_operation() {
    let mut sim = Sim::new();
    impatient(&sim, json!({}));
    let (_, outcome) = sim.reconcile(ensure_present, &zone()).await;
    assert_eq!((outcome, sim.due_in(&zone())), (Outcome::Accepted, 1));
    sim.wait_until_due(&zone()).await;
    let (step, _) = sim.reconcile(ensure_present, &zone()).await;
    assert_eq!((step.verb, step.why), (Verb::Wait, Why::InProgress));
    // The answer to the poll gives the next wait.
    assert_eq!(sim.due_in(&zone()), 30);
    sim.until_present(&zone()).await;
    assert_eq!(sim.calls(), "GET PUT GET POLL GET");
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn create_whose_operation_is_lost_shows_late_and_is_put_once() {
    let mut sim = Sim::new();
    impatient(&sim, json!({"operation": "lost"}));
    sim.until_present(&zone()).await;
    assert_eq!(sim.writes(), 1, "{}", sim.calls());
    assert!(sim.shown(&zone().id).is_some());
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn create_that_a_process_left_behind_ends_well_in_the_next() {
    let mut sim = Sim::new();
    sim.reconcile(ensure_present, &zone()).await;
    sim.restart();
    sim.until_present(&zone()).await;
    sim.reconcile(ensure_present, &zone_link()).await;
    sim.restart();
    sim.until_present(&zone_link()).await;
    assert_eq!(sim.writes(), 4, "{}", sim.calls());
    sim.forget_calls();
    tokio::time::sleep(Duration::from_secs(7_200)).await;
    sim.until_present(&zone()).await;
    sim.until_present(&zone_link()).await;
    assert_eq!(sim.writes(), 0);
}

#[tokio::test(start_paused = true)]
async fn create_that_fails_late_tells_why_and_is_repeated() {
    let mut sim = Sim::new();
    let error = json!({"code": "BadRequest", "message": "no such suffix"});
    sim.fault("PUT", json!({"operation": "fail", "operation_error": error}));
    sim.reconcile(ensure_present, &zone()).await;
    sim.wait_until_due(&zone()).await;
    let Observed::WriteFailed(error) = sim.read(&zone()).await else {
        panic!("not failed");
    };
    assert_eq!((error.class, error.code.as_str()), (Class::Invalid, "BadRequest"));
    assert_eq!(error.text, "no such suffix");
    assert_eq!(sim.calls(), "GET PUT GET POLL");
    sim.until_present(&zone()).await;
    assert_eq!(sim.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn zone_that_another_one_made_meanwhile_is_not_overwritten() {
    let mut sim = Sim::new();
    sim.reconcile(ensure_present, &zone()).await;
    sim.install(&zone().id, json!({"location": "global", "tags": {"cluster": "theirs"}}));
    sim.wait_until_due(&zone()).await;
    let (step, _) = sim.reconcile(ensure_present, &zone()).await;
    assert_eq!(step.verb, Verb::Refuse, "{step:?}");
    assert_eq!(sim.shown(&zone().id).unwrap()["tags"], json!({"cluster": "theirs"}));
}

/// Requests take time, so the operation may end between any two of them.
#[tokio::test(start_paused = true)]
async fn create_that_ends_between_read_and_poll_is_not_put_twice() {
    for milliseconds in (200..9_000).step_by(400) {
        let mut sim = Sim::new();
        sim.azure.set_latency(Duration::from_millis(milliseconds));
        sim.faults(&[(json!({"times": 99}), json!({"headers": {"retry-after": "1"}}))]);
        sim.until_present(&zone()).await;
        assert_eq!(sim.writes(), 1, "{milliseconds} ms: {}", sim.calls());
    }
}
