//! Network security groups and route tables: rules and routes as parts with paths of their own, default rules, and who
//! uses a group or table.

use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{NET, Sim};

fn group() -> String {
    format!("{NET}/networkSecurityGroups/nsg")
}

fn table() -> String {
    format!("{NET}/routeTables/table")
}

fn here() -> Value {
    json!({"location": "westus2"})
}

fn rule(priority: u32, direction: &str) -> Value {
    json!({"properties": {
        "protocol": "Tcp", "access": "Allow", "direction": direction, "priority": priority,
        "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "443",
    }})
}

fn route(prefix: &str) -> Value {
    json!({"properties": {"addressPrefix": prefix, "nextHopType": "VirtualAppliance", "nextHopIpAddress": "10.0.0.9"}})
}

/// A subnet that refers to the group and the table.
fn guarded(sim: &mut Sim) -> String {
    sim.make(&group(), here());
    sim.make(&table(), here());
    let subnet = format!("{NET}/virtualNetworks/vnet/subnets/guarded");
    let body = json!({"properties": {"addressPrefix": "10.0.9.0/24",
        "networkSecurityGroup": {"id": group()}, "routeTable": {"id": table()}}});
    sim.make(&subnet, body);
    subnet
}

#[test]
fn new_group_has_the_default_rules() {
    let mut sim = Sim::new();
    let put = sim.put(&group(), json!({"location": "West US 2", "tags": {"a": "b"}}));
    assert_eq!((put.status, put.state()), (201, "Updating"));
    assert_eq!(put.body["properties"]["securityRules"], json!([]));
    sim.wait(3.0);
    let got = sim.get(&group()).body;
    let defaults = got["properties"]["defaultSecurityRules"].as_array().unwrap().clone();
    let shown: Vec<(&str, u64, &str)> = defaults
        .iter()
        .map(|rule| {
            let rule_properties = &rule["properties"];
            (
                rule["name"].as_str().unwrap(),
                rule_properties["priority"].as_u64().unwrap(),
                rule_properties["direction"].as_str().unwrap(),
            )
        })
        .collect();
    assert_eq!(
        shown,
        [
            ("AllowVnetInBound", 65000, "Inbound"),
            ("AllowAzureLoadBalancerInBound", 65001, "Inbound"),
            ("DenyAllInBound", 65500, "Inbound"),
            ("AllowVnetOutBound", 65000, "Outbound"),
            ("AllowInternetOutBound", 65001, "Outbound"),
            ("DenyAllOutBound", 65500, "Outbound"),
        ]
    );
    assert!(got["properties"]["subnets"].is_null(), "no empty back references");
    let one = sim.get(&format!("{}/defaultSecurityRules/denyallinbound", group()));
    assert_eq!(one.body, defaults[2]);
    assert_eq!(one.header("etag"), got["etag"].as_str().unwrap());
    assert_eq!(sim.names(&format!("{}/defaultSecurityRules", group())).len(), 6);
    let refused = sim.put(&format!("{}/defaultSecurityRules/mine", group()), rule(100, "Inbound"));
    assert_eq!(refused.status, 405);
}

#[test]
fn rule_is_put_read_and_deleted_by_its_own_path() {
    let mut sim = Sim::new();
    let path = format!("{}/securityRules/web", group());
    assert_eq!(
        sim.put(&path, rule(100, "Inbound")).refusal(),
        (404, "ParentResourceNotFound", "gateway")
    );
    let before = sim.make(&group(), here())["etag"].clone();
    let put = sim.put(&path, rule(100, "Inbound"));
    assert_eq!((put.status, put.state()), (201, "Updating"), "{}", put.body);
    assert!(put.header("azure-asyncoperation").contains("/operations/"));
    assert_eq!(put.body["properties"]["sourcePortRanges"], json!([]));
    assert_eq!(
        sim.put(&format!("{}/securityRules/other", group()), rule(101, "Inbound"))
            .refusal(),
        (409, "AnotherOperationInProgress", "service")
    );
    sim.wait(3.0);
    let got = sim.get(&path);
    assert_eq!((got.status, got.state()), (200, "Succeeded"));
    let whole = sim.get(&group()).body;
    assert_eq!(whole["properties"]["securityRules"], json!([got.body]));
    assert_ne!(whole["etag"], before);
    assert_eq!(sim.put(&path, rule(100, "Inbound")).status, 200);
    let gone = sim.delete(&path);
    assert_eq!((gone.status, gone.header("location").is_empty()), (202, false));
    assert_eq!(sim.get(&path).status, 200, "it goes when the operation ends");
    sim.wait(10.0);
    assert_eq!(sim.poll(gone.header("location")).status, 204);
    assert_eq!(sim.get(&path).refusal(), (404, "NotFound", "service"));
    assert_eq!(sim.get(&group()).state(), "Succeeded");
    assert_eq!(sim.delete(&path).status, 204);
}

#[test]
fn etag_guards_a_rule() {
    let mut sim = Sim::new();
    let old = sim.make(&group(), here())["etag"].as_str().unwrap().to_owned();
    let path = format!("{}/securityRules/web", group());
    sim.make(&path, rule(100, "Inbound"));
    for (method, body) in [("PUT", Some(rule(200, "Inbound"))), ("DELETE", None)] {
        let stale = sim.call(method, &path, &[("if-match", &old)], body);
        assert_eq!(stale.refusal(), (412, "PreconditionFailed", "service"), "{method}");
    }
    let now = sim.get(&path).header("etag").to_owned();
    assert_eq!(sim.call("DELETE", &path, &[("if-match", &now)], None).status, 202);
}

