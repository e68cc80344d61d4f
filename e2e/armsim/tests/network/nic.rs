//! Network interfaces: addresses, pools, groups, and those that belong to a private endpoint or link service.

use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, NET, Sim, pe};

fn path(name: &str) -> String {
    format!("{NET}/networkInterfaces/{name}")
}

fn subnet() -> String {
    format!("{NET}/virtualNetworks/vnet/subnets/lb")
}

fn nic() -> Value {
    json!({"location": "westus2", "properties": {"ipConfigurations": [
        {"name": "ip", "properties": {"subnet": {"id": subnet()}}}]}})
}

fn fixed(address: &str) -> Value {
    let mut body = nic();
    body["properties"]["ipConfigurations"][0]["properties"]["privateIPAllocationMethod"] = json!("Static");
    body["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"] = json!(address);
    body
}

fn address(nic: &Value) -> &str {
    nic["properties"]["ipConfigurations"][0]["properties"]["privateIPAddress"]
        .as_str()
        .unwrap()
}

#[test]
fn interface_gets_an_address_and_keeps_it() {
    let mut sim = Sim::new();
    let put = sim.put(&path("a"), nic());
    assert_eq!((put.status, put.state()), (201, "Succeeded"), "{}", put.body);
    // The first is the load balancer's frontend.
    assert_eq!(address(&put.body), "10.0.0.5");
    let configuration = &put.body["properties"]["ipConfigurations"][0];
    assert_eq!(configuration["properties"]["primary"], json!(true));
    assert_eq!(
        configuration["properties"]["privateIPAllocationMethod"],
        json!("Dynamic")
    );
    assert_eq!(put.body["kind"], json!("Regular"));
    let mut tagged = nic();
    tagged["tags"] = json!({"a": "b"});
    assert_eq!(address(&sim.put(&path("a"), tagged).body), "10.0.0.5");
    assert_eq!(address(&sim.put(&path("b"), nic()).body), "10.0.0.6");
    let users = sim.get(&subnet()).body["properties"]["ipConfigurations"].clone();
    let own = format!("{}/ipConfigurations/ip", path("a"));
    assert!(users[1]["id"].as_str().unwrap().eq_ignore_ascii_case(&own), "{users}");
    assert_eq!(sim.delete(&path("a")).status, 202);
    sim.wait(10.0);
    assert_eq!(sim.get(&path("a")).refusal(), (404, "ResourceNotFound", "gateway"));
    assert_eq!(address(&sim.put(&path("c"), nic()).body), "10.0.0.5");
}

#[rstest]
#[case::free("10.0.0.200", 201, "")]
#[case::taken("10.0.0.4", 400, "PrivateIPAddressInUse")]
#[case::outside("10.0.1.9", 400, "PrivateIPAddressNotInSubnet")]
#[case::reserved("10.0.0.3", 400, "PrivateIPAddressInReservedRange")]
fn static_address(#[case] requested: &str, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let put = sim.put(&path("a"), fixed(requested));
    assert_eq!((put.status, put.code()), (status, code));
    assert_eq!(sim.get(&path("a")).status == 200, status == 201);
}

#[test]
fn static_address_moves_and_frees_the_old_one() {
    let mut sim = Sim::new();
    sim.make(&path("a"), fixed("10.0.0.20"));
    sim.make(&path("a"), fixed("10.0.0.21"));
    assert_eq!(sim.put(&path("b"), fixed("10.0.0.21")).code(), "PrivateIPAddressInUse");
    assert_eq!(sim.put(&path("b"), fixed("10.0.0.20")).status, 201);
}

