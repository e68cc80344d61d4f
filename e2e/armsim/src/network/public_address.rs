//! Public IP addresses, as far as load balancers, network interfaces and NAT gateways refer to them.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::kind::Call;
use crate::engine::preset::Pace;
use crate::engine::resource::{ProvisioningState, Resource};

use super::load_balancer::{self, FRONTENDS};
use super::nic;
use super::shape::{defaults, id_of, items, only_id, properties, show, sku_by_version, spell, tracked};
use super::write::resource_guid;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/publicIPAddresses.
pub(crate) struct PublicAddresses;

pub(crate) const TYPE: &str = "Microsoft.Network/publicIPAddresses";

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "PublicIpAddress",
    create: Pace::new(3.0, 1),
    update: Pace::new(3.0, 1),
    delete: Pace::new(10.0, 10),
};

impl Written for PublicAddresses {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let mut body = tracked(put.location, put.given);
        let sku = &put.given["sku"];
        let name = sku["name"].as_str().unwrap_or("Basic");
        body["sku"] = json!({ "name": name, "tier": sku["tier"].as_str().unwrap_or("Regional") });
        let mut kept = properties(put.given, &["ipConfiguration", "natGateway", "ipAddress"]);
        only_id(&mut kept, "publicIPPrefix");
        spell(&mut kept, "publicIPAllocationMethod", &["Static", "Dynamic"]);
        defaults(
            &mut kept,
            &json!({
                "publicIPAddressVersion": "IPv4",
                "publicIPAllocationMethod": "Dynamic",
                "idleTimeoutInMinutes": 4,
                "ipTags": [],
                "ddosSettings": { "protectionMode": "VirtualNetworkInherited" },
            }),
        );
        let known = cx.state.store.get(put.id).map(|known| known.body["properties"].clone());
        kept.insert("resourceGuid".to_owned(), resource_guid(cx, put.id));
        if kept["publicIPAllocationMethod"] == json!("Static") {
            let had = known.map(|known| known["ipAddress"].clone()).filter(Value::is_string);
            let given_address = put.given["properties"]["ipAddress"]
                .as_str()
                .filter(|_| put.call.is_none());
            let address = had
                .or(given_address.map(|address| json!(address)))
                .unwrap_or_else(|| fresh(cx));
            kept.insert("ipAddress".to_owned(), address);
        }
        body["properties"] = json!(kept);
        Ok(Plan::new(body))
    }

    fn may_go(&self, cx: &Context<'_>, _call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        let Some(user) = user(cx, found) else { return Ok(()) };
        let message = format!(
            "Public IP address {} can not be deleted since it is still allocated to resource {user}.",
            found.id
        );
        Err(ArmError::service(400, "PublicIPAddressCannotBeDeleted", message))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        if !cx.shows_since("2022-05-01")
            && let Some(fields) = shown["properties"].as_object_mut()
        {
            fields.remove("ddosSettings");
        }
        sku_by_version(cx, shown);
        // It gets its address by the operation that makes it.
        if resource.state == ProvisioningState::Updating
            && let Some(fields) = shown["properties"].as_object_mut()
        {
            fields.remove("ipAddress");
        }
        if let Some(user) = user(cx, resource) {
            let field = if user.contains("/natGateways/") {
                "natGateway"
            } else {
                "ipConfiguration"
            };
            show(shown, field, json!({ "id": user }));
        }
    }
}

/// The IP configuration, frontend or NAT gateway that has the address.
fn user(cx: &Context<'_>, address: &Resource) -> Option<String> {
    let user = cx.state.store.referring(&address.id).next()?;
    let list = match user.resource_type.as_str() {
        load_balancer::TYPE => FRONTENDS,
        nic::TYPE => nic::CONFIGURATIONS,
        _ => return Some(user.id.to_string()),
    };
    let mut all = items(user.property(list)).iter();
    let item = all.find(|item| id_of(&item["properties"]["publicIPAddress"]).is_some_and(|id| address.id.is(id)))?;
    Some(user.id.child(list, item["name"].as_str()?).to_string())
}

/// An address that no other has.
fn fresh(cx: &mut Context<'_>) -> Value {
    loop {
        let bits = cx.state.random.bits().to_be_bytes();
        let address = json!(format!("20.{}.{}.{}", bits[0], bits[1], bits[2]));
        if !cx
            .state
            .store
            .all_of_type(TYPE)
            .any(|other| *other.property("ipAddress") == address)
        {
            return address;
        }
    }
}
