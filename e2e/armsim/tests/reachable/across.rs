//! The walk where zone, endpoint and service are in different subscriptions, of one tenant or of two.

use armsim::Caller;
use rstest::rstest;
use serde_json::{Value, json};

use crate::dns_support::{Sim, a, link_to};

const MANAGEMENT: &str = "/subscriptions/mc/resourceGroups/mc/providers/Microsoft.Network";
const WORKLOAD: &str = "/subscriptions/wc/resourceGroups/wc/providers/Microsoft.Network";
const NAME: &str = "api.wc.example.com";

fn zone() -> String {
    format!("{WORKLOAD}/privateDnsZones/wc.example.com")
}

fn service() -> String {
    format!("{WORKLOAD}/privateLinkServices/api")
}

fn endpoint() -> String {
    format!("{MANAGEMENT}/privateEndpoints/api")
}

fn vnet() -> String {
    format!("{MANAGEMENT}/virtualNetworks/vnet")
}

/// Who owns a subscription; `tenant` is the subscription's.
fn owner(subscription: &str, tenant: &str) -> Caller {
    Caller {
        tenant_id: tenant.into(),
        client_id: format!("client of {subscription}"),
        object_id: subscription.into(),
    }
}

/// A workload cluster's service and zone in one subscription, and the VNet that is to reach it in another.
fn seed(tenant: &str) -> Value {
    let frontend = format!("{WORKLOAD}/loadBalancers/lb/frontendIPConfigurations/api");
    let nat = format!("{WORKLOAD}/virtualNetworks/vnet/subnets/nat");
    let balancer = format!("{WORKLOAD}/loadBalancers/lb");
    let role = |subscription: &str| {
        let scope = format!("/subscriptions/{subscription}");
        json!({"object_id": subscription, "scope": scope, "actions": ["*"]})
    };
    let network = |prefix: &str, subnet: &str| {
        json!({"addressSpace": {"addressPrefixes": [prefix]}, "subnets": [{"name": subnet, "properties": {
            "addressPrefix": prefix, "privateLinkServiceNetworkPolicies": "Disabled"}}]})
    };
    json!({
        "tenants": [{"id": "t1"}, {"id": "t2"}],
        "subscriptions": [{"id": "mc", "tenant": "t1"}, {"id": "wc", "tenant": tenant}],
        "roles": [role("mc"), role("wc")],
        "resources": [
            {"id": "/subscriptions/mc/resourceGroups/mc", "location": "westus2"},
            {"id": "/subscriptions/wc/resourceGroups/wc", "location": "westus2"},
            {"id": vnet(), "location": "westus2", "properties": network("10.0.0.0/24", "node")},
            {"id": format!("{WORKLOAD}/virtualNetworks/vnet"), "location": "westus2",
                "properties": network("10.1.0.0/24", "nat")},
            {"id": balancer, "location": "westus2", "sku": {"name": "Standard"}, "properties": {
                "frontendIPConfigurations": [{"name": "api", "properties": {"subnet": {"id": nat}}}]}},
            {"id": service(), "location": "westus2", "properties": {
                "loadBalancerFrontendIpConfigurations": [{"id": frontend}],
                "ipConfigurations": [{"name": "nat", "properties": {"subnet": {"id": nat}}}],
                "visibility": {"subscriptions": ["mc"]}}},
            {"id": zone(), "location": "global"},
            with_id(format!("{}/virtualNetworkLinks/mc", zone()), link_to(&vnet())),
            with_id(format!("{}/A/api", zone()), a(&["10.0.0.4"])),
        ],
        "services": [{"load_balancer": balancer, "frontend": "api", "name": "wc/apiserver"}],
    })
}

fn with_id(id: String, mut body: Value) -> Value {
    body["id"] = json!(id);
    body
}

fn walk(sim: &mut Sim) -> armsim::Reachable {
    let now = sim.now;
    sim.azure.reachable(now, &vnet(), NAME)
}

#[rstest]
#[case::same_tenant("t1")]
#[case::other_tenant("t2")]
fn endpoint_leads_to_a_service_of_another_subscription(#[case] tenant: &str) {
    let mut sim = Sim::with(seed(tenant));
    assert_eq!(
        walk(&mut sim).why.unwrap(),
        "endpoint: nothing in the virtual network has 10.0.0.4"
    );
    sim.caller = owner("mc", "t1");
    let connection =
        json!({"name": "api", "properties": {"privateLinkServiceId": service(), "requestMessage": "please"}});
    let body = json!({"location": "westus2", "properties": {
        "subnet": {"id": format!("{}/subnets/node", vnet())}, "manualPrivateLinkServiceConnections": [connection]}});
    let made = sim.put(&endpoint(), body);
    assert_eq!(made.status, 201, "{}", made.body);
    sim.wait(700);
    let why = walk(&mut sim).why.unwrap();
    assert!(why.starts_with("connection: ") && why.ends_with(" is Pending"), "{why}");

    sim.caller = owner("wc", tenant);
    let shown = sim.get(&service()).body;
    let connection = &shown["properties"]["privateEndpointConnections"][0];
    let state = json!({"privateLinkServiceConnectionState": {"status": "Approved"}});
    let decided = sim.put(connection["id"].as_str().unwrap(), json!({"properties": state}));
    assert_eq!(decided.status, 200, "{}", decided.body);
    sim.wait(60);
    let reached = walk(&mut sim);
    assert_eq!((reached.ok, reached.why), (true, None));
    let ids: Vec<&str> = reached.path.iter().map(|hop| hop.id.as_str()).collect();
    assert_eq!(
        (ids[0], ids[3], ids[5]),
        (zone().as_str(), endpoint().as_str(), service().as_str())
    );
    assert_eq!(ids[7], "wc/apiserver");
}

#[rstest]
#[case::failed(json!({"provisioningState": "Failed"}), "endpoint: /subscriptions/mc")]
#[case::without_interface(json!({"networkInterfaces": []}), "endpoint: nothing in the virtual network has 10.0.0.4")]
fn endpoint_that_drifted_leads_nowhere(#[case] change: Value, #[case] expected: &str) {
    let mut sim = Sim::with(seed("t1"));
    let approved = json!({"status": "Approved", "description": "", "actionsRequired": "None"});
    let connection = json!({"name": "api", "properties": {
        "privateLinkServiceId": service(), "privateLinkServiceConnectionState": approved}});
    let mut body = json!({"location": "westus2", "properties": {
        "subnet": {"id": format!("{}/subnets/node", vnet())}, "manualPrivateLinkServiceConnections": [connection]}});
    let now = sim.now;
    sim.azure.put_resource(now, &endpoint(), body.clone()).unwrap();
    let reached = walk(&mut sim);
    assert!(reached.ok, "{:?}", reached.why);
    for (name, value) in change.as_object().unwrap() {
        body["properties"][name] = value.clone();
    }
    sim.azure.put_resource(now, &endpoint(), body).unwrap();
    let why = walk(&mut sim).why.unwrap();
    assert!(why.starts_with(expected), "{why}");
}
