//! What holds of every type of Microsoft.Network: a body that is put back changes nothing, etags guard every write,
//! tags are patched, read-only fields are ignored, ids are the same in any case, lists know all.

use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, GUEST_SUB, NET, SUB, Sim, pe, pls};

/// A simulated Azure with one resource of every type, each ready; the private endpoint is the last.
fn sim_with_every_type() -> Sim {
    let mut sim = Sim::new();
    let at = |rest: Value| {
        let mut body = json!({"location": "westus2", "tags": {"made": "here"}});
        body.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        body
    };
    let rule = json!({"name": "web", "properties": {"protocol": "tcp", "access": "Allow", "direction": "Inbound", "priority": 100,
        "sourceAddressPrefix": "*", "sourcePortRange": "*", "destinationAddressPrefix": "*", "destinationPortRange": "443"}});
    let route = json!({"name": "out", "properties": {"addressPrefix": "0.0.0.0/0", "nextHopType": "Internet"}});
    for (path, body) in [
        (
            "networkSecurityGroups/nsg",
            json!({"properties": {"securityRules": [rule]}}),
        ),
        ("routeTables/table", json!({"properties": {"routes": [route]}})),
        ("applicationSecurityGroups/asg", json!({})),
        (
            "publicIPAddresses/ip",
            json!({"sku": {"name": "Standard"}, "properties": {"publicIPAllocationMethod": "Static"}}),
        ),
        (
            "natGateways/nat",
            json!({"sku": {"name": "Standard"}, "properties": {"publicIpAddresses": [{"id": format!("{NET}/publicIPAddresses/ip")}]}}),
        ),
    ] {
        sim.make(&format!("{NET}/{path}"), at(body));
    }
    let subnet = format!("{NET}/virtualNetworks/vnet/subnets/guarded");
    let body = json!({"properties": {"addressPrefix": "10.0.9.0/24",
        "networkSecurityGroup": {"id": format!("{NET}/networkSecurityGroups/nsg")},
        "routeTable": {"id": format!("{NET}/routeTables/table")},
        "natGateway": {"id": format!("{NET}/natGateways/nat")},
        "serviceEndpoints": [{"service": "Microsoft.Storage"}]}});
    sim.make(&subnet, body);
    sim.make(&format!("{NET}/loadBalancers/lb/backendAddressPools/pool"), json!({}));
    let nic = json!({"properties": {
        "networkSecurityGroup": {"id": format!("{NET}/networkSecurityGroups/nsg")},
        "ipConfigurations": [{"name": "ip", "properties": {"subnet": {"id": subnet},
            "applicationSecurityGroups": [{"id": format!("{NET}/applicationSecurityGroups/asg")}],
            "loadBalancerBackendAddressPools": [{"id": format!("{NET}/loadBalancers/lb/backendAddressPools/pool")}]}}]}});
    sim.make(&format!("{NET}/networkInterfaces/nic"), at(nic));
    sim.make(&format!("{NET}/privateLinkServices/svc"), pls());
    let service = sim.get(&format!("{NET}/privateLinkServices/svc")).body;
    let endpoint = pe(service["properties"]["alias"].as_str().unwrap());
    sim.make(&format!("{GUEST_NET}/privateEndpoints/pe"), endpoint);
    sim.wait(700.0);
    sim
}

/// Scope and name of one resource of every type.
const ALL: [(&str, &str); 14] = [
    (NET, "networkSecurityGroups/nsg"),
    (NET, "networkSecurityGroups/nsg/securityRules/web"),
    (NET, "routeTables/table"),
    (NET, "routeTables/table/routes/out"),
    (NET, "applicationSecurityGroups/asg"),
    (NET, "publicIPAddresses/ip"),
    (NET, "natGateways/nat"),
    (NET, "virtualNetworks/vnet"),
    (NET, "virtualNetworks/vnet/subnets/guarded"),
    (NET, "loadBalancers/lb"),
    (NET, "loadBalancers/lb/backendAddressPools/pool"),
    (NET, "networkInterfaces/nic"),
    (NET, "privateLinkServices/svc"),
    (GUEST_NET, "privateEndpoints/pe"),
];

/// Reads spell some ids otherwise than writes.
fn lower(body: &Value) -> String {
    body.to_string().to_ascii_lowercase()
}

#[test]
fn body_put_back_changes_nothing() {
    for (scope, name) in ALL {
        let mut sim = sim_with_every_type();
        let path = format!("{scope}/{name}");
        let before = sim.get(&path);
        assert_eq!((before.status, before.state()), (200, "Succeeded"), "{}", before.body);
        let put = sim.put(&path, before.body.clone());
        assert_eq!(
            (put.status, put.state(), put.header("retry-after")),
            (200, "Succeeded", "")
        );
        assert_eq!(lower(&put.body), lower(&before.body));
        assert_eq!(sim.get(&path).body, before.body);
    }
}

#[test]
fn etag_guards_every_write() {
    for (scope, name) in ALL {
        let mut sim = sim_with_every_type();
        let path = format!("{scope}/{name}");
        let before = sim.get(&path);
        assert_eq!(before.body["etag"], json!(before.header("etag")));
        assert!(before.header("etag").starts_with("W/\""));
        for (method, body) in [("PUT", Some(before.body.clone())), ("DELETE", None)] {
            let stale = sim.call(method, &path, &[("if-match", "W/\"stale\"")], body);
            assert_eq!(stale.refusal(), (412, "PreconditionFailed", "service"), "{method}");
            assert_eq!(stale.detail(), "PreconditionFailedEtagMismatch");
        }
        assert_eq!(sim.get(&path).body, before.body);
        let current = sim.call(
            "PUT",
            &path,
            &[("if-match", before.header("etag"))],
            Some(before.body.clone()),
        );
        assert_eq!(current.status, 200);
    }
}

