//! What is stuck of some clusters delays no other one that the same processes serve.

use std::collections::BTreeMap;

use rstest::rstest;

use super::fleet::{Fleet, Member};
use super::*;

const ALWAYS: u64 = 1_000_000;
/// The time between two polls of a resource in progress.
const POLL: Duration = Duration::from_secs(10);
const OTHER_ACCOUNT: &str = "777788889999";

/// The clusters that get stuck, each in a VPC of its own, in the account of the other one.
fn stuck(count: usize) -> Vec<Member> {
    let member = |number: usize| Member::new(&format!("stuck{number}"), number, GUEST, number);
    (11..11 + count).map(member).collect()
}

fn other(account: &str) -> Member {
    Member::new("other", 1, account, 1)
}

/// The rules for what the guest's sides of these clusters call.
fn rules(members: &[Member], path: &str, action: &Value) -> Value {
    let rule = |member: &Member| {
        json!({"match": {"principal": member.session(), "path": path, "times": ALWAYS},
        "do": action})
    };
    members.iter().map(rule).collect()
}

fn balancer_is_provisioned_for_ever(fleet: &Fleet, members: &[Member]) {
    for member in members {
        let never = json!(["2999-01-01T00:00:00Z", "active"]);
        fleet
            .aws
            .change(fleet.load_balancer(member), |body| body["next"] = never);
    }
}

fn endpoint_is_pending_for_ever(fleet: &Fleet, members: &[Member]) {
    fleet
        .aws
        .set_faults(&rules(members, "/CreateVpcEndpoint$", &json!({"ends": "pending"})));
}

/// As long as the real transport waits.
fn zone_does_not_answer(fleet: &Fleet, members: &[Member]) {
    let hangs = json!({"delay_ms": 60_000, "drop": "before"});
    fleet.aws.set_faults(&rules(members, "/route53/", &hangs));
}

async fn time_alone(member: &Member) -> Duration {
    Fleet::new(std::slice::from_ref(member)).until_available(member).await
}

#[rstest]
#[case::load_balancer(balancer_is_provisioned_for_ever)]
#[case::endpoint(endpoint_is_pending_for_ever)]
#[case::zone(zone_does_not_answer)]
#[tokio::test(start_paused = true)]
async fn stuck_clusters_delay_no_other_one(#[case] hold: fn(&Fleet, &[Member]), #[values(1, 12)] count: usize) {
    let (stuck, other) = (stuck(count), other(GUEST));
    let alone = time_alone(&other).await;
    let mut all = stuck.clone();
    all.push(other.clone());
    let fleet = Fleet::new(&all);
    hold(&fleet, &stuck);
    let together = fleet.until_available(&other).await;
    assert!(fleet.is_reachable(&other));
    assert!(together <= alone + POLL, "{together:?}, alone {alone:?}");
    for member in &stuck {
        assert!(!fleet.is_available(&member.key(CR)), "{}", member.name);
    }
    // A while later the stuck ones are still tried, and are there once they can be.
    fleet.run_until(Duration::from_secs(900), |_| false).await;
    assert!(stuck.iter().all(|member| !fleet.is_available(&member.key(CR))));
    assert!(fleet.is_available(&other.key(CR)));
}

/// The calls of a cluster's guest side that were refused: by the bucket that was empty, when.
fn refusals(fleet: &Fleet, member: &Member) -> BTreeMap<String, Vec<Timestamp>> {
    let mut refusals: BTreeMap<String, Vec<Timestamp>> = BTreeMap::new();
    let journal = fleet.aws.journal().into_iter();
    for entry in journal.filter(|entry| entry.principal == member.session()) {
        let bucket = match entry.path.starts_with("/route53/") {
            true => "/route53/".to_owned(),
            false => entry.path,
        };
        refusals.entry(bucket).or_default().push(entry.time.parse().unwrap());
    }
    refusals
}

/// Everything is throttled in one guest account, for twenty minutes.
#[tokio::test(start_paused = true)]
async fn throttled_account_delays_no_other_and_is_left_alone() {
    let (throttled, other) = (stuck(1).remove(0), other(OTHER_ACCOUNT));
    let alone = time_alone(&other).await;
    let fleet = Fleet::new(&[throttled.clone(), other.clone()]);
    let members = std::slice::from_ref(&throttled);
    let of_ec2 = rules(
        members,
        "/ec2/",
        &json!({"status": 503, "code": "RequestLimitExceeded"}),
    );
    let of_route53 = rules(members, "/route53/", &json!({"status": 400, "code": "Throttling"}));
    fleet.aws.set_faults(&json!([of_ec2[0], of_route53[0]]));
    let together = fleet.until_available(&other).await;
    assert!(together <= alone + POLL, "{together:?}, alone {alone:?}");
    fleet.run_until(Duration::from_secs(1_200), |_| false).await;
    let refusals = refusals(&fleet, &throttled);
    assert!(refusals.len() >= 2, "{refusals:?}");
    for (bucket, times) in &refusals {
        assert!(times.len() >= 3, "{bucket} was not tried again: {times:?}");
        for two in times.windows(2) {
            let wait = two[1].duration_since(two[0]).as_secs();
            assert!(wait >= 30, "{bucket} again after {wait} s: {times:?}");
        }
    }
    fleet.aws.set_faults(&json!([]));
    fleet.until_available(&throttled).await;
    assert!(fleet.is_reachable(&throttled) && fleet.is_reachable(&other));
}
