//! Candidates against a Lease endpoint in memory. What needs a real API server, processes or networks is tested end to
//! end.

use std::time::Duration;

use futures::future::join_all;
use http::{Request, Response};
use kube::client::Body;
use serde_json::json;

use super::lease::LeaseCalls;
use super::model::Model;
use super::*;

pub(super) const LEASE: &str = "hyperlink-test";
pub(super) const TIMES: LeaseTimes = LeaseTimes {
    duration: Duration::from_secs(1),
    renew_deadline: Duration::from_millis(600),
    retry: Duration::from_millis(100),
};

pub(super) fn settings(identity: &str) -> LeaseSettings {
    LeaseSettings {
        name: LEASE.into(),
        namespace: "default".into(),
        identity: identity.into(),
        shared: false,
        times: TIMES,
    }
}

fn candidate(model: &Model, identity: &str) -> Elector {
    Elector::over(model.client(), settings(identity))
}

pub(super) async fn leader(model: &Model, identity: &str) -> (Leadership, LeaderGate, watch::Receiver<Standing>) {
    let elector = candidate(model, identity);
    let (gate, standing) = (elector.gate(), elector.standing());
    assert!(!gate.open(), "shut before leading");
    let leadership = within(3, elector.lead(CancellationToken::new())).await.expect("leads");
    (leadership, gate, standing)
}

pub(super) async fn within<T>(seconds: u64, what: impl Future<Output = T>) -> T {
    tokio::time::timeout(Duration::from_secs(seconds), what)
        .await
        .expect("took too long")
}

