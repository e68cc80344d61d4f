//! Reconciles of a control plane on AWS, against an API server that answers from a table.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response, StatusCode};
use kube::runtime::reflector::Store;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::Role;
use crate::api::markers::aws::ENDPOINT_DNS_NAME;
use crate::aws::api::client::Connection;
use crate::aws::api::transport::{Transport, TransportError};
use crate::aws::calls::accounts::Accounts;
use crate::aws::credentials::SessionCache;
use crate::aws::endpoints::{EndpointOverrides, Endpoints};
use crate::controllers::aws::access::AwsContext;
use crate::engine::gate::Gate;
use crate::engine::observation_cache::ObservationCache;
use crate::hypershift::shard::Shard;
use crate::metrics::Metrics;
use crate::observer::test_env::{self, Cluster, EXTERNAL, PLANE, empty, holding, resync};
use crate::runtime::work_queue::Action;

const CUSTOM: &str = "awsendpointservices";
const ENDPOINT: &str = "vpce-01-abc.vpce-svc-02.us-east-1.vpce.amazonaws.com";

struct NoAws;

impl Gate for NoAws {
    fn open(&self) -> bool {
        false
    }
}

#[async_trait]
impl Transport for NoAws {
    async fn send(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        Err(TransportError::Timeout)
    }
}

fn region() -> Region {
    Region::parse("us-east-1").unwrap()
}

/// A context whose AWS never answers.
fn context(kube: kube::Client) -> Context {
    let metrics = Arc::new(Metrics::new("1", "c").unwrap());
    let endpoints = Endpoints::new(region(), &EndpointOverrides::default()).unwrap();
    let connection = Connection::new(Arc::new(NoAws), endpoints, metrics.clone());
    let sessions = SessionCache::of_profile(connection.clone(), "/nonexistent".into(), "test");
    let accounts = Accounts::new(connection, sessions, "111111111111", Arc::new(NoAws));
    let minute = Duration::from_secs(60);
    let aws = AwsContext::new(accounts, ObservationCache::new(minute, minute));
    Context::new(Role::Cpo, "test", kube, aws, metrics, minute)
}

type TestEnv = test_env::TestEnv<AwsRules>;

impl TestEnv {
    fn new(cluster: Cluster) -> Self {
        Self::with(cluster, empty())
    }

    fn with(cluster: Cluster, external: Store<Service>) -> Self {
        Self::of(cluster, external, AwsRules { region: region() }, context)
    }
}

fn control_plane() -> Value {
    let route = json!({"type": "Route", "route": {"hostname": "api.example.com"}});
    json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp",
            "annotations": {"hypershift.openshift.io/cluster": "clusters/example"}},
        "spec": {"services": [{"service": "APIServer", "servicePublishingStrategy": route}],
            "platform": {"type": "AWS", "aws": {"region": "us-east-1", "endpointAccess": "Private",
                "resourceTags": [{"key": "team", "value": "x"}]}}}})
}

/// A control plane with both Services, and nothing else.
fn cluster() -> Cluster {
    let mut cluster = Cluster::default();
    let owner = json!({"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"});
    for (name, balancer) in [("private-router", "router"), ("kube-apiserver-private", "api")] {
        let host = format!("{balancer}-01.elb.us-east-1.amazonaws.com");
        let metadata = json!({"name": name, "namespace": "clusters-example", "ownerReferences": [owner]});
        let status = json!({"loadBalancer": {"ingress": [{"hostname": host}]}});
        let service = json!({"metadata": metadata, "status": status});
        cluster.objects.insert(format!("services/{name}"), service);
    }
    cluster.objects.insert(PLANE.into(), control_plane());
    cluster
}

fn custom_resource(name: &str, balancer: &str) -> Value {
    let condition = json!({"type": "AWSEndpointAvailable", "status": "True", "reason": "AWSSuccess", "message": "",
        "lastTransitionTime": "2026-08-22T10:00:00Z"});
    json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
        "metadata": {"name": name, "namespace": "clusters-example", "resourceVersion": "7",
            "annotations": {"hypershift.openshift.io/cluster": "clusters/example", ENDPOINT_DNS_NAME: ENDPOINT}},
        "spec": {"networkLoadBalancerName": balancer, "subnetIDs": ["subnet-0123456789abcdef0"],
            "resourceTags": [{"key": "team", "value": "x"}]},
        "status": {"dnsNames": ["api.example.hypershift.local"], "conditions": [condition]}})
}

