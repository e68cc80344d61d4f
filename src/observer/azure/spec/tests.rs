use rstest::rstest;
use serde_json::{Value, json};

use super::*;

const GUEST: &str = "1a1a1a1a-1111-4111-8111-111111111111";

fn cluster(change: impl FnOnce(&mut Value)) -> ClusterSpec {
    let vnet = format!("/subscriptions/{GUEST}/resourcegroups/net/providers/microsoft.network/virtualNetworks/v");
    let mut spec = json!({
        "dns": {"baseDomain": "example.com"},
        "services": [{"service": "OAuthServer", "servicePublishingStrategy":
            {"type": "Route", "route": {"hostname": "oauth-example.apps.example.com"}}}],
        "platform": {"type": "Azure", "azure": {
            "location": "East US", "resourceGroup": "guest", "subscriptionID": GUEST.to_uppercase(),
            "vnetID": vnet, "subnetID": format!("{vnet}/subnets/default"),
            "topology": "Private", "private": {"type": "PrivateLink", "privateLink": {}}}}});
    change(&mut spec);
    serde_json::from_value(spec).unwrap()
}

fn of(change: impl FnOnce(&mut Value)) -> Result<DesiredSpec, String> {
    let spec = cluster(change);
    let azure = spec.platform.azure.clone().unwrap();
    derive("example", &spec, &azure, "10.1.0.4".into())
}

fn azure(field: &str, value: Value) -> impl FnOnce(&mut Value) {
    move |spec| spec["platform"]["azure"][field] = value
}

fn link(field: &str, value: Value) -> impl FnOnce(&mut Value) {
    move |spec| spec["platform"]["azure"]["private"]["privateLink"][field] = value
}

fn oauth(strategy: Value) -> impl FnOnce(&mut Value) {
    move |spec| spec["services"][0]["servicePublishingStrategy"] = strategy
}

fn uuid(number: usize) -> String {
    format!("aaaaaaaa-0000-4000-8000-{number:012}")
}

#[test]
fn ids_region_and_subscription_are_normalised() {
    let derived = of(|_| {}).unwrap();
    assert_eq!(derived.spec.location, "eastus");
    assert_eq!(derived.spec.subscription_id, GUEST);
    let network = &derived.spec.guest_vnet_id;
    assert!(
        network.contains("/resourceGroups/net/providers/Microsoft.Network/"),
        "{network}"
    );
    assert_eq!((derived.complaints, derived.unmakeable), (vec![], None));
}

#[rstest]
#[case::network_that_does_not_parse(azure("vnetID", json!("x")), "platform.azure.vnetID: not an ARM resource id")]
#[case::network_in_place_of_a_subnet(
    azure("subnetID", json!(format!("/subscriptions/{GUEST}/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v"))),
    "platform.azure.subnetID: not the id of a subnet")]
#[case::empty_group(azure("resourceGroup", json!("")), "platform.azure.resourceGroup is empty")]
#[case::group_of_unicode(azure("resourceGroup", json!("grüße")), "platform.azure.resourceGroup is not the name of a resource group")]
#[case::subscription_by_name(azure("subscriptionID", json!("my subscription")), "platform.azure.subscriptionID is not a UUID")]
#[case::location_of_unicode(azure("location", json!("Österreich")), "platform.azure.location is not a region")]
#[case::location_of_spaces(azure("location", json!("  ")), "platform.azure.location is not a region")]
#[case::no_location(azure("location", Value::Null), "platform.azure.location is empty")]
fn what_has_to_be_there_and_is_not_is_named(#[case] change: impl FnOnce(&mut Value), #[case] wrong: &str) {
    assert_eq!(of(change), Err(wrong.to_owned()));
}

#[test]
fn subscriptions_that_differ_in_case_are_one() {
    let (one, two) = (uuid(0xa), uuid(0xb));
    let derived = of(link(
        "additionalAllowedSubscriptions",
        json!([one.to_uppercase(), two, one]),
    ));
    assert_eq!(
        derived.unwrap().spec.additional_allowed_subscriptions,
        Some(vec![one, two])
    );
}

#[test]
fn invalid_subscriptions_are_left_out_and_reported() {
    let list = json!([uuid(1), "", "ä", "not-a-uuid", format!("{{{}}}", uuid(2)), 7]);
    let derived = of(link("additionalAllowedSubscriptions", list)).unwrap();
    assert_eq!(derived.spec.additional_allowed_subscriptions, Some(vec![uuid(1)]));
    let [complaint] = derived.complaints.as_slice() else {
        panic!("{:?}", derived.complaints)
    };
    assert!(
        complaint.ends_with("additionalAllowedSubscriptions: 4 that are no UUIDs are left out"),
        "{complaint}"
    );
    let none = of(link("additionalAllowedSubscriptions", json!(["x"]))).unwrap();
    assert_eq!(none.spec.additional_allowed_subscriptions, None);
}

