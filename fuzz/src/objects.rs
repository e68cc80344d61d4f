//! Objects that others write: read or refused, pruned for good, and decided on without a panic.

use std::fmt::Debug;

use hyperlink::api::hypershift::PUBLIC_CLOUD;
use hyperlink::api::{AWSEndpointService, AzurePrivateLinkService, HostedCluster, HostedControlPlane};
use hyperlink::aws::region::Region;
use hyperlink::hypershift::claims::{Claim, Claiming, host_names, nat_subnet};
use hyperlink::hypershift::host_names::dns_name;
use hyperlink::hypershift::identity;
use hyperlink::observer::aws;
use hyperlink::observer::azure::decide::{Verdict, change, decide, published};
use hyperlink::observer::azure::external_services::{ALL, host, target};
use hyperlink::observer::external_services::{Host, Target};
use hyperlink::observer::verdict::SpecChange;
use hyperlink::runtime::prune::Prune;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use super::desired::{GUEST, GUEST_SUB};
use super::mutate::{Input, mutate};

/// A cluster's objects as JSON, or valid ones with something changed.
pub fn objects(data: &[u8]) {
    let mut input = Input(data);
    let mut all = valid();
    if input.byte() % 2 == 0 {
        let Ok(json) = serde_json::from_slice(input.0) else {
            return;
        };
        all = json;
    } else {
        mutate(&mut all, &mut input);
    }
    let hosted: Option<HostedCluster> = pruned(&all["cluster"]);
    let plane: Option<HostedControlPlane> = pruned(&all["plane"]);
    let service: Option<Service> = pruned(&all["service"]);
    let cr: Option<AzurePrivateLinkService> = pruned(&all["resource"]);
    others_are_lenient(&all);
    hosted.iter().for_each(claims);
    if let Some(cr) = &cr {
        let _ = (cr.claims(), target(Some(cr)));
    }
    let region = Region::parse("us-east-1").unwrap();
    let on_aws: Option<AWSEndpointService> = pruned(&all["resource"]);
    endpoint_is_of_the_region(on_aws.as_ref(), &region);
    if let Some(plane) = &plane {
        decides(service.as_ref(), plane);
        decides_on_aws(service.as_ref(), plane, &region);
    }
}

/// The object, if it can be one. Pruning drops what nobody reads: it never adds, and a second time it finds no more.
fn pruned<T: Prune + Clone + Debug + PartialEq + DeserializeOwned>(json: &Value) -> Option<T> {
    let object: T = serde_json::from_value(json.clone()).ok()?;
    let mut once = object.clone();
    once.prune();
    assert!(size(&once) <= size(&object), "{once:?} of {object:?}");
    let mut twice = once.clone();
    twice.prune();
    assert_eq!(once, twice);
    Some(object)
}

fn size(object: &impl Debug) -> usize {
    format!("{object:?}").len()
}

/// What HyperShift or others write in the wrong shape hides no object: that would stop its watch.
fn others_are_lenient(all: &Value) {
    let of = |spec: &Value| json!({"metadata": {"name": "x"}, "spec": spec});
    for spec in [&all["cluster"]["spec"], &all["plane"]["spec"]] {
        serde_json::from_value::<HostedCluster>(of(spec)).unwrap();
        serde_json::from_value::<HostedControlPlane>(of(spec)).unwrap();
    }
    let mut resource = valid()["resource"].take();
    resource["status"]["conditions"] = all["resource"]["status"]["conditions"].clone();
    serde_json::from_value::<AzurePrivateLinkService>(resource).unwrap();
}

fn claims(hosted: &HostedCluster) {
    let _ = (
        Claim::of_cluster(hosted),
        nat_subnet(&hosted.spec),
        host_names(&hosted.spec).count(),
    );
    let _ = (
        identity::of_spec("x", &hosted.spec),
        identity::paused(&hosted.spec, Timestamp::UNIX_EPOCH),
    );
}

