//! The bodies that steps send: mostly good ones, some that Azure refuses, some with read-only fields in them.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::cloud::{SUBSCRIPTIONS, block};
use super::step::{PathParts, Step, What, zone};

/// All resources as the control API shows them, by id in lower case.
pub type View = BTreeMap<String, Value>;

/// Stands in fields that only the service may write. No answer may contain it.
pub const POISON: &str = "POISON";

/// The body of a PUT.
pub fn put(what: What, step: &Step, view: &View) -> Value {
    let parts = step.path_parts();
    let mut body = match what {
        What::Group => json!({"location": "westus2"}),
        What::Vnet => vnet(step, view),
        What::Subnet => subnet(step),
        What::SecurityGroup => json!({"location": "westus2", "properties": {"securityRules": []}}),
        What::Balancer => balancer(step),
        What::Nic => nic(step),
        What::Service => service(step),
        What::Connection => decision(step),
        What::Endpoint => endpoint(step, view),
        What::ZoneGroup => {
            let zone = format!("{}/privateDnsZones/{}", parts.network(), zone(usize::from(step.refers)));
            json!({"properties": {"privateDnsZoneConfigs": [{"name": "c", "properties": {"privateDnsZoneId": zone}}]}})
        }
        What::Zone => json!({"location": "global"}),
        What::Link => {
            let id = format!(
                "{}/virtualNetworks/v{}",
                parts.network(),
                step.refers.saturating_sub(130) / 50
            );
            json!({"location": "global", "properties": {"virtualNetwork": {"id": id}, "registrationEnabled": step.refers % 4 == 3}})
        }
        What::Record => record(&parts, step),
    };
    if !matches!(what, What::Subnet | What::Connection | What::ZoneGroup | What::Record) {
        tag(&mut body, step);
    }
    if step.body & 0x40 != 0 {
        poison(what, &mut body);
    }
    body
}

/// The body of a PATCH.
pub fn patch(what: What, step: &Step) -> Value {
    let mut body = json!({});
    if what == What::Record {
        body["properties"] = json!({"ttl": step.refers, "metadata": {"n": step.body.to_string()}});
    } else {
        tag(&mut body, step);
    }
    body
}

fn tag(body: &mut Value, step: &Step) {
    match step.body % 8 {
        0..=2 => {}
        3..=6 => body["tags"] = json!({"n": (step.body % 8).to_string()}),
        _ => body["tags"] = json!({"n": "7", "other": step.refers.to_string()}),
    }
}

fn poison(what: What, body: &mut Value) {
    body["etag"] = json!(POISON);
    let fields: &[&str] = match what {
        What::Record => &["fqdn", "isAutoRegistered"],
        What::Zone => &["provisioningState", "internalId", "numberOfRecordSets"],
        What::Link => &["provisioningState", "virtualNetworkLinkState"],
        What::Service => &["provisioningState", "resourceGuid", "alias"],
        What::Subnet => &["provisioningState", "purpose"],
        What::Connection => &["provisioningState", "linkIdentifier"],
        What::Group | What::ZoneGroup => &["provisioningState"],
        _ => &["provisioningState", "resourceGuid"],
    };
    for field in fields {
        body["properties"][field] = json!(POISON);
    }
}

fn vnet(step: &Step, view: &View) -> Value {
    let parts = step.path_parts();
    let block = block(parts.subscription, parts.name % 3);
    let mut body = json!({"location": "westus2", "properties": {"addressSpace": {"addressPrefixes": [format!("10.{block}.0.0/16")]}}});
    let one =
        |name: usize, prefix: String| json!({"name": format!("s{name}"), "properties": {"addressPrefix": prefix}});
    let subnets = &mut body["properties"]["subnets"];
    match step.refers {
        0..=99 => {
            let known = view.get(&parts.path(What::Vnet).to_ascii_lowercase());
            *subnets = known.map_or(Value::Null, |known| known["properties"]["subnets"].clone());
        }
        100..=149 => {}
        150..=219 => {
            *subnets = json!([
                one(0, format!("10.{block}.0.0/29")),
                one(2, format!("10.{block}.2.0/28"))
            ])
        }
        220..=239 => {
            *subnets = json!([
                one(0, format!("10.{block}.0.0/29")),
                one(1, format!("10.{block}.0.0/28"))
            ])
        }
        240..=247 => {
            *subnets = json!([
                one(0, format!("10.{block}.0.0/29")),
                one(0, format!("10.{block}.3.0/29"))
            ])
        }
        _ => body["properties"]["addressSpace"] = json!({"addressPrefixes": [format!("10.{block}.0.0/24")]}),
    }
    body
}

