//! HyperShift's names for resources in AWS, and their tags. Pure.

use crate::api::ResourceTag;
use crate::api::hypershift::{ClusterSpec, PublishingType};
use crate::api::markers::PRIVATE_ROUTER;
use crate::api::markers::aws::KUBE_API_SERVER;
use crate::aws::body::Tags;
use crate::aws::kinds::vpc_endpoint::CUSTOM_RESOURCE_TAG;
use crate::aws::owner_tags::{OwnerTags, Precedence};
use crate::hypershift::names::internal_zone;

/// The port of an API server that is not behind the router.
const KUBE_API_SERVER_PORT: u16 = 6443;
/// The port of the router.
const ROUTER_PORT: u16 = 443;

/// The key of the tag, with the value `owned`, that says to which infrastructure a resource belongs.
pub fn cluster_tag(infra_id: &str) -> String {
    format!("kubernetes.io/cluster/{infra_id}")
}

/// Tags of an endpoint service. `management_infra` is the infrastructure name of the management cluster, if it has one.
pub fn endpoint_service_tags(cluster_id: &str, management_infra: Option<&str>, user: &[ResourceTag]) -> OwnerTags {
    let infra = management_infra.filter(|name| !name.is_empty());
    let own: Tags = infra
        .map(|name| (cluster_tag(name), "owned".to_owned()))
        .into_iter()
        .collect();
    OwnerTags::new(cluster_id, own, &tags(user), Precedence::HyperShift)
}

/// The name of the security group of a custom resource.
pub fn security_group(infra_id: &str, cr: &str) -> String {
    format!("{infra_id}-vpce-{cr}")
}

/// Tags of a security group.
pub fn security_group_tags(cluster_id: &str, infra_id: &str, cr: &str, user: &[ResourceTag]) -> OwnerTags {
    let own = Tags::from([
        (cluster_tag(infra_id), "owned".to_owned()),
        ("Name".to_owned(), security_group(infra_id, cr)),
    ]);
    OwnerTags::new(cluster_id, own, &tags(user), Precedence::User)
}

/// The TCP port of the Service of a custom resource.
pub fn port(cr: &str) -> u16 {
    if cr == KUBE_API_SERVER {
        KUBE_API_SERVER_PORT
    } else {
        ROUTER_PORT
    }
}

/// Tags of an endpoint.
pub fn endpoint_tags(cluster_id: &str, cr: &str, user: &[ResourceTag]) -> OwnerTags {
    let own = Tags::from([(CUSTOM_RESOURCE_TAG.to_owned(), cr.to_owned())]);
    OwnerTags::new(cluster_id, own, &tags(user), Precedence::HyperShift)
}

fn tags(user: &[ResourceTag]) -> Tags {
    user.iter().map(|tag| (tag.key.clone(), tag.value.clone())).collect()
}

/// Whether the API server is behind the router.
pub fn api_server_is_routed(spec: &ClusterSpec) -> bool {
    let published = spec.services.iter();
    let mut api_server = published.filter(|service| service.service.as_deref() == Some("APIServer"));
    let first = api_server.next();
    first.is_some_and(|service| service.service_publishing_strategy.kind == Some(PublishingType::Route))
}