fn external() -> Value {
    json!({"metadata": {"name": "kube-apiserver-private-external", "namespace": "clusters-example", "uid": "u",
            "resourceVersion": "9", "labels": {"hypershift.openshift.io/external-private-service": "true"},
            "annotations": {"external-dns.alpha.kubernetes.io/hostname": "api.example.com"},
            "ownerReferences": [{"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"}]},
        "spec": {"type": "ExternalName", "externalName": ENDPOINT}})
}

/// The same with both custom resources, an available endpoint and the Service that publishes the API.
fn at_rest() -> Cluster {
    let mut cluster = cluster();
    for (name, balancer) in [("private-router", "router"), ("kube-apiserver-private", "api")] {
        let found = custom_resource(name, balancer);
        cluster.objects.insert(format!("{CUSTOM}/{name}"), found);
    }
    cluster.objects.insert(EXTERNAL.into(), external());
    cluster
}

fn env_with(change: impl FnOnce(&mut Cluster)) -> TestEnv {
    let mut cluster = at_rest();
    change(&mut cluster);
    TestEnv::with(cluster, holding(&external()))
}

fn change_plane(cluster: &mut Cluster, field: &str, value: Value) {
    cluster.objects.get_mut(PLANE).unwrap()["spec"]["platform"]["aws"][field] = value;
}

#[tokio::test]
async fn each_service_gets_a_custom_resource() {
    let env = TestEnv::new(cluster());
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    let written = std::mem::take(&mut env.cluster.lock().unwrap().written);
    let made = |name: &str, balancer: &str| {
        let body = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": name, "namespace": "clusters-example"},
            "spec": {"networkLoadBalancerName": balancer, "resourceTags": [{"key": "team", "value": "x"}]}});
        (Method::POST, format!("{CUSTOM}/{name}"), body)
    };
    let expected = [made("private-router", "router"), made("kube-apiserver-private", "api")];
    assert_eq!(written, expected);
    let text = env.observer.context().runtime.metrics.render().unwrap();
    assert!(
        text.contains("resource=\"awsendpointservices\",verb=\"create\"} 2"),
        "{text}"
    );
}

#[tokio::test]
async fn nothing_is_written_at_rest() {
    let env = env_with(|_| {});
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!((env.written(), env.notes()), (vec![], vec![]));
}

#[tokio::test]
async fn custom_resource_follows_its_service_and_keeps_its_subnets() {
    let env = env_with(|cluster| {
        let status = json!({"loadBalancer": {"ingress": [{"hostname": "new-02.elb.us-east-1.amazonaws.com"}]}});
        cluster.objects.get_mut("services/private-router").unwrap()["status"] = status;
    });
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    let written = std::mem::take(&mut env.cluster.lock().unwrap().written);
    let patch = json!({"metadata": {"resourceVersion": "7"}, "spec": {"networkLoadBalancerName": "new"}});
    assert_eq!(written, [(Method::PATCH, format!("{CUSTOM}/private-router"), patch)]);
}

#[tokio::test]
async fn custom_resource_under_deletion_is_left() {
    let env = env_with(|cluster| {
        change_plane(cluster, "resourceTags", json!([]));
        let found = cluster.objects.get_mut(&format!("{CUSTOM}/private-router")).unwrap();
        found["metadata"]["deletionTimestamp"] = json!("2026-08-22T10:00:00Z");
    });
    env.reconcile().await;
    // Its endpoint is about to be deleted, so the host names are withdrawn.
    let expected = [
        format!("PATCH {CUSTOM}/kube-apiserver-private"),
        format!("DELETE {EXTERNAL}"),
    ];
    assert_eq!(env.written(), expected);
}

#[tokio::test]
async fn custom_resource_stays_without_its_service_or_privacy() {
    let env = env_with(|cluster| drop(cluster.objects.remove("services/private-router")));
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [""; 0]);
    let env = env_with(|cluster| change_plane(cluster, "endpointAccess", json!("Public")));
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [format!("DELETE {EXTERNAL}")]);
}

