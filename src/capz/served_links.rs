//! Whether the API server serves the links of clusters: an AzureCluster definition without the field `privateLinks` in
//! place of one with it hides them all, which must not count as if nobody desired them.

use kube::ResourceExt;
use serde_json::Value;

use super::cluster::{Access, access, is_deleting, links, uid};
use super::reason::{Problem, Reason};
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::API_SERVER_ADDRESS;

/// Whether a workload cluster shows no link where it might have one.
pub fn shows_no_link(cluster: &AzureCluster) -> bool {
    links(cluster).is_empty() && access(cluster) == Ok(Access::Internal) && !is_deleting(cluster)
}

/// Whether a workload cluster shows no link, though it had one: it has an address, or the ledger records its UID.
pub fn has_lost_its_links(cluster: &AzureCluster, is_recorded: impl Fn(&str) -> bool) -> bool {
    shows_no_link(cluster) && (cluster.annotations().contains_key(API_SERVER_ADDRESS) || is_recorded(uid(cluster)))
}

/// Whether a definition of AzureClusters has the field, in this version.
pub fn has_links(definition: &Value, version: &str) -> bool {
    let versions = definition["spec"]["versions"].as_array().into_iter().flatten();
    let found = versions.into_iter().find(|found| found["name"] == version);
    let schema = found.map(|found| &found["schema"]["openAPIV3Schema"]);
    let balancer = ["spec", "networkSpec", "apiServerLB"]
        .iter()
        .fold(schema, |schema, field| {
            schema.map(|schema| &schema["properties"][field])
        });
    balancer.is_some_and(|balancer| balancer["properties"]["privateLinks"].is_object())
}

/// The problem that the API server hides a cluster's links.
pub fn not_served() -> Problem {
    let message = "the definition of AzureClusters does not show the field privateLinks: what is there stays";
    Problem::new(Reason::LinksNotAllowed, message)
}

/// The problem that it is not known whether the API server hides a cluster's links.
pub fn not_readable() -> Problem {
    let message = "the definition of AzureClusters cannot be read: what is there stays";
    Problem::new(Reason::LinksNotAllowed, message)
}

/// The problem that a cluster may have links that no event has shown yet.
pub fn served_again() -> Problem {
    let message = "the links of the cluster are read again: what is there stays";
    Problem::new(Reason::LinksNotReady, message)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::capz::samples::{Sample, workload};

    fn definition(balancer: Value) -> Value {
        let schema = ["apiServerLB", "networkSpec", "spec"]
            .iter()
            .fold(balancer, |schema, field| json!({"properties": {*field: schema}}));
        json!({"spec": {"versions": [{"name": "v1alpha4"}, {"name": "v1beta1", "schema": {"openAPIV3Schema": schema}}]}})
    }

    #[test]
    fn field_is_found_in_the_version_of_the_api() {
        let with = definition(json!({"properties": {"privateLinks": {"type": "array"}}}));
        assert!(has_links(&with, "v1beta1"));
        assert!(!has_links(&with, "v1alpha4"));
        assert!(!has_links(&with, "v1"));
        assert!(!has_links(&definition(json!({"properties": {"name": {}}})), "v1beta1"));
        assert!(!has_links(&json!(null), "v1beta1"));
    }

    #[rstest]
    #[case::recorded(workload("wc").links(json!([])), true, true)]
    #[case::published(workload("wc").links(json!(null))
        .with("/metadata/annotations", json!({API_SERVER_ADDRESS: "10.0.0.4"})), false, true)]
    #[case::never_had_one(workload("wc").links(json!([])), false, false)]
    #[case::shows_one(workload("wc"), true, false)]
    #[case::public(workload("wc").links(json!([])).public(), true, false)]
    #[case::deleting(workload("wc").links(json!([])).deleting(), true, false)]
    fn cluster_that_had_a_link_may_have_lost_it(
        #[case] sample: Sample,
        #[case] is_recorded: bool,
        #[case] expected: bool,
    ) {
        let recorded = |uid: &str| is_recorded && uid == "uid-wc";
        assert_eq!(has_lost_its_links(&sample.cluster(), recorded), expected);
    }
}
