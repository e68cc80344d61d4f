//! What others delete, replace or hide in AWS while the path is there.

use hyperlink::api::markers::aws::CPO_FINALIZER;
use rstest::rstest;

use super::cluster::{HOSTED, PLANE};
use super::*;
use crate::sim::fault;
use crate::strangers::live;

const OTHERS_ENDPOINT: &str = "vpce-0aaaaaaaaaaaaaaaa";
const NO_ENDPOINT: &str = "<DescribeVpcEndpointsResponse><vpcEndpointSet/></DescribeVpcEndpointsResponse>";
const NO_GROUP: &str = "<DescribeSecurityGroupsResponse><securityGroupInfo/></DescribeSecurityGroupsResponse>";

/// A role that may also change zones and endpoint services that HyperShift's policies leave out.
pub(super) fn with_more_rights(seed: &mut Value) {
    let actions = [
        "route53:ChangeResourceRecordSets",
        "route53:ListResourceRecordSets",
        "ec2:ModifyVpcEndpointServiceConfiguration",
    ];
    for account in 0..2 {
        let allowed = &mut seed["accounts"][account]["users"][0]["policies"][0]["Statement"];
        let more = json!({"Effect": "Allow", "Action": actions, "Resource": "*"});
        allowed.as_array_mut().unwrap().push(more);
    }
}

impl Life {
    /// A field of the status.
    pub(super) fn shown(&self, field: &str) -> Value {
        self.cluster.get(CR).unwrap_or_default()["status"][field].clone()
    }

    /// Deletes a resource behind everybody's back.
    pub(super) fn removed(&self, body: &Value) {
        let now = self.aws.now();
        self.aws.aws().delete_resource(now, body["id"].as_str().unwrap());
    }

    /// Sets by hand whether connections to the endpoint service have to be accepted.
    fn sets_acceptance(&self, is_required: bool) {
        let service = live(&self.aws, "vpc-endpoint-service").remove(0);
        self.aws
            .change(service, |body| body["acceptance_required"] = json!(is_required));
    }

    fn own_groups(&self) -> Vec<Value> {
        crate::lost::groups(&self.aws)
    }

    /// The calls of an action since the journal was cleared.
    pub(super) fn calls_of(&self, action: &str) -> Vec<Timestamp> {
        let journal = self.aws.journal().into_iter();
        let calls = journal.filter(|entry| entry.path.ends_with(&format!("/{action}")));
        calls.map(|entry| entry.time.parse().unwrap()).collect()
    }
}

/// S8: AWS says that there is no such id, or shows nothing.
#[rstest]
#[case::unknown_to_aws(0)]
#[case::answers_are_empty(4)]
#[tokio::test(start_paused = true)]
async fn endpoint_is_replaced_after_two_reads(#[case] empty_answers: u64) {
    let mut life = Life::new();
    life.until_available().await;
    let before = life.shown("endpointID");
    life.removed(&live(&life.aws, "vpc-endpoint").remove(0));
    let empty = json!({"status": 200, "body": NO_ENDPOINT});
    life.aws
        .set_faults(&fault("/DescribeVpcEndpoints$", empty_answers, &empty));
    life.aws.clear_journal();
    let mut is_cleared = false;
    while live(&life.aws, "vpc-endpoint").is_empty() {
        assert!(life.aws.elapsed() < 3_600, "never replaced");
        life.reconcile_next().await;
        is_cleared |= life.shown("endpointID").is_null();
    }
    let reads = life.calls_of("DescribeVpcEndpoints");
    let create = life.calls_of("CreateVpcEndpoint")[0];
    let wait = create.duration_since(reads[0]).as_secs();
    assert!(reads.len() >= 2 && wait >= 10, "{wait} s after {reads:?}");
    assert!(is_cleared, "{before} was in the status all the time");
    life.until_available().await;
    assert!(life.is_reachable());
    assert_ne!(life.shown("endpointID"), before);
}

/// S9: an endpoint to another service, which is another cluster's, is in status and intent.
#[tokio::test(start_paused = true)]
async fn recorded_endpoint_of_another_cluster_is_left_alone() {
    let mut life = Life::new();
    let arn = format!("arn:aws:ec2:us-east-1:{GUEST}:vpc-endpoint/{OTHERS_ENDPOINT}");
    let id = "vpce-svc-0bbbbbbbbbbbbbbbb";
    let service = json!({"id": format!("arn:aws:ec2:us-east-1:{MANAGEMENT}:vpc-endpoint-service/{id}"),
        "load_balancers": [], "state": "Available", "acceptance_required": false, "principals": [], "tags": {}});
    let others = json!({"id": arn, "vpc": "vpc-00000002", "service_id": id,
        "state": "available", "subnets": [], "groups": [], "tags": {}});
    life.aws.change(service, |_| {});
    life.aws.change(others.clone(), |_| {});
    let empty = life.remains();
    life.cluster
        .forge(CR, &json!({"status": {"endpointID": OTHERS_ENDPOINT}}));
    life.until_available().await;
    assert!(life.is_reachable());
    assert_ne!(life.shown("endpointID"), json!(OTHERS_ENDPOINT));
    life.deleted().await;
    assert_eq!(life.remains(), empty);
    let shown = live(&life.aws, "vpc-endpoint").remove(0);
    assert_eq!((&shown["tags"], &shown["groups"]), (&others["tags"], &others["groups"]));
}

