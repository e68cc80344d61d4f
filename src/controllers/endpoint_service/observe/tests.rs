use rstest::rstest;
use serde::de::DeserializeOwned;
use serde_json::json;

use super::*;
use crate::api::markers::aws::{KARPENTER_LABEL, KARPENTER_SUBNETS_KEY, KARPENTER_VALUE};
use crate::controllers::endpoint_service::samples::Sample;

fn with_access<K: DeserializeOwned>(access: &str) -> K {
    let spec = json!({"platform": {"type": "AWS", "aws": {"endpointAccess": access}}});
    serde_json::from_value(json!({"metadata": {"name": "example"}, "spec": spec})).unwrap()
}

#[rstest]
#[case::private("Private", "Private", Some(false), false, None)]
#[case::public("Public", "Public", Some(false), false, Some("the cluster is not private"))]
#[case::unknown("Moon", "Moon", Some(false), false, None)]
#[case::public_soon("Public", "Private", Some(false), false, None)]
#[case::private_soon("Private", "Public", Some(false), false, None)]
#[case::service_deleting("Private", "Private", Some(true), false, Some("the Service is being deleted"))]
#[case::service_gone("Private", "Private", None, false, Some("the Service is gone"))]
#[case::obsolete("Private", "Private", Some(false), true, Some("private-router has replaced it"))]
fn path_is_desired_while_cluster_and_service_are_there(
    #[case] hosted: &str,
    #[case] control_plane: &str,
    #[case] service_deleting: Option<bool>,
    #[case] obsolete: bool,
    #[case] expected: Option<&str>,
) {
    let cr = Sample::ready().cr;
    let cluster = (&with_access(hosted), &with_access(control_plane));
    assert_eq!(unwanted(&cr, Some(cluster), service_deleting, obsolete), expected);
}

#[test]
fn custom_resource_with_a_name_of_its_own_takes_no_load_balancer() {
    let named = |name: &str| {
        let mut cr = Sample::ready().cr;
        cr.metadata.name = Some(name.to_owned());
        Holder::of(&cr)
    };
    let older = [
        "junk",
        "router-clusters-example",
        "private-router",
        "kube-apiserver-private",
    ]
    .map(named);
    let names: Vec<String> = rivals(older.into()).map(|object| object.name).collect();
    assert_eq!(names, ["private-router", "kube-apiserver-private"]);
}

#[test]
fn list_of_karpenter_is_read_up_to_its_bound() {
    let list = |most: usize| {
        let ids: Vec<String> = (0..most).map(|number| format!("subnet-{number:08}")).collect();
        let map = json!({
            "metadata": {"name": KARPENTER_SUBNETS, "labels": {KARPENTER_LABEL: KARPENTER_VALUE}},
            "data": {KARPENTER_SUBNETS_KEY: json!(ids).to_string()},
        });
        (karpenter_list(Some(serde_json::from_value(map).unwrap())), ids)
    };
    let (read, ids) = list(100);
    assert_eq!(read, KarpenterList::Read(ids));
    assert_eq!(list(50_000).0, KarpenterList::Unreadable);
}

#[test]
fn status_of_a_node_pool_is_no_change_but_its_subnet_is() {
    let mut inputs = Sample::new().inputs;
    let before = fingerprint(&inputs);
    inputs.node_pools[0].metadata.resource_version = Some("2".to_owned());
    assert_eq!(fingerprint(&inputs), before);
    inputs.node_pools[0].spec.platform.aws.as_mut().unwrap().subnet.id = Some("subnet-0000000c".to_owned());
    assert_ne!(fingerprint(&inputs), before);
}
