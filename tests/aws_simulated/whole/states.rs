//! Resources that others put into any state.

use rstest::rstest;

use super::*;

impl Life {
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
#[case::impaired("active_impaired", 1)]
#[case::active("active", 0)]
#[tokio::test(start_paused = true)]
async fn impaired_load_balancer_serves_and_is_reported_once(#[case] state: &str, #[case] expected: usize) {
    let mut life = Life::new();
    // It is being provisioned, as AWS makes each.
    life.comes_to("LoadBalancerNotActive", 0).await;
    life.change_load_balancer(|body| {
        body["state"] = json!(state);
        body["next"] = Value::Null;
    });
    life.until_available().await;
    life.run_for(Duration::from_secs(3_600)).await;
    let name = hyperlink::hypershift::names::load_balancer(cluster::UID);
    let note = format!("load balancer {name} is active_impaired: it does not carry all traffic");
    let events = life.cluster.take_events();
    let reported = events.iter().filter(|event| **event == note).count();
    assert_eq!(reported, expected, "{events:#?}");
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
