//! Reconciles of a control plane, against an API server that answers from a table.

use std::time::Duration;

use http::{Method, StatusCode};
use kube::runtime::reflector::Store;
use serde_json::{Value, json};

use super::*;
use crate::controllers::context::sample;
use crate::hypershift::shard::Shard;
use crate::observer::external_services::{ServiceStep, step};
use crate::observer::test_env::{self, Cluster, EXTERNAL, PLANE, empty, holding, resync};
use crate::runtime::work_queue::Action;

mod keep;
mod rest;

const CUSTOM: &str = "azureprivatelinkservices";

type TestEnv = test_env::TestEnv<AzureRules>;

fn service(name: &str) -> Value {
    json!({"metadata": {"name": name, "namespace": "clusters-example",
        "annotations": {"service.beta.kubernetes.io/azure-load-balancer-internal": "true"},
        "ownerReferences": [{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]},
        "status": {"loadBalancer": {"ingress": [{"ip": "10.1.0.4"}]}}})
}

fn control_plane() -> Value {
    let vnet = "/subscriptions/11111111-1111-4111-8111-111111111111/resourceGroups/net/providers/Microsoft.Network/virtualNetworks/v";
    let publishes = |service: &str, by: &str| json!({"service": service, "servicePublishingStrategy": {"type": by}});
    json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp"},
        "spec": {"services": [publishes("APIServer", "Route"), publishes("OAuthServer", "LoadBalancer")],
            "platform": {"type": "Azure", "azure": {"location": "eastus", "resourceGroup": "guest",
                "subscriptionID": "11111111-1111-4111-8111-111111111111", "vnetID": vnet, "subnetID": format!("{vnet}/subnets/default"),
                "topology": "Private", "private": {"type": "PrivateLink"}}}}})
}

fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    for name in SERVICES {
        cluster.objects.insert(format!("services/{name}"), service(name));
    }
    cluster.objects.insert(PLANE.into(), control_plane());
    cluster
}

impl TestEnv {
    fn new(cluster: Cluster) -> Self {
        Self::with(cluster, empty())
    }

    fn with(cluster: Cluster, external: Store<Service>) -> Self {
        let rules = AzureRules {
            cloud: "AzurePublicCloud",
        };
        Self::of(cluster, external, rules, sample::context)
    }

    fn in_shard(mut self, shard: Shard) -> Self {
        let observer = Arc::get_mut(&mut self.observer).unwrap();
        Arc::get_mut(&mut observer.cx).unwrap().shard = shard;
        self
    }
}

#[tokio::test]
async fn control_plane_is_read_and_served_by_the_shard_of_its_subscription() {
    let mut served = Vec::new();
    for shard in ["1/3", "2/3", "3/3"] {
        let test_env = TestEnv::new(cluster()).in_shard(shard.parse().unwrap());
        test_env.reconcile().await;
        let is_read = test_env.cluster.lock().unwrap().requests > 0;
        served.push((is_read, !test_env.written().is_empty()));
    }
    assert_eq!(served, [(false, false), (true, true), (false, false)]);
}

#[tokio::test]
async fn each_service_gets_a_custom_resource() {
    let env = TestEnv::new(cluster());
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    let made = SERVICES.map(|name| format!("POST {CUSTOM}/{name}"));
    assert_eq!(env.written(), made);
}

#[tokio::test]
async fn oauth_has_no_custom_resource_where_a_route_publishes_it() {
    let mut cluster = cluster();
    let mut hcp = control_plane();
    hcp["spec"]["services"][1]["servicePublishingStrategy"]["type"] = json!("Route");
    cluster.objects.insert(PLANE.into(), hcp);
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [format!("POST {CUSTOM}/private-router")]);
}

#[tokio::test]
async fn api_servers_refusal_is_reported_once_and_retried_slowly() {
    let mut cluster = cluster();
    let refused = format!("POST {CUSTOM}/private-router");
    cluster
        .refused
        .insert(refused.clone(), StatusCode::UNPROCESSABLE_ENTITY);
    let env = TestEnv::new(cluster);
    assert_eq!((env.reconcile().await, env.reconcile().await), (resync(), resync()));
    assert_eq!(
        env.notes(),
        ["private-router: the API server does not take what the control plane means"]
    );
    // The other Service is not affected.
    assert!(env.written().contains(&format!("POST {CUSTOM}/oauth-openshift")));
    env.cluster.lock().unwrap().refused.clear();
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert!(env.written().contains(&refused));
}

#[tokio::test]
async fn failure_over_one_service_keeps_no_other_from_being_served() {
    let mut cluster = cluster();
    cluster
        .refused
        .insert("GET services/private-router".into(), StatusCode::FORBIDDEN);
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, Action::Requeue(Duration::from_secs(1)));
    assert_eq!(env.written(), [format!("POST {CUSTOM}/oauth-openshift")]);
}

#[tokio::test]
async fn definition_that_is_not_installed_is_waited_for_calmly() {
    let mut cluster = cluster();
    for name in SERVICES {
        cluster
            .refused
            .insert(format!("POST {CUSTOM}/{name}"), StatusCode::NOT_FOUND);
    }
    let env = TestEnv::new(cluster);
    for wait in [1, 2, 4, 8] {
        assert_eq!(env.reconcile().await, Action::Requeue(Duration::from_secs(wait)));
    }
    let failed = "hyperlink_reconcile_total{controller=\"observer\",result=\"failed\"} 4";
    let text = env.observer.context().runtime.metrics.render().unwrap();
    assert!(text.lines().any(|line| line == failed), "{text}");
    env.cluster.lock().unwrap().refused.clear();
    assert_eq!(env.reconcile().await, Action::AwaitChange);
}

