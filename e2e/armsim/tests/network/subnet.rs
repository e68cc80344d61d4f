//! VNets and subnets: one write at a time, one etag, prefixes, policies, and who lives in a subnet.

use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, NET, Sim, pe};

fn subnet(name: &str) -> String {
    format!("{NET}/virtualNetworks/vnet/subnets/{name}")
}

fn prefix(prefix: &str) -> Value {
    json!({"properties": {"addressPrefix": prefix}})
}

#[test]
fn creation_fills_in_the_policies() {
    let mut sim = Sim::new();
    let put = sim.put(&subnet("new"), prefix("10.0.9.0/24"));
    assert_eq!(
        (put.status, put.state(), put.header("retry-after")),
        (201, "Updating", "3")
    );
    let properties = &put.body["properties"];
    assert_eq!(properties["privateEndpointNetworkPolicies"], json!("Disabled"));
    assert_eq!(properties["privateLinkServiceNetworkPolicies"], json!("Enabled"));
    assert_eq!(properties["delegations"], json!([]));
    sim.wait(3.0);
    assert_eq!(sim.get(&subnet("new")).state(), "Succeeded");
    let same = sim.put(&subnet("new"), prefix("10.0.9.0/24"));
    assert_eq!(
        (same.status, same.state(), same.header("retry-after")),
        (200, "Succeeded", "")
    );
    let vnet = sim.get(&format!("{NET}/virtualNetworks/vnet"));
    let names: Vec<&Value> = vnet.body["properties"]["subnets"]
        .as_array()
        .unwrap()
        .iter()
        .map(|subnet| &subnet["name"])
        .collect();
    assert_eq!(names, ["lb", "nat", "new"]);
}

#[test]
fn vnet_and_subnets_share_one_etag() {
    let mut sim = Sim::new();
    let before = sim.get(&subnet("lb")).header("etag").to_owned();
    assert_eq!(sim.get(&format!("{NET}/virtualNetworks/vnet")).header("etag"), before);
    sim.put(&subnet("new"), prefix("10.0.9.0/24"));
    sim.wait(3.0);
    let after = sim.get(&subnet("lb")).header("etag").to_owned();
    assert_ne!(after, before);
    assert_eq!(sim.get(&format!("{NET}/virtualNetworks/vnet")).header("etag"), after);
    let stale = sim.call(
        "PUT",
        &subnet("lb"),
        &[("if-match", &before)],
        Some(prefix("10.0.0.0/24")),
    );
    assert_eq!(stale.refusal(), (412, "PreconditionFailed", "service"));
}

#[rstest]
#[case::conflict("409", 409, "AnotherOperationInProgress", "")]
#[case::retryable("429", 429, "RetryableError", "RetryableErrorDueToAnotherOperation")]
fn second_write_to_a_vnet_waits(#[case] switch: &str, #[case] status: u16, #[case] code: &str, #[case] detail: &str) {
    let mut sim = Sim::with_switches(json!({"vnet_busy": switch}));
    let first = sim.put(&subnet("a"), prefix("10.0.8.0/24"));
    let refused = sim.put(&subnet("b"), prefix("10.0.9.0/24"));
    assert_eq!(refused.refusal(), (status, code, "service"));
    assert_eq!(refused.detail(), detail);
    let (wait, cause) = (refused.header("retry-after"), refused.header("x-ms-failure-cause"));
    if status == 409 {
        assert_eq!((wait, cause, &refused.body["error"]["details"]), ("", "", &json!([])));
        let id = first.header("x-ms-request-id");
        assert!(refused.message().contains(id), "{}", refused.message());
    } else {
        assert_eq!(cause, "service");
        assert!((11..=14).contains(&wait.parse::<u32>().unwrap()), "{wait}");
        let message = refused.body["error"]["details"][0]["message"].as_str().unwrap();
        let end = format!(
            "is updating resource {}. The call can be retried in {wait} seconds.",
            subnet("a")
        );
        assert!(message.ends_with(&end), "{message}");
    }
    assert_eq!(sim.delete(&subnet("nat")).status, status);
    // Another VNet is not concerned.
    let other = format!("{GUEST_NET}/virtualNetworks/workers/subnets/b");
    assert_eq!(sim.put(&other, prefix("10.1.9.0/24")).status, 201);
    sim.wait(3.0);
    assert_eq!(sim.put(&subnet("b"), prefix("10.0.9.0/24")).status, 201);
}

#[rstest]
#[case::overlap("10.0.1.128/25", "NetcfgSubnetRangesOverlap")]
#[case::outside("10.7.0.0/24", "NetcfgSubnetRangeOutsideVnet")]
#[case::too_small("10.0.9.0/30", "NetcfgInvalidSubnet")]
#[case::garbage("10.0.9.0", "InvalidAddressPrefixFormat")]
#[case::host_bits("10.0.9.1/24", "InvalidCIDRNotation")]
fn bad_prefix_is_refused(#[case] given: &str, #[case] code: &str) {
    let mut sim = Sim::new();
    assert_eq!(sim.put(&subnet("new"), prefix(given)).refusal(), (400, code, "service"));
    assert_eq!(sim.get(&subnet("new")).refusal(), (404, "NotFound", "service"));
}