/// The whole names of the records of a custom resource, in the internal zone of `cluster`. Which of them has the API
/// server's name follows from where the API server is alone, so that no two have it.
pub fn record_names(cr: &str, cluster: &str, api_server_is_routed: bool) -> Vec<String> {
    let labels: &[&str] = match (cr, api_server_is_routed) {
        (KUBE_API_SERVER, false) => &["api"],
        (PRIVATE_ROUTER, true) => &["api", "*.apps"],
        (PRIVATE_ROUTER, false) => &["*.apps"],
        _ => &[],
    };
    let zone = internal_zone(cluster);
    labels.iter().map(|label| format!("{label}.{zone}")).collect()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::aws::owner_tags::CLUSTER_ID_TAG;

    fn user(pairs: &[(&str, &str)]) -> Vec<ResourceTag> {
        let pairs = pairs.iter();
        pairs
            .map(|(key, value)| ResourceTag {
                key: (*key).to_owned(),
                value: (*value).to_owned(),
            })
            .collect()
    }

    #[test]
    fn users_value_counts_on_a_security_group_alone() {
        let given = user(&[
            ("Name", "mine"),
            ("AWSEndpointService", "mine"),
            ("kubernetes.io/cluster/i", "shared"),
        ]);
        let group = security_group_tags("id", "i", "private-router", &given).all();
        assert_eq!(
            (group["Name"].as_str(), group["kubernetes.io/cluster/i"].as_str()),
            ("mine", "shared")
        );
        let endpoint = endpoint_tags("id", "private-router", &given).all();
        assert_eq!(endpoint["AWSEndpointService"], "private-router");
        let service = endpoint_service_tags("id", Some("i"), &given).all();
        assert_eq!(service["kubernetes.io/cluster/i"], "owned");
    }

    #[test]
    fn group_has_the_name_that_its_tag_has() {
        let group = security_group_tags("id", "example-x7k2p", "private-router", &[]).all();
        assert_eq!(group["Name"], "example-x7k2p-vpce-private-router");
        assert_eq!(group["kubernetes.io/cluster/example-x7k2p"], "owned");
    }

    #[rstest]
    #[case::none(None)]
    #[case::empty(Some(""))]
    fn management_cluster_without_a_name_gives_no_tag(#[case] infra: Option<&str>) {
        let tags = endpoint_service_tags("id", infra, &[]).all();
        assert_eq!(tags.keys().collect::<Vec<_>>(), [CLUSTER_ID_TAG]);
    }

    #[test]
    fn forged_owner_among_the_users_tags_is_left_out() {
        let forged = user(&[(CLUSTER_ID_TAG, "other"), ("aws:x", "y")]);
        for tags in [
            endpoint_service_tags("id", None, &forged),
            security_group_tags("id", "i", "private-router", &forged),
            endpoint_tags("id", "private-router", &forged),
        ] {
            let tags = tags.all();
            assert!(tags[CLUSTER_ID_TAG] == "id" && !tags.contains_key("aws:x"), "{tags:?}");
        }
    }

    #[rstest]
    #[case("kube-apiserver-private", false, &["api.c.hypershift.local"])]
    #[case("kube-apiserver-private", true, &[])]
    #[case("private-router", true, &["api.c.hypershift.local", "*.apps.c.hypershift.local"])]
    #[case("private-router", false, &["*.apps.c.hypershift.local"])]
    #[case("router-clusters-c", true, &[])]
    #[case("anything", false, &[])]
    fn one_custom_resource_has_each_name(#[case] cr: &str, #[case] routed: bool, #[case] names: &[&str]) {
        assert_eq!(record_names(cr, "c", routed), names);
    }

    #[rstest]
    #[case::route(json!([{"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}}]), true)]
    #[case::node_port(json!([{"service": "APIServer", "servicePublishingStrategy": {"type": "NodePort"}}]), false)]
    #[case::strange(json!([{"service": "APIServer", "servicePublishingStrategy": 7}]), false)]
    #[case::of_another(json!([{"service": "OAuthServer", "servicePublishingStrategy": {"type": "Route"}}]), false)]
    #[case::none(json!([]), false)]
    fn strategy_of_the_api_server_counts(#[case] services: Value, #[case] routed: bool) {
        let spec: ClusterSpec = serde_json::from_value(json!({ "services": services })).unwrap();
        assert_eq!(api_server_is_routed(&spec), routed);
    }

    #[test]
    fn only_the_api_servers_own_service_has_its_port() {
        assert_eq!(
            ["kube-apiserver-private", "private-router", "x"].map(port),
            [6443, 443, 443]
        );
    }
}
