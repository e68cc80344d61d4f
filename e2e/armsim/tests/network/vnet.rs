//! VNets as one body with their subnets: what a PUT is refused for, what it drops, and what can be asked of addresses.

use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, NET, Sim, pe};

fn path() -> String {
    format!("{NET}/virtualNetworks/new")
}

fn subnet(name: &str, prefix: &str) -> Value {
    json!({"name": name, "properties": {"addressPrefix": prefix}})
}

fn vnet(space: &[&str], subnets: &[Value]) -> Value {
    json!({"location": "westus2", "properties": {"addressSpace": {"addressPrefixes": space}, "subnets": subnets}})
}

#[rstest]
#[case::subnets_overlap(&["10.9.0.0/16"], &[subnet("a", "10.9.0.0/24"), subnet("b", "10.9.0.128/25")], "NetcfgSubnetRangesOverlap")]
#[case::subnet_outside(&["10.9.0.0/16"], &[subnet("a", "10.8.0.0/24")], "NetcfgSubnetRangeOutsideVnet")]
#[case::subnet_twice(&["10.9.0.0/16"], &[subnet("a", "10.9.0.0/24"), subnet("A", "10.9.1.0/24")], "InvalidRequestFormat")]
#[case::subnet_name(&["10.9.0.0/16"], &[subnet("a b", "10.9.0.0/24")], "InvalidResourceName")]
#[case::space_overlaps(&["10.9.0.0/16", "10.9.1.0/24"], &[], "VirtualNetworkAddressPrefixesOverlap")]
#[case::space_is_garbage(&["10.9.0.0"], &[], "InvalidAddressPrefixFormat")]
#[case::space_has_host_bits(&["10.9.0.1/16"], &[], "InvalidCIDRNotation")]
#[case::no_space(&[], &[], "AddressPrefixStringCannotBeNullOrEmpty")]
#[case::subnet_too_small(&["10.9.0.0/16"], &[subnet("a", "10.9.0.0/30")], "NetcfgInvalidSubnet")]
fn bad_vnet_is_refused(#[case] space: &[&str], #[case] subnets: &[Value], #[case] code: &str) {
    let mut sim = Sim::new();
    let refused = sim.put(&path(), vnet(space, subnets));
    assert_eq!(refused.refusal(), (400, code, "service"), "{}", refused.body);
    assert_eq!(sim.get(&path()).status, 404);
}

#[test]
fn changed_subnet_keeps_the_vnet_updating() {
    let mut sim = Sim::new();
    sim.make(&path(), vnet(&["10.9.0.0/16"], &[subnet("a", "10.9.0.0/24")]));
    let two = [subnet("a", "10.9.0.0/24"), subnet("b", "10.9.1.0/24")];
    let put = sim.put(&path(), vnet(&["10.9.0.0/16"], &two));
    assert_eq!(
        (put.status, put.state(), put.header("retry-after")),
        (200, "Updating", "3")
    );
    let states: Vec<&str> = put.body["properties"]["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subnet| subnet["properties"]["provisioningState"].as_str().unwrap())
        .collect();
    assert_eq!(states, ["Updating", "Updating"], "all of them");
    let busy = sim.put(
        &format!("{}/subnets/c", path()),
        json!({"properties": {"addressPrefix": "10.9.2.0/24"}}),
    );
    assert_eq!(busy.refusal(), (409, "AnotherOperationInProgress", "service"));
    sim.wait(3.0);
    assert_eq!(sim.get(&format!("{}/subnets/b", path())).state(), "Succeeded");
    let same = sim.put(&path(), vnet(&["10.9.0.0/16"], &two));
    assert_eq!((same.status, same.state()), (200, "Succeeded"));
}

#[test]
fn subnets_are_updating_with_their_network_though_none_changed() {
    let mut sim = Sim::new();
    sim.make(&path(), vnet(&["10.9.0.0/16"], &[subnet("a", "10.9.0.0/24")]));
    let wider = vnet(&["10.9.0.0/16", "10.10.0.0/16"], &[subnet("a", "10.9.0.0/24")]);
    let put = sim.put(&path(), wider);
    assert_eq!(put.state(), "Updating");
    let state = |body: &Value| body["properties"]["provisioningState"].clone();
    assert_eq!(state(&put.body["properties"]["subnets"][0]), json!("Updating"));
    assert_eq!(sim.get(&format!("{}/subnets/a", path())).state(), "Updating");
    sim.wait(3.0);
    assert_eq!(sim.get(&format!("{}/subnets/a", path())).state(), "Succeeded");
}

#[test]
fn vnet_put_does_not_take_what_is_in_use() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let path = format!("{NET}/virtualNetworks/vnet");
    let before = sim.get(&path).body;
    let only_lb = vnet(&["10.0.0.0/16"], &[subnet("lb", "10.0.0.0/24")]);
    assert_eq!(sim.put(&path, only_lb).code(), "InUseSubnetCannotBeDeleted");
    // A PUT that forgets the policies switches them on.
    let forgot = [subnet("lb", "10.0.0.0/24"), subnet("nat", "10.0.1.0/24")];
    assert_eq!(
        sim.put(&path, vnet(&["10.0.0.0/16"], &forgot)).code(),
        "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet"
    );
    let moved = [subnet("lb", "10.0.5.0/24"), subnet("nat", "10.0.1.0/24")];
    assert_eq!(
        sim.put(&path, vnet(&["10.0.0.0/16"], &moved)).code(),
        "InUsePrefixCannotBeDeleted"
    );
    let mut smaller = before.clone();
    smaller["properties"]["addressSpace"]["addressPrefixes"] = json!(["10.0.0.0/24"]);
    assert_eq!(sim.put(&path, smaller).code(), "NetcfgSubnetRangeOutsideVnet");
    assert_eq!(sim.delete(&path).code(), "InUseSubnetCannotBeDeleted");
    assert_eq!(sim.get(&path).body, before);
    let larger = sim.put(&path, {
        let mut body = before;
        body["properties"]["addressSpace"]["addressPrefixes"] = json!(["10.0.0.0/16", "10.20.0.0/16"]);
        body
    });
    assert_eq!(larger.status, 200);
}