/// S11: it is gone, or AWS shows it no more.
#[rstest]
#[case::gone(true, 0)]
#[case::answers_are_empty(true, 9)]
#[tokio::test(start_paused = true)]
async fn path_whose_group_is_gone_is_deleted(#[case] is_gone: bool, #[case] empty_answers: u64) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    if is_gone {
        life.removed(&life.own_groups().remove(0));
    }
    let no_group = json!({"status": 200, "body": NO_GROUP});
    life.aws
        .set_faults(&fault("/DescribeSecurityGroups$", empty_answers, &no_group));
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}

/// S11: an interface of somebody else is in it. After ten minutes it is left to a person, with an Event.
#[rstest]
#[case::that_is_freed(true)]
#[case::that_is_never_freed(false)]
#[tokio::test(start_paused = true)]
async fn group_in_use_holds_the_finalizer_with_a_reason(#[case] is_freed: bool) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let busy = json!({"status": 400, "code": "DependencyViolation"});
    life.aws.set_faults(&fault("/DeleteSecurityGroup$", 1_000, &busy));
    life.aws.clear_journal();
    life.cluster.delete_at(CR, &Timestamp::now().to_string());
    while life.calls_of("DeleteSecurityGroup").is_empty() {
        life.reconcile_next().await;
    }
    life.run_for(Duration::from_secs(300)).await;
    let held = life.cr().unwrap().metadata.finalizers.unwrap_or_default();
    assert!(held.iter().any(|one| one == CPO_FINALIZER), "{held:?}");
    let (status, reason, message) = life.condition("AWSEndpointAvailable");
    assert_eq!((status.as_str(), reason.as_str()), ("False", "DeletionFailed"));
    assert!(message.contains("DependencyViolation"), "{message}");
    let tries = life.calls_of("DeleteSecurityGroup");
    let waits = tries.windows(2).map(|two| two[1].duration_since(two[0]).as_secs());
    let waits: Vec<i64> = waits.collect();
    assert!(!waits.is_empty() && waits.iter().all(|wait| *wait >= 9), "{waits:?}");
    if is_freed {
        life.aws.set_faults(&json!([]));
    }
    life.cluster.take_events();
    life.run_for(Duration::from_secs(1_800)).await;
    assert!(life.cr().is_none());
    let events = life.cluster.take_events();
    let is_reported = events
        .iter()
        .any(|note| note.contains("vpce-private-router") && note.contains("stays"));
    assert_eq!(
        (life.remains() == empty, is_reported),
        (is_freed, !is_freed),
        "{events:?}"
    );
}

/// S14: describe calls do not show it for 20 s.
#[tokio::test(start_paused = true)]
async fn hidden_endpoint_is_created_once_and_never_missed() {
    let mut life = Life::with(|seed| seed["switches"] = json!({"describe_lag_s": 20.0, "tag_lag_s": 20.0}));
    let mut reasons: Vec<String> = Vec::new();
    while !life.is_available() {
        life.reconcile_next().await;
        reasons.push(life.condition("AWSEndpointAvailable").1);
    }
    assert_eq!(life.calls_of("CreateVpcEndpoint").len(), 1);
    assert!(!reasons.iter().any(|reason| reason.contains("Failed")), "{reasons:?}");
    assert!(life.is_reachable());
}

/// Lists and reads by id hide it for so long that another one is created.
#[rstest]
#[tokio::test(start_paused = true)]
async fn endpoint_that_shows_again_is_deleted_with_an_event(#[values(false, true)] is_restarted: bool) {
    let mut life = Life::new();
    life.until_available().await;
    let body = "<DescribeVpcEndpointsResponse><vpcEndpointSet/></DescribeVpcEndpointsResponse>";
    life.aws
        .set_faults(&fault("/DescribeVpcEndpoints$", 1_000, &json!({ "body": body })));
    life.aws.clear_journal();
    while life.calls_of("CreateVpcEndpoint").is_empty() {
        life.reconcile_next().await;
    }
    life.aws.set_faults(&json!([]));
    if is_restarted {
        life.restart(Role::Cpo);
    }
    life.cluster.take_events();
    life.run_for(Duration::from_secs(1_800)).await;
    let left = live(&life.aws, "vpc-endpoint");
    assert_eq!(left.len(), 1, "{left:#?}");
    let endpoint = life.cr().unwrap().status.unwrap().endpoint_id.unwrap();
    assert!(left[0]["id"].as_str().unwrap().ends_with(&endpoint), "{endpoint}");
    assert!(life.is_available() && life.is_reachable());
    assert_eq!(life.calls_of("DeleteVpcEndpoints").len(), 1);
    let events = life.cluster.take_events();
    assert!(events.iter().any(|note| note.contains("one too many")), "{events:?}");
    let before = life.aws.writes().len();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.aws.writes().len(), before, "nothing is written at rest");
}

