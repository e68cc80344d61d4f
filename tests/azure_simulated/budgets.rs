//! Exhausted request budgets: what waits, for how long, and what does not.

use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::arm::id::SubscriptionId;
use hyperlink::azure::cloud::Observed;
use hyperlink::azure::kinds::Kind;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::ensure_present;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::desired::{GUEST, NET, SUB, endpoint, id, link_service, subnet, zone};
use crate::fleet::Fleet;
use crate::refusals::refused;
use crate::seed::seed_with;
use crate::sim::Sim;

#[tokio::test(start_paused = true)]
async fn exhausted_write_budget_holds_only_writes_of_its_subscription() {
    let writes = json!({"writes": {"bucket": 1, "per_s": 0.01}});
    let mut sim = Sim::seeded(&seed_with("throttle", writes));
    sim.reconcile(ensure_present, &subnet()).await;
    sleep(Duration::from_secs(4)).await;
    sim.until_present(&subnet()).await;
    let error = refused(
        &mut sim,
        ensure_present,
        &link_service(),
        Class::Throttled,
        "SubscriptionRequestsThrottled",
        10,
    )
    .await;
    assert_eq!(error.retry_after, Some(Duration::from_secs(10)));
    sleep(Duration::from_secs(4)).await;
    sim.forget_calls();
    let mut second = subnet();
    second.id = id(&format!("{NET}/virtualNetworks/hub/subnets/y-pls-nat"));
    let error = refused(
        &mut sim,
        ensure_present,
        &second,
        Class::Throttled,
        "WaitingForBudget",
        6,
    )
    .await;
    assert_eq!((error.status, sim.calls()), (0, "GET".to_owned()));
    // Another subscription has a budget of its own.
    sim.reconcile(ensure_present, &zone()).await;
    assert_eq!(sim.calls(), "GET GET PUT");
    sleep(Duration::from_secs(6)).await;
    sim.forget_calls();
    sim.reconcile(ensure_present, &second).await;
    assert_eq!(sim.calls(), "GET PUT", "asked again once the time has come");
}

#[tokio::test(start_paused = true)]
async fn used_up_reads_are_not_asked_for_again_before_their_time() {
    let reads = json!({"dns_reads_5min": 1});
    let mut sim = Sim::seeded(&seed_with("throttle", reads));
    sim.reconcile(ensure_present, &zone()).await;
    let mut second = zone();
    second.id = id(&format!("{GUEST}/privateDnsZones/y.hypershift.local"));
    let Observed::ReadFailed(error) = sim.read(&second).await else {
        panic!("not throttled");
    };
    assert_eq!(
        (error.class, error.code.as_str()),
        (Class::Throttled, "TooManyRequests")
    );
    assert_eq!(error.retry_after, Some(Duration::from_secs(300)));
    // The endpoints of the same subscription have another budget.
    let endpoint = endpoint("alias");
    assert_eq!(sim.read(&endpoint).await, Observed::Absent);
    sim.forget_calls();
    let began = Instant::now();
    sim.until_present(&zone()).await;
    assert!(began.elapsed() >= Duration::from_secs(300));
    let first = sim.azure.sent()[0].at;
    assert_eq!(first - began, Duration::from_secs(300));
}

/// What role `ho` does while Azure holds back all reads: its next reconcile comes after `delay(1)`
/// (`private_link_service/frontend.rs`, `pick`).
#[tokio::test(start_paused = true)]
async fn frontends_that_are_held_back_are_not_asked_for_each_second() {
    let sim = Sim::new();
    let subscription = SubscriptionId::parse(SUB).unwrap();
    let age = Duration::from_secs(240);
    let ask = async || {
        let list = sim
            .frontends
            .list(&sim.client, Reconcile::begin(), &subscription, Some("mgmt"), age);
        list.await.1
    };
    assert!(ask().await.is_ok());
    sleep(Duration::from_secs(300)).await;
    let held = json!({"status": 429, "code": "SubscriptionRequestsThrottled", "message": "x",
        "headers": {"Retry-After": "120"}});
    sim.faults(&[(json!({"path": "/privateLinkServices/"}), held)]);
    assert!(matches!(sim.read(&link_service()).await, Observed::ReadFailed(_)));
    let end = Instant::now() + Duration::from_secs(60);
    let mut reconciles = 0;
    while Instant::now() < end {
        reconciles += 1;
        let wait = ask().await.unwrap_err().delay(1);
        // Nine other clusters do the same.
        join_all((0..9).map(|_| ask())).await;
        sleep(wait).await;
    }
    assert!(reconciles <= 2, "{reconciles} reconciles in a minute");
    assert_eq!(*sim.counted.exhausted.lock().unwrap(), [] as [Kind; 0]);
}

/// A request limit of Azure is no defect of Hyperlink.
#[tokio::test(start_paused = true)]
async fn throttled_reads_of_20_clusters_exhaust_no_call_budget() {
    let mut fleet = Fleet::new(20).await;
    fleet.run(Duration::from_secs(660)).await;
    let held = json!({"status": 429, "code": "SubscriptionRequestsThrottled", "message": "x",
        "headers": {"Retry-After": "330"}});
    fleet
        .sim
        .faults(&[(json!({"path": "/virtualNetworks/workers$", "times": 1}), held)]);
    let network = id(&format!("{GUEST}/virtualNetworks/workers"));
    let reader = fleet.sim.reader();
    reader.read(Kind::VirtualNetwork, &network).await;
    fleet.sim.counted.exhausted.lock().unwrap().clear();
    fleet.run(Duration::from_secs(330)).await;
    assert_eq!(*fleet.sim.counted.exhausted.lock().unwrap(), [] as [Kind; 0]);
}
