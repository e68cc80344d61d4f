//! Many clusters of one process at the same time: writes into one network come one after the other, all else in
//! parallel, and what never ends delays nobody else.

use std::collections::BTreeSet;
use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::cloud::Arm;
use hyperlink::azure::plan::Outcome;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::execute::run;
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::json;
use tokio::time::{Instant, sleep_until};

use crate::fleet::{internal, nat_subnet, seed_for, service, zone};
use crate::sim::{Rule, Sim, ensure_absent};

/// Reconciles all, each when it is due, until all but those at `left_out` are as the rule demands. Returns how long
/// that took.
async fn until_all(sim: &mut Sim, rule: Rule, all_desired: &[Box<dyn Resource<Arm>>], left_out: &[usize]) -> Duration {
    let began = Instant::now();
    let mut open: Vec<usize> = (0..all_desired.len()).collect();
    for desired in all_desired {
        sim.reconcile(rule, desired.as_ref()).await;
    }
    while open.iter().any(|at| !left_out.contains(at)) {
        assert!(began.elapsed() < Duration::from_secs(3_600), "never: {open:?}");
        let due = |at: &usize| sim.observations.next_read([all_desired[*at].key()]).unwrap_or(began);
        let next = *open.iter().min_by_key(|at| due(at)).unwrap();
        sleep_until(due(&next)).await;
        let (step, _) = sim.reconcile(rule, all_desired[next].as_ref()).await;
        if step.verb == Verb::Keep {
            open.retain(|at| *at != next);
        }
    }
    began.elapsed()
}

fn nat_subnets(clusters: usize) -> Vec<Box<dyn Resource<Arm>>> {
    (0..clusters)
        .map(|n| Box::new(nat_subnet(n)) as Box<dyn Resource<Arm>>)
        .collect()
}

#[rstest]
#[case::refused_by_conflict("409")]
#[case::refused_as_retryable("429")]
#[tokio::test(start_paused = true)]
async fn twenty_nat_subnets_of_one_network_are_written_in_sequence(#[case] busy: &str) {
    let mut seed = seed_for(0);
    seed["switches"] = json!({"vnet_busy": busy});
    let mut sim = Sim::seeded(&seed);
    let all_desired = nat_subnets(20);
    let duration = until_all(&mut sim, ensure_present, &all_desired, &[]).await;
    // Azure takes 3 s for each.
    assert!((60..=70).contains(&duration.as_secs()), "{duration:?}");
    assert_eq!(sim.writes(), 20, "none is refused");
    assert!(sim.azure.sent().len() <= 5 * 20, "{}", sim.calls());
    sim.forget_calls();
    let duration = until_all(&mut sim, ensure_absent, &all_desired, &[]).await;
    assert!((200..=230).contains(&duration.as_secs()), "{duration:?}");
    assert_eq!(sim.writes(), 20, "none is refused");
}

#[tokio::test(start_paused = true)]
async fn unanswered_write_holds_the_others_of_its_network() {
    let mut seed = seed_for(0);
    seed["switches"] = json!({"vnet_busy": "409"});
    let sim = Sim::seeded(&seed);
    sim.azure.set_latency(Duration::from_millis(500));
    let all_desired = nat_subnets(20);
    let reconcile = async |desired: &dyn Resource<Arm>| {
        let step = ensure_present(desired, &sim.read(desired).await);
        run(&[step], &sim.client, &sim.observations, Reconcile::begin())
            .await
            .remove(0)
    };
    let outcomes = join_all(all_desired.iter().map(|desired| reconcile(desired.as_ref()))).await;
    assert_eq!(
        outcomes.iter().filter(|outcome| **outcome == Outcome::Accepted).count(),
        1
    );
    assert_eq!(sim.writes(), 1, "none is refused");
    let due = all_desired
        .iter()
        .map(|desired| sim.observations.next_read([desired.key()]));
    let waits: BTreeSet<_> = due.collect();
    assert_eq!(waits.len(), 20, "each has a time of its own");
}

#[tokio::test(start_paused = true)]
async fn refused_write_gives_its_turn_to_the_next() {
    let sim = Sim::seeded(&seed_for(0));
    sim.fault(
        "PUT",
        json!({"status": 403, "code": "AuthorizationFailed", "message": "x"}),
    );
    let all_desired = nat_subnets(2);
    for (desired, expected) in all_desired.iter().zip([false, true]) {
        let step = ensure_present(desired.as_ref(), &sim.read(desired.as_ref()).await);
        let outcome = run(&[step], &sim.client, &sim.observations, Reconcile::begin())
            .await
            .remove(0);
        assert_eq!(outcome == Outcome::Accepted, expected, "{outcome:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn stuck_subnet_holds_its_network_only_as_long_as_azure_does() {
    let mut sim = Sim::seeded(&seed_for(0));
    sim.fault("PUT", json!({"operation": "hang"}));
    let all_desired = nat_subnets(3);
    for desired in &all_desired {
        sim.reconcile(ensure_present, desired.as_ref()).await;
    }
    assert_eq!(sim.writes(), 1, "the others wait for their turn");
    let stuck = tokio::time::timeout(
        Duration::from_secs(60),
        until_all(&mut sim, ensure_present, &all_desired, &[0]),
    )
    .await;
    assert!(stuck.is_err(), "Azure does not let them");
    assert!(sim.writes() > 1, "but they have tried");
    sim.remove(&nat_subnet(0).id);
    until_all(&mut sim, ensure_present, &all_desired[1..], &[]).await;
}

#[tokio::test(start_paused = true)]
async fn operation_that_never_ends_delays_no_other_cluster() {
    for hangs in ["/privateLinkServices/pls-0$", "/privateDnsZones/c0.hypershift.local$"] {
        let mut times = Vec::new();
        for fault in [false, true] {
            let mut sim = Sim::seeded(&seed_for(5));
            until_all(&mut sim, ensure_present, &nat_subnets(5), &[]).await;
            if fault {
                let hang = json!({"operation": "hang"});
                sim.faults(&[(json!({"method": "PUT", "path": hangs}), hang)]);
            }
            let services = (0..5).map(|n| Box::new(service(n)) as Box<dyn Resource<Arm>>);
            let zones = (0..5).map(|n| Box::new(zone(n, &internal(n))) as Box<dyn Resource<Arm>>);
            let all_desired: Vec<_> = services.chain(zones).collect();
            let left_out: &[usize] = if fault { &[0, 5] } else { &[] };
            times.push(until_all(&mut sim, ensure_present, &all_desired, left_out).await);
            assert!(!fault || sim.in_flight() == 1, "it hangs");
        }
        assert!(times[1] <= times[0], "{hangs}: {times:?}");
    }
}