#[tokio::test]
async fn tag_that_is_refused_is_reported_beside_the_copied_ones() {
    let tags = json!([{"key": "team", "value": "x"}, {"key": "cost center", "value": "y"}]);
    let env = env_with(|cluster| change_plane(cluster, "resourceTags", tags));
    assert_eq!((env.reconcile().await, env.reconcile().await), (resync(), resync()));
    let note = "platform.aws.resourceTags: 1 that AWSEndpointServices cannot have are left out";
    let expected = SERVICES.map(|name| format!("{name}: {note}"));
    assert_eq!(env.notes(), expected);
    assert_eq!(env.written(), [""; 0]);
}

#[tokio::test]
async fn cluster_of_another_region_is_left_with_one_event() {
    let env = env_with(|cluster| {
        change_plane(cluster, "region", json!("us-west-2"));
        change_plane(cluster, "resourceTags", json!([]));
        cluster.objects.remove(&format!("{CUSTOM}/private-router"));
    });
    assert_eq!((env.reconcile().await, env.reconcile().await), (resync(), resync()));
    let note = "control plane: CloudMismatch: the cluster is in us-west-2, this process serves us-east-1";
    assert_eq!(env.notes(), [note]);
    assert_eq!(env.written(), [""; 0]);
}

#[tokio::test]
async fn second_control_plane_of_a_namespace_stops_both() {
    let env = env_with(|cluster| {
        let mut second = control_plane();
        second["metadata"]["name"] = json!("second");
        cluster.objects.insert("hostedcontrolplanes/second".into(), second);
        cluster.objects.remove(&format!("{CUSTOM}/private-router"));
    });
    assert_eq!((env.reconcile().await, env.reconcile().await), (resync(), resync()));
    assert_eq!(
        env.notes(),
        ["control plane: the namespace has several HostedControlPlanes"]
    );
    assert_eq!(env.written(), [""; 0]);
    env.cluster.lock().unwrap().objects.remove("hostedcontrolplanes/second");
    assert_ne!(env.reconcile().await, resync());
    assert_eq!(env.written()[0], format!("POST {CUSTOM}/private-router"));
}

#[tokio::test]
async fn list_of_control_planes_that_fails_is_a_failure() {
    let env = env_with(|cluster| {
        let list = "GET clusters-example/hostedcontrolplanes".to_owned();
        cluster.refused.insert(list, StatusCode::FORBIDDEN);
    });
    assert_eq!(env.reconcile().await, Action::Requeue(Duration::from_secs(1)));
    assert_eq!(env.written(), [""; 0]);
}

#[rstest]
#[case::azure(json!({"type": "Azure", "azure": {"topology": "Private", "private": {"type": "PrivateLink"}}}))]
#[case::none(json!({"type": "None"}))]
#[case::without_details(json!({"type": "AWS"}))]
#[tokio::test]
async fn cluster_of_another_platform_costs_one_read(#[case] platform: Value) {
    let env = env_with(|cluster| cluster.objects.get_mut(PLANE).unwrap()["spec"]["platform"] = platform);
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.cluster.lock().unwrap().requests, 1);
}

#[tokio::test]
async fn paused_cluster_is_left_alone_until_the_pause_ends() {
    let env = env_with(|cluster| {
        change_plane(cluster, "resourceTags", json!([]));
        let spec = &mut cluster.objects.get_mut(PLANE).unwrap()["spec"];
        spec["pausedUntil"] = json!("9999-12-31T23:59:59Z");
        spec["services"] = json!([]);
    });
    let action = env.reconcile().await;
    assert_eq!((env.written(), env.notes()), (vec![], vec![]));
    assert!(matches!(action, Action::Requeue(_)) && action != resync());
}

#[tokio::test]
async fn control_plane_under_deletion_is_left_to_others() {
    let env = env_with(|cluster| {
        cluster.objects.remove(&format!("{CUSTOM}/private-router"));
        let metadata = &mut cluster.objects.get_mut(PLANE).unwrap()["metadata"];
        metadata["deletionTimestamp"] = json!("2026-08-22T10:00:00Z");
    });
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), [""; 0]);
}