/// What is desired needs no change once it exists.
fn decides(service: Option<&Service>, plane: &HostedControlPlane) {
    if let Verdict::Desired(desired) = decide(service, plane, PUBLIC_CLOUD, Timestamp::UNIX_EPOCH) {
        assert_eq!(change(&desired.resource, &desired), SpecChange::None, "{desired:?}");
    }
    for external in ALL {
        let _ = published(external.name, &plane.spec);
        if let Ok(Host::Named(name)) = host(external, &plane.spec) {
            assert!(dns_name(&name).is_some(), "{name}");
        }
    }
}

/// The same on AWS.
fn decides_on_aws(service: Option<&Service>, plane: &HostedControlPlane, region: &Region) {
    let _ = aws::decide::admission(&plane.spec, None, region);
    let verdict = aws::decide::decide(service, plane, region, Timestamp::UNIX_EPOCH);
    if let aws::decide::Verdict::Desired(desired) = verdict {
        let change = aws::decide::change(&desired.resource, &desired);
        assert_eq!(change, SpecChange::None, "{desired:?}");
    }
    for external in aws::external_services::ALL {
        if let Ok(Host::Named(name)) = aws::external_services::host(external, &plane.spec) {
            assert!(dns_name(&name).is_some(), "{name}");
        }
    }
}

/// Host names lead to an endpoint of the region or nowhere, whatever the custom resource has.
fn endpoint_is_of_the_region(cr: Option<&AWSEndpointService>, region: &Region) {
    if let Target::At(name) = aws::external_services::target(cr, region) {
        assert!(name.ends_with(".us-east-1.vpce.amazonaws.com"), "{name}");
        assert_eq!(dns_name(&name).as_deref(), Some(name.as_str()));
    }
}

fn valid() -> Value {
    let spec = json!({"clusterID": "6b1f0a2c-3d4e-4f50-8a61-7b8c9d0e1f22", "infraID": "infra",
        "pausedUntil": "1969-12-31T23:59:59Z",
        "dns": {"baseDomain": "example.com", "baseDomainPrefix": "x"},
        "services": [{"service": "APIServer",
            "servicePublishingStrategy": {"type": "Route", "route": {"hostname": "api.example.com"}}}],
        "platform": {"type": "Azure", "azure": {"cloud": "AzurePublicCloud", "location": "westus2",
            "resourceGroup": "guest", "subscriptionID": GUEST_SUB, "vnetID": format!("{GUEST}/virtualNetworks/workers"),
            "subnetID": format!("{GUEST}/virtualNetworks/workers/subnets/guest"),
            "topology": "Private", "private": {"type": "PrivateLink", "privateLink": {
                "additionalAllowedSubscriptions": ["55555555-5555-5555-5555-555555555555"]}}}}});
    let condition = json!({"type": "AzurePLSCreated", "status": "True", "reason": "R", "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    json!({
        "cluster": {"metadata": {"name": "x", "namespace": "clusters", "uid": "h", "finalizers": ["f"]}, "spec": spec},
        "plane": {"metadata": {"name": "x", "namespace": "clusters-x", "uid": "p", "managedFields": [{"manager": "m"}],
            "annotations": {"hypershift.openshift.io/cluster": "clusters/x"}}, "spec": spec},
        "service": {"metadata": {"name": "private-router", "namespace": "clusters-x", "labels": {"a": "b"},
                "annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
                "ownerReferences": [{"apiVersion": "v1", "kind": "HostedControlPlane", "name": "x", "uid": "p"}]},
            "spec": {"type": "LoadBalancer"}, "status": {"loadBalancer": {"ingress": [{"ip": "10.0.0.4"}]}}},
        "resource": {"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": "private-router", "namespace": "clusters-x", "annotations": {"a": "b"}},
            "spec": {"subscriptionID": GUEST_SUB, "resourceGroupName": "guest", "location": "westus2",
                "guestSubnetID": format!("{GUEST}/virtualNetworks/workers/subnets/guest"),
                "guestVNetID": format!("{GUEST}/virtualNetworks/workers")},
            "status": {"privateEndpointIP": "10.0.0.4", "conditions": [condition]}},
    })
}
