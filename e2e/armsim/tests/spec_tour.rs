//! One call of every operation of the specs that is simulated, each held against its spec; and what all test programs
//! together have met.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::collections::BTreeMap;

use armsim::{Checked, Preset, Tally};
use network_support::{GUEST_NET, GUEST_SUB, NET, PROVIDER, SUB, Sim, TENANT, pe, pls, seed, spec_support};
use serde_json::{Value, json};

/// A subscription without resources.
const EMPTY_SUB: &str = "55555555-5555-5555-5555-555555555555";

/// Operations that nobody simulates, by the beginnings of their names.
const NOT_SIMULATED: &[&str] = &[
    "ApplicationGateway",
    "ConnectionMonitors_",
    "DeploymentOperations_",
    "Deployments_",
    "FlowLogs_",
    "LoadBalancerLoadBalancingRules_Health",
    "LoadBalancers_ListInboundNatRulePortMappings",
    "LoadBalancers_MigrateToIpBased",
    "LoadBalancers_SwapPublicIpAddresses",
    "NetworkInterfaceTapConfigurations_",
    "NetworkInterfaces_GetEffectiveRouteTable",
    "NetworkInterfaces_ListEffectiveNetworkSecurityGroups",
    "NetworkProfiles_",
    "NetworkWatchers_",
    "Operations_List",
    "PacketCaptures_",
    "ProviderResourceTypes_List",
    "Providers_ProviderPermissions",
    "Providers_RegisterAtManagementGroupScope",
    "PublicIPAddresses_DdosProtectionStatus",
    "ResourceGroups_ExportTemplate",
    "ResourceNavigationLinks_List",
    "Resources_MoveResources",
    "Resources_ValidateMoveResources",
    "ServiceAssociationLinks_List",
    "ServiceEndpointPolic",
    "Subnets_PrepareNetworkPolicies",
    "Subnets_UnprepareNetworkPolicies",
    "Tags_",
    "VirtualNetworkPeerings_",
    "VirtualNetworkTaps_",
    "VirtualNetworks_ListDdosProtectionStatus",
    "VirtualNetworks_ListUsage",
];

impl Sim {
    /// Makes one call that must succeed, and waits until what it starts has ended; returns the body.
    fn complete(&mut self, method: &str, path: &str, body: Value) -> Value {
        let got = self.call(method, path, &[], Some(body).filter(|body| !body.is_null()));
        assert!(got.status < 300, "{method} {path}: {} {}", got.status, got.body);
        self.wait(700.0);
        got.body
    }

    fn gets(&mut self, paths: &[String]) {
        for path in paths {
            self.complete("GET", path, Value::Null);
        }
    }
}

fn resources(sim: &mut Sim) {
    let group = format!("/subscriptions/{SUB}/resourceGroups/tour");
    sim.complete("PUT", &group, json!({"location": "westus2"}));
    sim.complete("PATCH", &group, json!({"tags": {"a": "b"}}));
    sim.complete("HEAD", &group, Value::Null);
    sim.gets(&[
        group.clone(),
        format!("/subscriptions/{SUB}/resourcegroups"),
        format!("/subscriptions/{SUB}/resources"),
        format!("{group}/resources"),
        format!("/subscriptions/{SUB}/providers"),
        format!("/subscriptions/{SUB}/providers/Microsoft.Network"),
    ]);
    let namespace = format!("/subscriptions/{EMPTY_SUB}/providers/Microsoft.Network");
    for action in ["unregister", "register"] {
        sim.complete("POST", &format!("{namespace}/{action}"), Value::Null);
    }
    sim.gets(&["/providers".to_owned(), "/providers/Microsoft.Network".to_owned()]);
    sim.complete("DELETE", &group, Value::Null);
}

/// Writes, reads, lists and deletes one resource of Microsoft.Network; `parts` are lists below it.
fn life(sim: &mut Sim, kind: &str, body: Value, parts: &[&str]) {
    let path = format!("{NET}/{kind}/tour");
    sim.complete("PUT", &path, body);
    sim.complete("PATCH", &path, json!({"tags": {"a": "b"}}));
    sim.gets(&[
        path.clone(),
        format!("{NET}/{kind}"),
        format!("/subscriptions/{SUB}/providers/Microsoft.Network/{kind}"),
    ]);
    for part in parts {
        sim.complete("GET", &format!("{path}/{part}"), Value::Null);
    }
    sim.complete("DELETE", &path, Value::Null);
}

