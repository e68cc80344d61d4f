//! Route tables: their routes, and the subnets that use them.

use ipnet::IpNet;
use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::Call;
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::reference::{not_in_use, referring, users};
use super::shape::{defaults, ids, items, named, nested, properties, show, tracked};
use super::subnet;
use super::write::resource_guid;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/routeTables.
pub(crate) struct RouteTables;

const TYPE: &str = "Microsoft.Network/routeTables";
const ROUTES: &str = "routes";
/// Where a route may lead.
const NEXT_HOPS: [&str; 5] = [
    "VirtualNetworkGateway",
    "VnetLocal",
    "Internet",
    "VirtualAppliance",
    "None",
];

static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "RouteTable",
    create: Pace::new(3.0, 3),
    update: Pace::new(3.0, 3),
    delete: Pace::new(10.0, 10),
};

impl Written for RouteTables {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let given = named(put.id, &put.given["properties"][ROUTES])?;
        if put.call.is_some() {
            check(put.id, &given)?;
        }
        let mut kept = properties(put.given, &["subnets"]);
        defaults(&mut kept, &json!({ "disableBgpRoutePropagation": false }));
        let routes = given.into_iter().map(|(name, item)| {
            let mut kept = properties(item, &[]);
            defaults(&mut kept, &json!({ "hasBgpOverride": false }));
            json!({ "name": name, "properties": kept })
        });
        kept.insert(ROUTES.to_owned(), routes.collect());
        kept.insert("resourceGuid".to_owned(), resource_guid(cx, put.id));
        let mut body = tracked(put.location, put.given);
        body["properties"] = json!(kept);
        Ok(Plan::new(body))
    }

    fn may_go(&self, cx: &Context<'_>, _call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        not_in_use(
            "InUseRouteTableCannotBeDeleted",
            "Route table",
            &found.id,
            &users(cx, &found.id),
        )
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        let routes = items(resource.property(ROUTES)).iter();
        shown["properties"][ROUTES] = routes
            .map(|item| nested(item, resource, ROUTES, TYPE, resource.state))
            .collect();
        show(shown, "subnets", ids(referring(cx, &resource.id, subnet::TYPE)));
    }
}

/// Each route's prefix and next hop, and that no two have one prefix.
fn check(id: &ResourceId, routes: &[(&str, &Value)]) -> Result<(), ArmError> {
    let refuse = |code: &str, message: String| Err(ArmError::service(400, code, message));
    let mut earlier: Vec<(&str, &str)> = Vec::new();
    for (name, item) in routes {
        let given = &item["properties"];
        let prefix = given["addressPrefix"].as_str().unwrap_or_default();
        // A service tag begins with a letter.
        if !prefix.starts_with(char::is_alphabetic) && prefix.parse::<IpNet>().is_err() {
            let message = format!(
                "Address prefix {prefix} of resource {id}/{ROUTES}/{name} is not formatted correctly. It should follow CIDR \
                 notation, for example 10.0.0.0/24."
            );
            return refuse("InvalidAddressPrefixFormat", message);
        }
        if let Some((other, _)) = earlier.iter().find(|(_, taken)| *taken == prefix) {
            let message =
                format!("Route {name} conflicts with route {other}. Routes cannot have the same AddressPrefix.");
            return refuse("RouteConflict", message);
        }
        earlier.push((name, prefix));
        let hop = given["nextHopType"].as_str().unwrap_or_default();
        if !NEXT_HOPS.iter().any(|known| known.eq_ignore_ascii_case(hop)) {
            let message = format!(
                "Route {name} has invalid nextHopType '{hop}'. Allowed: {}.",
                NEXT_HOPS.join(", ")
            );
            return refuse("InvalidNextHopType", message);
        }
        let appliance = hop.eq_ignore_ascii_case("VirtualAppliance");
        let address = given["nextHopIpAddress"].as_str().unwrap_or_default();
        if appliance && address.parse::<std::net::IpAddr>().is_err() {
            let message = format!("Route {name} needs a valid nextHopIpAddress: '{address}' is none.");
            return refuse("InvalidNextHopIpAddress", message);
        }
    }
    Ok(())
}
