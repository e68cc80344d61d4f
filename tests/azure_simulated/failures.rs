//! Operations that fail, are superseded, hang or are lost, and connections that break before or after the effect.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::arm::error::ArmError;
use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::plan::{Outcome, Why};
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::desired::{GUEST_SUB, link_service, record, subnet, zone, zone_link};
use crate::fleet::{Fleet, endpoint, service};
use crate::sim::{Sim, ensure_absent};

/// Reads the Private Link Service until its operation has failed.
async fn failure(sim: &mut Sim) -> ArmError {
    for _ in 0..10 {
        sim.wait_until_due(&link_service()).await;
        if let Observed::WriteFailed(error) = sim.read(&link_service()).await {
            return error;
        }
    }
    panic!("its operation has not failed: {}", sim.calls());
}

#[tokio::test(start_paused = true)]
async fn text_of_a_failed_operation_is_kept_and_the_write_is_repeated() {
    let mut sim = Sim::new();
    let error = json!({"code": "SubnetIsFull", "message": "There is no room."});
    sim.fault("PUT", json!({"operation": "fail", "operation_error": error}));
    sim.reconcile(ensure_present, &link_service()).await;
    let failed = failure(&mut sim).await;
    assert_eq!((failed.class, failed.code.as_str()), (Class::Invalid, "SubnetIsFull"));
    assert_eq!((failed.text.as_str(), failed.status), ("There is no room.", 200));
    assert_eq!(sim.due_in(&link_service()), 30);
    sim.forget_calls();
    let (step, _) = sim.reconcile(ensure_present, &link_service()).await;
    assert!(matches!(step.why, Why::Error(_)) && sim.calls().is_empty(), "{step:?}");
    sim.until_present(&link_service()).await;
    assert_eq!(sim.writes(), 1);
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_operation_is_repaired_by_a_process_that_knows_nothing() {
    let mut sim = Sim::new();
    sim.fault("PUT", json!({"operation": "fail"}));
    sim.reconcile(ensure_present, &link_service()).await;
    sim.restart();
    sleep(Duration::from_secs(60)).await;
    let (step, _) = sim.reconcile(ensure_present, &link_service()).await;
    assert_eq!(step.why, Why::Failed);
    sim.until_present(&link_service()).await;
}

#[tokio::test(start_paused = true)]
async fn superseded_operation_is_put_again_in_seconds() {
    let mut sim = Sim::new();
    sim.fault("PUT", json!({"operation": "cancel"}));
    sim.reconcile(ensure_present, &link_service()).await;
    let error = failure(&mut sim).await;
    let code = "CanceledAndSupersededDueToAnotherOperation";
    assert_eq!((error.class, error.code.as_str()), (Class::Busy, code));
    assert_eq!(sim.due_in(&link_service()), 3);
    sim.until_present(&link_service()).await;
    assert_eq!(sim.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn delete_that_fails_late_is_repeated_after_its_wait() {
    let mut sim = Sim::new();
    sim.until_present(&subnet()).await;
    sleep(Duration::from_secs(3_600)).await;
    let error = json!({"code": "InUseSubnetCannotBeDeleted", "message": "in use"});
    sim.fault("DELETE", json!({"operation": "fail", "operation_error": error}));
    sim.forget_calls();
    sim.reconcile(ensure_absent, &subnet()).await;
    sim.wait_until_due(&subnet()).await;
    let (step, outcome) = sim.reconcile(ensure_absent, &subnet()).await;
    assert!(
        matches!(&step.why, Why::Error(error) if error.code == "InUseSubnetCannotBeDeleted"),
        "{step:?}"
    );
    assert_eq!((step.verb, outcome), (Verb::Wait, Outcome::Nothing));
    sim.until_absent(&subnet()).await;
    assert_eq!(sim.writes(), 2);
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn operation_that_hangs_is_waited_for_without_a_second_write() {
    let mut sim = Sim::new();
    sim.fault("PUT", json!({"operation": "hang"}));
    for _ in 0..20 {
        let (step, _) = sim.reconcile(ensure_present, &zone()).await;
        assert!(matches!(step.verb, Verb::Put(_) | Verb::Wait), "{step:?}");
        sim.wait_until_due(&zone()).await;
    }
    assert_eq!((sim.writes(), sim.in_flight()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn delete_that_hangs_is_waited_for_without_a_second_one() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sleep(Duration::from_secs(3_600)).await;
    sim.forget_calls();
    sim.fault("DELETE", json!({"operation": "hang"}));
    for _ in 0..20 {
        let (step, _) = sim.reconcile(ensure_absent, &zone()).await;
        assert!(matches!(step.verb, Verb::Delete | Verb::Wait), "{step:?}");
        sim.wait_until_due(&zone()).await;
    }
    assert_eq!(sim.writes(), 1);
}

/// The delete of a link shows its effect late.
#[tokio::test(start_paused = true)]
async fn link_that_is_shown_after_its_end_is_not_taken_for_a_new_one() {
    let mut sim = Sim::seeded(&crate::seed::seed_with("switches", json!({"link_delete_lag_s": 45})));
    sim.until_present(&zone()).await;
    sim.until_present(&zone_link()).await;
    sleep(Duration::from_secs(3_600)).await;
    sim.forget_calls();
    sim.until_absent(&zone_link()).await;
    assert!(sim.writes() <= 2, "{}", sim.calls());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(sim.shown(&zone_link().id), None);
}

#[tokio::test(start_paused = true)]
async fn link_is_at_rest_only_when_it_is_in_force() {
    let mut sim = Sim::seeded(&crate::seed::seed_with("switches", json!({"link_complete_lag_s": 60})));
    sim.until_present(&zone()).await;
    let began = tokio::time::Instant::now();
    let body = sim.until_present(&zone_link()).await;
    assert_eq!(body["properties"]["virtualNetworkLinkState"], "Completed");
    assert!(began.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn subnet_is_ready_only_when_its_own_state_is() {
    let mut sim = Sim::seeded(&crate::seed::seed_with("switches", json!({"subnet_lag_s": 30})));
    let began = tokio::time::Instant::now();
    sim.until_present(&subnet()).await;
    assert!(began.elapsed() >= Duration::from_secs(30));
    assert_eq!(sim.writes(), 1);
}

/// The caller does not know whether the write took effect. A second one is sent only if a read shows nothing.
#[rstest]
#[case::dropped_before(json!({"drop": "before"}), Class::Down, "ConnectionFailed", 2)]
#[case::dropped_after(json!({"drop": "after"}), Class::Down, "ConnectionFailed", 1)]
#[case::timed_out_and_applied(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}), Class::Down, "GatewayTimeout", 1)]
#[case::timed_out(json!({"status": 504, "code": "GatewayTimeout"}), Class::Down, "GatewayTimeout", 2)]
#[case::cut_answer(json!({"cut_body_at": 20}), Class::Down, "NotJson", 1)]
#[tokio::test(start_paused = true)]
async fn lost_answer_to_a_put(
    #[case] action: serde_json::Value,
    #[case] class: Class,
    #[case] code: &str,
    #[case] writes: usize,
) {
    let all_desired: [&dyn Resource<Arm>; 2] = [&subnet(), &link_service()];
    for desired in all_desired {
        let mut sim = Sim::new();
        sim.fault("PUT", action.clone());
        let (_, outcome) = sim.reconcile(ensure_present, desired).await;
        let Outcome::Failed(error) = outcome else {
            panic!("{outcome:?}");
        };
        assert_eq!(
            (error.class, error.code.as_str(), sim.due_in(desired)),
            (class, code, 5)
        );
        sim.until_present(desired).await;
        assert_eq!(sim.writes(), writes, "{desired:?}");
        assert_eq!(desired.differs(&sim.shown(desired.key()).unwrap()), []);
    }
}

/// A zone cannot be read before its operation has ended. The second PUT is harmless.
#[rstest]
#[case::zone_after_a_lost_answer(json!({"drop": "after"}))]
#[case::zone_after_a_timeout(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}))]
#[tokio::test(start_paused = true)]
async fn lost_answer_to_a_create_of(#[case] action: serde_json::Value) {
    let mut sim = Sim::new();
    sim.fault("PUT", action.clone());
    sim.until_present(&zone()).await;
    assert_eq!(sim.writes(), 2);
    let zone_observed = sim.shown(&zone().id).unwrap();
    sim.fault("PUT", action);
    sim.until_present(&zone_link()).await;
    assert!(sim.writes() <= 4);
    assert_eq!(
        sim.shown(&zone().id).unwrap()["properties"]["internalId"],
        zone_observed["properties"]["internalId"]
    );
    assert_eq!(zone_link().differs(&sim.shown(&zone_link().id).unwrap()), []);
}

#[rstest]
#[case::before(json!({"drop": "before"}), 2)]
#[case::after(json!({"drop": "after"}), 1)]
#[case::timeout_and_applied(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}), 1)]
#[tokio::test(start_paused = true)]
async fn lost_answer_to_a_delete(#[case] action: serde_json::Value, #[case] writes: usize) {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    let endpoint = crate::desired::endpoint(&alias);
    let all_desired: [&dyn Resource<Arm>; 5] = [&subnet(), &endpoint, &zone(), &zone_link(), &record("api")];
    for desired in all_desired {
        sim.until_present(desired).await;
    }
    for desired in all_desired.into_iter().rev() {
        sleep(Duration::from_secs(7_200)).await;
        sim.forget_calls();
        sim.fault("DELETE", action.clone());
        sim.until_absent(desired).await;
        assert_eq!(sim.writes(), writes, "{desired:?}: {}", sim.calls());
        assert_eq!(sim.shown(desired.key()), None);
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_resource_is_never_written() {
    let mut sim = Sim::new();
    sim.faults(&[(json!({"method": "GET", "times": 5}), json!({"drop": "before"}))]);
    let mut waits = Vec::new();
    for _ in 0..5 {
        for rule in [ensure_present, ensure_absent] {
            let (step, outcome) = sim.reconcile(rule, &subnet()).await;
            assert!(
                matches!(&step.why, Why::Unread(error) if error.class == Class::Down),
                "{step:?}"
            );
            assert_eq!((step.verb, outcome), (Verb::Wait, Outcome::Nothing));
        }
        waits.push(sim.due_in(&subnet()));
        sim.wait_until_due(&subnet()).await;
    }
    assert_eq!((waits, sim.calls()), (vec![5, 10, 20, 40, 80], ["GET"; 5].join(" ")));
    sim.until_present(&subnet()).await;
}

/// RUNBOOK, "Reads that fail": a condition becomes False when three reads in a row and two minutes have failed, except
/// while Azure only limits requests. `Problem::unread` keeps True for what `is_back_pressure`.
#[tokio::test(start_paused = true)]
async fn outage_of_a_subscription_is_known_of_each_resource() {
    const MANY: usize = 200;
    let sim = Sim::new();
    // The transport gives a request up after 60 s.
    let hangs = json!({"delay_ms": 60_000, "drop": "before"});
    sim.faults(&[(json!({"path": "/.*", "times": 1_000_000}), hangs)]);
    let known = Mutex::new(BTreeSet::new());
    let end = Instant::now() + Duration::from_secs(600);
    let sim = &sim;
    let known = &known;
    join_all((0..MANY).map(async |n| {
        let desired = service(n);
        while Instant::now() < end {
            if let Observed::ReadFailed(error) = sim.read(&desired).await
                && error.lasting
                && !error.class.is_back_pressure()
            {
                known.lock().unwrap().insert(n);
            }
            sim.wait_until_due(&desired).await;
        }
    }))
    .await;
    let known = known.lock().unwrap().len();
    assert_eq!(known, MANY, "of the others the condition is still True");
}

/// Azure refuses writes into a disabled subscription, and in the end finds nothing of it any more.
#[rstest]
#[case::writes_are_refused("PUT", json!({"status": 409, "code": "ReadOnlyDisabledSubscription"}), 45)]
#[case::nothing_is_found("GET", json!({"status": 404, "code": "SubscriptionNotFound"}), 100)]
#[tokio::test(start_paused = true)]
async fn disabled_subscription_of_many_clusters_is_tried_seldom(
    #[case] method: &str,
    #[case] answer: Value,
    #[case] calls_of_each_in_an_hour: usize,
) {
    const MANY: usize = 20;
    let mut fleet = Fleet::new(MANY).await;
    let endpoints: Vec<_> = (0..MANY).map(|n| endpoint(n, "x").id).collect();
    endpoints.iter().for_each(|id| fleet.sim.remove(id));
    let all = json!({"method": method, "path": format!("/subscriptions/{GUEST_SUB}/"), "times": 1_000_000});
    fleet.sim.faults(&[(all, answer)]);
    fleet.sim.forget_calls();
    fleet.run(Duration::from_secs(3_600)).await;
    let calls = fleet.sim.azure.sent().len();
    assert!(calls <= MANY * calls_of_each_in_an_hour, "{calls}");
    fleet.sim.faults(&[]);
    fleet.run(Duration::from_secs(1_200)).await;
    let missing = endpoints.iter().filter(|id| fleet.sim.shown(id).is_none()).count();
    assert_eq!(missing, 0, "of {MANY}, after the subscription is enabled");
}