fn subnet(step: &Step) -> Value {
    let parts = step.path_parts();
    let (block, name) = (block(parts.subscription, parts.parent), parts.name);
    let prefix = match step.refers {
        0..=159 => format!("10.{block}.{name}.0/{}", if name == 0 { 29 } else { 28 }),
        160..=199 => format!("10.{block}.{name}.0/24"),
        200..=229 => format!("10.{block}.{}.0/24", (name + 1) % 4),
        230..=239 => format!("10.{block}.{name}.0/30"),
        240..=247 => "192.168.0.0/24".to_owned(),
        _ => "10.0.0.1/24".to_owned(),
    };
    let mut body = json!({"properties": {"addressPrefix": prefix}});
    let properties = &mut body["properties"];
    if name == 1 || step.body % 8 == 1 {
        properties["privateLinkServiceNetworkPolicies"] = json!("Disabled");
    }
    match step.body % 16 {
        9..=11 => {
            properties["networkSecurityGroup"] =
                json!({"id": format!("{}/networkSecurityGroups/g{}", parts.network(), step.refers % 2)})
        }
        12 => properties["privateEndpointNetworkPolicies"] = json!("Enabled"),
        13 => {
            properties["delegations"] =
                json!([{"name": "d", "properties": {"serviceName": "Microsoft.Web/serverFarms"}}])
        }
        _ => {}
    }
    body
}

/// Some subnet: mostly one that the seed has.
fn subnet_id(parts: &PathParts, number: u8) -> String {
    let (vnet, name) = match number {
        0..=99 => (0, 0),
        100..=179 => (0, 1),
        180..=219 => (0, usize::from(number) % 4),
        220..=249 => (1, usize::from(number) % 4),
        _ => (7, 0),
    };
    format!("{}/virtualNetworks/v{vnet}/subnets/s{name}", parts.network())
}

fn balancer(step: &Step) -> Value {
    let parts = step.path_parts();
    let mut frontends = Vec::new();
    for at in 0..=u8::from(step.body & 0x20 != 0) {
        let name = if step.refers == 251 { 0 } else { at };
        let mut properties = json!({"subnet": {"id": subnet_id(&parts, step.refers.wrapping_add(100 + at * 90))}});
        if step.body & 0x18 == 0x18 {
            let address = format!("10.{}.1.{}", block(parts.subscription, 0), 2 + step.body % 8);
            properties["privateIPAllocationMethod"] = json!("Static");
            properties["privateIPAddress"] = json!(address);
        }
        frontends.push(json!({"name": format!("f{name}"), "properties": properties}));
    }
    let sku = if step.refers == 250 { "Basic" } else { "Standard" };
    let mut body =
        json!({"location": "westus2", "sku": {"name": sku}, "properties": {"frontendIPConfigurations": frontends}});
    if step.body & 0x10 != 0 {
        body["properties"]["backendAddressPools"] = json!([{"name": "pool"}]);
    }
    body
}

fn nic(step: &Step) -> Value {
    let subnet = subnet_id(&step.path_parts(), step.refers);
    json!({"location": "westus2", "properties": {"ipConfigurations": [{"name": "one", "properties": {"subnet": {"id": subnet}}}]}})
}

