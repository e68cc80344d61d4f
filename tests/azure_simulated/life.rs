//! Each kind is created, kept and deleted, and no call is made without need.

use std::time::Duration;

use hyperlink::azure::arm::id::ResourceId;
use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_endpoint::{Approval, address, approval};
use hyperlink::azure::kinds::private_link_service::connections;
use hyperlink::azure::plan::{Outcome, Step};
use hyperlink::engine::plan::ensure_present;
use hyperlink::engine::resource::Resource;
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{ADDRESS, endpoint, link_service, record, subnet, zone, zone_link};
use crate::sim::{Sim, ensure_absent};

/// Reconciles over some days, each later than the next read of whatever kind, change nothing.
async fn is_kept(sim: &mut Sim, desired: &dyn Resource<Arm>) {
    sim.forget_calls();
    let before = sim.shown(desired.key()).unwrap();
    for _ in 0..20 {
        sleep(Duration::from_secs(18_000)).await;
        let (step, outcome) = sim.reconcile(ensure_present, desired).await;
        assert!(step.ready().is_some() && outcome == Outcome::Nothing, "{step:?}");
    }
    assert_eq!(sim.calls(), ["GET"; 20].join(" "));
    assert_eq!(sim.shown(desired.key()).unwrap(), before);
    assert_eq!(sim.in_flight(), 0);
}

/// Creates the resource with these calls, keeps it, and deletes it with these.
async fn is_created_kept_and_deleted(
    sim: &mut Sim,
    desired: &dyn Resource<Arm>,
    create_calls: &str,
    delete_calls: &str,
) {
    sim.forget_calls();
    let body = sim.until_present(desired).await;
    assert_eq!(desired.differs(&body), []);
    assert_eq!(sim.calls(), create_calls);
    is_kept(sim, desired).await;
    // The cached read suffices to decide on the delete, but not to send it.
    sleep(Duration::from_secs(1)).await;
    sim.forget_calls();
    sim.until_absent(desired).await;
    assert_eq!(sim.calls(), delete_calls);
    assert_eq!(sim.shown(desired.key()), None);
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn nat_subnet_is_created_kept_and_deleted() {
    is_created_kept_and_deleted(&mut Sim::new(), &subnet(), "GET PUT GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn link_service_is_created_kept_and_deleted() {
    is_created_kept_and_deleted(&mut Sim::new(), &link_service(), "GET PUT GET GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn endpoint_is_created_kept_and_deleted() {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    is_created_kept_and_deleted(&mut sim, &endpoint(&alias), "GET PUT GET GET GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn zone_is_created_kept_and_deleted() {
    is_created_kept_and_deleted(&mut Sim::new(), &zone(), "GET PUT GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn zone_link_is_created_kept_and_deleted() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.restart();
    is_created_kept_and_deleted(&mut sim, &zone_link(), "GET PUT GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn record_is_created_kept_and_deleted() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.restart();
    is_created_kept_and_deleted(&mut sim, &record("*.apps"), "GET PUT", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn contents_of_a_zone_created_here_are_put_unread() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.forget_calls();
    sim.until_present(&zone_link()).await;
    sim.until_present(&record("api")).await;
    assert_eq!(sim.calls(), "PUT GET PUT");
}

#[tokio::test(start_paused = true)]
async fn endpoint_in_an_approved_subscription_is_approved() {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    let body = sim.until_present(&endpoint(&alias)).await;
    assert_eq!(approval(&body), Approval::Approved);
    assert_eq!(address(&body), ADDRESS.parse().ok());
}

/// A service that has been ready for long, and the one connection to it.
async fn connected() -> (Sim, ResourceId) {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    sim.until_present(&endpoint(&alias)).await;
    sleep(Duration::from_secs(3_600)).await;
    let Observed::Found(service) = sim.read(&link_service()).await else {
        panic!("no service");
    };
    let [connection]: [ResourceId; 1] = connections(&service).try_into().unwrap();
    (sim, connection)
}

#[tokio::test(start_paused = true)]
async fn connection_is_deleted_with_one_call_before_its_service() {
    let (mut sim, connection) = connected().await;
    let (_, refused) = sim.reconcile(ensure_absent, &link_service()).await;
    let Outcome::Failed(refused) = refused else {
        panic!("{refused:?}");
    };
    assert_eq!(
        refused.code,
        "PrivateLinkServiceWithPrivateEndpointConnectionsCannotBeDeleted"
    );
    sim.forget_calls();
    let steps = [Step::remove(Kind::PrivateEndpointConnection, connection.clone())];
    // The service is reconciled while the connection is being deleted.
    for _ in 0..3 {
        let began = tokio::time::Instant::now();
        // Only its service shows a connection.
        if !hyperlink::engine::execute::invalidate_cached(&steps, &sim.observations, began).is_empty() {
            sim.read(&link_service()).await;
        }
        let reader = sim.reader();
        let outcomes = hyperlink::engine::execute::run(&steps, &sim.client, &sim.observations, reader.reconcile).await;
        assert_eq!(outcomes, [Outcome::Accepted]);
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(sim.calls(), "DELETE GET GET");
    sim.wait_until_due(&link_service()).await;
    sim.until_absent(&link_service()).await;
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn refused_delete_of_a_connection_waits_longer_each_time() {
    let (sim, connection) = connected().await;
    let refusal = json!({"status": 409, "code": "AnotherOperationInProgress", "message": "x"});
    sim.faults(&[(json!({"method": "DELETE", "times": 4}), refusal)]);
    let steps = [Step::remove(Kind::PrivateEndpointConnection, connection)];
    let mut at = Vec::new();
    let began = tokio::time::Instant::now();
    sim.forget_calls();
    // It is reconciled every second.
    while sim.calls().split(' ').filter(|verb| *verb == "DELETE").count() < 5 {
        let before = sim.writes();
        let reader = sim.reader();
        let outcomes = hyperlink::engine::execute::run(&steps, &sim.client, &sim.observations, reader.reconcile).await;
        if sim.writes() > before {
            at.push(began.elapsed().as_secs());
        } else {
            assert!(matches!(outcomes[0], Outcome::Failed(_)), "{outcomes:?}");
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(at, [0, 3, 9, 21, 45]);
}