#[test]
fn member_of_a_pool_is_shown_on_both_sides() {
    let mut sim = Sim::new();
    let balancer = format!("{NET}/loadBalancers/lb");
    let pool = format!("{balancer}/backendAddressPools/workers");
    let mut body = nic();
    body["properties"]["ipConfigurations"][0]["properties"]["loadBalancerBackendAddressPools"] = json!([{"id": pool}]);
    assert_eq!(
        sim.put(&path("a"), body.clone()).refusal(),
        (400, "InvalidResourceReference", "service")
    );
    sim.make(&pool, json!({}));
    sim.make(&path("a"), body);
    let member = json!([{"id": format!("{}/ipConfigurations/ip", path("a"))}]);
    assert_eq!(sim.get(&pool).body["properties"]["backendIPConfigurations"], member);
    assert_eq!(sim.names(&format!("{balancer}/networkInterfaces")), ["a"]);
    assert_eq!(sim.names(&format!("{}/loadBalancers", path("a"))), ["lb"]);
    assert_eq!(sim.delete(&pool).status, 202);
    sim.wait(10.0);
    let left = sim.get(&path("a")).body;
    let configuration = &left["properties"]["ipConfigurations"][0]["properties"];
    assert!(
        configuration["loadBalancerBackendAddressPools"].is_null(),
        "{configuration}"
    );
    assert_eq!(sim.names(&format!("{balancer}/networkInterfaces")), [""; 0]);
}

#[test]
fn group_in_use_shows_the_interface_and_stays() {
    let mut sim = Sim::new();
    let group = format!("{NET}/networkSecurityGroups/nsg");
    sim.make(&group, json!({"location": "westus2"}));
    let mut body = nic();
    body["properties"]["networkSecurityGroup"] = json!({"id": group});
    sim.make(&path("a"), body);
    assert_eq!(
        sim.get(&group).body["properties"]["networkInterfaces"],
        json!([{"id": path("a")}])
    );
    assert_eq!(sim.delete(&group).code(), "InUseNetworkSecurityGroupCannotBeDeleted");
    sim.make(&path("a"), nic());
    assert_eq!(sim.delete(&group).status, 202);
}

#[test]
fn public_address_belongs_to_one() {
    let mut sim = Sim::new();
    let public = format!("{NET}/publicIPAddresses/ip");
    let put = sim.put(
        &public,
        json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}),
    );
    assert!(put.body["properties"]["ipAddress"].is_null(), "not before it is made");
    let with = || {
        let mut body = nic();
        body["properties"]["ipConfigurations"][0]["properties"]["publicIPAddress"] = json!({"id": public});
        body
    };
    assert_eq!(sim.put(&path("a"), with()).code(), "RetryableError");
    sim.wait(3.0);
    sim.make(&path("a"), with());
    let shown = sim.get(&public).body["properties"].clone();
    assert!(shown["ipAddress"].is_string());
    assert_eq!(
        shown["ipConfiguration"]["id"],
        json!(format!("{}/ipConfigurations/ip", path("a")))
    );
    assert_eq!(sim.put(&path("b"), with()).code(), "PublicIPAddressInUse");
    assert_eq!(
        sim.delete(&public).refusal(),
        (400, "PublicIPAddressCannotBeDeleted", "service")
    );
    sim.delete(&path("a"));
    sim.wait(10.0);
    assert_eq!(sim.delete(&public).status, 202);
}

#[rstest]
#[case::no_configuration("/properties/ipConfigurations", json!([]), 400, "NetworkInterfaceIpConfigurationRequired")]
#[case::no_subnet("/properties/ipConfigurations/0/properties/subnet", json!(null), 400, "NetworkInterfaceSubnetRequired")]
#[case::missing_subnet("/properties/ipConfigurations/0/properties/subnet/id", json!(format!("{NET}/virtualNetworks/vnet/subnets/none")), 400, "InvalidResourceReference")]
#[case::other_region("/location", json!("eastus"), 400, "InvalidResourceReference")]
#[case::no_name("/properties/ipConfigurations/0/name", json!(""), 400, "InvalidRequestContent")]
fn bad_interface_is_refused(#[case] pointer: &str, #[case] value: Value, #[case] status: u16, #[case] code: &str) {
    let mut sim = Sim::new();
    let mut body = nic();
    *body.pointer_mut(pointer).unwrap() = value;
    let refused = sim.put(&path("a"), body);
    assert_eq!((refused.status, refused.code()), (status, code), "{}", refused.body);
    assert_eq!(sim.get(&path("a")).status, 404);
}

