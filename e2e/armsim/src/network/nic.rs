//! Network interfaces: free-standing ones, and those of private endpoints and private link services, which are made and
//! removed with these and only read by others.

use serde_json::{Map, Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, LinkedScope};
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::address::{self, Claim};
use super::nic_rules as rules;
use super::reference::{referenced, referring};
use super::shape::{by_name, defaults, id_of, is_named, items, named, nested, only_id, only_ids, properties, tracked};
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/networkInterfaces.
pub(crate) struct NetworkInterfaces;

pub(crate) const TYPE: &str = "Microsoft.Network/networkInterfaces";
pub(crate) const CONFIGURATIONS: &str = "ipConfigurations";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "NetworkInterface",
    create: Pace::AT_ONCE,
    update: Pace::AT_ONCE,
    delete: Pace::new(10.0, 10),
};

/// Lists of references in an IP configuration.
pub(crate) const LISTS: [&str; 5] = [
    "loadBalancerBackendAddressPools",
    "loadBalancerInboundNatRules",
    "applicationGatewayBackendAddressPools",
    "applicationSecurityGroups",
    "virtualNetworkTaps",
];

/// What the service makes itself. An interface is managed for the sake of what the two last ones name.
const READ_ONLY: [&str; 9] = [
    "virtualMachine",
    "macAddress",
    "primary",
    "vnetEncryptionSupported",
    "defaultOutboundConnectivityEnabled",
    "hostedWorkloads",
    "tapConfigurations",
    "privateEndpoint",
    "privateLinkService",
];

impl Written for NetworkInterfaces {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn needs(&self, _cx: &Context<'_>, call: &Call<'_>) -> Vec<LinkedScope> {
        rules::joins(&call.body["properties"])
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let given = named(put.id, &put.given["properties"][CONFIGURATIONS])?;
        if put.call.is_some() {
            rules::check(cx, put, &given)?;
        }
        let known = cx.state.store.get(put.id);
        let old = known
            .map(|known| known.property(CONFIGURATIONS).clone())
            .unwrap_or_default();
        let primary = given
            .iter()
            .position(|(_, item)| item["properties"]["primary"] == json!(true))
            .unwrap_or(0);
        let (mut claims, mut stored) = (Vec::new(), Vec::new());
        for (at, (name, item)) in given.into_iter().enumerate() {
            stored.push(configuration(cx, put, name, item, at == primary, &old, &mut claims)?);
        }
        let mut body = tracked(put.location, put.given);
        body["kind"] = json!("Regular");
        if let Some(owner) = known
            .map_or(&put.given["managedBy"], |known| &known.body["managedBy"])
            .as_str()
        {
            body["managedBy"] = json!(owner);
        }
        let made = known.map(|known| known.body["properties"].clone());
        let mut kept = properties(put.given, &READ_ONLY);
        only_id(&mut kept, "networkSecurityGroup");
        own(cx, &mut kept, made.as_ref(), put);
        kept.insert(CONFIGURATIONS.to_owned(), json!(stored));
        body["properties"] = json!(kept);
        let id = put.id.clone();
        let old = address::claims_of(&old);
        Ok(Plan::new(body).then(move |cx| address::settle(cx, &id, CONFIGURATIONS, &old, &claims)))
    }

    fn is_open(&self, found: &Resource) -> Result<(), ArmError> {
        rules::not_managed(found)
    }

    fn show(&self, _cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        let all = items(resource.property(CONFIGURATIONS)).iter();
        let all = all.map(|item| nested(item, resource, CONFIGURATIONS, TYPE, resource.state));
        shown["properties"][CONFIGURATIONS] = all.collect();
    }

    fn gone(&self, cx: &mut Context<'_>, gone: &Resource) {
        let old = address::claims_of(gone.property(CONFIGURATIONS));
        address::settle(cx, &gone.id, CONFIGURATIONS, &old, &[]);
    }
}

/// What the service makes of an interface itself: the same as long as it lives.
fn own(cx: &mut Context<'_>, kept: &mut Map<String, Value>, made: Option<&Value>, put: &Put<'_>) {
    let suffix = cx.guid().replace('-', "");
    let suffix = suffix.get(..26).unwrap_or(&suffix);
    let names = made.map_or_else(
        || json!(format!("{suffix}.xx.internal.cloudapp.net")),
        |made| made["dnsSettings"]["internalDomainNameSuffix"].clone(),
    );
    let guid = cx.guid();
    let fresh = json!({
        "resourceGuid": guid,
        "macAddress": "",
        "vnetEncryptionSupported": false,
        "hostedWorkloads": [],
        "tapConfigurations": [],
    });
    for (name, fresh) in fresh.as_object().into_iter().flatten() {
        let value = made.map_or(fresh, |made| &made[name]);
        kept.insert(name.clone(), value.clone());
    }
    for owner in ["privateEndpoint", "privateLinkService"] {
        let given_owner = &put.given["properties"][owner];
        let value = made.map_or(given_owner, |made| &made[owner]);
        if put.call.is_none() || made.is_some() {
            kept.extend(Some((owner.to_owned(), value.clone())).filter(|(_, value)| !value.is_null()));
        }
    }
    // Without a machine or an owner an interface has no hardware address.
    if !["privateEndpoint", "privateLinkService"]
        .iter()
        .any(|owner| kept.contains_key(*owner))
    {
        kept.remove("macAddress");
    }
    let mut dns = match kept.remove("dnsSettings") {
        Some(Value::Object(given)) => given,
        _ => Map::new(),
    };
    dns.insert("internalDomainNameSuffix".to_owned(), names);
    defaults(&mut dns, &json!({ "dnsServers": [], "appliedDnsServers": [] }));
    kept.insert("dnsSettings".to_owned(), json!(dns));
    defaults(
        kept,
        &json!({
            "enableAcceleratedNetworking": false,
            "enableIPForwarding": false,
            "disableTcpStateTracking": false,
            "nicType": "Standard",
            "allowPort25Out": true,
            "auxiliaryMode": "None",
        }),
    );
}