#[test]
fn both_prefix_fields_count() {
    let mut sim = Sim::new();
    let many = json!({"properties": {"addressPrefixes": ["10.0.8.0/24", "10.0.9.0/24"]}});
    assert_eq!(sim.put(&subnet("new"), many).status, 201);
    sim.wait(3.0);
    assert_eq!(
        sim.put(&subnet("other"), prefix("10.0.9.0/24")).code(),
        "NetcfgSubnetRangesOverlap"
    );
}

#[test]
fn users_are_in_capitals_when_read_and_as_they_are_when_written() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let written = format!("{NET}/privateLinkServices/svc/ipConfigurations/nat");
    let read = format!(
        "{}/privateLinkServices/SVC/ipConfigurations/NAT",
        NET.replace("/rg/", "/RG/")
    );
    let last = |answer: &Value| answer["ipConfigurations"][1]["id"].as_str().unwrap().to_owned();
    let got = sim.get(&subnet("nat")).body;
    assert_eq!(last(&got["properties"]), read);
    assert_eq!(last(&sim.put(&subnet("nat"), got).body["properties"]), written);
    let network = sim.get(&format!("{NET}/virtualNetworks/vnet")).body;
    assert_eq!(last(&network["properties"]["subnets"][1]["properties"]), read);
}

#[test]
fn unknown_properties_are_dropped_at_any_depth() {
    let mut sim = Sim::unchecked();
    let mut body = prefix("10.0.9.0/24");
    body["properties"]["nonsense"] = json!(1);
    let delegation = json!({"serviceName": "Microsoft.Sql/managedInstances", "nonsense": 1});
    body["properties"]["delegations"] = json!([{"name": "d", "properties": delegation}]);
    let put = sim.put(&subnet("new"), body);
    assert_eq!((put.status, put.state()), (201, "Updating"));
    assert!(!put.body.to_string().contains("nonsense"), "{}", put.body);
    let vnet = format!("{NET}/virtualNetworks/vnet");
    sim.wait(3.0);
    let mut network = sim.get(&vnet).body;
    network["properties"]["enableVmProtection"] = json!(true);
    network["properties"]["subnets"][0]["properties"]["nonsense"] = json!(1);
    let put = sim.put(&vnet, network);
    assert_eq!((put.status, put.state()), (200, "Succeeded"), "nothing has changed");
    assert!(put.body["properties"].get("enableVmProtection").is_none());
}

#[test]
fn empty_list_of_prefixes_is_not_shown() {
    let mut sim = Sim::new();
    let both = json!({"properties": {"addressPrefix": "10.0.9.0/24", "addressPrefixes": []}});
    let put = sim.put(&subnet("new"), both);
    assert_eq!(put.status, 201);
    assert_eq!(put.body["properties"].get("addressPrefixes"), None);
}

#[test]
fn subnet_in_use_is_not_deleted() {
    let mut sim = Sim::new();
    sim.link_service("svc");
    let refused = sim.delete(&subnet("nat"));
    assert_eq!(refused.refusal(), (400, "InUseSubnetCannotBeDeleted", "service"));
    assert!(
        refused
            .message()
            .contains("/ipConfigurations/nat and cannot be deleted."),
        "{}",
        refused.message()
    );
    let mut smaller = prefix("10.0.1.128/25");
    smaller["properties"]["privateLinkServiceNetworkPolicies"] = json!("Disabled");
    assert_eq!(sim.put(&subnet("nat"), smaller).code(), "InUsePrefixCannotBeDeleted");
    assert_eq!(
        sim.put(&subnet("nat"), prefix("10.0.1.0/24")).code(),
        "PrivateLinkServiceNetworkPoliciesCannotBeEnabledOnPrivateLinkServiceSubnet"
    );
    let vnet = sim.delete(&format!("{NET}/virtualNetworks/vnet"));
    assert_eq!(vnet.code(), "InUseSubnetCannotBeDeleted");
}

#[test]
fn policies_stay_off_where_endpoints_live() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    sim.endpoint("pe", &alias);
    let mut body = prefix("10.1.0.0/28");
    body["properties"]["privateEndpointNetworkPolicies"] = json!("Enabled");
    let refused = sim.put(&format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe"), body);
    assert_eq!(
        refused.code(),
        "PrivateEndpointNetworkPoliciesCannotBeEnabledOnPrivateEndpointSubnet"
    );
}