fn networks(sim: &mut Sim) {
    let space = json!({"addressSpace": {"addressPrefixes": ["10.9.0.0/16"]}});
    let vnet = format!("{NET}/virtualNetworks/tour");
    sim.complete("PUT", &vnet, json!({"location": "westus2", "properties": space}));
    let subnet = format!("{vnet}/subnets/one");
    sim.complete("PUT", &subnet, json!({"properties": {"addressPrefix": "10.9.0.0/24"}}));
    sim.gets(&[subnet.clone(), format!("{vnet}/subnets")]);
    sim.complete("DELETE", &subnet, Value::Null);
    sim.complete("DELETE", &vnet, Value::Null);
    life(
        sim,
        "virtualNetworks",
        json!({"location": "westus2", "properties": space}),
        &[],
    );
    let check = format!("{NET}/virtualNetworks/vnet/CheckIPAddressAvailability?ipAddress=10.0.0.9");
    sim.complete("GET", &check, Value::Null);
    for kind in ["publicIPAddresses", "natGateways"] {
        life(
            sim,
            kind,
            json!({"location": "westus2", "sku": {"name": "Standard"}}),
            &[],
        );
    }
    life(sim, "applicationSecurityGroups", json!({"location": "westus2"}), &[]);
    let subnet = json!({"id": format!("{NET}/virtualNetworks/vnet/subnets/lb")});
    let nic = json!({"location": "westus2", "properties": {"ipConfigurations": [{"name": "one", "properties": {"subnet": subnet}}]}});
    let parts = ["ipConfigurations", "ipConfigurations/one", "loadBalancers"];
    life(sim, "networkInterfaces", nic, &parts);
}

fn filters(sim: &mut Sim) {
    let route = json!({"properties": {"addressPrefix": "10.0.0.0/8", "nextHopType": "VnetLocal"}});
    let rule = json!({"properties": {"protocol": "Tcp", "access": "Allow", "direction": "Inbound", "priority": 100,
        "sourceAddressPrefix": "*", "destinationAddressPrefix": "*", "sourcePortRange": "*", "destinationPortRange": "443"}});
    for (kind, parts, body) in [
        ("routeTables", "routes", route),
        ("networkSecurityGroups", "securityRules", rule),
    ] {
        let whole = format!("{NET}/{kind}/whole");
        sim.complete("PUT", &whole, json!({"location": "westus2"}));
        part(sim, &format!("{whole}/{parts}"), body);
        life(sim, kind, json!({"location": "westus2"}), &[]);
    }
    let rules = format!("{NET}/networkSecurityGroups/whole/defaultSecurityRules");
    sim.gets(&[rules.clone(), format!("{rules}/AllowVnetInBound")]);
}

/// Writes, reads, lists and deletes one of the parts at `path`.
fn part(sim: &mut Sim, path: &str, body: Value) {
    let one = format!("{path}/tour");
    sim.complete("PUT", &one, body);
    sim.gets(&[one.clone(), path.to_owned()]);
    sim.complete("DELETE", &one, Value::Null);
}

