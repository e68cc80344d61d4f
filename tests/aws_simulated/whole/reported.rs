//! What only people can help with is a Warning, and on which objects.

use rstest::rstest;

use super::cluster::{HOSTED, Reported};
use super::gone::karpenter;
use super::*;
use crate::sim::fault;
use crate::strangers::live;

const POOL: &str = "clusters/nodepools/a";

/// S16: what HyperShift's policies do not allow to change back.
fn acceptance(life: &Life) {
    life.aws
        .change(live(&life.aws, "vpc-endpoint-service").remove(0), |body| {
            body["acceptance_required"] = json!(true);
        });
}

/// S11.
fn group_in_use(life: &Life) {
    let busy = json!({"status": 400, "code": "DependencyViolation"});
    life.aws.set_faults(&fault("/DeleteSecurityGroup$", 1_000, &busy));
    let long_ago = Timestamp::now() - jiff::SignedDuration::from_mins(11);
    life.cluster.delete_at(CR, &long_ago.to_string());
}

/// X7.
fn unreadable_list(life: &Life) {
    karpenter(&life.cluster, &json!({"a": 1}));
}

/// X19.
fn too_many_subnets(life: &Life) {
    let ids: Vec<String> = (1..=11).map(|at| format!("subnet-{at:08x}")).collect();
    karpenter(&life.cluster, &json!(ids));
}

/// X18.
fn filters(life: &Life) {
    let filters = json!([{"name": "tag:Name", "values": ["workers"]}]);
    let mut pool = life.cluster.get(POOL).unwrap();
    pool["metadata"]["name"] = json!("b");
    pool["spec"]["platform"]["aws"]["subnet"] = json!({"filters": filters});
    life.cluster.put("clusters/nodepools/b", pool);
}

/// X31.
fn everybody(life: &Life) {
    let principals = json!([format!("arn:aws:iam::{GUEST}:user/cpo"), "*"]);
    let platform = json!({"aws": {"additionalAllowedPrincipals": principals}});
    life.cluster.forge(HOSTED, &json!({"spec": {"platform": platform}}));
}

const ON_BOTH: [&str; 2] = ["AWSEndpointService", "HostedCluster"];
const ON_CR: [&str; 1] = ["AWSEndpointService"];

/// What a condition has too is reported on the HostedCluster by role `ho`; the rest is on the custom resource.
#[rstest]
#[case::acceptance_set_by_hand(acceptance, "UnauthorizedOperation", &ON_BOTH)]
#[case::security_group_in_use(group_in_use, "vpce-private-router", &ON_CR)]
#[case::list_of_karpenter_unreadable(unreadable_list, "karpenter-subnets", &ON_CR)]
#[case::more_than_ten_subnets(too_many_subnets, "10 subnets", &ON_CR)]
#[case::node_pool_with_filters(filters, "filters", &ON_CR)]
#[case::everybody_may_connect(everybody, "every account", &ON_CR)]
#[tokio::test(start_paused = true)]
async fn what_people_must_help_with_is_a_warning_once(
    #[case] change: fn(&Life),
    #[case] part: &str,
    #[case] expected: &[&str],
) {
    let mut life = Life::new();
    life.until_available().await;
    life.cluster.take_reported();
    change(&life);
    life.wake();
    life.run_for(Duration::from_secs(1_200)).await;
    let all = life.cluster.take_reported();
    let about: Vec<_> = all.iter().filter(|event| event.note.contains(part)).collect();
    let mut kinds: Vec<&str> = about.iter().map(|event| event.regarding.as_str()).collect();
    kinds.sort_unstable();
    assert_eq!(kinds, expected, "{all:#?}");
    let is_warning = |event: &&Reported| event.kind == "Warning" && !event.reason.is_empty();
    assert!(about.iter().all(is_warning), "{about:#?}");
}
