use rstest::rstest;
use serde_json::{Value, json};

use super::*;

fn id(number: u32) -> String {
    format!("subnet-{number:08}")
}

fn ids(numbers: impl IntoIterator<Item = u32>) -> Vec<String> {
    numbers.into_iter().map(id).collect()
}

fn pool(name: &str, cluster: &str, subnet: &Value) -> NodePool {
    serde_json::from_value(json!({"metadata": {"name": name},
        "spec": {"clusterName": cluster, "platform": {"aws": {"subnet": subnet}}}}))
    .unwrap()
}

fn pools(numbers: impl IntoIterator<Item = u32>) -> Vec<NodePool> {
    let numbers = numbers.into_iter();
    numbers
        .map(|number| pool("workers", "example", &json!({"id": id(number)})))
        .collect()
}

fn desired_by(pools: &[NodePool], karpenter: &KarpenterList, current: &[String]) -> DesiredSubnets {
    desired(SubnetSources {
        cluster: "example",
        pools,
        karpenter,
        current,
    })
}

fn config_map(name: &str, label: &str, data: Value) -> ConfigMap {
    serde_json::from_value(json!({"metadata": {"name": name, "labels": {KARPENTER_LABEL: label}}, "data": data}))
        .unwrap()
}

#[test]
fn subnets_of_pools_and_karpenter_are_joined_in_order() {
    let karpenter = KarpenterList::Read(ids([3, 1]));
    let found = desired_by(&pools([4, 2, 4]), &karpenter, &ids([9]));
    assert_eq!((found.ids, found.complaints.len()), (ids([1, 2, 3, 4]), 0));
}

#[test]
fn pool_of_another_cluster_or_cloud_does_not_count() {
    let all = [
        pool("theirs", "example2", &json!({"id": id(1)})),
        serde_json::from_value(json!({"metadata": {"name": "azure"}, "spec": {"clusterName": "example"}})).unwrap(),
        pool("ours", "example", &json!({"id": id(2)})),
        pool("new", "example", &json!({})),
    ];
    let found = desired_by(&all, &KarpenterList::Absent, &[]);
    assert_eq!((found.ids, found.complaints.len()), (ids([2]), 0));
}

#[rstest]
#[case::unreadable(KarpenterList::Unreadable, ids([1, 2, 3]))]
#[case::absent(KarpenterList::Absent, ids([1]))]
#[case::read(KarpenterList::Read(ids([3])), ids([1, 3]))]
#[case::read_and_empty(KarpenterList::Read(vec![]), ids([1]))]
fn only_a_list_that_was_read_removes_subnets(#[case] karpenter: KarpenterList, #[case] expected: Vec<String>) {
    let found = desired_by(&pools([1]), &karpenter, &ids([2, 3]));
    assert_eq!(found.ids, expected);
    assert_eq!(
        found.complaints.len(),
        usize::from(karpenter == KarpenterList::Unreadable)
    );
}

#[rstest]
#[case::no_karpenter(KarpenterList::Absent)]
#[case::empty_list(KarpenterList::Read(vec![]))]
fn last_subnets_stay_when_no_pool_is_left(#[case] karpenter: KarpenterList) {
    let found = desired_by(&[], &karpenter, &ids([2, 1]));
    assert_eq!(found.ids, ids([1, 2]));
}

#[test]
fn subnets_in_use_come_first_when_there_are_too_many() {
    let found = desired_by(&pools(1..=14), &KarpenterList::Absent, &ids([12, 13, 14, 99]));
    assert_eq!(found.ids, ids((1..=7).chain([12, 13, 14])));
    assert_eq!(found.left_out, ids(8..=11));
    let text = "an endpoint takes 10 subnets, left out: subnet-00000008, subnet-00000009, subnet-00000010, \
                subnet-00000011";
    assert_eq!(found.complaints, [text]);
}