fn balancer(sim: &mut Sim) {
    let balancer = format!("{NET}/loadBalancers/tour");
    let at = |part: &str| json!({"id": format!("{balancer}/{part}")});
    let (frontend, pool) = (at("frontendIPConfigurations/one"), at("backendAddressPools/nodes"));
    let subnet = json!({"id": format!("{NET}/virtualNetworks/vnet/subnets/lb")});
    let rule = json!({"protocol": "Tcp", "frontendPort": 443, "backendPort": 443, "frontendIPConfiguration": frontend,
        "backendAddressPool": pool, "probe": at("probes/up")});
    let body = json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "one", "properties": {"subnet": subnet}}],
        "backendAddressPools": [{"name": "nodes"}],
        "probes": [{"name": "up", "properties": {"protocol": "Tcp", "port": 443, "intervalInSeconds": 5}}],
        "loadBalancingRules": [{"name": "https", "properties": rule}]}});
    let parts = [
        "frontendIPConfigurations",
        "frontendIPConfigurations/one",
        "probes",
        "probes/up",
        "loadBalancingRules",
        "loadBalancingRules/https",
        "outboundRules",
        "networkInterfaces",
    ];
    life(sim, "loadBalancers", body.clone(), &parts);
    sim.complete("PUT", &balancer, body);
    part(
        sim,
        &format!("{balancer}/backendAddressPools"),
        json!({"properties": {}}),
    );
    let address = format!("{NET}/publicIPAddresses/out");
    sim.complete(
        "PUT",
        &address,
        json!({"location": "westus2", "sku": {"name": "Standard"}}),
    );
    let outbound = json!({"protocol": "All", "backendAddressPool": {"id": format!("{NET}/loadBalancers/out/backendAddressPools/p")},
        "frontendIPConfigurations": [{"id": format!("{NET}/loadBalancers/out/frontendIPConfigurations/f")}]});
    let out = json!({"location": "westus2", "sku": {"name": "Standard"}, "properties": {
        "frontendIPConfigurations": [{"name": "f", "properties": {"publicIPAddress": {"id": address}}}],
        "backendAddressPools": [{"name": "p"}], "outboundRules": [{"name": "o", "properties": outbound}]}});
    sim.complete("PUT", &format!("{NET}/loadBalancers/out"), out);
    sim.complete("GET", &format!("{NET}/loadBalancers/out/outboundRules/o"), Value::Null);
    let rule = json!({"protocol": "Tcp", "frontendPort": 22, "backendPort": 22, "frontendIPConfiguration": frontend});
    part(sim, &format!("{balancer}/inboundNatRules"), json!({"properties": rule}));
}

fn private_link(sim: &mut Sim) {
    let service = format!("{NET}/privateLinkServices/tour");
    let alias = sim.complete("PUT", &service, pls())["properties"]["alias"]
        .as_str()
        .unwrap()
        .to_owned();
    let endpoint = format!("{GUEST_NET}/privateEndpoints/tour");
    sim.complete("PUT", &endpoint, pe(&alias));
    for of in [
        format!("/subscriptions/{GUEST_SUB}"),
        format!("/subscriptions/{GUEST_SUB}/resourceGroups/guest"),
    ] {
        let location = format!("{of}/providers/Microsoft.Network/locations/westus2");
        let visibility = format!("{location}/checkPrivateLinkServiceVisibility");
        sim.complete("POST", &visibility, json!({"privateLinkServiceAlias": alias}));
        sim.complete(
            "GET",
            &format!("{location}/autoApprovedPrivateLinkServices"),
            Value::Null,
        );
        sim.complete("GET", &format!("{location}/availablePrivateEndpointTypes"), Value::Null);
        sim.complete(
            "GET",
            &format!("{of}/providers/Microsoft.Network/privateEndpoints"),
            Value::Null,
        );
    }
    let connections = format!("{service}/privateEndpointConnections");
    let list = sim.complete("GET", &connections, Value::Null);
    let connection = format!("{connections}/{}", list["value"][0]["name"].as_str().unwrap());
    let state = json!({"status": "Rejected", "description": "no"});
    sim.complete(
        "PUT",
        &connection,
        json!({"properties": {"privateLinkServiceConnectionState": state}}),
    );
    sim.gets(&[
        service.clone(),
        format!("{NET}/privateLinkServices"),
        format!("/subscriptions/{SUB}/providers/Microsoft.Network/privateLinkServices"),
        connection.clone(),
        format!("{endpoint}?$expand=networkInterfaces"),
    ]);
    names(sim, &endpoint);
    for path in [&connection, &endpoint, &service] {
        sim.complete("DELETE", path, Value::Null);
    }
}

