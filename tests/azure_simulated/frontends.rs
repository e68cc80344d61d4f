//! The lists of load balancers: there is no other way to a frontend, so all who ask share one, and its failure.

use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::arm::id::SubscriptionId;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::urgency::Urgency;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use crate::desired::SUB;
use crate::sim::Sim;

#[tokio::test(start_paused = true)]
async fn slow_list_of_load_balancers_serves_all_who_waited_for_it() {
    let sim = Sim::new();
    sim.azure.set_latency(Duration::from_secs(8));
    let subscription = SubscriptionId::parse(SUB).unwrap();
    let just_now = Duration::from_secs(5);
    let ask = || {
        sim.frontends
            .list(&sim.client, Reconcile::begin(), &subscription, Some("mgmt"), just_now)
    };
    let found = join_all((0..20).map(|_| ask())).await;
    assert!(
        found
            .iter()
            .all(|(_, list)| list.as_ref().is_ok_and(|list| !list.is_empty()))
    );
    assert_eq!(sim.azure.sent().len(), 1);
    sleep(just_now).await;
    assert!(ask().await.1.is_ok());
    assert_eq!(sim.azure.sent().len(), 2, "who asks later wants a newer one");
}

#[tokio::test(start_paused = true)]
async fn slow_list_of_load_balancers_holds_no_verification() {
    let sim = Sim::new();
    sim.azure.set_latency(Duration::from_secs(8));
    let subscription = SubscriptionId::parse(SUB).unwrap();
    let began = Instant::now();
    let ask = async |urgency| {
        let reconcile = Reconcile {
            urgency,
            ..Reconcile::begin()
        };
        let list = sim
            .frontends
            .list(&sim.client, reconcile, &subscription, None, Duration::from_secs(5));
        (list.await.1.is_ok(), began.elapsed().as_secs())
    };
    let routine = Urgency::Routine { served: 10 };
    let asked = tokio::join!(ask(Urgency::Awaited), ask(routine), ask(Urgency::Awaited));
    assert_eq!(asked, ((true, 8), (false, 2), (true, 8)));
    assert_eq!(sim.azure.sent().len(), 1);
}

#[rstest]
#[case::out_of_order(json!({"status": 503, "code": "ServiceUnavailable", "message": "x"}), 5)]
#[case::not_allowed(json!({"status": 403, "code": "AuthorizationFailed", "message": "x"}), 60)]
#[case::never_comes(json!({"delay_ms": 3_600_000}), 5)]
#[tokio::test(start_paused = true)]
async fn failed_list_of_load_balancers_is_shared_and_retried_rarely(#[case] fault: Value, #[case] first: u64) {
    let sim = Sim::new();
    sim.faults(&[(json!({"path": "/loadBalancers$", "times": 1_000}), fault)]);
    let subscription = SubscriptionId::parse(SUB).unwrap();
    let ask = async || {
        let found = sim.frontends.list(
            &sim.client,
            Reconcile::begin(),
            &subscription,
            Some("mgmt"),
            Duration::ZERO,
        );
        found.await.1.unwrap_err().delay(1)
    };
    let began = Instant::now();
    assert_eq!(join_all((0..20).map(|_| ask())).await, [Duration::from_secs(first); 20]);
    assert_eq!(sim.azure.sent().len(), 1);
    assert!(began.elapsed() <= Duration::from_secs(20), "{:?}", began.elapsed());
    sleep(Duration::from_secs(first - 1)).await;
    assert_eq!((ask().await, sim.azure.sent().len()), (Duration::from_secs(1), 1));
    sleep(Duration::from_secs(1)).await;
    assert_eq!(
        (ask().await, sim.azure.sent().len()),
        (Duration::from_secs(2 * first), 2)
    );
    sim.faults(&[]);
    sleep(Duration::from_secs(2 * first)).await;
    let (_, found) = sim
        .frontends
        .list(
            &sim.client,
            Reconcile::begin(),
            &subscription,
            Some("mgmt"),
            Duration::ZERO,
        )
        .await;
    assert_eq!(
        (found.map(|list| list.is_empty()).ok(), sim.azure.sent().len()),
        (Some(false), 3)
    );
}
