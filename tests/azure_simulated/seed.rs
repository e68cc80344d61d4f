//! The seed of the simulated Azure, in which the desired resources can be made.

use serde_json::{Value, json};

use crate::desired::{GUEST, GUEST_SUB, NET, SUB};

pub(crate) const TENANT: &str = "11111111-1111-1111-1111-111111111111";
pub(crate) const PRINCIPAL: &str = "aaaaaaaa-0000-0000-0000-000000000001";

/// A provider's and a guest's subscription, each with a network, and a load balancer with two frontends.
pub(crate) fn seed() -> Value {
    let lb_subnet = json!({"id": format!("{NET}/virtualNetworks/hub/subnets/lb")});
    let frontend = |name: &str| json!({"name": name, "properties": {"subnet": lb_subnet}});
    json!({
        "tenants": [{"id": TENANT, "principals": []}],
        "subscriptions": [{"id": SUB, "tenant": TENANT}, {"id": GUEST_SUB, "tenant": TENANT}],
        "roles": [
            {"object_id": PRINCIPAL, "scope": format!("/subscriptions/{SUB}"), "actions": ["*"]},
            {"object_id": PRINCIPAL, "scope": format!("/subscriptions/{GUEST_SUB}"), "actions": ["*"]},
        ],
        "resources": [
            {"id": format!("/subscriptions/{SUB}/resourceGroups/mgmt"), "location": "westus2"},
            {"id": format!("/subscriptions/{GUEST_SUB}/resourceGroups/guest"), "location": "westus2"},
            {"id": format!("/subscriptions/{GUEST_SUB}/resourceGroups/other"), "location": "westus2"},
            {"id": format!("{NET}/virtualNetworks/hub"), "location": "westus2", "properties": {
                "addressSpace": {"addressPrefixes": ["10.0.0.0/16"]},
                "subnets": [
                    {"name": "lb", "properties": {"addressPrefix": "10.0.0.0/24"}},
                    {"name": "given", "properties": {"addressPrefix": "10.0.2.0/24", "privateLinkServiceNetworkPolicies": "Disabled"}},
                ]}},
            {"id": format!("{GUEST}/virtualNetworks/workers"), "location": "westus2", "properties": {
                "addressSpace": {"addressPrefixes": ["10.1.0.0/16"]},
                "subnets": [
                    {"name": "guest", "properties": {"addressPrefix": "10.1.0.0/28"}},
                    {"name": "elsewhere", "properties": {"addressPrefix": "10.1.1.0/28"}},
                ]}},
            {"id": format!("{GUEST}/virtualNetworks/stranger"), "location": "westus2",
                "properties": {"addressSpace": {"addressPrefixes": ["10.2.0.0/16"]}}},
            {"id": format!("{NET}/loadBalancers/lb"), "location": "westus2", "sku": {"name": "Standard"},
                "properties": {"frontendIPConfigurations": [frontend("router"), frontend("stranger")]}},
        ],
    })
}

/// The seed with a whole section replaced.
pub(crate) fn seed_with(section: &str, value: Value) -> Value {
    let mut seed = seed();
    seed[section] = value;
    seed
}
