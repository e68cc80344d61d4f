use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::{AWSEndpointServiceSpec, AWSEndpointServiceStatus, HostedControlPlane};
use crate::hypershift::conditions::{NewCondition, merge};
use crate::observer::external_services::{ServiceStep, step};

const API: External = ALL[0];
const ENDPOINT: &str = "vpce-01-abc.vpce-svc-02.us-east-1.vpce.amazonaws.com";

fn region() -> Region {
    Region::parse("us-east-1").unwrap()
}

fn control_plane(change: impl FnOnce(&mut Value)) -> HostedControlPlane {
    let route = |service: &str, host: &str| {
        let strategy = json!({"type": "Route", "route": {"hostname": host}});
        json!({"service": service, "servicePublishingStrategy": strategy})
    };
    let mut object = json!({"metadata": {"name": "example", "namespace": "clusters-example", "uid": "hcp"}, "spec": {
        "services": [route("APIServer", "api.example.com"), route("OAuthServer", "oauth.example.com")],
        "platform": {"type": "AWS", "aws": {"endpointAccess": "Private"}}}});
    change(&mut object);
    serde_json::from_value(object).unwrap()
}

fn hosts(change: impl FnOnce(&mut Value)) -> [Result<Host, String>; 2] {
    let spec = control_plane(change).spec;
    ALL.map(|external| host(external, &spec))
}

fn named(host: &str) -> Host {
    Host::Named(host.to_owned())
}

fn access(value: &str) -> impl FnOnce(&mut Value) {
    move |hcp| hcp["spec"]["platform"]["aws"]["endpointAccess"] = json!(value)
}

fn neither(host: Host) -> [Result<Host, String>; 2] {
    [Ok(host.clone()), Ok(host)]
}

fn api_by(strategy: Value) -> [Result<Host, String>; 2] {
    hosts(|hcp| hcp["spec"]["services"][0]["servicePublishingStrategy"] = strategy)
}

fn oauth_and(api: Result<Host, String>) -> [Result<Host, String>; 2] {
    [api, Ok(named("oauth.example.com"))]
}

#[rstest]
#[case::both(hosts(|_| {}), oauth_and(Ok(named("api.example.com"))))]
#[case::none(hosts(|hcp| hcp["spec"]["services"] = json!([])), neither(Host::None))]
#[case::route_without_a_host_name(api_by(json!({"type": "Route"})), oauth_and(Ok(Host::None)))]
#[case::by_a_load_balancer(
    api_by(json!({"type": "LoadBalancer", "loadBalancer": {"hostname": "api.example.com"}})),
    oauth_and(Ok(Host::None))
)]
#[case::of_unicode(
    api_by(json!({"type": "Route", "route": {"hostname": "äpi.example.com"}})),
    oauth_and(Err("the host name of APIServer is not a DNS name: it is not published".into()))
)]
#[case::public(hosts(access("Public")), neither(Host::None))]
#[case::with_a_public_side(hosts(access("PublicAndPrivate")), neither(Host::None))]
#[case::of_an_access_that_is_new(hosts(access("Moon")), neither(Host::NotOurs))]
#[case::not_aws(hosts(|hcp| hcp["spec"]["platform"]["type"] = json!("Azure")), neither(Host::NotOurs))]
fn host_names_of_routes_are_published_without_a_public_side(
    #[case] found: [Result<Host, String>; 2],
    #[case] expected: [Result<Host, String>; 2],
) {
    assert_eq!(found, expected);
}

fn cr(status: Status, endpoint: Option<&str>) -> AWSEndpointService {
    let condition = NewCondition {
        status,
        ..NewCondition::holds(ConditionType::AWSEndpointAvailable, "", None)
    };
    let mut cr = AWSEndpointService::new("private-router", AWSEndpointServiceSpec::default());
    cr.metadata.annotations = endpoint.map(|name| [(ENDPOINT_DNS_NAME.to_owned(), name.to_owned())].into());
    cr.status = Some(AWSEndpointServiceStatus {
        // The names of records, which lead to the endpoint.
        dns_names: vec!["api.example.hypershift.local".into()],
        conditions: merge(&[], vec![condition], Timestamp::UNIX_EPOCH),
        ..AWSEndpointServiceStatus::default()
    });
    cr
}

fn at(name: &str) -> Target {
    Target::At(name.to_owned())
}

#[test]
fn names_lead_to_the_dns_name_of_an_available_endpoint() {
    let target = |cr: &AWSEndpointService| target(Some(cr), &region());
    assert_eq!(target(&cr(Status::True, Some(ENDPOINT))), at(ENDPOINT));
    assert_eq!(target(&cr(Status::False, Some(ENDPOINT))), Target::Unsure);
    assert_eq!(target(&cr(Status::True, None)), Target::Unsure);
    let mut without_status = cr(Status::True, Some(ENDPOINT));
    without_status.status = None;
    assert_eq!(target(&without_status), Target::Unsure);
    let mut deleting = cr(Status::True, Some(ENDPOINT));
    deleting.metadata.deletion_timestamp = Some(Time(Timestamp::UNIX_EPOCH));
    assert_eq!(target(&deleting), Target::Gone);
    assert_eq!(super::target(None, &region()), Target::Gone);
}