/// Zones, links, records, and the endpoint's names in a zone.
fn names(sim: &mut Sim, endpoint: &str) {
    let zone = format!("{NET}/privateDnsZones/tour.local");
    sim.complete("PUT", &zone, json!({"location": "global"}));
    sim.complete("PATCH", &zone, json!({"tags": {"a": "b"}}));
    let link = format!("{zone}/virtualNetworkLinks/l");
    let vnet = json!({"id": format!("{NET}/virtualNetworks/vnet")});
    sim.complete(
        "PUT",
        &link,
        json!({"location": "global", "properties": {"virtualNetwork": vnet, "registrationEnabled": false}}),
    );
    sim.complete("PATCH", &link, json!({"tags": {"a": "b"}}));
    let record = format!("{zone}/A/www");
    sim.complete(
        "PUT",
        &record,
        json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "10.0.0.4"}]}}),
    );
    sim.complete("PATCH", &record, json!({"properties": {"ttl": 600}}));
    sim.gets(&[
        zone.clone(),
        format!("{NET}/privateDnsZones"),
        format!("/subscriptions/{SUB}/providers/Microsoft.Network/privateDnsZones"),
        link.clone(),
        format!("{zone}/virtualNetworkLinks"),
        record.clone(),
        format!("{zone}/A"),
        format!("{zone}/ALL"),
    ]);
    let group = format!("{endpoint}/privateDnsZoneGroups/default");
    let config = json!({"name": "c", "properties": {"privateDnsZoneId": zone}});
    sim.complete(
        "PUT",
        &group,
        json!({"properties": {"privateDnsZoneConfigs": [config]}}),
    );
    sim.gets(&[group.clone(), format!("{endpoint}/privateDnsZoneGroups")]);
    for path in [&group, &record, &link, &zone] {
        sim.complete("DELETE", path, Value::Null);
    }
}

#[test]
fn every_simulated_operation_keeps_to_its_spec() {
    let Some(specs) = spec_support::specs() else { return };
    let mut json = seed();
    json["subscriptions"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": EMPTY_SUB, "tenant": TENANT}));
    let role = json!({"object_id": PROVIDER, "scope": format!("/subscriptions/{EMPTY_SUB}"), "actions": ["*"]});
    json["roles"].as_array_mut().unwrap().push(role);
    let mut sim = Sim::seeded(json, Preset::Recorded);
    for part in [resources, networks, filters, balancer, private_link] {
        part(&mut sim);
    }
    let never_taken = specs.tally().never_taken;
    let simulated = |operation: &&String| !NOT_SIMULATED.iter().any(|start| operation.starts_with(start));
    let left: Vec<&String> = never_taken.iter().filter(simulated).collect();
    assert!(left.is_empty(), "no call of {left:#?}");
    let needless = |start: &&&str| !never_taken.iter().any(|operation| operation.starts_with(**start));
    let needless: Vec<_> = NOT_SIMULATED.iter().filter(needless).collect();
    assert!(needless.is_empty(), "simulated after all: {needless:?}");
}

/// Prints what the test programs that have run in this target directory have checked, each in its last run.
#[test]
fn what_was_checked_is_shown() {
    let Some(specs) = spec_support::specs() else { return };
    let mut sim = Sim::new();
    sim.complete("GET", &format!("{NET}/virtualNetworks/vnet"), Value::Null);
    drop(sim);
    let mut all: BTreeMap<String, Checked> = BTreeMap::new();
    let (mut programs, mut unknown) = (Vec::new(), BTreeMap::<String, u64>::new());
    for file in std::fs::read_dir(spec_support::tallies()).unwrap() {
        let path = file.unwrap().path();
        let tally: Tally = serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
        for (operation, checked) in tally.checked {
            let sum = all.entry(operation).or_default();
            sum.taken += checked.taken;
            sum.refused += checked.refused;
        }
        for (form, times) in tally.not_in_specs {
            *unknown.entry(form).or_default() += times;
        }
        programs.push(path.file_stem().unwrap().display().to_string());
    }
    assert!(all["VirtualNetworks_Get"].taken > 0);
    programs.sort();
    println!("exchanges held against the specs by {}:", programs.join(", "));
    for (operation, checked) in &all {
        println!("{:>8} taken {:>8} refused  {operation}", checked.taken, checked.refused);
    }
    let sum = |count: fn(&Checked) -> u64| all.values().map(count).sum::<u64>();
    println!(
        "{} taken and {} refused in all",
        sum(|one| one.taken),
        sum(|one| one.refused)
    );
    println!("not in the specs: {unknown:#?}");
    let names = specs.tally();
    let mut never: Vec<&String> = names.never_taken.iter().chain(names.checked.keys()).collect();
    never.retain(|name| all.get(*name).is_none_or(|checked| checked.taken == 0));
    println!("never taken: {never:?}");
}
