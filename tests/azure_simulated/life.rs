//! Each kind comes about, stays, and goes; and no call is made for nothing.

use std::time::Duration;

use hyperlink::azure::id::ResourceId;
use hyperlink::azure::plan::{Outcome, Step, ensure_present};
use hyperlink::azure::private_endpoint::{Approval, address, approval};
use hyperlink::azure::private_link_service::connections;
use hyperlink::azure::resource::{Kind, Observed, Resource};
use serde_json::json;
use tokio::time::sleep;

use crate::desired::{ADDRESS, endpoint, link_service, record, subnet, zone, zone_link};
use crate::sim::{Sim, ensure_absent};

/// Many hours of passes change nothing.
async fn stays(sim: &mut Sim, desired: &dyn Resource) {
    sim.forget_calls();
    let before = sim.shown(desired.id()).unwrap();
    for _ in 0..20 {
        sleep(Duration::from_secs(3_600)).await;
        let (step, outcomes) = sim.reconcile(ensure_present, desired).await;
        assert!(step.ready().is_some() && outcomes == Outcome::Nothing, "{step:?}");
    }
    assert_eq!(sim.calls(), ["GET"; 20].join(" "));
    assert_eq!(sim.shown(desired.id()).unwrap(), before);
    assert_eq!(sim.in_flight(), 0);
}

/// Comes with these calls, stays, and goes with these.
async fn lives(sim: &mut Sim, desired: &dyn Resource, coming: &str, going: &str) {
    sim.forget_calls();
    let body = sim.bring(desired).await;
    assert_eq!(desired.differs(&body), []);
    assert_eq!(sim.calls(), coming);
    stays(sim, desired).await;
    // The last look is good enough to see that it must go, not to delete it.
    sleep(Duration::from_secs(1)).await;
    sim.forget_calls();
    sim.take_away(desired).await;
    assert_eq!(sim.calls(), going);
    assert_eq!(sim.shown(desired.id()), None);
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn nat_subnet_comes_stays_and_goes() {
    lives(&mut Sim::new(), &subnet(), "GET PUT GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn link_service_comes_stays_and_goes() {
    lives(&mut Sim::new(), &link_service(), "GET PUT GET GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn endpoint_comes_stays_and_goes() {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    lives(&mut sim, &endpoint(&alias), "GET PUT GET GET GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn zone_comes_stays_and_goes() {
    lives(&mut Sim::new(), &zone(), "GET PUT GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn zone_link_comes_stays_and_goes() {
    let mut sim = Sim::new();
    sim.bring(&zone()).await;
    sim.restart();
    lives(&mut sim, &zone_link(), "GET PUT GET", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn record_comes_stays_and_goes() {
    let mut sim = Sim::new();
    sim.bring(&zone()).await;
    sim.restart();
    lives(&mut sim, &record("*.apps"), "GET PUT", "GET DELETE GET").await;
}

#[tokio::test(start_paused = true)]
async fn what_goes_into_our_new_zone_is_put_unread() {
    let mut sim = Sim::new();
    sim.bring(&zone()).await;
    sim.forget_calls();
    sim.bring(&zone_link()).await;
    sim.bring(&record("api")).await;
    assert_eq!(sim.calls(), "PUT GET PUT");
}

#[tokio::test(start_paused = true)]
async fn endpoint_in_an_approved_subscription_is_approved_and_has_its_address() {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    let body = sim.bring(&endpoint(&alias)).await;
    assert_eq!(approval(&body), Approval::Approved);
    assert_eq!(address(&body), ADDRESS.parse().ok());
}

/// A service that has been at rest for long, and the one connection to it.
async fn connected() -> (Sim, ResourceId) {
    let mut sim = Sim::new();
    let alias = sim.alias().await;
    sim.bring(&endpoint(&alias)).await;
    sleep(Duration::from_secs(3_600)).await;
    let Observed::Found(service) = sim.read(&link_service()).await else {
        panic!("no service");
    };
    let [connection]: [ResourceId; 1] = connections(&service).try_into().unwrap();
    (sim, connection)
}

#[tokio::test(start_paused = true)]
async fn connection_goes_with_one_call_and_then_its_service_can_go() {
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
    let steps = [Step::remove(Kind::Connection, connection.clone())];
    // Passes of the service come and go while the connection is on its way.
    for _ in 0..3 {
        let began = tokio::time::Instant::now();
        // A connection is seen at its service only.
        if !hyperlink::azure::execute::invalidate_cached(&steps, &sim.observations, began).is_empty() {
            sim.read(&link_service()).await;
        }
        let looker = sim.looker();
        let outcomes = hyperlink::azure::execute::run(&steps, &sim.client, &sim.observations, looker.reconcile).await;
        assert_eq!(outcomes, [Outcome::Accepted]);
        sleep(Duration::from_secs(2)).await;
    }
    assert_eq!(sim.calls(), "DELETE GET GET");
    sim.rest(&link_service()).await;
    sim.take_away(&link_service()).await;
    assert_eq!(sim.in_flight(), 0);
}

#[tokio::test(start_paused = true)]
async fn refused_delete_of_a_connection_waits_longer_each_time() {
    let (sim, connection) = connected().await;
    let refusal = json!({"status": 409, "code": "AnotherOperationInProgress", "message": "x"});
    sim.faults(&[(json!({"method": "DELETE", "times": 4}), refusal)]);
    let steps = [Step::remove(Kind::Connection, connection)];
    let mut at = Vec::new();
    let began = tokio::time::Instant::now();
    sim.forget_calls();
    // Passes come every second.
    while sim.calls().split(' ').filter(|verb| *verb == "DELETE").count() < 5 {
        let before = sim.writes();
        let looker = sim.looker();
        let outcomes = hyperlink::azure::execute::run(&steps, &sim.client, &sim.observations, looker.reconcile).await;
        if sim.writes() > before {
            at.push(began.elapsed().as_secs());
        } else {
            assert!(matches!(outcomes[0], Outcome::Failed(_)), "{outcomes:?}");
        }
        sleep(Duration::from_secs(1)).await;
    }
    assert_eq!(at, [0, 3, 9, 21, 45]);
}