#[tokio::test]
async fn bad_value_is_reported_and_the_others_are_kept() {
    let mut cluster = cluster();
    let mut hcp = control_plane();
    hcp["spec"]["platform"]["azure"]["private"]["privateLink"] = json!({"natSubnetID": "x"});
    cluster.objects.insert(PLANE.into(), hcp);
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, resync());
    let note = "platform.azure.private.privateLink.natSubnetID: not an ARM resource id";
    let expected = SERVICES.map(|name| format!("{name}: {note}"));
    assert_eq!(env.notes(), expected);
    assert_eq!(env.written(), [""; 0]);
    // An existing one follows its Service nevertheless.
    let owner =
        json!({"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp", "controller": true});
    let mut standing =
        json!({"metadata": {"name": "private-router", "namespace": "clusters-example", "ownerReferences": [owner]}});
    standing["spec"] = json!({"subscriptionID": "s", "resourceGroupName": "g", "location": "l", "guestSubnetID": "n", "guestVNetID": "v",
        "loadBalancerIP": "10.1.0.3"});
    env.cluster
        .lock()
        .unwrap()
        .objects
        .insert(format!("{CUSTOM}/private-router"), standing);
    assert_eq!(env.reconcile().await, resync());
    assert_eq!(env.written(), [format!("PATCH {CUSTOM}/private-router")]);
}

#[tokio::test]
async fn service_without_an_address_is_waited_for_without_a_clock() {
    let mut cluster = cluster();
    for name in SERVICES {
        cluster.objects.get_mut(&format!("services/{name}")).unwrap()["status"] = json!({});
    }
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!((env.written(), env.notes()), (vec![], vec![]));
}

#[tokio::test]
async fn service_with_a_host_name_or_two_addresses_is_reported() {
    let mut cluster = cluster();
    for (name, ingress) in [
        ("private-router", json!([{"hostname": "lb.example.com"}])),
        ("oauth-openshift", json!([{"ip": "10.1.0.4"}, {"ip": "10.1.0.5"}])),
    ] {
        let service = cluster.objects.get_mut(&format!("services/{name}")).unwrap();
        service["status"] = json!({"loadBalancer": {"ingress": ingress}});
    }
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, resync());
    let expected = [
        "private-router: the Service has a host name instead of an address",
        "oauth-openshift: the Service has 2 addresses: only 10.1.0.4 is used",
    ];
    assert_eq!(env.notes(), expected);
    assert_eq!(env.written(), [format!("POST {CUSTOM}/oauth-openshift")]);
}

#[tokio::test]
async fn nothing_is_created_for_a_control_plane_under_deletion() {
    let (mut cluster, external) = at_rest();
    cluster.objects.retain(|name, _| !name.starts_with(CUSTOM));
    cluster.objects.insert(EXTERNAL.into(), external.clone());
    let hcp = cluster.objects.get_mut("hostedcontrolplanes/example").unwrap();
    hcp["metadata"]["deletionTimestamp"] = json!("2026-08-22T10:00:00Z");
    let env = TestEnv::with(cluster, holding(&external));
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [""; 0]);
}

/// A cluster at rest: both custom resources, an available endpoint and the Service that publishes the API.
fn at_rest() -> (Cluster, Value) {
    let mut cluster = cluster();
    let mut hcp = control_plane();
    hcp["spec"]["services"][0]["servicePublishingStrategy"]["route"] = json!({"hostname": "api.example.com"});
    let found: HostedControlPlane = serde_json::from_value(hcp.clone()).unwrap();
    for name in SERVICES {
        let of: Service = serde_json::from_value(service(name)).unwrap();
        let verdict = decide::decide(Some(&of), &found, "AzurePublicCloud", Timestamp::UNIX_EPOCH);
        let Verdict::Desired(desired) = verdict else {
            panic!("{verdict:?}")
        };
        let mut standing = serde_json::to_value(&desired.resource).unwrap();
        standing["status"] = json!({"privateEndpointIP": "10.0.0.5", "conditions": [{"type": "AzurePrivateEndpointAvailable",
            "status": "True", "reason": "x", "message": "", "lastTransitionTime": "2026-08-22T10:00:00Z"}]});
        cluster.objects.insert(format!("{CUSTOM}/{name}"), standing);
    }
    let target = external_services::Target::At([10, 0, 0, 5].into());
    let host = Host::Named("api.example.com".into());
    let step = step(external_services::ALL[0], &host, target, None, &found);
    let ServiceStep::Create(made) = step else {
        panic!("{step:?}")
    };
    cluster.objects.insert(PLANE.into(), hcp);
    (cluster, serde_json::to_value(made).unwrap())
}

#[tokio::test]
async fn standing_complaint_is_not_repeated_after_a_failed_read() {
    let mut cluster = cluster();
    let mut hcp = control_plane();
    hcp["spec"]["platform"]["azure"]["location"] = json!("");
    cluster.objects.insert(PLANE.into(), hcp);
    let env = TestEnv::new(cluster);
    env.reconcile().await;
    let notes = env.notes();
    assert_eq!(notes.len(), SERVICES.len());
    let unread = SERVICES.map(|name| (format!("GET services/{name}"), StatusCode::FORBIDDEN));
    env.cluster.lock().unwrap().refused.extend(unread);
    env.reconcile().await;
    env.cluster.lock().unwrap().refused.clear();
    env.reconcile().await;
    assert_eq!(env.notes(), notes);
}