fn service(step: &Step) -> Value {
    let parts = step.path_parts();
    let frontend = format!(
        "{}/loadBalancers/l{}/frontendIPConfigurations/f{}",
        parts.network(),
        step.refers.saturating_sub(180) / 30,
        u8::from(step.refers % 8 == 7)
    );
    let nat = |name: &str, at: u8| {
        let subnet = subnet_id(&parts, if at == 255 { 255 } else { 100 });
        json!({"name": name, "properties": {"privateIPAllocationMethod": "Dynamic", "subnet": {"id": subnet}}})
    };
    let mut configurations = vec![nat("nat", step.refers)];
    match step.body & 0x38 {
        0x08 => configurations.push(nat("more", 0)),
        0x10 => configurations.extend([nat("more", 0), nat("most", 0)]),
        0x18 => configurations.push(nat("nat", 0)),
        _ => {}
    }
    let invited = [SUBSCRIPTIONS[0], SUBSCRIPTIONS[1], SUBSCRIPTIONS[2]];
    let (visible, approved) = match step.body / 32 {
        0 | 1 => (json!(["*"]), json!([invited[1]])),
        2 => (json!(["*"]), json!([])),
        3 => (json!(invited[..2]), json!(invited[..2])),
        4 => (json!([invited[2]]), json!([invited[2]])),
        5 => (json!([]), json!([])),
        6 => (json!(invited), json!([])),
        _ => (json!([invited[1]]), json!([invited[0]])),
    };
    let mut body = json!({"location": "westus2", "properties": {
        "loadBalancerFrontendIpConfigurations": [{"id": frontend}],
        "ipConfigurations": configurations,
        "visibility": {"subscriptions": visible},
        "autoApproval": {"subscriptions": approved},
    }});
    if step.refers % 16 == 5 {
        body["properties"]["enableProxyProtocol"] = json!(true);
    }
    if step.refers % 16 == 6 {
        body["properties"]["fqdns"] = json!(["a.example.com"]);
    }
    body
}

fn decision(step: &Step) -> Value {
    let status = match step.body {
        0..=149 => "Approved",
        150..=239 => "Rejected",
        240..=247 => "Disconnected",
        _ => "Pending",
    };
    json!({"properties": {"privateLinkServiceConnectionState": {"status": status, "description": format!("by {}", step.refers % 4)}}})
}

fn endpoint(step: &Step, view: &View) -> Value {
    let parts = step.path_parts();
    let provider = match step.refers {
        0..=109 => parts.subscription,
        110..=229 => 0,
        _ => 1,
    };
    let home = PathParts {
        subscription: provider,
        group: 0,
        ..parts
    };
    let service = PathParts {
        name: usize::from(step.refers) % 4,
        ..home
    }
    .path(What::Service);
    let alias = view
        .get(&service.to_ascii_lowercase())
        .and_then(|found| found["properties"]["alias"].as_str());
    let (list, target) = match step.body & 0x0f {
        0..=8 => (
            "manualPrivateLinkServiceConnections",
            alias.unwrap_or("gone.alias").to_owned(),
        ),
        9..=12 => ("privateLinkServiceConnections", service),
        13 => ("manualPrivateLinkServiceConnections", service),
        _ => (
            "privateLinkServiceConnections",
            alias.unwrap_or("gone.alias").to_owned(),
        ),
    };
    let subnet = subnet_id(&parts, if step.body & 0x80 == 0 { 0 } else { step.refers });
    let mut body = json!({"location": "westus2", "properties": {
        "subnet": {"id": subnet},
        list: [{"name": "c", "properties": {"privateLinkServiceId": target}}],
    }});
    let properties = &mut body["properties"];
    match step.body & 0x30 {
        0x10 => properties["customNetworkInterfaceName"] = json!(format!("n{}", step.refers % 3)),
        0x20 => {
            let address = format!("10.{}.0.{}", block(parts.subscription, 0), step.refers % 9);
            properties["ipConfigurations"] = json!([{"name": "one", "properties": {"privateIPAddress": address}}]);
        }
        _ => {}
    }
    body
}

fn record(parts: &PathParts, step: &Step) -> Value {
    let many = step.refers % 3 + u8::from(step.refers == 255) * 20;
    let records: Vec<u8> = (0..many).collect();
    let mut properties = json!({"ttl": step.body});
    match parts.name {
        2 => properties["cnameRecord"] = json!({"cname": format!("x{many}.example.com")}),
        3 => properties["txtRecords"] = records.iter().map(|at| json!({"value": [format!("t{at}")]})).collect(),
        _ => {
            properties["aRecords"] = records
                .iter()
                .map(|at| json!({"ipv4Address": format!("10.0.0.{at}")}))
                .collect()
        }
    }
    if step.body % 8 == 3 {
        properties["metadata"] = json!({"n": step.refers.to_string()});
    }
    json!({"properties": properties})
}
