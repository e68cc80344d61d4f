//! Exhausted request budgets: what waits, for how long, and what does not.

use std::time::Duration;

use hyperlink::azure::cloud::Observed;
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::ensure_present;
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{GUEST, NET, endpoint, id, link_service, seed_with, subnet, zone};
use crate::refusals::refused;
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
    let began = tokio::time::Instant::now();
    sim.until_present(&zone()).await;
    assert!(began.elapsed() >= Duration::from_secs(300));
    let first = sim.azure.sent()[0].at;
    assert_eq!(first - began, Duration::from_secs(300));
}
