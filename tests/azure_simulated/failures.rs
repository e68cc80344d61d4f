//! Operations that fail, are superseded, hang or are lost; connections that break before or after the effect.

use std::time::Duration;

use hyperlink::azure::error::{ArmError, Class};
use hyperlink::azure::plan::{Outcome, Verb, Why, ensure_present};
use hyperlink::azure::resource::{Observed, Resource};
use rstest::rstest;
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{link_service, record, subnet, zone, zone_link};
use crate::sim::{Sim, ensure_absent};

/// Looks at the link service until its operation has failed.
async fn failure(sim: &mut Sim) -> ArmError {
    for _ in 0..10 {
        sim.rest(&link_service()).await;
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
    sim.bring(&link_service()).await;
    assert_eq!(sim.writes(), 1);
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn failed_operation_is_repaired_also_by_a_process_that_does_not_know_it() {
    let mut sim = Sim::new();
    sim.fault("PUT", json!({"operation": "fail"}));
    sim.reconcile(ensure_present, &link_service()).await;
    sim.restart();
    sleep(Duration::from_secs(60)).await;
    let (step, _) = sim.reconcile(ensure_present, &link_service()).await;
    assert_eq!(step.why, Why::Failed);
    sim.bring(&link_service()).await;
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
    sim.bring(&link_service()).await;
    assert_eq!(sim.writes(), 2);
}

#[tokio::test(start_paused = true)]
async fn delete_that_fails_late_is_repeated_after_its_wait() {
    let mut sim = Sim::new();
    sim.bring(&subnet()).await;
    sleep(Duration::from_secs(3_600)).await;
    let error = json!({"code": "InUseSubnetCannotBeDeleted", "message": "in use"});
    sim.fault("DELETE", json!({"operation": "fail", "operation_error": error}));
    sim.forget_calls();
    sim.reconcile(ensure_absent, &subnet()).await;
    sim.rest(&subnet()).await;
    let (step, outcomes) = sim.reconcile(ensure_absent, &subnet()).await;
    assert!(
        matches!(&step.why, Why::Error(error) if error.code == "InUseSubnetCannotBeDeleted"),
        "{step:?}"
    );
    assert_eq!((step.verb, outcomes), (Verb::Wait, Outcome::Nothing));
    sim.take_away(&subnet()).await;
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
        sim.rest(&zone()).await;
    }
    assert_eq!((sim.writes(), sim.in_flight()), (1, 1));
}

#[tokio::test(start_paused = true)]
async fn delete_that_hangs_is_waited_for_without_a_second_one() {
    let mut sim = Sim::new();
    sim.bring(&zone()).await;
    sleep(Duration::from_secs(3_600)).await;
    sim.forget_calls();
    sim.fault("DELETE", json!({"operation": "hang"}));
    for _ in 0..20 {
        let (step, _) = sim.reconcile(ensure_absent, &zone()).await;
        assert!(matches!(step.verb, Verb::Delete | Verb::Wait), "{step:?}");
        sim.rest(&zone()).await;
    }
    assert_eq!(sim.writes(), 1);
}

/// Deletes of links show themselves late.
#[tokio::test(start_paused = true)]
async fn link_that_is_shown_after_its_end_is_not_taken_for_a_new_one() {
    let mut sim = Sim::seeded(&crate::desired::seed_with("switches", json!({"link_delete_lag_s": 45})));
    sim.bring(&zone()).await;
    sim.bring(&zone_link()).await;
    sleep(Duration::from_secs(3_600)).await;
    sim.forget_calls();
    sim.take_away(&zone_link()).await;
    assert!(sim.writes() <= 2, "{}", sim.calls());
    sleep(Duration::from_secs(60)).await;
    assert_eq!(sim.shown(&zone_link().id), None);
}

#[tokio::test(start_paused = true)]
async fn link_is_at_rest_only_when_it_is_in_force() {
    let mut sim = Sim::seeded(&crate::desired::seed_with(
        "switches",
        json!({"link_complete_lag_s": 60}),
    ));
    sim.bring(&zone()).await;
    let began = tokio::time::Instant::now();
    let body = sim.bring(&zone_link()).await;
    assert_eq!(body["properties"]["virtualNetworkLinkState"], "Completed");
    assert!(began.elapsed() >= Duration::from_secs(60));
}

#[tokio::test(start_paused = true)]
async fn subnet_is_at_rest_only_when_it_says_so_itself() {
    let mut sim = Sim::seeded(&crate::desired::seed_with("switches", json!({"subnet_lag_s": 30})));
    let began = tokio::time::Instant::now();
    sim.bring(&subnet()).await;
    assert!(began.elapsed() >= Duration::from_secs(30));
    assert_eq!(sim.writes(), 1);
}

/// Whether the effect took place, the caller does not know; a second write is sent only where a look shows nothing.
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
    let wants: [&dyn Resource; 2] = [&subnet(), &link_service()];
    for desired in wants {
        let mut sim = Sim::new();
        sim.fault("PUT", action.clone());
        let (_, outcomes) = sim.reconcile(ensure_present, desired).await;
        let Outcome::Failed(error) = outcomes else {
            panic!("{outcomes:?}");
        };
        assert_eq!(
            (error.class, error.code.as_str(), sim.due_in(desired)),
            (class, code, 5)
        );
        sim.bring(desired).await;
        assert_eq!(sim.writes(), writes, "{desired:?}");
        assert_eq!(desired.differs(&sim.shown(desired.id()).unwrap()), []);
    }
}

