//! Azure accepts writes and shows something else. Whatever it shows, a resource is called only so often, and the result
//! is right.

use std::time::Duration;

use hyperlink::azure::arm::error::ArmError;
use hyperlink::azure::kinds::Kind;
use hyperlink::engine::client::{Condition, Reconcile, WriteError};
use hyperlink::engine::failure::{CALL_BUDGET_EXHAUSTED, Class};
use rstest::rstest;
use serde_json::{Value, json};

use crate::desired::{zone, zone_link};
use crate::restarts::state;
use crate::sim::Sim;
use crate::whole::Life;

const MINUTE: Duration = Duration::from_secs(60);
/// The most calls to one address within a minute; a resource in progress is polled every 4 s.
const CALM: usize = 20;

const SERVICE: &str = "/privateLinkServices/[^/]+$";
const ENDPOINT: &str = "/privateEndpoints/[^/]+$";
const ZONE: &str = "/privateDnsZones/example.hypershift.local$";

fn is_calm(life: &Life) {
    let (calls, path) = life.sim.azure.busiest(MINUTE);
    assert!(calls <= CALM, "{calls} calls within a minute to {path}");
    assert_eq!(life.exhausted(), [""; 0]);
}

/// The only resource that Azure has under a path with this end.
fn shown(sim: &Sim, part: &str) -> Value {
    let part = part.trim_end_matches('$').trim_end_matches("[^/]+").to_lowercase();
    let all = sim.azure.world().resources(sim.azure.now(), "");
    let named = |body: &&Value| {
        let id = body["id"].as_str().unwrap().to_lowercase();
        id.split_once(&part).is_some_and(|(_, rest)| !rest.contains('/'))
    };
    all.iter().find(named).unwrap().clone()
}

fn with_state(mut body: Value, state: &str) -> Value {
    body["properties"]["provisioningState"] = json!(state);
    body
}

/// From now on reads of paths with this end get this answer.
fn reads_show(sim: &Sim, path: &str, action: Value) {
    sim.faults(&[(json!({"method": "GET", "path": path, "times": 100_000}), action)]);
}

fn gone() -> Value {
    json!({"status": 404, "code": "ResourceNotFound", "message": "x"})
}

/// The body of the endpoint of an available cluster.
async fn endpoint_of_a_cluster() -> Value {
    let mut life = Life::new();
    life.until_available().await;
    shown(&life.sim, ENDPOINT)
}

#[tokio::test(start_paused = true)]
async fn endpoint_that_reads_404_after_its_put_is_put_once() {
    let body = endpoint_of_a_cluster().await;
    let mut life = Life::new();
    life.sim.faults(&[
        (
            json!({"method": "PUT", "path": ENDPOINT, "times": 100_000}),
            json!({"body": body}),
        ),
        (json!({"method": "GET", "path": ENDPOINT, "times": 100_000}), gone()),
    ]);
    life.run_for(MINUTE).await;
    is_calm(&life);
    let puts = |life: &Life| {
        life.writes("PUT")
            .iter()
            .filter(|(path, _)| path.contains("/privateEndpoints/"))
            .map(|(_, n)| *n)
            .sum::<usize>()
    };
    assert_eq!(puts(&life), 1, "{}", life.sim.calls());
    life.sim.faults(&[]);
    life.until_available().await;
    assert_eq!(puts(&life), 1);
}

#[rstest]
#[case::service(SERVICE)]
#[case::endpoint(ENDPOINT)]
#[tokio::test(start_paused = true)]
async fn resource_that_fails_after_each_put_is_put_ever_more_rarely(#[case] path: &str) {
    let mut life = Life::new();
    life.until_available().await;
    let failed = with_state(shown(&life.sim, path), "Failed");
    let ready = with_state(failed.clone(), "Succeeded");
    life.sim.faults(&[
        (
            json!({"method": "GET", "path": path, "times": 100_000}),
            json!({"body": failed}),
        ),
        (
            json!({"method": "PUT", "path": path, "times": 100_000}),
            json!({"body": ready}),
        ),
    ]);
    life.sim.forget_calls();
    life.run_for(20 * MINUTE).await;
    is_calm(&life);
    let puts = life.sim.writes();
    assert!((3..=50).contains(&puts), "{puts}");
}