#[test]
fn interface_stays_in_its_virtual_network() {
    let mut sim = Sim::new();
    let elsewhere = format!("{NET}/virtualNetworks/other");
    sim.make(
        &elsewhere,
        json!({"location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]},
            "subnets": [{"name": "s", "properties": {"addressPrefix": "10.9.0.0/24"}}]}}),
    );
    sim.make(&path("a"), nic());
    let mut body = nic();
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!(format!("{elsewhere}/subnets/s"));
    assert_eq!(
        sim.put(&path("a"), body).code(),
        "NetworkInterfaceVirtualNetworkCannotBeChanged"
    );
    // Within it, it moves.
    let mut body = nic();
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] =
        json!(format!("{NET}/virtualNetworks/vnet/subnets/nat"));
    assert_eq!(address(&sim.make(&path("a"), body)), "10.0.1.4");
}

#[test]
fn interface_in_a_subnet_on_its_way_waits() {
    let mut sim = Sim::new();
    let fresh = format!("{NET}/virtualNetworks/vnet/subnets/fresh");
    sim.put(&fresh, json!({"properties": {"addressPrefix": "10.0.9.0/24"}}));
    let mut body = nic();
    body["properties"]["ipConfigurations"][0]["properties"]["subnet"]["id"] = json!(fresh);
    assert_eq!(sim.put(&path("a"), body).detail(), "ReferencedResourceNotProvisioned");
}

#[test]
fn managed_interface_refuses_every_write() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let endpoint = sim.endpoint("pe", &alias);
    let service = sim.get(&format!("{NET}/privateLinkServices/svc")).body;
    for (owner, code) in [
        (&endpoint, "CannotModifyNicAttachedToPrivateEndpoint"),
        (&service, "NetworkInterfaceIsManagedByAnotherResource"),
    ] {
        let id = owner["properties"]["networkInterfaces"][0]["id"].as_str().unwrap();
        let before = sim.get(id).body;
        assert_eq!(before["managedBy"], owner["id"]);
        let mut changed = before.clone();
        changed["tags"] = json!({"a": "b"});
        for refused in [
            sim.put(id, changed),
            sim.patch(id, json!({"tags": {"a": "b"}})),
            sim.delete(id),
        ] {
            assert_eq!(refused.refusal(), (400, code, "service"));
        }
        assert_eq!(sim.get(id).body, before);
    }
    let mut body = pe(&alias);
    body["properties"]["customNetworkInterfaceName"] = json!("mine");
    let named = sim.make(&format!("{GUEST_NET}/privateEndpoints/named"), body.clone());
    let nic = named["properties"]["networkInterfaces"][0]["id"].as_str().unwrap();
    assert_eq!(nic, format!("{GUEST_NET}/networkInterfaces/mine"));
    let second = sim.put(&format!("{GUEST_NET}/privateEndpoints/second"), body);
    assert_eq!(second.code(), "PrivateEndpointExistingNetworkInterfaceNotSupported");
}

#[test]
fn configurations_have_paths_of_their_own() {
    let mut sim = Sim::new();
    sim.make(&path("a"), nic());
    assert_eq!(sim.names(&format!("{}/ipConfigurations", path("a"))), ["ip"]);
    let one = sim.get(&format!("{}/ipconfigurations/IP", path("a")));
    assert_eq!(
        one.body["type"],
        json!("Microsoft.Network/networkInterfaces/ipConfigurations")
    );
    assert_eq!(sim.delete(&format!("{}/ipConfigurations/ip", path("a"))).status, 405);
}