/// A zone cannot be seen before its operation has ended: the second PUT is harmless.
#[rstest]
#[case::zone_after_a_lost_answer(json!({"drop": "after"}))]
#[case::zone_after_a_timeout(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}))]
#[tokio::test(start_paused = true)]
async fn lost_answer_to_a_create_of(#[case] action: serde_json::Value) {
    let mut sim = Sim::new();
    sim.fault("PUT", action.clone());
    sim.bring(&zone()).await;
    assert_eq!(sim.writes(), 2);
    let zone_seen = sim.shown(&zone().id).unwrap();
    sim.fault("PUT", action);
    sim.bring(&zone_link()).await;
    assert!(sim.writes() <= 4);
    assert_eq!(
        sim.shown(&zone().id).unwrap()["properties"]["internalId"],
        zone_seen["properties"]["internalId"]
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
    let wants: [&dyn Resource; 5] = [&subnet(), &endpoint, &zone(), &zone_link(), &record("api")];
    for desired in wants {
        sim.bring(desired).await;
    }
    for desired in wants.into_iter().rev() {
        sleep(Duration::from_secs(7_200)).await;
        sim.forget_calls();
        sim.fault("DELETE", action.clone());
        sim.take_away(desired).await;
        assert_eq!(sim.writes(), writes, "{desired:?}: {}", sim.calls());
        assert_eq!(sim.shown(desired.id()), None);
    }
}

#[tokio::test(start_paused = true)]
async fn unreadable_resource_is_never_written() {
    let mut sim = Sim::new();
    sim.faults(&[(json!({"method": "GET", "times": 5}), json!({"drop": "before"}))]);
    let mut waits = Vec::new();
    for _ in 0..5 {
        for rule in [ensure_present, ensure_absent] {
            let (step, outcomes) = sim.reconcile(rule, &subnet()).await;
            assert!(
                matches!(&step.why, Why::Unread(error) if error.class == Class::Down),
                "{step:?}"
            );
            assert_eq!((step.verb, outcomes), (Verb::Wait, Outcome::Nothing));
        }
        waits.push(sim.due_in(&subnet()));
        sim.rest(&subnet()).await;
    }
    assert_eq!((waits, sim.calls()), (vec![5, 10, 20, 40, 80], ["GET"; 5].join(" ")));
    sim.bring(&subnet()).await;
}