/// Ready for so long that it was last observed in a list, then changed by somebody, then deleted.
#[rstest]
#[case::service(SERVICE)]
#[case::endpoint(ENDPOINT)]
#[case::zone(ZONE)]
#[tokio::test(start_paused = true)]
async fn resource_that_changes_during_deletion_is_read_calmly(#[case] path: &str) {
    let mut life = Life::new();
    let empty = state(&life.sim);
    life.until_available().await;
    life.run_for(60 * MINUTE).await;
    let updating = with_state(shown(&life.sim, path), "Updating");
    reads_show(&life.sim, path, json!({"body": updating}));
    life.run_for(60 * MINUTE).await;
    life.delete_now();
    life.run_for(10 * MINUTE).await;
    is_calm(&life);
    life.sim.faults(&[]);
    life.run_for(60 * MINUTE).await;
    assert!(!life.exists() && state(&life.sim) == empty);
}

/// The operation of the delete fails each time, is lost, or hangs.
#[rstest]
#[case::fails("fail")]
#[case::lost("lost")]
#[case::hangs("hang")]
#[tokio::test(start_paused = true)]
async fn delete_of_a_connection_that_never_ends_is_polled_calmly(#[case] operation: &str) {
    let mut life = Life::new();
    let empty = state(&life.sim);
    life.until_available().await;
    let connection = "/privateEndpointConnections/[^/]+$";
    let delete = json!({"method": "DELETE", "path": connection, "times": 100_000});
    life.sim.faults(&[(delete, json!({"operation": operation}))]);
    // Nobody serves the guest's side, so the endpoint stays, and its connection is deleted.
    life.sim.forget_calls();
    life.delete_long_ago();
    life.run_management_for(30 * MINUTE).await;
    let deletes: usize = life.writes("DELETE").values().sum();
    assert!((1..=60).contains(&deletes), "{deletes}: {}", life.sim.calls());
    is_calm(&life);
    life.sim.faults(&[]);
    life.run_for(120 * MINUTE).await;
    assert!(!life.exists() && state(&life.sim) == empty, "{:#?}", state(&life.sim));
}

/// A proxy, or a faulty Azure, gives this answer, and nothing is deleted.
#[rstest]
#[case::service(SERVICE)]
#[case::endpoint(ENDPOINT)]
#[case::zone(ZONE)]
#[case::subnet("/subnets/x-pls-nat$")]
#[case::record("/A/api$")]
#[tokio::test(start_paused = true)]
async fn delete_answered_404_is_not_believed(#[case] path: &str) {
    let mut life = Life::new();
    let empty = state(&life.sim);
    life.until_available().await;
    life.sim
        .faults(&[(json!({"method": "DELETE", "path": path, "times": 3}), gone())]);
    life.delete_now();
    life.run_for(120 * MINUTE).await;
    assert!(!life.exists() && state(&life.sim) == empty, "{:#?}", state(&life.sim));
    is_calm(&life);
}

/// The errors of a call that is made a hundred times a second, for a minute.
async fn in_a_loop(call: impl AsyncFn() -> Result<(), ArmError>) -> Vec<ArmError> {
    let mut errors = Vec::new();
    for _ in 0..6_000 {
        errors.extend(call().await.err());
        tokio::time::sleep(MINUTE / 6_000).await;
    }
    errors
}

/// A defect above the client could loop like this. In a minute Azure gets only what the call budget allows: 12 calls
/// and 3 more.
#[rstest]
#[tokio::test(start_paused = true)]
async fn resource_called_in_a_loop_gets_its_call_budget_only(#[values("GET", "LIST", "DELETE")] verb: &str) {
    let (sim, reconcile) = (Sim::new(), Reconcile::begin());
    let (id, any) = (zone_link().id, Condition::Any);
    let (subscription, all) = (id.subscription(), format!("{}/virtualNetworkLinks", zone().id));
    let errors = in_a_loop(async || match verb {
        "GET" => sim.client.get(reconcile, Kind::VirtualNetworkLink, &id).await.map(drop),
        "LIST" => sim
            .client
            .list(reconcile, Kind::VirtualNetworkLink, subscription, &all)
            .await
            .map(drop),
        _ => match sim.client.delete(reconcile, Kind::VirtualNetworkLink, &id, &any).await {
            Ok(_) => Ok(()),
            Err(WriteError::Failed(error)) => Err(error),
            Err(WriteError::NotLeading) => panic!("the gate is open"),
        },
    });
    let mut errors = errors.await;
    errors.retain(|error| error.code == CALL_BUDGET_EXHAUSTED);
    assert_eq!((sim.azure.sent().len(), errors.len()), (15, 6_000 - 15), "{verb}");
    assert!(
        errors
            .iter()
            .all(|error| error.class == Class::Throttled && error.retry_after.is_some())
    );
    assert_eq!(
        *sim.counted.exhausted.lock().unwrap(),
        vec![Kind::VirtualNetworkLink; 6_000 - 15]
    );
}