#[test]
fn id_is_the_same_in_any_case_and_keeps_its_own() {
    for (scope, name) in ALL {
        let mut sim = sim_with_every_type();
        let path = format!("{scope}/{name}");
        let before = sim.get(&path).body;
        assert_eq!(before["id"], json!(path));
        let shouted = path.to_uppercase();
        assert_eq!(sim.get(&shouted).body, before);
        assert_eq!(sim.put(&shouted, before.clone()).body["id"], json!(path));
        let (list, own) = path.rsplit_once('/').unwrap();
        assert!(sim.names(&list.to_uppercase()).contains(&own.to_owned()));
    }
}

#[test]
fn made_up_state_is_ignored() {
    for (scope, name) in ALL {
        let mut sim = sim_with_every_type();
        let path = format!("{scope}/{name}");
        let before = sim.get(&path).body;
        let mut body = before.clone();
        body["etag"] = json!("mine");
        body["type"] = json!("mine");
        body["properties"]["provisioningState"] = json!("Failed");
        if body["properties"]["resourceGuid"].is_string() {
            body["properties"]["resourceGuid"] = json!("00000000-0000-0000-0000-000000000000");
        }
        let put = sim.put(&path, body);
        assert_eq!(put.status, 200, "{}", put.body);
        sim.wait(60.0);
        assert_eq!(sim.get(&path).body["properties"], before["properties"]);
    }
}

#[test]
fn tags_are_patched_where_there_are_tags() {
    for (scope, name) in ALL {
        let mut sim = sim_with_every_type();
        let path = format!("{scope}/{name}");
        let before = sim.get(&path);
        if ["privateLinkServices/svc", "privateEndpoints/pe"].contains(&name) {
            // The specs do not declare it for these, so it cannot be held against them.
            continue;
        }
        let patch = sim.patch(&path, json!({"tags": {"new": "one"}}));
        if name.matches('/').count() > 1 {
            assert_eq!(patch.refusal(), (405, "MethodNotAllowed", "gateway"));
            continue;
        }
        assert_eq!((patch.status, &patch.body["tags"]), (200, &json!({"new": "one"})));
        assert_eq!(patch.state(), "Succeeded");
        assert_ne!(patch.body["etag"], before.body["etag"]);
        // Parts carry the etag of the whole.
        let text = patch.body["properties"].to_string().replace(
            patch.body["etag"].as_str().unwrap().trim_matches(['W', '/', '"']),
            before.header("etag").trim_matches(['W', '/', '"']),
        );
        assert_eq!(text.to_ascii_lowercase(), lower(&before.body["properties"]));
        let stale = sim.call(
            "PATCH",
            &path,
            &[("if-match", before.header("etag"))],
            Some(json!({"tags": {}})),
        );
        assert_eq!(stale.status, 412);
    }
}

#[test]
fn lists_of_subscription_and_group_know_it() {
    for (scope, name) in ALL {
        let mut sim = sim_with_every_type();
        let (list, own) = name.rsplit_once('/').unwrap();
        let in_group = format!("{scope}/{list}");
        let shown = sim.get(&format!("{scope}/{name}")).body;
        let all = sim.get(&in_group).body["value"].clone();
        assert!(all.as_array().unwrap().contains(&shown), "{all}");
        assert!(sim.names(&in_group).contains(&own.to_owned()));
        if list.contains('/') {
            continue;
        }
        let subscription = if scope == NET { SUB } else { GUEST_SUB };
        let everywhere = format!("/subscriptions/{subscription}/providers/Microsoft.Network/{list}");
        assert_eq!(sim.get(&everywhere).body["value"], all);
        let page = sim.get(&format!("{everywhere}?$top=1")).body;
        assert_eq!(page["value"].as_array().unwrap().len(), 1);
    }
}

#[test]
fn deleted_group_takes_everything_along() {
    let mut sim = sim_with_every_type();
    sim.wait(1.0);
    let groups = [
        format!("/subscriptions/{SUB}/resourceGroups/rg"),
        format!("/subscriptions/{GUEST_SUB}/resourceGroups/guest"),
    ];
    // The endpoint is deleted first: a link service with connections stays.
    for group in groups.iter().rev() {
        assert_eq!(sim.delete(group).status, 202);
        sim.wait(600.0);
    }
    assert_eq!(sim.azure.resources(sim.now, ""), Vec::<Value>::new());
    // Nothing of what was deleted is left: addresses are free again.
    sim.put(&groups[0], json!({"location": "westus2"}));
    let vnet = json!({"location": "westus2", "properties": {"addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
        "subnets": [{"name": "lb", "properties": {"addressPrefix": "10.0.0.0/24"}}]}});
    sim.make(&format!("{NET}/virtualNetworks/vnet"), vnet);
    let subnet = sim.get(&format!("{NET}/virtualNetworks/vnet/subnets/lb")).body;
    assert!(subnet["properties"]["ipConfigurations"].is_null());
}
