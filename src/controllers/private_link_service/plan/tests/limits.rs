//! How many subscriptions a service can be shown to, and how many NAT subnets a network can have.

use super::*;
use crate::api::HostedCluster;
use crate::controllers::private_link_service::nat_prefix::{Refused, layout};

fn ids(count: usize) -> Vec<String> {
    (0..count).map(|n| format!("44444444-4444-4444-8444-{n:012}")).collect()
}

fn allowing(ids: Vec<String>) -> AzurePrivateLinkService {
    let mut allowing = cr(Value::Null, json!({}));
    allowing.spec.additional_allowed_subscriptions = Some(ids);
    allowing
}

/// The inputs of a HostedCluster that allows these subscriptions.
fn confirming(ids: &[String]) -> PrivateLinkServiceInputs {
    let mut hosted = HostedCluster::default();
    let azure = json!({"private": {"privateLink": {"additionalAllowedSubscriptions": ids}}});
    hosted.spec.platform.azure = serde_json::from_value(azure).unwrap();
    PrivateLinkServiceInputs {
        connecting: Connecting::of(&hosted),
        ..inputs()
    }
}

fn shown_to(decision: &Decision) -> usize {
    match &decision.step(Kind::PrivateLinkService).unwrap().verb {
        Verb::Put(body) => body["properties"]["visibility"]["subscriptions"]
            .as_array()
            .unwrap()
            .len(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn as_many_subscriptions_as_azure_takes_are_allowed() {
    let (decision, _) = run(&allowing(ids(99)), &confirming(&ids(99)), &[subnet()]);
    assert_eq!(shown_to(&decision), 100);
}

#[test]
fn one_subscription_too_many_is_a_problem_and_no_call() {
    let (decision, asked) = run(&allowing(ids(100)), &confirming(&ids(100)), &[subnet()]);
    let problem = decision.problem.unwrap();
    assert_eq!(
        (problem.reason, problem.message.as_str()),
        (
            Reason::PLSCreationFailed,
            "101 subscriptions are allowed, the guest's own included; Azure takes 100"
        )
    );
    assert_eq!((decision.steps, asked), (Vec::new(), Vec::new()));
}

#[test]
fn subscription_that_is_named_twice_counts_once() {
    let mut twice = allowing(ids(99));
    let list = twice.spec.additional_allowed_subscriptions.as_mut().unwrap();
    let guest = crate::controllers::samples::GUEST.to_ascii_uppercase();
    list.extend([list[0].to_ascii_uppercase(), guest]);
    let (decision, _) = run(&twice, &confirming(&ids(99)), &[subnet()]);
    assert_eq!(shown_to(&decision), 100);
}

#[rstest]
#[case::both_name(ids(2), ids(2), 3, 0)]
#[case::the_owner_revoked(ids(2), ids(1), 2, 1)]
#[case::a_tenant_added(ids(100), Vec::new(), 1, 100)]
#[case::the_owner_added_just_now(ids(1), ids(2), 2, 0)]
#[case::no_subscription(vec!["../x".to_owned()], Vec::new(), 1, 1)]
fn only_subscriptions_that_both_objects_name_may_connect(
    #[case] given: Vec<String>,
    #[case] named: Vec<String>,
    #[case] expected: usize,
    #[case] unconfirmed: usize,
) {
    let (cr, inputs) = (allowing(given), confirming(&named));
    let (decision, _) = run(&cr, &inputs, &[subnet()]);
    assert_eq!(shown_to(&decision), expected);
    assert_eq!(inputs.connecting.unconfirmed(&cr), unconfirmed);
}

#[test]
fn refused_prefix_of_a_small_network_is_tried_when_it_changes() {
    let small = |taken: Value| {
        let space = json!({"addressPrefixes": ["10.224.0.0/27"]});
        let subnets = json!([{"properties": {"addressPrefix": taken}}]);
        let body = json!({"properties": {"addressSpace": space, "subnets": subnets}});
        (management("virtualNetworks/v"), body)
    };
    let before = small(json!("10.224.0.0/28"));
    let refused = [Refused {
        prefix: "10.224.0.16/28".parse().unwrap(),
        layout: Some(layout(&before.1)),
    }];
    let (none, settings) = (cr(Value::Null, json!({})), settings());
    let run = |world: &(String, Value)| {
        let decide = |facts: &Facts| build(&none, &inputs(), facts, &settings, &refused);
        let ((decision, _), asked) = decided(facts(), std::slice::from_ref(world), decide);
        (decision, asked)
    };
    let (full, asked) = run(&before);
    assert!(full.problem.is_some() && full.requeue.map(|requeue| requeue.after).is_some());
    assert_eq!(
        asked,
        ["infra-pls-nat", "v", "new v"],
        "it is read before it is called full"
    );
    let (free, _) = run(&small(json!("10.224.0.0/29")));
    assert_eq!(free.step(Kind::Subnet).unwrap().why, Why::Absent);
}