#[rstest]
#[case::strict(false, 400)]
#[case::lax(true, 200)]
fn prefix_in_use_grows_only_by_switch(#[case] grows: bool, #[case] status: u16) {
    let mut sim = Sim::with_switches(json!({"prefix_in_use_can_grow": grows}));
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let used = format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe");
    let put = sim.put(&used, json!({"properties": {"addressPrefix": "10.1.0.0/27"}}));
    assert_eq!(put.status, status, "{}", put.body);
    sim.wait(3.0);
    let shrunk = sim.put(&used, json!({"properties": {"addressPrefix": "10.1.0.0/29"}}));
    assert_eq!(shrunk.code(), "InUsePrefixCannotBeDeleted");
}

#[test]
fn endpoint_on_its_way_stops_the_vnets_write_to_its_subnet() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.put(&format!("{GUEST_NET}/privateEndpoints/pe"), pe(&alias));
    let vnet_path = format!("{GUEST_NET}/virtualNetworks/workers");
    let mut body = sim.get(&vnet_path).body;
    body["properties"]["subnets"][0]["properties"]["defaultOutboundAccess"] = json!(false);
    let refused = sim.put(&vnet_path, body);
    assert_eq!(refused.detail(), "ReferencedResourceNotProvisioned");
}

#[test]
fn delegations_and_service_endpoints_come_back_whole() {
    let mut sim = Sim::new();
    let path = format!("{NET}/virtualNetworks/vnet/subnets/web");
    let body = json!({"properties": {
        "addressPrefixes": ["10.0.9.0/24", "10.0.10.0/24"],
        "delegations": [{"name": "d", "properties": {"serviceName": "Microsoft.Web/serverFarms"}}],
        "serviceEndpoints": [{"service": "Microsoft.Storage"}],
        "defaultOutboundAccess": false,
    }});
    let made = sim.make(&path, body);
    let shown = &made["properties"];
    assert_eq!(shown["addressPrefixes"], json!(["10.0.9.0/24", "10.0.10.0/24"]));
    assert!(shown["addressPrefix"].is_null());
    let delegation = &shown["delegations"][0];
    assert_eq!(delegation["id"], json!(format!("{path}/delegations/d")));
    assert_eq!(delegation["etag"], made["etag"]);
    assert_eq!(
        delegation["properties"]["serviceName"],
        json!("Microsoft.Web/serverFarms")
    );
    assert_eq!(
        shown["serviceEndpoints"],
        json!([{"service": "Microsoft.Storage", "locations": ["westus2"], "provisioningState": "Succeeded"}])
    );
    assert_eq!(shown["defaultOutboundAccess"], json!(false));
}

#[test]
fn address_is_asked_for() {
    let mut sim = Sim::new();
    let ask = |address: &str| format!("{NET}/virtualNetworks/vnet/CheckIPAddressAvailability?ipAddress={address}");
    let free = sim.get(&ask("10.0.0.9")).body;
    assert_eq!(free, json!({"available": true, "isPlatformReserved": false}));
    let taken = sim.get(&ask("10.0.0.4")).body;
    assert_eq!(taken["available"], json!(false));
    assert_eq!(
        taken["availableIPAddresses"],
        json!(["10.0.0.5", "10.0.0.6", "10.0.0.7", "10.0.0.8", "10.0.0.9"])
    );
    let reserved = sim.get(&ask("10.0.0.1")).body;
    assert_eq!(
        (&reserved["available"], &reserved["isPlatformReserved"]),
        (&json!(false), &json!(true))
    );
    assert_eq!(sim.get(&ask("10.7.0.1")).code(), "PrivateIPAddressNotInAnySubnet");
    assert_eq!(sim.get(&ask("x")).code(), "InvalidIPAddressFormat");
    let missing = sim.get(&format!(
        "{NET}/virtualNetworks/none/CheckIPAddressAvailability?ipAddress=10.0.0.1"
    ));
    assert_eq!(missing.refusal(), (404, "ResourceNotFound", "gateway"));
}

#[test]
fn usage_counts_addresses() {
    let mut sim = Sim::new();
    let got = sim.get(&format!("{GUEST_NET}/virtualNetworks/workers/usages")).body;
    let pe = &got["value"][0];
    assert_eq!((&pe["currentValue"], &pe["limit"]), (&json!(0), &json!(11)));
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let got = sim.get(&format!("{GUEST_NET}/virtualNetworks/workers/usages")).body;
    assert_eq!(got["value"][0]["currentValue"], json!(1));
    assert_eq!(got["value"][0]["name"]["value"], json!("SubnetSpace"));
}