pub(super) fn released() -> serde_json::Value {
    json!({"holderIdentity": "", "leaseDurationSeconds": 1, "leaseTransitions": 3,
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z"})
}

pub(super) fn expired() -> serde_json::Value {
    json!({"holderIdentity": "gone", "leaseDurationSeconds": 1, "leaseTransitions": 3,
        "acquireTime": "2020-01-01T00:00:00.000000Z", "renewTime": "2020-01-01T00:00:00.000000Z"})
}

#[tokio::test]
async fn write_that_lost_a_race_is_refused() {
    let model = Model::default();
    model.put(LEASE, expired());
    let calls = |identity| LeaseCalls::new(model.client(), Arc::new(settings(identity)));
    let (one, two) = (calls("one"), calls("two"));
    let judged = one.read().await.unwrap();
    one.claim(judged.clone()).await.unwrap();
    assert!(matches!(two.claim(judged).await, Err(LeaderError::Conflict)));
    assert_eq!(model.spec(LEASE)["holderIdentity"], "one");
}

#[tokio::test]
async fn absent_lease_is_created_once() {
    let model = Model::default();
    let calls = |identity| LeaseCalls::new(model.client(), Arc::new(settings(identity)));
    let (one, two) = (calls("one"), calls("two"));
    let (first, second) = tokio::join!(one.claim(None), two.claim(None));
    assert_eq!([&first, &second].iter().filter(|claim| claim.is_ok()).count(), 1);
    assert!(matches!(first.and(second), Err(LeaderError::Conflict)));
}

#[tokio::test]
async fn candidates_that_race_for_an_expired_lease_yield_one_leader() {
    let model = Model::default();
    model.put(LEASE, expired());
    let electors: Vec<_> = (0..3).map(|n| candidate(&model, &format!("candidate-{n}"))).collect();
    let gates: Vec<_> = electors.iter().map(Elector::gate).collect();
    let stop = CancellationToken::new();
    let terms = electors.into_iter().map(|elector| {
        let stop = stop.clone();
        async move {
            let leadership = elector.lead(stop.clone()).await;
            stop.cancelled().await;
            leadership
        }
    });
    let watch = async {
        while !gates.iter().any(super::LeaderGate::open) {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for _ in 0..50 {
            assert!(gates.iter().filter(|gate| gate.open()).count() <= 1);
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        stop.cancel();
    };
    let (terms, ()) = within(5, futures::future::join(join_all(terms), watch)).await;
    assert_eq!(terms.iter().flatten().count(), 1);
}

#[tokio::test]
async fn released_lease_is_taken_at_once_with_all_fields() {
    let model = Model::default();
    model.put(LEASE, released());
    let begun = Instant::now();
    let (_leadership, gate, standing) = leader(&model, "me").await;
    assert!(begun.elapsed() < TIMES.duration, "did not wait");
    assert!(gate.open());
    assert_eq!(*standing.borrow(), Standing::Leading);
    let spec = model.spec(LEASE);
    assert_eq!(spec["holderIdentity"], "me");
    assert_eq!(spec["leaseTransitions"], 4);
    assert_eq!(spec["leaseDurationSeconds"], 1);
}

#[rstest::rstest]
#[case::no_fields(json!({}))]
#[case::holder_empty_transitions_null(json!({"holderIdentity": "", "leaseDurationSeconds": 15}))]
#[case::holder_without_times(json!({"holderIdentity": "gone"}))]
#[case::transitions_at_their_maximum(json!({"holderIdentity": "", "leaseTransitions": i32::MAX}))]
#[tokio::test]
async fn lease_with_missing_fields_is_taken(#[case] spec: serde_json::Value) {
    let model = Model::default();
    model.put(LEASE, spec);
    let (_leadership, gate, _) = leader(&model, "me").await;
    assert!(gate.open());
    let spec = model.spec(LEASE);
    assert_eq!(spec["holderIdentity"], "me");
    assert!(spec["leaseTransitions"].as_i64().unwrap() > 0);
}

#[tokio::test]
async fn leader_whose_calls_hang_is_shut_out_at_its_deadline() {
    let model = Model::default();
    model.put(LEASE, released());
    let (mut leadership, gate, standing) = leader(&model, "me").await;
    model.hang(true);
    let deadline = gate.deadline().expect("leading");
    within(3, leadership.lost()).await;
    let late = deadline.elapsed();
    assert!(!gate.open());
    assert!(Instant::now() >= deadline, "not before its time");
    assert!(late < Duration::from_millis(500), "{late:?} after the deadline");
    assert_eq!(*standing.borrow(), Standing::Lost);
    model.hang(false);
    assert!(!gate.open(), "one term only");
}

#[tokio::test]
async fn leader_continues_after_a_short_silence() {
    let model = Model::default();
    model.put(LEASE, released());
    let (mut leadership, gate, _) = leader(&model, "me").await;
    model.hang(true);
    tokio::time::sleep(TIMES.retry).await;
    model.hang(false);
    let first = gate.deadline().unwrap();
    tokio::select! {
        () = leadership.lost() => panic!("lost"),
        () = tokio::time::sleep_until((first + TIMES.duration).into()) => {}
    }
    assert!(gate.open());
}

#[tokio::test]
async fn lease_in_somebody_elses_hands_ends_leadership() {
    let model = Model::default();
    model.put(LEASE, released());
    let (mut leadership, gate, _) = leader(&model, "me").await;
    model.put(LEASE, expired());
    within(1, leadership.lost()).await;
    assert!(!gate.open());
    assert_eq!(model.spec(LEASE)["holderIdentity"], "gone", "not taken back");
}

#[tokio::test]
async fn conflict_while_renewing_shuts_the_gate_until_a_renewal() {
    let model = Model::default();
    model.put(LEASE, released());
    let (mut leadership, gate, _) = leader(&model, "me").await;
    model.touch_before(usize::MAX);
    within(1, async {
        while gate.open() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    assert!(gate.deadline().is_none());
    model.touch_before(0);
    within(1, async {
        while !gate.open() {
            tokio::task::yield_now().await;
        }
    })
    .await;
    let lost = tokio::time::timeout(TIMES.retry, leadership.lost()).await;
    assert!(lost.is_err(), "still leading");
}

#[tokio::test]
async fn deleted_lease_is_recreated_by_its_leader_alone() {
    let model = Model::default();
    model.put(LEASE, released());
    let (mut leadership, gate, _) = leader(&model, "me").await;
    let fresh = candidate(&model, "fresh");
    let theirs = fresh.gate();
    let standing = fresh.standing();
    model.delete(LEASE);
    let stop = CancellationToken::new();
    let campaign = tokio::spawn(fresh.lead(stop.clone()));
    let until = Instant::now() + 2 * TIMES.duration;
    while Instant::now() < until {
        assert!(!theirs.open());
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(gate.open());
    assert_eq!(
        *standing.borrow(),
        Standing::Standby {
            holder: Some("me".into())
        }
    );
    assert!(tokio::time::timeout(TIMES.retry, leadership.lost()).await.is_err());
    stop.cancel();
    assert!(campaign.await.unwrap().is_none());
}

#[tokio::test]
async fn step_down_shuts_the_gate_and_releases_the_lease() {
    let model = Model::default();
    model.put(LEASE, released());
    let (leadership, gate, _) = leader(&model, "me").await;
    leadership.step_down().await.unwrap();
    assert!(!gate.open());
    assert_eq!(model.spec(LEASE)["holderIdentity"], "");
    let writes = model.writes();
    let (_next, _, _) = leader(&model, "next").await;
    assert!(writes < model.writes());
    assert_eq!(model.spec(LEASE)["holderIdentity"], "next");
}

#[tokio::test]
async fn dropping_leadership_shuts_the_gate_and_ends_the_renewals() {
    let model = Model::default();
    model.put(LEASE, released());
    let (leadership, gate, _) = leader(&model, "me").await;
    drop(leadership);
    assert!(!gate.open());
    let writes = model.writes();
    tokio::time::sleep(4 * TIMES.retry).await;
    assert!(model.writes() <= writes + 1, "at most the renewal that was under way");
}

#[tokio::test]
async fn stopped_candidate_leaves_the_lease_alone() {
    let model = Model::default();
    model.put(LEASE, expired());
    let elector = candidate(&model, "me");
    let stop = CancellationToken::new();
    stop.cancel();
    assert!(within(1, elector.lead(stop)).await.is_none());
    assert_eq!(model.writes(), 0);
}

#[tokio::test]
async fn standing_is_unknown_until_the_api_server_answers() {
    let model = Model::default();
    model.put(LEASE, expired());
    model.hang(true);
    let elector = candidate(&model, "me");
    let mut standing = elector.standing();
    let campaign = tokio::spawn(elector.lead(CancellationToken::new()));
    assert!(
        tokio::time::timeout(TIMES.renew_deadline, standing.changed())
            .await
            .is_err()
    );
    assert_eq!(*standing.borrow(), Standing::Unknown);
    model.hang(false);
    within(1, standing.changed()).await.unwrap();
    assert_eq!(
        *standing.borrow_and_update(),
        Standing::Standby {
            holder: Some("gone".into())
        }
    );
    let _leadership = within(3, campaign).await.unwrap().expect("leads");
}

#[tokio::test]
async fn standby_without_the_api_server_knows_nothing_meanwhile() {
    let model = Model::default();
    model.put(LEASE, json!({"holderIdentity": "other", "leaseDurationSeconds": 3600}));
    let elector = candidate(&model, "me");
    let mut standing = elector.standing();
    tokio::spawn(elector.lead(CancellationToken::new()));
    let yields = Standing::Standby {
        holder: Some("other".into()),
    };
    for hangs in [false, true, false] {
        model.hang(hangs);
        let expected = if hangs { Standing::Unknown } else { yields.clone() };
        within(10, standing.wait_for(|now| *now == expected)).await.unwrap();
    }
}

#[test]
fn identity_is_unique_and_fits_a_field_manager() {
    let long = "p".repeat(253);
    let identity = LeaseSettings::identity(&long);
    assert_eq!(identity.len(), IDENTITY_MAX);
    assert_ne!(identity, LeaseSettings::identity(&long));
    assert!(LeaseSettings::identity("hyperlink-0").starts_with("hyperlink-0_"));
}

#[tokio::test]
async fn write_through_a_shut_gate_is_not_sent() {
    let model = Model::default();
    model.put(LEASE, released());
    let gate = LeaderGate::shut_from(Instant::now());
    let inner = model.client();
    let service = tower::service_fn(move |request: Request<Body>| {
        let inner = inner.clone();
        async move { inner.send(request).await.map_err(tower::BoxError::from) as Result<Response<Body>, _> }
    });
    let leads = gate.clone();
    let gated = gated_client::Gated::new(service, Arc::new(move || leads.open()));
    let client = kube::Client::new(gated, "default");
    let leases = kube::Api::<k8s_openapi::api::coordination::v1::Lease>::default_namespaced(client);
    let (params, label) = (
        kube::api::PatchParams::default(),
        kube::api::Patch::Merge(json!({"metadata": {"labels": {"a": "b"}}})),
    );
    let write = || leases.patch(LEASE, &params, &label);

    leases.get(LEASE).await.expect("reads pass");
    let kube::Error::Service(refusal) = write().await.unwrap_err() else {
        panic!("refused by the gate")
    };
    assert_eq!(refusal.downcast_ref(), Some(&GateShut));
    assert_eq!(model.writes(), 0);

    gate.open_until(Instant::now() + Duration::from_secs(60));
    write().await.expect("passes while open");
    gate.close();
    write().await.expect_err("refused after loss");
    assert_eq!(model.writes(), 1);
}