#[rstest]
#[case::same_priority(rule(100, "inbound"), "SecurityRuleConflict")]
#[case::low_priority(rule(99, "Outbound"), "SecurityRuleInvalidPriority")]
#[case::direction(rule(200, "Sideways"), "SecurityRuleParameterContainsUnsupportedValue")]
#[case::nothing(json!({"properties": {}}), "SecurityRuleParameterContainsUnsupportedValue")]
fn bad_rule_is_refused(#[case] body: Value, #[case] code: &str) {
    let mut sim = Sim::new();
    sim.make(&group(), here());
    sim.make(&format!("{}/securityRules/web", group()), rule(100, "Inbound"));
    let refused = sim.put(&format!("{}/securityRules/other", group()), body);
    assert_eq!(refused.refusal(), (400, code, "service"), "{}", refused.body);
    assert_eq!(sim.names(&format!("{}/securityRules", group())), ["web"]);
    // The other direction has priorities of its own.
    let put = sim.put(&format!("{}/securityRules/out", group()), rule(100, "Outbound"));
    assert_eq!(put.status, 201);
}

#[test]
fn two_rules_of_one_name_are_refused() {
    let mut sim = Sim::new();
    let named = |name: &str, priority| {
        let mut rule = rule(priority, "Inbound");
        rule["name"] = json!(name);
        rule
    };
    let body = json!({"location": "westus2", "properties": {"securityRules": [named("a", 100), named("A", 101)]}});
    assert_eq!(
        sim.put(&group(), body).refusal(),
        (400, "InvalidRequestFormat", "service")
    );
}

#[test]
fn route_is_put_read_and_deleted_by_its_own_path() {
    let mut sim = Sim::new();
    let made = sim.make(&table(), here());
    assert_eq!(made["properties"]["disableBgpRoutePropagation"], json!(false));
    let path = format!("{}/routes/out", table());
    assert_eq!(sim.put(&path, route("0.0.0.0/0")).status, 201);
    sim.wait(3.0);
    assert_eq!(sim.get(&path).body["properties"]["hasBgpOverride"], json!(false));
    assert_eq!(
        sim.put(&format!("{}/routes/again", table()), route("0.0.0.0/0")).code(),
        "RouteConflict"
    );
    for (pointer, value, code) in [
        (
            "/properties/addressPrefix",
            json!("10.0.0"),
            "InvalidAddressPrefixFormat",
        ),
        ("/properties/nextHopType", json!("Nowhere"), "InvalidNextHopType"),
        ("/properties/nextHopIpAddress", json!(null), "InvalidNextHopIpAddress"),
    ] {
        let mut body = route("10.9.0.0/16");
        *body.pointer_mut(pointer).unwrap() = value;
        let refused = sim.put(&format!("{}/routes/bad", table()), body);
        assert_eq!(refused.refusal(), (400, code, "service"));
    }
    assert_eq!(sim.delete(&path).status, 202);
    sim.wait(10.0);
    assert_eq!(sim.names(&format!("{}/routes", table())), [""; 0]);
}

#[test]
fn what_a_subnet_uses_shows_it_and_stays() {
    let mut sim = Sim::new();
    let subnet = guarded(&mut sim);
    for (path, code) in [
        (group(), "InUseNetworkSecurityGroupCannotBeDeleted"),
        (table(), "InUseRouteTableCannotBeDeleted"),
    ] {
        assert_eq!(sim.get(&path).body["properties"]["subnets"], json!([{"id": subnet}]));
        let refused = sim.delete(&path);
        assert_eq!(refused.refusal(), (400, code, "service"));
        assert!(refused.message().contains(&subnet), "{}", refused.message());
    }
    assert_eq!(sim.delete(&subnet).status, 202);
    sim.wait(10.0);
    for path in [group(), table()] {
        assert!(sim.get(&path).body["properties"]["subnets"].is_null());
        assert_eq!(sim.delete(&path).status, 202);
    }
}

#[test]
fn group_on_its_way_or_elsewhere_is_no_good_for_a_subnet() {
    let mut sim = Sim::new();
    sim.put(&group(), here());
    let subnet = format!("{NET}/virtualNetworks/vnet/subnets/guarded");
    let body = json!({"properties": {"addressPrefix": "10.0.9.0/24", "networkSecurityGroup": {"id": group()}}});
    let early = sim.put(&subnet, body.clone());
    assert_eq!(
        (early.refusal(), early.detail()),
        ((429, "RetryableError", "service"), "ReferencedResourceNotProvisioned")
    );
    sim.wait(3.0);
    assert_eq!(sim.put(&subnet, body.clone()).status, 201);
    sim.wait(3.0);
    let far = format!("{NET}/networkSecurityGroups/far");
    sim.make(&far, json!({"location": "eastus"}));
    let mut moved = body;
    moved["properties"]["networkSecurityGroup"]["id"] = json!(far);
    assert_eq!(
        sim.put(&subnet, moved).refusal(),
        (400, "InvalidResourceReference", "service")
    );
}
