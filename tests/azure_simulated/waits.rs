//! What no event reports, through whole reconciles: it is read ever less often, and every five minutes in the end.

use std::time::Duration;

use serde_json::json;

use crate::cluster::frontend;
use crate::desired::{GUEST, NET, id};
use crate::whole::Life;

const HOUR: Duration = Duration::from_secs(3_600);

/// The seconds between the calls with this path since the last `forget_calls`.
fn gaps(life: &Life, path: &str) -> Vec<u64> {
    let sent = life.sim.azure.sent();
    let same = sent.iter().filter(|call| call.request.uri().path() == path);
    let at: Vec<_> = same.map(|call| call.at).collect();
    at.windows(2).map(|pair| (pair[1] - pair[0]).as_secs()).collect()
}

#[tokio::test(start_paused = true)]
async fn frontend_that_never_comes_is_searched_for_ever_less_often() {
    let mut life = Life::new();
    let balancer = id(&format!("{NET}/loadBalancers/lb"));
    let mut without = life.sim.shown(&balancer).unwrap();
    let frontends = &mut without["properties"]["frontendIPConfigurations"];
    frontends
        .as_array_mut()
        .unwrap()
        .retain(|one| one["name"] != frontend());
    life.sim.install(&balancer, without);
    life.run_management_for(HOUR).await;
    let gaps = gaps(&life, &format!("{NET}/loadBalancers"));
    assert_eq!(gaps, [&[10, 10, 20, 40, 80, 160][..], &[300; 10]].concat());
}

#[tokio::test(start_paused = true)]
async fn connection_that_stays_pending_is_read_ever_less_often() {
    let mut life = Life::new();
    life.until_available().await;
    let endpoint = format!("{GUEST}/privateEndpoints/private-router-pe");
    let shown = life.sim.azure.world().resources(life.sim.azure.now(), "");
    let connection = shown.iter().find(|one| {
        let id = one["id"].as_str().unwrap_or_default();
        id.contains("/privateEndpointConnections/")
    });
    let mut connection = connection.unwrap().clone();
    connection["properties"]["privateLinkServiceConnectionState"] = json!({"status": "Pending", "description": "x"});
    life.sim
        .install(&id(connection["id"].as_str().unwrap()), connection.clone());
    life.sim.forget_calls();
    life.run_for(HOUR).await;
    let gaps = gaps(&life, &endpoint);
    assert_eq!(gaps[..5], [30, 30, 60, 120, 240]);
    // Then as often as a ready resource, whose interval is spread by a tenth.
    assert!(gaps[5..].iter().all(|gap| (270..=330).contains(gap)), "{gaps:?}");
    assert_eq!(gaps.len(), 15, "{gaps:?}");
}
