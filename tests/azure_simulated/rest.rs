//! A cluster at rest in both roles: its reconciles write nothing, and what drifts in Azure ends the rest.

use std::sync::atomic::Ordering;
use std::time::Duration;

use rstest::rstest;
use serde_json::json;

use hyperlink::azure::arm::id::ResourceId;

use crate::sim::Sim;
use crate::whole::Life;

const HOUR: Duration = Duration::from_secs(3_600);

/// How many reconciles were those of a cluster at rest, and how many were not, in this time.
async fn reconciles_in(life: &mut Life, time: Duration) -> (usize, usize) {
    let before = counts(life);
    life.run_for(time).await;
    let now = counts(life);
    (now.0 - before.0, now.1 - before.1)
}

fn counts(life: &Life) -> (usize, usize) {
    let [at_rest, not] = [&life.at_rest, &life.not_at_rest].map(|count| count.load(Ordering::Relaxed));
    (at_rest, not)
}

/// The first resource that has this in its id.
fn id(sim: &Sim, part: &str) -> ResourceId {
    let all = sim.azure.world().resources(sim.azure.now(), "");
    let mut ids = all.iter().filter_map(|body| body["id"].as_str());
    let id = ids.find(|id| id.contains(part)).unwrap();
    ResourceId::parse(id).unwrap()
}

#[rstest]
#[case::removed_record(|sim: &Sim| sim.remove(&id(sim, "/A/api")))]
#[case::removed_link(|sim: &Sim| sim.remove(&id(sim, "/virtualNetworkLinks/")))]
#[case::closed_subnet(|sim: &Sim| {
    sim.drift(&id(sim, "-pls-nat"), "/properties/privateLinkServiceNetworkPolicies", json!("Enabled"));
})]
#[tokio::test(start_paused = true)]
async fn cluster_at_rest_is_checked_without_a_write(#[case] drifts: impl FnOnce(&Sim)) {
    let mut life = Life::new();
    life.until_available().await;
    life.run_for(HOUR).await;
    let (at_rest, not) = reconciles_in(&mut life, HOUR).await;
    assert!(at_rest >= 12, "{at_rest} reconciles in an hour");
    assert_eq!(not, 0, "of {at_rest} more");

    drifts(&life.sim);
    life.sim.forget_calls();
    let (_, not) = reconciles_in(&mut life, 5 * HOUR).await;
    assert!(not > 0, "nothing has ended the rest");
    assert_eq!(life.sim.writes(), 1, "{}", life.last_calls(50));
    assert_eq!(reconciles_in(&mut life, HOUR).await.1, 0);
}