#[rstest]
#[case::regional("us-east-1", ENDPOINT, Some(ENDPOINT))]
#[case::upper_case(
    "us-east-1",
    "VPCE-01.vpce-svc-02.us-east-1.VPCE.amazonaws.com.",
    Some("vpce-01.vpce-svc-02.us-east-1.vpce.amazonaws.com")
)]
#[case::china(
    "cn-north-1",
    "vpce-01.vpce-svc-02.cn-north-1.vpce.amazonaws.com.cn",
    Some("vpce-01.vpce-svc-02.cn-north-1.vpce.amazonaws.com.cn")
)]
#[case::china_elsewhere("cn-north-1", "vpce-01.vpce-svc-02.cn-north-1.vpce.amazonaws.com", None)]
#[case::other_region("us-east-1", "vpce-01.vpce-svc-02.us-west-2.vpce.amazonaws.com", None)]
#[case::domain_of_somebody("us-east-1", "vpce-01.us-east-1.vpce.amazonaws.com.example.com", None)]
#[case::end_of_a_label("us-east-1", "x.evil-us-east-1.vpce.amazonaws.com", None)]
#[case::load_balancer("us-east-1", "a1-01.elb.us-east-1.amazonaws.com", None)]
#[case::no_endpoint("us-east-1", "us-east-1.vpce.amazonaws.com", None)]
#[case::empty_label("us-east-1", ".us-east-1.vpce.amazonaws.com", None)]
#[case::wildcard("us-east-1", "*.us-east-1.vpce.amazonaws.com", None)]
#[case::address("us-east-1", "10.0.0.5", None)]
#[case::several("us-east-1", "evil.example.com,x.us-east-1.vpce.amazonaws.com", None)]
#[case::line("us-east-1", "x\n.us-east-1.vpce.amazonaws.com", None)]
#[case::empty("us-east-1", "", None)]
fn forged_name_leads_to_endpoints_only(#[case] serves: &str, #[case] name: &str, #[case] expected: Option<&str>) {
    let found = target(Some(&cr(Status::True, Some(name))), &Region::parse(serves).unwrap());
    assert_eq!(found, expected.map_or(Target::Unsure, at));
}

#[rstest]
#[case::host_name_of_another("HostNameClaimed", Status::False, Target::Refused)]
#[case::ids_of_another("DuplicateIdentity", Status::False, Target::Refused)]
#[case::aws_that_gives_no_answer("AWSError", Status::False, at(ENDPOINT))]
#[case::reason_of_another_controller("Surprise", Status::False, at(ENDPOINT))]
#[case::old_reason("HostNameClaimed", Status::True, at(ENDPOINT))]
fn names_lead_nowhere_for_a_cluster_that_names_what_another_has(
    #[case] reason: &str,
    #[case] status: Status,
    #[case] expected: Target,
) {
    let mut cr = cr(Status::True, Some(ENDPOINT));
    let condition = json!({"type": "AWSEndpointServiceAvailable", "status": status.as_str(), "reason": reason,
        "message": "", "lastTransitionTime": "2026-08-22T10:00:00Z"});
    let conditions = &mut cr.status.as_mut().unwrap().conditions;
    conditions.push(serde_json::from_value(condition).unwrap());
    assert_eq!(target(Some(&cr), &region()), expected);
}

#[test]
fn service_has_the_form_that_hypershift_gives_it() {
    let hcp = control_plane(|_| {});
    let ServiceStep::Create(made) = step(API, &named("api.example.com"), at(ENDPOINT), None, &hcp) else {
        panic!()
    };
    let expected = json!({"apiVersion": "v1", "kind": "Service", "metadata": {
        "name": "kube-apiserver-private-external", "namespace": "clusters-example",
        "labels": {"hypershift.openshift.io/external-private-service": "true"},
        "annotations": {"external-dns.alpha.kubernetes.io/hostname": "api.example.com"},
        "ownerReferences": [{"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane",
            "name": "example", "uid": "hcp", "controller": true, "blockOwnerDeletion": true}]},
        "spec": {"type": "ExternalName", "externalName": ENDPOINT}});
    assert_eq!(json!(made), expected);
}

#[rstest]
#[case::labelled_for_azure(json!({"hypershift.openshift.io/azure-pls-external-private-svc": "true"}))]
#[case::labelled_otherwise(json!({"hypershift.openshift.io/external-private-service": "yes"}))]
#[case::without_a_label(json!({}))]
fn service_with_another_label_is_left(#[case] labels: Value) {
    let owner = json!({"apiVersion": "v", "kind": "HostedControlPlane", "name": "example", "uid": "hcp"});
    let found = json!({"metadata": {"name": API.name, "labels": labels, "ownerReferences": [owner]}});
    let found: Service = serde_json::from_value(found).unwrap();
    let hcp = control_plane(|_| {});
    assert_eq!(
        step(API, &Host::None, at(ENDPOINT), Some(&found), &hcp),
        ServiceStep::Keep
    );
    let named = named("api.example.com");
    assert_eq!(step(API, &named, at(ENDPOINT), Some(&found), &hcp), ServiceStep::Refuse);
}
