//! Lives of a cluster, undisturbed and while AWS fails.

use rstest::rstest;

use super::*;
use crate::sim::fault;

/// The calls of a life.
pub(super) const CALLS: [&str; 20] = [
    "DescribeLoadBalancers",
    "DescribeVpcEndpointServiceConfigurations",
    "CreateVpcEndpointServiceConfiguration",
    "DescribeVpcEndpointServicePermissions",
    "ModifyVpcEndpointServicePermissions",
    "DescribeVpcEndpointConnections",
    "RejectVpcEndpointConnections",
    "DeleteVpcEndpointServiceConfigurations",
    "DescribeSecurityGroups",
    "CreateSecurityGroup",
    "AuthorizeSecurityGroupIngress",
    "DeleteSecurityGroup",
    "DescribeSubnets",
    "DescribeVpcEndpoints",
    "CreateVpcEndpoint",
    "DeleteVpcEndpoints",
    "ListHostedZones",
    "ListResourceRecordSets",
    "ChangeResourceRecordSets",
    "CreateTags",
];

#[tokio::test(start_paused = true)]
async fn cluster_is_created_and_deleted_and_nothing_is_left() {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    assert!(life.is_reachable());
    let calls = life.aws.journal().len();
    assert!(calls <= 28, "{calls} calls");
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.aws.writes(), Vec::<String>::new());
    let calls = life.aws.journal().len();
    assert!(calls <= 50, "{calls} calls in an hour at rest");
    life.aws.clear_journal();
    life.deleted().await;
    // The endpoint takes a minute to go, and another one until the security group is free.
    let calls = life.aws.actions();
    assert!(calls.len() <= 24, "{} calls: {calls:#?}", calls.len());
    assert_eq!(life.remains(), empty);
}

/// Twice in each phase of a life. A condition that is True is so, and nothing is left.
#[rstest]
#[case::lost(&json!({"drop": "after"}))]
#[case::unavailable(&json!({"status": 503, "code": "Unavailable"}))]
#[case::throttled(&json!({"status": 503, "code": "RequestLimitExceeded"}))]
#[case::denied(&json!({"status": 403, "code": "UnauthorizedOperation"}))]
#[case::invalid(&json!({"status": 400, "code": "InvalidParameter"}))]
#[case::busy(&json!({"status": 400, "code": "IncorrectState"}))]
#[tokio::test(start_paused = true)]
async fn each_call_fails_twice_in_each_phase(#[case] action: &Value) {
    for call in CALLS {
        let mut life = Life::new();
        let empty = life.remains();
        let rule = fault(&format!("/{call}$"), 2, action);
        life.aws.set_faults(&rule);
        life.until_available().await;
        assert!(life.is_reachable(), "{call}");
        life.aws.set_faults(&rule);
        life.run_for(Duration::from_secs(3_600)).await;
        assert!(life.is_available() && life.is_reachable(), "{call}");
        life.aws.set_faults(&rule);
        life.deleted().await;
        assert_eq!(life.remains(), empty, "{call}");
        let calls = life.aws.journal().len();
        assert!(calls <= 170, "{call}: {calls} calls");
    }
}

/// Whatever was sent before, and whatever answer was lost; also when new processes take over.
#[rstest]
#[tokio::test(start_paused = true)]
async fn deletion_at_any_moment_leaves_nothing(#[values(1.0, 55.0)] lag: f64, #[values(false, true)] killed: bool) {
    let creates = [
        "CreateVpcEndpointServiceConfiguration",
        "CreateSecurityGroup",
        "CreateVpcEndpoint",
        "ChangeResourceRecordSets",
    ];
    for lost in creates {
        for moment in 1.. {
            let mut life = Life::with(|seed| seed["switches"] = json!({"describe_lag_s": lag}));
            let empty = life.remains();
            let rule = fault(&format!("/{lost}$"), 1, &json!({"drop": "after"}));
            life.aws.set_faults(&rule);
            for _ in 0..moment {
                life.reconcile_next().await;
            }
            let is_available = life.is_available();
            if killed {
                life.restart(Role::Ho);
                life.restart(Role::Cpo);
            }
            life.deleted().await;
            // What was hidden shows.
            tokio::time::sleep(Duration::from_secs(120)).await;
            assert_eq!(
                life.remains(),
                empty,
                "{lost} was lost, deleted after {moment} reconciles"
            );
            if is_available {
                break;
            }
        }
    }
}

/// A role's process lives for three reconciles of a creation.
#[rstest]
#[case::soon(json!({}))]
#[case::late(json!({"describe_lag_s": 60.0, "tag_lag_s": 60.0, "zone_busy_s": 30.0}))]
#[tokio::test(start_paused = true)]
async fn processes_that_live_short_make_one_path(#[case] switches: Value, #[values(Role::Ho, Role::Cpo)] role: Role) {
    let mut life = Life::with(|seed| seed["switches"] = switches);
    while !life.is_available() {
        assert!(life.aws.elapsed() < 7_200, "{:#}", life.cluster.get(CR).unwrap());
        for _ in 0..3 {
            life.reconcile_next().await;
            tokio::time::sleep(Duration::from_secs(10)).await;
        }
        life.restart(role);
    }
    for kind in ["vpc-endpoint", "vpc-endpoint-service"] {
        assert_eq!(life.aws.resources(kind).len(), 1, "{kind}");
    }
}