#[test]
fn endpoint_on_its_way_stops_subnet_writes() {
    let mut sim = Sim::new();
    let alias = sim.link_service("svc");
    let path = format!("{GUEST_NET}/virtualNetworks/workers/subnets/pe");
    sim.put(&format!("{GUEST_NET}/privateEndpoints/pe"), pe(&alias));
    let mut body = prefix("10.1.0.0/28");
    body["properties"]["defaultOutboundAccess"] = json!(false);
    let refused = sim.put(&path, body.clone());
    assert_eq!(
        (refused.refusal(), refused.detail()),
        ((429, "RetryableError", "service"), "ReferencedResourceNotProvisioned")
    );
    sim.wait(700.0);
    assert_eq!(sim.put(&path, body).status, 200);
}

#[test]
fn deletion_names_what_is_missing() {
    let mut sim = Sim::new();
    let gone = sim.delete(&subnet("none"));
    assert_eq!(gone.status, 204);
    let orphan = format!("{NET}/virtualNetworks/none/subnets/x");
    for got in [sim.delete(&orphan), sim.get(&orphan)] {
        assert_eq!(got.refusal(), (404, "ResourceNotFound", "gateway"));
        assert!(
            got.message().contains("'Microsoft.Network/virtualNetworks/none'"),
            "{}",
            got.message()
        );
    }
    let put = sim.put(&orphan, prefix("10.0.9.0/24"));
    assert_eq!(put.refusal(), (404, "ParentResourceNotFound", "gateway"));
    let other = sim.put(&subnet("new"), prefix("10.0.9.0/24"));
    assert_eq!(other.status, 201);
    sim.wait(3.0);
    let gone = sim.delete(&subnet("new"));
    assert_eq!((gone.status, gone.header("retry-after")), (202, "10"));
    sim.wait(10.0);
    assert_eq!(sim.get(&subnet("new")).status, 404);
}

#[test]
fn put_replaces_the_whole_subnet() {
    let mut sim = Sim::new();
    let nsg = format!("{NET}/networkSecurityGroups/nsg");
    let mut body = prefix("10.0.0.0/24");
    body["properties"]["networkSecurityGroup"] = json!({"id": nsg});
    assert_eq!(sim.put(&subnet("lb"), body.clone()).code(), "InvalidResourceReference");
    sim.make(&nsg, json!({"location": "westus2"}));
    assert_eq!(sim.put(&subnet("lb"), body).status, 200);
    sim.wait(3.0);
    assert_eq!(
        sim.get(&subnet("lb")).body["properties"]["networkSecurityGroup"]["id"],
        json!(nsg)
    );
    sim.put(&subnet("lb"), prefix("10.0.0.0/24"));
    sim.wait(3.0);
    assert!(sim.get(&subnet("lb")).body["properties"]["networkSecurityGroup"].is_null());
}

#[test]
fn success_may_precede_the_subnets_own_state() {
    let mut sim = Sim::with_switches(json!({"subnet_lag_s": 5}));
    let put = sim.put(&subnet("new"), prefix("10.0.9.0/24"));
    sim.wait(3.0);
    assert_eq!(
        sim.poll(put.header("azure-asyncoperation")).body,
        json!({"status": "Succeeded"})
    );
    assert_eq!(sim.get(&subnet("new")).state(), "Updating");
    sim.wait(5.0);
    assert_eq!(sim.get(&subnet("new")).state(), "Succeeded");
    assert_eq!(sim.get(&subnet("lb")).state(), "Succeeded");
}

#[test]
fn vnet_put_carries_its_subnets() {
    let mut sim = Sim::new();
    let path = format!("{NET}/virtualNetworks/v2");
    let body = |subnets: Value| json!({"location": "West US 2", "properties": {"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}, "subnets": subnets}});
    let put = sim.put(
        &path,
        body(json!([{"name": "s", "properties": {"addressPrefix": "10.9.0.0/24"}}])),
    );
    assert_eq!(
        (put.status, put.state(), put.header("retry-after")),
        (201, "Updating", "3")
    );
    assert_eq!(put.body["location"], json!("westus2"));
    assert_eq!(
        put.body["properties"]["subnets"][0]["properties"]["provisioningState"],
        json!("Updating")
    );
    sim.wait(3.0);
    let got = sim.get(&path);
    assert_eq!(
        got.body["properties"]["subnets"][0]["properties"]["provisioningState"],
        json!("Succeeded")
    );
    let mut tagged = body(json!([{"name": "s", "properties": {"addressPrefix": "10.9.0.0/24"}}]));
    tagged["tags"] = json!({"a": "b"});
    assert_eq!(sim.put(&path, tagged).state(), "Succeeded");
    // What a PUT leaves out is gone.
    sim.put(&path, body(json!([])));
    sim.wait(3.0);
    assert_eq!(sim.get(&format!("{path}/subnets/s")).status, 404);
}