/// One IP configuration as it is stored, with its address.
fn configuration(
    cx: &Context<'_>,
    put: &Put<'_>,
    name: &str,
    item: &Value,
    primary: bool,
    old: &Value,
    claims: &mut Vec<Claim>,
) -> Result<Value, ArmError> {
    let given = &item["properties"];
    let reference = id_of(&given["subnet"]);
    let reference = reference.ok_or_else(|| ArmError::invalid_content("An IP configuration needs a subnet."))?;
    let subnet = referenced(cx, put.id, reference)?;
    // Seed and control calls can leave one without an address, by an empty one.
    let bare = put.call.is_none() && given["privateIPAddress"] == json!("");
    let claim = match bare {
        true => None,
        false => Some(address::claim(cx, subnet, name, given, by_name(old, name), claims)?),
    };
    let mut kept = properties(
        item,
        &["privateLinkConnectionProperties", "privateIPAddressPrefixLength"],
    );
    for list in LISTS {
        only_ids(&mut kept, list);
    }
    for one in ["publicIPAddress", "gatewayLoadBalancer"] {
        only_id(&mut kept, one);
    }
    let fixed = json!({
        "privateIPAllocationMethod": address::method(given),
        "subnet": { "id": subnet.id },
        "primary": primary,
        "privateIPAddressVersion": "IPv4",
    });
    kept.extend(fixed.as_object().cloned().unwrap_or_default());
    kept.remove("privateIPAddress");
    if let Some(claim) = claim {
        kept.insert("privateIPAddress".to_owned(), json!(claim.address.to_string()));
        claims.push(claim);
    }
    Ok(json!({ "name": name, "properties": kept }))
}

/// One IP configuration of a managed interface.
pub(crate) struct IpConfiguration {
    pub(crate) name: String,
    pub(crate) subnet: ResourceId,
    pub(crate) address: std::net::Ipv4Addr,
    /// `Static` or `Dynamic`.
    pub(crate) method: &'static str,
}

/// Makes the interface of an endpoint or link service, or adds IP configurations to it and changes those of the
/// same name, and takes their addresses.
pub(crate) fn extend(
    cx: &mut Context<'_>,
    nic: &ResourceId,
    (field, owner, location): (&str, &ResourceId, &str),
    configurations: &[IpConfiguration],
) {
    let known = cx.state.store.get(nic);
    if known.is_some() && configurations.is_empty() {
        return;
    }
    let mut body = known.map(|known| known.body.clone()).unwrap_or_else(|| {
        let mut body = json!({ "location": location, "managedBy": owner, "properties": { CONFIGURATIONS: [] } });
        body["properties"][field] = json!({ "id": owner });
        body
    });
    let all = configurations.iter().map(|new| {
        json!({
            "name": new.name,
            "properties": {
                "privateIPAddress": new.address.to_string(),
                "privateIPAllocationMethod": new.method,
                "subnet": { "id": new.subnet },
            }
        })
    });
    if let Some(list) = body["properties"][CONFIGURATIONS].as_array_mut() {
        list.retain(|held| !configurations.iter().any(|new| is_named(held, &new.name)));
        list.extend(all);
    }
    let put = Put {
        id: nic,
        location,
        given: &body,
        call: None,
    };
    // The addresses are free: they were chosen in the same call.
    if let Ok(plan) = NetworkInterfaces.plan(cx, &put) {
        cx.store(TYPE, nic, plan.body);
        plan.after.into_iter().for_each(|after| after(cx));
    }
}

/// Takes all interfaces out of a pool or rule that is gone.
pub(crate) fn leave(cx: &mut Context<'_>, part: &ResourceId) {
    let members: Vec<Resource> = referring(cx, part, TYPE).cloned().collect();
    for mut member in members {
        for item in member.body["properties"][CONFIGURATIONS]
            .as_array_mut()
            .into_iter()
            .flatten()
        {
            let Some(kept) = item["properties"].as_object_mut() else {
                continue;
            };
            for list in LISTS {
                if let Some(all) = kept.get_mut(list).and_then(Value::as_array_mut) {
                    all.retain(|named| !id_of(named).is_some_and(|named| part.is(named)));
                }
                only_ids(kept, list);
            }
        }
        cx.state.store.insert(member);
    }
}
