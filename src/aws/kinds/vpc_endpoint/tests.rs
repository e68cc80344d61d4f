use hyperlink_engine::plan::{Verb, ensure_present};
use proptest::prelude::*;
use rstest::rstest;

use super::*;
use crate::body::Tags;
use crate::cloud::Observed;
use crate::owner_tags::{CLUSTER_ID_TAG, Precedence};
use crate::slot::Scope;

const SERVICE: &str = "com.amazonaws.vpce.us-east-1.vpce-svc-1";

fn set(ids: &[&str]) -> BTreeSet<String> {
    ids.iter().map(|id| (*id).to_owned()).collect()
}

fn desired() -> VpcEndpoint {
    let scope = Scope::own("123456789012", "us-east-1");
    let tags = Tags::from([("AWSEndpointService".to_owned(), "private-router".to_owned())]);
    VpcEndpoint {
        slot: Slot::vpc_endpoint(&scope, "vpc-1", SERVICE),
        security_group: "sg-1".to_owned(),
        subnets: set(&["subnet-a"]),
        zones: BTreeMap::new(),
        may_be_refused: false,
        owner_tags: OwnerTags::new("id", tags, &Tags::new(), Precedence::HyperShift),
        client_token: ClientToken::new("token").unwrap(),
        kept: None,
    }
}

fn shown(state: &str) -> Value {
    json!({"Id": "vpce-1", "State": state, "ServiceName": SERVICE, "VpcId": "vpc-1", "SubnetIds": ["subnet-a"],
        "GroupIds": ["sg-1", "sg-by-hand"], "DnsNames": ["vpce-1-x.vpce-svc-1.us-east-1.vpce.amazonaws.com"],
        "Tags": {"AWSEndpointService": "private-router"}})
}

#[test]
fn endpoint_of_hypershifts_own_controllers_is_kept() {
    assert_eq!(
        ensure_present(&desired(), &Observed::Found(shown("available"))).verb,
        Verb::Keep
    );
}

#[test]
fn endpoint_without_a_mark_is_somebody_elses() {
    let with = |tags: Value| {
        let mut endpoint = shown("available");
        endpoint["Tags"] = tags;
        desired().is_owned(&endpoint)
    };
    assert!(!with(json!({})) && !with(json!({"Name": "a vendor's"})));
    assert!(!with(json!({CUSTOM_RESOURCE_TAG: "kube-apiserver-private"})));
    assert!(with(json!({CLUSTER_ID_TAG: "id"})) && with(json!({CUSTOM_RESOURCE_TAG: "private-router"})));
    assert!(!with(
        json!({CLUSTER_ID_TAG: "other", CUSTOM_RESOURCE_TAG: "private-router"})
    ));
}

#[rstest]
#[case("rejected")]
#[case("Failed")]
#[case("Expired")]
fn endpoint_that_can_never_be_connected_is_replaced(#[case] state: &str) {
    assert_eq!(
        ensure_present(&desired(), &Observed::Found(shown(state))).verb,
        Verb::Delete
    );
}

#[rstest]
#[case("pendingAcceptance")]
#[case("pending")]
#[case("Deleting")]
fn endpoint_on_its_way_is_waited_for(#[case] state: &str) {
    assert_eq!(
        ensure_present(&desired(), &Observed::Found(shown(state))).verb,
        Verb::Wait
    );
}

#[rstest]
#[case::other_service("/ServiceName", json!("com.amazonaws.vpce.us-east-1.vpce-svc-2"))]
#[case::other_vpc("/VpcId", json!("vpc-2"))]
#[case::other_owner("/Tags", json!({CLUSTER_ID_TAG: "other"}))]
fn foreign_endpoint_is_refused(#[case] pointer: &str, #[case] value: Value) {
    let mut body = shown("rejected");
    *body.pointer_mut(pointer).unwrap() = value;
    assert_eq!(ensure_present(&desired(), &Observed::Found(body)).verb, Verb::Refuse);
}

#[test]
fn endpoint_without_a_name_is_not_ready() {
    let mut body = shown("available");
    assert!((RULES.in_force)(&body));
    body["DnsNames"] = json!([]);
    assert!(!(RULES.in_force)(&body));
}

/// The zone of a test's subnet: the letter after the dash.
fn zone(subnet: &str) -> &str {
    &subnet["subnet-".len()..="subnet-".len()]
}

/// A body with these subnets, and the zones of all of these.
fn body(ids: &BTreeSet<String>, others: &BTreeSet<String>) -> Value {
    let zones: BTreeMap<&str, &str> = ids.union(others).map(|id| (id.as_str(), zone(id))).collect();
    json!({"SubnetIds": list(ids), "SubnetZones": zones})
}

fn next(current: &[&str], desired: &[&str]) -> Option<SubnetChange> {
    let (current, desired) = (set(current), set(desired));
    SubnetChange::next(&body(&current, &desired), &body(&desired, &current))
}

#[test]
fn zone_without_a_subnet_gets_one_before_others_change() {
    let change = next(&["subnet-a1"], &["subnet-a2", "subnet-b1"]).unwrap();
    assert_eq!((change.added, change.removed), (set(&["subnet-b1"]), set(&[])));
}

#[test]
fn subnet_is_swapped_within_its_zone_one_zone_at_a_time() {
    let change = next(&["subnet-a1", "subnet-b1"], &["subnet-a2", "subnet-b2"]).unwrap();
    assert_eq!((change.added, change.removed), (set(&[]), set(&["subnet-a1"])));
    let change = next(&["subnet-b1"], &["subnet-a2", "subnet-b2"]).unwrap();
    assert_eq!((change.added, change.removed), (set(&["subnet-a2"]), set(&[])));
}

#[test]
fn subnets_as_desired_need_no_call() {
    assert_eq!(next(&["subnet-a1"], &["subnet-a1"]), None);
}

#[test]
fn subnet_that_is_no_longer_desired_is_removed() {
    let change = next(&["subnet-a1", "subnet-b1"], &["subnet-a1"]).unwrap();
    assert_eq!((change.added, change.removed), (set(&[]), set(&["subnet-b1"])));
}

proptest! {
    /// Whatever the subnets are, as many calls as twice the subnets lead to what is desired, and no call has two of one
    /// zone.
    #[test]
    fn changes_of_subnets_end_where_they_should(
        from in prop::collection::btree_map(0..5u8, 0..3u8, 1..5),
        to in prop::collection::btree_map(0..5u8, 0..3u8, 1..5),
    ) {
        let ids = |chosen: &std::collections::BTreeMap<u8, u8>| -> BTreeSet<String> {
            let named = chosen.iter().map(|(zone, number)| format!("subnet-{}{number}", char::from(b'a' + zone)));
            named.collect()
        };
        let (mut current, desired) = (ids(&from), ids(&to));
        for _ in 0..10 {
            let Some(change) = SubnetChange::next(&body(&current, &desired), &body(&desired, &current)) else { break };
            let swaps_all = current.len() == 1 && change.removed == current;
            prop_assert!(change.added.is_empty() || change.removed.is_empty() || swaps_all);
            current.extend(change.added);
            current.retain(|subnet| !change.removed.contains(subnet));
            let zones: BTreeSet<_> = current.iter().map(|subnet| zone(subnet)).collect();
            prop_assert_eq!(zones.len(), current.len());
        }
        prop_assert_eq!(current, desired);
    }
}