#[rstest]
#[case::as_many_as_fit(50, true)]
#[case::one_too_many(51, false)]
#[case::as_many_as_azure_takes(100, false)]
#[case::more_than_azure_takes(101, false)]
fn too_many_subscriptions_are_reported_and_the_rest_is_served(#[case] count: usize, #[case] fits: bool) {
    let all: Vec<_> = (0..count).map(uuid).collect();
    let derived = of(link("additionalAllowedSubscriptions", json!(all))).unwrap();
    assert_eq!(derived.spec.additional_allowed_subscriptions.is_some(), fits);
    assert_eq!(derived.complaints.is_empty(), fits);
    assert_eq!(derived.subscriptions, all);
    assert_eq!(derived.spec.base_domain.as_deref(), Some("apps.example.com"));
}

#[test]
fn invalid_nat_subnet_is_not_replaced_by_an_own_one() {
    let derived = of(link("natSubnetID", json!("my-subnet"))).unwrap();
    assert_eq!(derived.spec.nat_subnet_id, None);
    let expected = "platform.azure.private.privateLink.natSubnetID: not an ARM resource id";
    assert_eq!(derived.unmakeable.as_deref(), Some(expected));
    assert_eq!(of(link("natSubnetID", json!(""))).unwrap().unmakeable, None);
}

#[rstest]
#[case::route(json!({"type": "Route", "route": {"hostname": "oauth-example.apps.example.com"}}), Some("apps.example.com"))]
#[case::load_balancer(json!({"type": "LoadBalancer", "loadBalancer": {"hostname": "oauth-example.lb.example.com"}}), Some("lb.example.com"))]
#[case::dot_at_the_end(json!({"type": "Route", "route": {"hostname": "oauth-example.apps.example.com."}}), Some("apps.example.com"))]
#[case::upper_case(json!({"type": "Route", "route": {"hostname": "OAuth-Example.Apps.example.COM"}}), Some("apps.example.com"))]
#[case::of_another_form(json!({"type": "Route", "route": {"hostname": "login.apps.example.com"}}), Some("example.com"))]
#[case::of_another_cluster(json!({"type": "Route", "route": {"hostname": "oauth-example-two.apps.example.com"}}), Some("example.com"))]
#[case::nothing_behind_the_prefix(json!({"type": "Route", "route": {"hostname": "oauth-example."}}), Some("example.com"))]
#[case::empty(json!({"type": "Route", "route": {"hostname": ""}}), Some("example.com"))]
#[case::no_host_name(json!({"type": "Route"}), Some("example.com"))]
#[case::neither_way(json!({"type": "NodePort", "route": {"hostname": "oauth-example.apps.example.com"}}), Some("example.com"))]
#[case::unicode(json!({"type": "Route", "route": {"hostname": "oauth-example.äpps.example.com"}}), None)]
#[case::label_with_a_dash_first(json!({"type": "Route", "route": {"hostname": "oauth-example.-apps.example.com"}}), None)]
fn base_domain_is_that_of_oauth_else_that_of_the_cluster(#[case] strategy: Value, #[case] domain: Option<&str>) {
    let derived = of(oauth(strategy)).unwrap();
    assert_eq!(derived.spec.base_domain.as_deref(), domain);
    // Only a value that cannot be read is reported.
    assert_eq!(
        derived.complaints.is_empty(),
        domain.is_some(),
        "{:?}",
        derived.complaints
    );
}

#[test]
fn route_of_oauth_precedes_its_load_balancer() {
    let by = |kind: &str, at: &str, host: &str| json!({"service": "OAuthServer", "servicePublishingStrategy": {"type": kind, at: {"hostname": host}}});
    let derived = of(|spec| {
        spec["services"] = json!([
            by("LoadBalancer", "loadBalancer", "oauth-example.lb.example.com"),
            by("Route", "route", "oauth-example.apps.example.com")
        ]);
    });
    assert_eq!(derived.unwrap().spec.base_domain.as_deref(), Some("apps.example.com"));
}

#[rstest]
#[case::empty(json!(""), None, true)]
#[case::absent(Value::Null, None, true)]
#[case::with_a_dot_at_the_end(json!("Example.com."), Some("example.com"), true)]
#[case::one_label(json!("example"), Some("example"), true)]
#[case::unicode(json!("exämple.com"), None, false)]
#[case::too_long(json!(format!("{}com", "a.".repeat(126))), None, false)]
fn base_domain_of_the_cluster_is_taken_as_a_name(
    #[case] given: Value,
    #[case] domain: Option<&str>,
    #[case] understood: bool,
) {
    let derived = of(|spec| {
        spec["services"] = json!([]);
        spec["dns"]["baseDomain"] = given;
    });
    let derived = derived.unwrap();
    assert_eq!(derived.spec.base_domain.as_deref(), domain);
    assert_eq!(derived.complaints.is_empty(), understood);
}

#[test]
fn invalid_pause_is_reported() {
    let derived = of(|spec| spec["pausedUntil"] = json!("tomorrow")).unwrap();
    assert_eq!(derived.complaints.len(), 1);
    let derived = of(|spec| spec["pausedUntil"] = json!("1999-12-31T23:59:59Z")).unwrap();
    assert!(derived.complaints.is_empty());
}
