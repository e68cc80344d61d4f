//! Network interfaces of private endpoints and private link services: made and removed with these, only read by others.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::{Call, Kind, Reply};
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::address;
use super::write::{self, items, nested};

/// Microsoft.Network/networkInterfaces.
pub(crate) struct NetworkInterfaces;

pub(crate) const TYPE: &str = "Microsoft.Network/networkInterfaces";

const DELETE: Pace = Pace::new(10.0, 10);

impl Kind for NetworkInterfaces {
    fn resource_type(&self) -> &'static str {
        TYPE
    }

    fn first_version(&self) -> &'static str {
        "2015-05-01-preview"
    }

    fn delete(&self, cx: &mut Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
        let Some(found) = cx.state.store.get(&call.id) else {
            return Ok(Reply::new(204));
        };
        let Some(owner) = found.body["managedBy"].as_str() else {
            let region = found.body["location"].as_str().unwrap_or_default().to_owned();
            let name = "DeleteNicOperation";
            return Ok(write::delete(cx, call, self, name, &region, &DELETE));
        };
        let message = format!(
            "Network interface {} is managed by {owner} and cannot be deleted by itself.",
            call.id
        );
        Err(ArmError::service(
            400,
            "NetworkInterfaceIsManagedByAnotherResource",
            message,
        ))
    }

    fn render(&self, _cx: &Context<'_>, resource: &Resource) -> Value {
        let mut shown = resource.body.clone();
        shown["id"] = json!(resource.id);
        shown["name"] = json!(resource.id.name());
        shown["type"] = json!(TYPE);
        shown["etag"] = json!(resource.etag);
        shown["properties"]["provisioningState"] = json!(resource.state.as_str());
        let configurations = items(resource.property("ipConfigurations"));
        let configurations: Vec<Value> = configurations
            .iter()
            .map(|item| nested(item, resource, "ipConfigurations", TYPE))
            .collect();
        shown["properties"]["ipConfigurations"] = json!(configurations);
        shown
    }

    fn removed(&self, cx: &mut Context<'_>, gone: &Resource) {
        address::release(cx, &gone.id);
    }
}

/// One IP configuration to make: name, subnet, address, allocation method.
pub(crate) struct IpConfiguration {
    pub(crate) name: String,
    pub(crate) subnet: ResourceId,
    pub(crate) address: std::net::Ipv4Addr,
    pub(crate) method: &'static str,
}

/// Makes the interface of an endpoint or link service, or adds IP configurations to it, and takes their addresses.
pub(crate) fn extend(
    cx: &mut Context<'_>,
    nic: &ResourceId,
    (field, owner, location): (&str, &ResourceId, &str),
    configurations: Vec<IpConfiguration>,
) {
    if cx.state.store.get(nic).is_none() {
        let guid = cx.guid();
        let suffix = cx.guid().replace('-', "");
        let mut body = json!({
            "location": location,
            "kind": "Regular",
            "managedBy": owner,
            "properties": {
                "resourceGuid": guid,
                "ipConfigurations": [],
                "dnsSettings": {
                    "dnsServers": [],
                    "appliedDnsServers": [],
                    "internalDomainNameSuffix": format!("{}.xx.internal.cloudapp.net", suffix.get(..26).unwrap_or(&suffix)),
                },
                "macAddress": "",
                "enableAcceleratedNetworking": false,
                "vnetEncryptionSupported": false,
                "enableIPForwarding": false,
                "hostedWorkloads": [],
                "tapConfigurations": [],
                "nicType": "Standard",
                "allowPort25Out": true,
                "auxiliaryMode": "None",
            }
        });
        body["properties"][field] = json!({ "id": owner });
        cx.store(TYPE, nic, body);
    }
    for configuration in configurations {
        let id = nic.child("ipConfigurations", &configuration.name);
        address::take(cx, &configuration.subnet, configuration.address, id.to_string());
        let Some(nic) = cx.state.store.get_mut(nic) else {
            return;
        };
        let mut all = items(nic.property("ipConfigurations")).to_vec();
        all.push(json!({
            "name": configuration.name,
            "properties": {
                "privateIPAddress": configuration.address.to_string(),
                "privateIPAllocationMethod": configuration.method,
                "subnet": { "id": configuration.subnet },
                "primary": all.is_empty(),
                "privateIPAddressVersion": "IPv4",
            }
        }));
        nic.set("ipConfigurations", json!(all));
    }
}