/// S16: somebody allows another principal, and removes ours.
#[tokio::test(start_paused = true)]
async fn principals_changed_by_hand_are_repaired_with_an_event() {
    let mut life = Life::new();
    life.until_available().await;
    let before = live(&life.aws, "vpc-endpoint-service").remove(0);
    life.aws.change(before.clone(), |body| {
        body["principals"] = json!([{"arn": format!("arn:aws:iam::{MANAGEMENT}:root")}]);
    });
    life.cluster.take_events();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(3_600)).await;
    let after = live(&life.aws, "vpc-endpoint-service").remove(0);
    let arns = |body: &Value| -> Vec<Value> {
        body["principals"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["arn"].clone())
            .collect()
    };
    assert_eq!(arns(&after), arns(&before));
    // One on the custom resource, and one on the HostedCluster.
    let mut events = life.cluster.take_events();
    assert_eq!(events.len(), 2, "{events:?}");
    events.dedup();
    assert_eq!(events.len(), 1, "{events:?}");
    assert_eq!(life.aws.writes(), ["/ec2/ModifyVpcEndpointServicePermissions"]);
    assert!(life.is_available());
}

/// S16: HyperShift's policies do not allow to change it. The refusal is reported until somebody sets it back.
#[rstest]
#[case::allowed(with_more_rights as fn(&mut Value), true)]
#[case::not_allowed(|_: &mut Value| {}, false)]
#[tokio::test(start_paused = true)]
async fn acceptance_set_by_hand_is_repaired_or_reported(#[case] rights: fn(&mut Value), #[case] is_repaired: bool) {
    let mut life = Life::with(rights);
    life.until_available().await;
    life.sets_acceptance(true);
    life.cluster.take_events();
    life.aws.clear_journal();
    for _ in 0..4 {
        life.run_for(Duration::from_secs(900)).await;
        let service = live(&life.aws, "vpc-endpoint-service").remove(0);
        assert_eq!(service["acceptance_required"], json!(!is_repaired));
        let (status, reason, message) = life.condition("AWSEndpointServiceAvailable");
        if is_repaired {
            assert_eq!(status, "True");
        } else {
            assert_eq!((status.as_str(), reason.as_str()), ("False", "EndpointServiceFailed"));
            let action = "UnauthorizedOperation: check the policies of the identity \
                          for ec2:ModifyVpcEndpointServiceConfiguration";
            assert!(message.ends_with(action), "{message}");
        }
        assert!(life.is_reachable());
    }
    let events = life.cluster.take_events();
    assert_eq!(
        events.len(),
        2,
        "one on the custom resource and one on the HostedCluster: {events:?}"
    );
    let tries = life.calls_of("ModifyVpcEndpointServiceConfiguration").len();
    assert!((1..=2).contains(&tries), "{tries} tries in an hour");
    life.sets_acceptance(false);
    life.until_available().await;
}

/// S17: a zone with more records of others than a page has.
#[tokio::test(start_paused = true)]
async fn zone_full_of_foreign_records_is_left_alone() {
    let mut life = Life::new();
    let mut zone = life.hosted_zone();
    let foreign = |at: usize| {
        json!({"name": format!("n{at:04}.example.hypershift.local."), "type": "CNAME", "ttl": 60,
            "values": ["example.com."]})
    };
    let mut records = zone["records"].as_array().cloned().unwrap_or_default();
    records.extend((0..700).map(foreign));
    zone["records"] = json!(records);
    life.aws.change(zone, |_| {});
    let before = life.remains();
    life.until_available().await;
    assert!(life.is_reachable());
    let calls = life.aws.journal().len();
    assert!(calls <= 40, "{calls} calls");
    life.deleted().await;
    assert_eq!(life.remains(), before);
}

/// S24: both sides are paused while the path is there; a deletion is not held up.
#[rstest]
#[case::for_ever("true")]
#[case::for_a_year("2999-01-01T00:00:00Z")]
#[tokio::test(start_paused = true)]
async fn paused_cluster_makes_no_call_and_is_deleted_all_the_same(#[case] until: &str) {
    let mut life = Life::new();
    let empty = life.remains();
    life.until_available().await;
    let pause = json!({"spec": {"pausedUntil": until}});
    for key in [HOSTED, PLANE] {
        life.cluster.forge(key, &pause);
    }
    life.wake();
    life.aws.clear_journal();
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.aws.journal().len(), 0);
    life.deleted().await;
    assert_eq!(life.remains(), empty);
}

#[tokio::test(start_paused = true)]
async fn path_comes_when_the_pause_ends() {
    let mut life = Life::new();
    for key in [HOSTED, PLANE] {
        life.cluster.forge(key, &json!({"spec": {"pausedUntil": "true"}}));
    }
    life.run_for(Duration::from_secs(3_600)).await;
    assert_eq!(life.aws.journal().len(), 0);
    for key in [HOSTED, PLANE] {
        life.cluster.forge(key, &json!({"spec": {"pausedUntil": null}}));
    }
    life.wake();
    life.until_available().await;
    assert!(life.is_reachable());
}
