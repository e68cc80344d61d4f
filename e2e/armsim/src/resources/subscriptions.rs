//! Subscriptions, tenants and regions, as a client reads them when it logs in.

use serde_json::{Value, json};

use crate::Caller;
use crate::engine::access;
use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::kind::{Call, Reply};
use crate::engine::page::page;
use crate::engine::seed::Subscription;

/// A region as `locations` shows it.
pub(super) struct Region {
    name: &'static str,
    pub(super) display: &'static str,
    geography: &'static str,
    place: &'static str,
    /// Degrees north and east.
    at: (f64, f64),
}

const fn region(
    name: &'static str,
    display: &'static str,
    geography: &'static str,
    place: &'static str,
    at: (f64, f64),
) -> Region {
    Region {
        name,
        display,
        geography,
        place,
        at,
    }
}

/// Some of Azure's regions.
pub(super) static REGIONS: &[Region] = &[
    region("eastus", "East US", "US", "Virginia", (37.3719, -79.8164)),
    region("eastus2", "East US 2", "US", "Virginia", (36.6681, -78.3889)),
    region("westus2", "West US 2", "US", "Washington", (47.233, -119.852)),
    region("westus3", "West US 3", "US", "Phoenix", (33.448376, -112.074036)),
    region("centralus", "Central US", "US", "Iowa", (41.5908, -93.6208)),
    region("northeurope", "North Europe", "Europe", "Ireland", (53.3478, -6.2597)),
    region("westeurope", "West Europe", "Europe", "Netherlands", (52.3667, 4.9)),
    region("uksouth", "UK South", "UK", "London", (50.941, -0.799)),
    region(
        "southeastasia",
        "Southeast Asia",
        "Asia Pacific",
        "Singapore",
        (1.283, 103.833),
    ),
    region(
        "japaneast",
        "Japan East",
        "Asia Pacific",
        "Tokyo, Saitama",
        (35.68, 139.77),
    ),
];

/// The subscriptions of the caller's tenant in which it has a role.
pub(super) fn list(cx: &Context<'_>, caller: &Caller, call: &Call<'_>) -> Result<Reply, ArmError> {
    let mut found: Vec<(String, &Subscription)> = cx
        .state
        .subscriptions
        .iter()
        .filter(|known| known.tenant.eq_ignore_ascii_case(&caller.tenant_id))
        .filter(|known| {
            let scope = format!("/subscriptions/{}", known.id);
            access::knows(&cx.state.roles, &caller.object_id, &scope)
        })
        .map(|known| (known.id.to_ascii_lowercase(), known))
        .collect();
    found.sort_by(|one, other| one.0.cmp(&other.0));
    let total = found.len();
    let mut reply = page(call, found, 1000, show)?;
    if let Some(body) = &mut reply.body {
        body["count"] = json!({ "type": "Total", "value": total });
    }
    Ok(reply)
}

/// One subscription.
pub(super) fn get(cx: &Context<'_>, call: &Call<'_>) -> Result<Reply, ArmError> {
    let id = call.id.subscription();
    let known = cx.state.subscription(id).ok_or_else(|| {
        let message = format!("The subscription '{id}' could not be found.");
        ArmError::gateway(404, "SubscriptionNotFound", message)
    })?;
    Ok(Reply::new(200).body(show(known)))
}

fn show(known: &Subscription) -> Value {
    json!({
        "id": format!("/subscriptions/{}", known.id),
        "authorizationSource": "RoleBased",
        "managedByTenants": [],
        "subscriptionId": known.id,
        "tenantId": known.tenant,
        "displayName": known.id,
        "state": "Enabled",
        "subscriptionPolicies": {
            "locationPlacementId": "Public_2014-09-01",
            "quotaId": "PayAsYouGo_2014-09-01",
            "spendingLimit": "Off",
        },
    })
}

/// The tenant that issued the caller's token.
pub(super) fn tenants(cx: &Context<'_>, caller: &Caller, call: &Call<'_>) -> Result<Reply, ArmError> {
    let known = cx.state.tenants.iter();
    let own = known.filter(|known| known.id.eq_ignore_ascii_case(&caller.tenant_id));
    let found = own.map(|known| (known.id.clone(), &known.id)).collect();
    page(
        call,
        found,
        1000,
        |id: &String| json!({ "id": format!("/tenants/{id}"), "tenantId": id, "tenantCategory": "Home", "tenantType": "AAD" }),
    )
}

/// The regions, the same for every subscription.
pub(super) fn locations(call: &Call<'_>) -> Reply {
    let subscription = call.id.as_str();
    let show = |region: &Region| {
        json!({
            "id": format!("{subscription}/locations/{}", region.name),
            "name": region.name,
            "type": "Region",
            "displayName": region.display,
            "regionalDisplayName": format!("({}) {}", region.geography, region.display),
            "metadata": {
                "regionType": "Physical",
                "regionCategory": "Recommended",
                "geography": region.geography,
                "geographyGroup": region.geography,
                "latitude": region.at.0.to_string(),
                "longitude": region.at.1.to_string(),
                "physicalLocation": region.place,
                "pairedRegion": [],
            },
        })
    };
    let regions: Vec<Value> = REGIONS.iter().map(show).collect();
    Reply::new(200).body(json!({ "value": regions }))
}
