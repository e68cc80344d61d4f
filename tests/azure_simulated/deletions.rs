//! A cluster is deleted though Azure or others stand in the way: what is owned is deleted, the rest is left, and
//! nothing waits for ever.

use std::time::Duration;

use hyperlink::azure::cloud::Observed;
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::plan::Why;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::execute::run;
use rstest::rstest;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::desired::{GUEST, id, zone};
use crate::restarts::state;
use crate::sim::{Sim, ensure_absent};
use crate::whole::Life;

const ZONES: [&str; 2] = ["example.hypershift.local", "apps.example.com"];

/// The ids of what is there besides the seed.
fn left(sim: &Sim) -> Vec<String> {
    let empty = state(&Life::new().sim);
    let all = state(sim).into_iter().filter(|one| !empty.contains(one));
    all.map(|one| one[0].as_str().unwrap().to_ascii_lowercase()).collect()
}

#[tokio::test(start_paused = true)]
async fn link_of_a_dead_process_is_removed_from_a_zone_that_stays() {
    for effects in 1.. {
        let Some(mut life) = Life::cut_short(effects).await else {
            assert!(effects > 15, "only {effects} effects until it is available");
            return;
        };
        for zone in ZONES.map(|name| id(&format!("{GUEST}/privateDnsZones/{name}"))) {
            if life.sim.shown(&zone).is_some() {
                let foreign = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "10.9.9.9"}]}});
                life.sim.install(&zone.child(Kind::RecordSet, "www").unwrap(), foreign);
            }
        }
        life.delete_cluster().await;
        life.sim.let_operations_end().await;
        let mut left = left(&life.sim);
        left.retain(|id| {
            !ZONES.iter().any(|zone| id.ends_with(zone)) && !id.ends_with("/a/www") && !id.ends_with("/soa/@")
        });
        assert_eq!(left, [""; 0], "dead after {effects} effects");
    }
}

#[rstest]
#[case::zone("/privateDnsZones/[^/]+$", 409, "CannotDeleteResource")]
#[case::nat_subnet("/subnets/[^/]+$", 400, "InUseSubnetCannotBeDeleted")]
#[tokio::test(start_paused = true)]
async fn what_azure_takes_for_used_holds_the_cluster_only_so_long(
    #[case] path: &str,
    #[case] status: u16,
    #[case] code: &str,
) {
    let mut life = Life::new();
    life.until_available().await;
    let refused = json!({"status": status, "code": code, "message": "in use"});
    let deletes = json!({"method": "DELETE", "path": path, "times": 1_000_000});
    life.sim.faults(&[(deletes, refused)]);
    let began = Instant::now();
    life.delete_cluster().await;
    let seconds = began.elapsed().as_secs();
    assert!((600..900).contains(&seconds), "{seconds} s");
    let left = left(&life.sim);
    let may_stay = |id: &&String| {
        ["/privatednszones/", "-pls-nat"].iter().any(|part| id.contains(part)) && !id.contains("/virtualnetworklinks/")
    };
    assert!(
        !left.is_empty() && left.iter().filter(may_stay).count() == left.len(),
        "{left:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn throttled_list_is_read_again_when_azure_allows() {
    let mut seconds = Vec::new();
    for throttled in [false, true] {
        let mut life = Life::new();
        life.until_available().await;
        sleep(Duration::from_secs(60)).await;
        if throttled {
            let later =
                json!({"status": 429, "code": "TooManyRequests", "message": "x", "headers": {"Retry-After": "20"}});
            life.sim.faults(&[(json!({"method": "GET", "path": "/ALL$"}), later)]);
        }
        let began = Instant::now();
        life.delete_cluster().await;
        seconds.push(began.elapsed().as_secs());
        assert_eq!(left(&life.sim), [""; 0]);
    }
    assert!(seconds[1] <= seconds[0] + 40, "{seconds:?}");
}

#[tokio::test(start_paused = true)]
async fn zone_that_changed_after_it_was_read_is_not_deleted() {
    let mut sim = Sim::new();
    let body = sim.until_present(&zone()).await;
    sim.install(&zone().id, json!({"location": "global", "tags": {"cluster": "theirs"}}));
    let step = ensure_absent(&zone(), &Observed::Found(body));
    run(&[step], &sim.client, &sim.observations, Reconcile::begin()).await;
    sim.let_operations_end().await;
    assert!(sim.shown(&zone().id).is_some());
    let (step, _) = sim.reconcile(ensure_absent, &zone()).await;
    assert!(matches!(step.why, Why::Error(_)), "{step:?}");
    sleep(Duration::from_secs(60)).await;
    let (step, _) = sim.reconcile(ensure_absent, &zone()).await;
    assert!(step.left(), "{step:?}");
}
