//! Resources that others put into any state.

use rstest::rstest;

use super::gone::karpenter;
use super::*;
use crate::sim::fault;

impl Life {
    /// How many Events with this note there were.
    fn events(&self, note: &str) -> usize {
        let events = self.cluster.take_events();
        events.iter().filter(|event| *event == note).count()
    }

    /// Puts all resources of a kind into a state, in which they stay.
    pub(super) fn put_into_state(&self, kind: &str, state: &str) {
        for body in self.aws.resources(kind) {
            self.aws.change(body, |body| {
                body["state"] = json!(state);
                body["next"] = Value::Null;
            });
        }
    }
}

#[rstest]
#[tokio::test(start_paused = true)]
async fn state_that_carries_nothing_is_not_available(
    #[values("vpc-endpoint", "vpc-endpoint-service")] kind: &str,
    #[values(
        "pendingAcceptance",
        "pending",
        "rejected",
        "failed",
        "expired",
        "partial",
        "unheard-of"
    )]
    state: &str,
) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    life.aws.clear_journal();
    for _ in 0..4 {
        life.put_into_state(kind, state);
        life.run_for(Duration::from_secs(1_800)).await;
        assert_eq!(life.is_available(), life.is_reachable());
    }
    let (calls, writes) = (life.aws.journal().len(), life.aws.writes().len());
    assert!(
        calls <= 520 && writes <= 30,
        "{calls} calls, {writes} writes in two hours"
    );
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}

/// It is no reason to make no path.
#[rstest]
#[case::impaired("active_impaired", false, 1)]
#[case::impaired_from_the_first_read("active_impaired", true, 1)]
#[case::active("active", false, 0)]
#[tokio::test(start_paused = true)]
async fn impaired_load_balancer_serves_and_is_reported_once(
    #[case] state: &str,
    #[case] at_once: bool,
    #[case] expected: usize,
) {
    let mut life = Life::new();
    if !at_once {
        // It is being provisioned, as AWS makes each.
        life.comes_to("LoadBalancerNotActive", 0).await;
    }
    life.change_load_balancer(|body| {
        body["state"] = json!(state);
        body["next"] = Value::Null;
    });
    life.until_available().await;
    life.run_for(Duration::from_secs(3_600)).await;
    let name = hyperlink::hypershift::names::load_balancer(cluster::UID);
    let note = format!("load balancer {name} is active_impaired: it does not carry all traffic");
    assert_eq!(life.events(&note), expected);
}

/// It is being provisioned meanwhile.
#[tokio::test(start_paused = true)]
async fn load_balancer_that_cannot_be_read_delays_a_path_by_little() {
    let mut life = Life::new();
    let down = json!({"status": 503, "code": "Unavailable"});
    life.aws.set_faults(&fault("/DescribeLoadBalancers$", 3, &down));
    life.until_available().await;
    let elapsed = life.aws.elapsed();
    assert!(elapsed <= 600, "{elapsed} s");
}

/// While AWS does not tell the zones of subnets, what was reported neither ends nor changes.
#[tokio::test(start_paused = true)]
async fn subnets_left_out_are_reported_once_for_each_set() {
    const UNKNOWN: &str = "is not in the VPC of the cluster";
    let mut life = Life::new();
    let down = json!({"status": 503, "code": "Unavailable"});
    let mut generation = 1;
    for subnet in ["subnet-0000000e", "subnet-0000000f"] {
        karpenter(&life.cluster, &json!([subnet]));
        life.wake();
        for rule in [json!([]), fault("/DescribeSubnets$", 1_000_000, &down), json!([])] {
            life.aws.set_faults(&rule);
            for _ in 0..4 {
                // Else it would be at rest, and nothing be reported.
                generation += 1;
                life.cluster.forge(CR, &json!({"metadata": {"generation": generation}}));
                life.run_for(Duration::from_secs(600)).await;
            }
        }
        assert!(life.is_available());
    }
    let reported = life.cluster.take_events();
    let reported: Vec<_> = reported.iter().filter(|event| event.contains("left out")).collect();
    let expected = ["subnet-0000000e", "subnet-0000000f"].map(|id| format!("subnets left out: {id} {UNKNOWN}"));
    assert_eq!(reported, expected.iter().collect::<Vec<_>>());
}

/// More than an endpoint takes.
#[tokio::test(start_paused = true)]
async fn too_many_subnets_are_reported_once() {
    let mut life = Life::new();
    let many: Vec<String> = (1..=11).map(|at| format!("subnet-{at:08x}")).collect();
    karpenter(&life.cluster, &json!(many));
    for generation in 2..6 {
        life.run_for(Duration::from_secs(600)).await;
        life.cluster.forge(CR, &json!({"metadata": {"generation": generation}}));
    }
    let note = "an endpoint takes 10 subnets, left out: subnet-0000000b";
    assert_eq!(life.events(note), 1);
}

/// Each is replaced before it was ever ready; after that AWS takes no client token twice.
#[rstest]
#[tokio::test(start_paused = true)]
async fn what_fails_again_and_again_is_made_at_last(#[values("vpc-endpoint", "vpc-endpoint-service")] kind: &str) {
    let mut life = Life::new();
    let mut failed: Vec<String> = Vec::new();
    while failed.len() < 3 {
        life.reconcile_next().await;
        let there = life.aws.resources(kind);
        let live = there
            .into_iter()
            .find(|body| !matches!(body["state"].as_str(), Some("deleted" | "deleting")));
        let id = live.and_then(|body| body["id"].as_str().map(str::to_owned));
        if let Some(id) = id.filter(|id| !failed.contains(id)) {
            life.put_into_state(kind, "failed");
            failed.push(id);
        }
        assert!(
            life.aws.elapsed() < 14_400,
            "{failed:?} {:#}",
            life.cluster.get(CR).unwrap()
        );
    }
    life.run_for(Duration::from_secs(7_200)).await;
    assert!(life.is_available(), "{failed:?} {:#}", life.cluster.get(CR).unwrap());
}