#[test]
fn subnets_and_pools_without_end_make_a_short_text() {
    let karpenter = KarpenterList::Read(ids(1..=1_000));
    let filters = json!({"filters": [{"name": "tag:Name", "values": ["x"]}]});
    let all: Vec<NodePool> = (0..1_000)
        .map(|number| pool(&format!("pool-{number}"), "example", &filters))
        .collect();
    let found = desired_by(&all, &karpenter, &[]);
    assert_eq!((found.ids.len(), found.left_out.len()), (MAX_SUBNETS, 990));
    let [.., pools, subnets] = found.complaints.as_slice() else {
        panic!("{:?}", found.complaints)
    };
    assert_eq!(pools, "992 more NodePools");
    assert!(subnets.ends_with("subnet-00000018 and 982 more"), "{subnets}");
    assert!(found.complaints.join("; ").len() < 1_024);
}

#[test]
fn ten_subnets_fit() {
    let found = desired_by(&pools(1..=10), &KarpenterList::Absent, &[]);
    assert_eq!((found.ids.len(), found.left_out.len()), (MAX_SUBNETS, 0));
}

#[test]
fn pool_with_filters_is_reported() {
    let filters = json!({"filters": [{"name": "tag:Name", "values": ["x"]}]});
    let all = [pool("dynamic", "example", &filters)];
    let found = desired_by(&all, &KarpenterList::Absent, &ids([1]));
    let text = "NodePool dynamic: subnets cannot be found by filters, name one by its id";
    assert_eq!((found.ids, found.complaints), (ids([1]), vec![text.to_owned()]));
}

#[test]
fn what_is_no_subnet_is_reported_and_left_out() {
    let long = "ü".repeat(1_000);
    let all = [
        pool("workers", "example", &json!({"id": "subnet-1&Action=x"})),
        pool("others", "example", &json!({"id": id(1)})),
    ];
    let karpenter = KarpenterList::Read(vec![long, id(2)]);
    let found = desired_by(&all, &karpenter, &["junk".to_owned()]);
    assert_eq!(found.ids, ids([1, 2]));
    assert_eq!(
        found.complaints[0],
        "NodePool workers: \"subnet-1&Action=x\" is not the id of a subnet"
    );
    assert!(found.complaints[1].len() < 150, "{:?}", found.complaints);
    let kept = desired_by(&[], &KarpenterList::Unreadable, &["junk".to_owned(), id(7)]);
    assert_eq!(kept.ids, ids([7]), "the spec is anybody's");
}

#[rstest]
#[case::list(
    "karpenter-subnets",
    "karpenter",
    json!({"subnetIDs": "[\"subnet-1\"]"}),
    KarpenterList::Read(vec!["subnet-1".into()])
)]
#[case::empty_list("karpenter-subnets", "karpenter", json!({"subnetIDs": "[]"}), KarpenterList::Read(vec![]))]
#[case::other_name("other", "karpenter", json!({"subnetIDs": "[]"}), KarpenterList::Absent)]
#[case::other_label("karpenter-subnets", "x", json!({"subnetIDs": "[]"}), KarpenterList::Absent)]
#[case::no_data("karpenter-subnets", "karpenter", json!(null), KarpenterList::Unreadable)]
#[case::no_key("karpenter-subnets", "karpenter", json!({"x": "[]"}), KarpenterList::Unreadable)]
#[case::empty_text("karpenter-subnets", "karpenter", json!({"subnetIDs": ""}), KarpenterList::Unreadable)]
#[case::null("karpenter-subnets", "karpenter", json!({"subnetIDs": "null"}), KarpenterList::Unreadable)]
#[case::numbers("karpenter-subnets", "karpenter", json!({"subnetIDs": "[1]"}), KarpenterList::Unreadable)]
#[case::cut("karpenter-subnets", "karpenter", json!({"subnetIDs": "[\"subnet-1"}), KarpenterList::Unreadable)]
fn list_of_karpenter_is_read(
    #[case] name: &str,
    #[case] label: &str,
    #[case] data: Value,
    #[case] expected: KarpenterList,
) {
    assert_eq!(KarpenterList::of(Some(&config_map(name, label, data))), expected);
    assert_eq!(KarpenterList::of(None), KarpenterList::Absent);
}