#[rstest]
#[case::available("True", ENDPOINT, &["POST services/kube-apiserver-private-external"])]
#[case::not_available("False", ENDPOINT, &[])]
#[case::forged_name("True", "evil.example.com", &[])]
#[tokio::test]
async fn host_name_is_published_with_an_available_endpoint(
    #[case] status: &str,
    #[case] name: &str,
    #[case] expected: &[&str],
) {
    let mut cluster = at_rest();
    cluster.objects.remove(EXTERNAL);
    let found = cluster.objects.get_mut(&format!("{CUSTOM}/private-router")).unwrap();
    found["status"]["conditions"][0]["status"] = json!(status);
    found["metadata"]["annotations"][ENDPOINT_DNS_NAME] = json!(name);
    let env = TestEnv::new(cluster);
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    assert_eq!(env.written(), expected);
}

#[tokio::test]
async fn host_names_lead_to_the_endpoint_of_the_router_alone() {
    let env = env_with(|cluster| {
        let found = cluster.objects.get_mut(&format!("{CUSTOM}/kube-apiserver-private"));
        let other = "vpce-09.vpce-svc-09.us-east-1.vpce.amazonaws.com";
        found.unwrap()["metadata"]["annotations"][ENDPOINT_DNS_NAME] = json!(other);
    });
    env.reconcile().await;
    assert_eq!(env.written(), [""; 0]);
}

#[tokio::test]
async fn published_host_name_follows_a_new_endpoint() {
    let other = "vpce-09.vpce-svc-09.us-east-1.vpce.amazonaws.com";
    let env = env_with(|cluster| {
        let found = cluster.objects.get_mut(&format!("{CUSTOM}/private-router"));
        found.unwrap()["metadata"]["annotations"][ENDPOINT_DNS_NAME] = json!(other);
    });
    env.reconcile().await;
    let written = std::mem::take(&mut env.cluster.lock().unwrap().written);
    let host = json!({"external-dns.alpha.kubernetes.io/hostname": "api.example.com"});
    let patch = json!({"metadata": {"resourceVersion": "9", "annotations": host},
        "spec": {"type": "ExternalName", "externalName": other}});
    assert_eq!(written, [(Method::PATCH, EXTERNAL.to_owned(), patch)]);
}

#[rstest]
#[case::host_name_is_gone(json!([]), true)]
#[case::route_lost_its_host_name(
    json!([{"service": "APIServer", "servicePublishingStrategy": {"type": "Route"}}]),
    true
)]
#[case::foreign(json!([]), false)]
#[tokio::test]
async fn host_name_is_withdrawn_only_as_it_was_read(#[case] services: Value, #[case] owned: bool) {
    let env = env_with(|cluster| {
        cluster.objects.get_mut(PLANE).unwrap()["spec"]["services"] = services;
        if !owned {
            cluster.objects.get_mut(EXTERNAL).unwrap()["metadata"]["ownerReferences"] = json!([]);
        }
    });
    assert_eq!(env.reconcile().await, Action::AwaitChange);
    let written = std::mem::take(&mut env.cluster.lock().unwrap().written);
    let deleted = |(method, object, body): &(Method, String, Value)| {
        (method.clone(), object.clone(), body["preconditions"].clone())
    };
    let expected = (
        Method::DELETE,
        EXTERNAL.to_owned(),
        json!({"uid": "u", "resourceVersion": "9"}),
    );
    let expected = if owned { vec![expected] } else { Vec::new() };
    assert_eq!(written.iter().map(deleted).collect::<Vec<_>>(), expected);
}

#[tokio::test]
async fn control_plane_is_served_by_the_shard_of_its_namespace() {
    let mut served = 0;
    for shard in ["1/3", "2/3", "3/3"] {
        let mut env = TestEnv::new(cluster());
        let observer = Arc::get_mut(&mut env.observer).unwrap();
        Arc::get_mut(&mut observer.cx).unwrap().shard = shard.parse::<Shard>().unwrap();
        env.reconcile().await;
        served += usize::from(!env.written().is_empty());
    }
    assert_eq!(served, 1);
}
