//! A cluster goes though Azure or others stand in the way: what is ours is taken, what is not is left, and nothing waits for ever.

use std::time::Duration;

use hyperlink::azure::client::Reconcile;
use hyperlink::azure::execute::run;
use hyperlink::azure::plan::Why;
use hyperlink::azure::resource::{Kind, Observed};
use rstest::rstest;
use serde_json::json;
use tokio::time::{Instant, sleep};

use crate::desired::{GUEST, id, zone};
use crate::restarts::state;
use crate::sim::{Sim, ensure_absent};
use crate::whole::Life;

const ZONES: [&str; 2] = ["example.hypershift.local", "apps.example.com"];

/// The ids of what is there besides what was seeded.
fn left(sim: &Sim) -> Vec<String> {
    let empty = state(&Life::new().sim);
    let all = state(sim).into_iter().filter(|one| !empty.contains(one));
    all.map(|one| one[0].as_str().unwrap().to_ascii_lowercase()).collect()
}

#[tokio::test(start_paused = true)]
async fn link_that_a_dead_process_put_is_taken_out_of_a_zone_that_stays() {
    for effects in 1.. {
        let Some(mut life) = Life::cut_short(effects).await else {
            assert!(effects > 15, "only {effects} effects until it is available");
            return;
        };
        for zone in ZONES.map(|name| id(&format!("{GUEST}/privateDnsZones/{name}"))) {
            if life.sim.shown(&zone).is_some() {
                let foreign = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "10.9.9.9"}]}});
                life.sim.install(&zone.child(Kind::Record, "www").unwrap(), foreign);
            }
        }
        life.goes().await;
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
    life.comes().await;
    let refused = json!({"status": status, "code": code, "message": "in use"});
    let deletes = json!({"method": "DELETE", "path": path, "times": 1_000_000});
    life.sim.faults(&[(deletes, refused)]);
    let began = Instant::now();
    life.goes().await;
    let took = began.elapsed().as_secs();
    assert!((600..900).contains(&took), "{took} s");
    let left = left(&life.sim);
    let confirm = |id: &&String| {
        ["/privatednszones/", "-pls-nat"].iter().any(|part| id.contains(part)) && !id.contains("/virtualnetworklinks/")
    };
    assert!(
        !left.is_empty() && left.iter().filter(confirm).count() == left.len(),
        "{left:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn list_that_azure_has_no_time_for_is_read_again_when_azure_says() {
    let mut took = Vec::new();
    for throttled in [false, true] {
        let mut life = Life::new();
        life.comes().await;
        sleep(Duration::from_secs(60)).await;
        if throttled {
            let later =
                json!({"status": 429, "code": "TooManyRequests", "message": "x", "headers": {"Retry-After": "20"}});
            life.sim.faults(&[(json!({"method": "GET", "path": "/ALL$"}), later)]);
        }
        let began = Instant::now();
        life.goes().await;
        took.push(began.elapsed().as_secs());
        assert_eq!(left(&life.sim), [""; 0]);
    }
    assert!(took[1] <= took[0] + 40, "{took:?}");
}

#[tokio::test(start_paused = true)]
async fn zone_that_changed_after_it_was_read_is_not_deleted() {
    let mut sim = Sim::new();
    let body = sim.bring(&zone()).await;
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
