use super::*;
use kube::Resource;
use serde_json::json;

fn private_cluster() -> serde_json::Value {
    json!({
        "apiVersion": "hypershift.openshift.io/v1beta1",
        "kind": "HostedControlPlane",
        "metadata": {"name": "example", "namespace": "clusters-example"},
        "spec": {
            "clusterID": "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11",
            "infraID": "example-x7k2p",
            "pausedUntil": "true",
            "dns": {"baseDomain": "azure.example.com", "publicZoneID": "x"},
            "services": [
                {"service": "OAuthServer", "servicePublishingStrategy":
                    {"type": "Route", "route": {"hostname": "oauth.example.com"}}},
                {"service": "APIServer", "servicePublishingStrategy":
                    {"type": "NodePort", "nodePort": {"address": "x"}}},
            ],
            "platform": {"type": "Azure", "azure": {
                "cloud": "AzurePublicCloud", "location": "eastus", "resourceGroup": "rg",
                "subscriptionID": "s", "tenantID": "t", "vnetID": "v", "subnetID": "n",
                "topology": "PublicAndPrivate",
                "private": {"type": "PrivateLink", "privateLink": {
                    "natSubnetID": "nat", "additionalAllowedSubscriptions": ["a", "b"]}},
            }},
        },
        "status": {"ready": true},
    })
}

#[test]
fn the_fields_of_a_private_cluster_are_read() {
    let parsed: HostedControlPlane = serde_json::from_value(private_cluster()).unwrap();

    let spec = parsed.spec;
    assert_eq!(spec.cluster_id.as_deref(), Some("5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11"));
    assert_eq!(spec.infra_id.as_deref(), Some("example-x7k2p"));
    assert_eq!(spec.paused_until.as_deref(), Some("true"));
    assert_eq!(spec.dns.base_domain.as_deref(), Some("azure.example.com"));
    let [oauth, api] = spec.services.as_slice() else {
        panic!("{:?}", spec.services)
    };
    assert_eq!(oauth.service_publishing_strategy.kind, Some(PublishingType::Route));
    assert_eq!(
        oauth.service_publishing_strategy.route.hostname.as_deref(),
        Some("oauth.example.com")
    );
    assert_eq!(api.service_publishing_strategy.kind, Some(PublishingType::Other));
    assert_eq!(spec.platform.kind, Some(PlatformType::Azure));
    let azure = spec.platform.azure.unwrap();
    assert_eq!(azure.subscription_id.as_deref(), Some("s"));
    assert_eq!(azure.vnet_id.as_deref(), Some("v"));
    assert_eq!(azure.subnet_id.as_deref(), Some("n"));
    assert_eq!(azure.topology, Some(Topology::PublicAndPrivate));
    let private = azure.private.unwrap();
    assert_eq!(private.kind, Some(PrivateType::PrivateLink));
    assert_eq!(private.private_link.nat_subnet_id.as_deref(), Some("nat"));
    assert_eq!(private.private_link.additional_allowed_subscriptions, ["a", "b"]);
}

#[test]
fn strange_object_is_read_as_far_as_possible() {
    let parsed: HostedCluster = serde_json::from_value(json!({
        "metadata": {"name": "odd"},
        "spec": {
            "clusterID": 7,
            "infraID": "example-x7k2p",
            "pausedUntil": {"at": 1},
            "dns": null,
            "services": ["x", {"service": "APIServer", "servicePublishingStrategy": []}],
            "platform": {"type": "Moon", "azure": {
                "topology": 3, "private": {"type": "Swift", "privateLink": "x"}}},
        },
    }))
    .unwrap();
    assert_eq!(parsed.spec.cluster_id, None);
    assert_eq!(parsed.spec.infra_id.as_deref(), Some("example-x7k2p"));
    assert_eq!(parsed.spec.services.len(), 1);
    assert_eq!(parsed.spec.platform.kind, Some(PlatformType::Other));
    let azure = parsed.spec.platform.azure.unwrap();
    assert_eq!(azure.topology, None);
    assert_eq!(azure.private.unwrap().kind, Some(PrivateType::Other));

    for spec in [json!(null), json!("x"), json!([])] {
        let parsed: HostedCluster = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        assert_eq!(parsed.spec, ClusterSpec::default());
    }
    assert_eq!(HostedCluster::api_version(&()), "hypershift.openshift.io/v1beta1");
}
