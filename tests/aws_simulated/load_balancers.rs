//! Many clusters whose load balancers are being provisioned.

use std::time::Duration;

use futures::future::join_all;
use hyperlink::aws::cloud::Aws;
use hyperlink::aws::kinds::Kind;
use hyperlink::aws::slot::Slot;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::cloud::{Cloud, Key as _};
use hyperlink::engine::resource::{Observed, Progress};
use rstest::rstest;
use serde_json::json;

use crate::desired::{MANAGEMENT, scope};
use crate::principals::count;
use crate::process::Process;
use crate::sim::SimTransport;

const CLUSTERS: usize = 20;

fn name(number: usize) -> String {
    format!("a{number:031x}")
}

/// S15: 150 s, polled every 20 s by each of them.
#[rstest]
#[case::all_are_there(0, 10)]
#[case::one_is_not(1, 5 * CLUSTERS)]
#[tokio::test(start_paused = true)]
async fn clusters_that_wait_for_load_balancers_share_the_calls(#[case] missing: usize, #[case] most: usize) {
    let aws = SimTransport::new();
    let now = aws.now();
    for number in missing..CLUSTERS {
        let arn = format!(
            "arn:aws:elasticloadbalancing:us-east-1:{MANAGEMENT}:loadbalancer/net/{}/{number:016x}",
            name(number)
        );
        let body = json!({"id": arn, "vpc": "vpc-1", "subnets": ["subnet-m1"], "state": "provisioning"});
        aws.aws().put_resource(now, &arn, body).unwrap();
    }
    let ho = Process::ho(&aws);
    let slots = (0..CLUSTERS).map(|number| Slot::load_balancer(&scope(MANAGEMENT), &name(number)));
    let polls = join_all(slots.map(|slot| poll_until_ready(&ho, slot))).await;
    let found = polls.iter().filter(|polls| polls.is_some()).count();
    assert_eq!(found, CLUSTERS - missing, "{polls:?}");
    // What AWS does not know is told apart by smaller calls.
    let calls = count(&aws, "/DescribeLoadBalancers");
    assert!(calls <= most, "{calls} calls for {CLUSTERS} clusters");
}

/// Polls a load balancer nine times. Returns how often it was not ready.
async fn poll_until_ready(ho: &Process, slot: Slot) -> Option<usize> {
    for poll in 0..9 {
        // Each cluster has calls of its own.
        let reconcile = Reconcile::begin().on_behalf_of(slot.name());
        let observed = ho.observe(reconcile, Kind::LoadBalancer, &slot).await;
        if let Observed::Found(body) = observed
            && Aws::progress(&body) == Progress::Ready
        {
            return Some(poll);
        }
        ho.forget(&slot);
        tokio::time::sleep(Duration::from_secs(20)).await;
    }
    None
}
