//! The simulated Azure that the laws are tried on: three subscriptions of two tenants with the same few names in each,
//! small quotas, and callers who may do everything, half of it, or nothing.

use armsim::{Caller, Preset, Seed, SimulatedAzure};
use jiff::Timestamp;
use serde_json::{Value, json};

/// The first two trust the first tenant, the third the second.
pub const SUBSCRIPTIONS: [&str; 3] = [
    "aaaaaaaa-0000-4000-8000-000000000001",
    "bbbbbbbb-0000-4000-8000-000000000002",
    "cccccccc-0000-4000-8000-000000000003",
];
const TENANTS: [&str; 2] = [
    "11111111-0000-4000-8000-00000000000a",
    "22222222-0000-4000-8000-00000000000b",
];

/// What makes one run different from another.
#[derive(Clone, Copy, Debug, Default)]
pub struct Mode {
    /// Fault rules come and go.
    pub faults: bool,
    /// Budgets are small enough to be met.
    pub throttle: bool,
    /// Resources change behind everybody's back.
    pub drift: bool,
    /// Chooses the switches that are not at their defaults.
    pub switches: u8,
}

impl Mode {
    /// The mode that two bytes choose; zeros choose no faults, no small budgets, no drift and the default switches.
    pub fn of(bytes: [u8; 2]) -> Self {
        let [mode, switches] = bytes;
        Self {
            faults: mode % 4 == 1,
            throttle: mode % 4 == 2,
            drift: mode % 4 == 3,
            switches,
        }
    }

    /// Whether every accepted write ends as planned, and only calls delete resources.
    pub fn is_orderly(self) -> bool {
        !self.faults && !self.drift
    }
}

/// Limits that a run of some dozen calls can reach.
pub const QUOTAS: [(&str, usize); 10] = [
    ("pls", 3),
    ("pls_per_load_balancer", 2),
    ("nat_ips_per_pls", 2),
    ("endpoints_per_pls", 2),
    ("endpoints_per_vnet", 3),
    ("endpoints", 4),
    ("allowed_subscriptions", 2),
    ("zones", 3),
    ("links_per_zone", 2),
    ("record_sets_per_zone", 4),
];

/// Who calls, by the number that steps use: 0 and 1 own everything of their tenant, 2 owns the second subscription and
/// reads the first, 3 may do nothing.
pub fn caller(number: usize) -> Caller {
    let tenant = TENANTS[usize::from(number == 1)];
    Caller {
        tenant_id: tenant.to_owned(),
        client_id: format!("client-{number}"),
        object_id: format!("object-{number}"),
    }
}

/// The owner of a subscription.
pub fn owner(subscription: usize) -> usize {
    usize::from(subscription == 2)
}

/// The second number of all addresses in a VNet.
pub fn block(subscription: usize, vnet: usize) -> usize {
    subscription * 10 + vnet
}

fn resources(subscription: usize) -> Vec<Value> {
    let group = format!("/subscriptions/{}/resourceGroups/rg0", SUBSCRIPTIONS[subscription]);
    let net = format!("{group}/providers/Microsoft.Network");
    let block = block(subscription, 0);
    vec![
        json!({"id": group, "location": "westus2"}),
        json!({"id": format!("{net}/virtualNetworks/v0"), "location": "westus2", "properties": {
        "addressSpace": {"addressPrefixes": [format!("10.{block}.0.0/16")]},
        "subnets": [
            {"name": "s0", "properties": {"addressPrefix": format!("10.{block}.0.0/29")}},
            {"name": "s1", "properties": {"addressPrefix": format!("10.{block}.1.0/28"), "privateLinkServiceNetworkPolicies": "Disabled"}},
        ]}}),
        json!({"id": format!("{net}/loadBalancers/l0"), "location": "westus2", "sku": {"name": "Standard"}, "properties": {
            "frontendIPConfigurations": [{"name": "f0", "properties": {"subnet": {"id": format!("{net}/virtualNetworks/v0/subnets/s1")}}}]}}),
        json!({"id": format!("{net}/privateDnsZones/z0.com"), "location": "global"}),
    ]
}

fn switches(mode: Mode) -> Value {
    let on = |bit: u8| mode.switches & bit != 0;
    let mut switches = json!({});
    for (bit, name, value) in [
        (1, "vnet_busy", json!("429")),
        (2, "rejected_connections_block_delete", json!(false)),
        (4, "rejected_can_be_approved", json!(true)),
        (8, "network_if_none_match", json!(true)),
        (16, "endpoint_needs_policies_disabled", json!(false)),
        (32, "link_delete_lag_s", json!(20)),
        (64, "subnet_lag_s", json!(2)),
        (128, "alias_lag_s", json!(5)),
    ] {
        if on(bit) {
            switches[name] = value;
        }
    }
    switches
}

/// When every run begins.
pub fn start() -> Timestamp {
    "2026-01-05T10:00:00Z".parse().unwrap()
}

/// The seed for that mode.
pub fn seed(mode: Mode) -> Value {
    let quotas: Value = QUOTAS.iter().map(|(name, most)| (*name, json!(most))).collect();
    let subscriptions: Vec<Value> = (0..3)
        .map(|at| json!({"id": SUBSCRIPTIONS[at], "tenant": TENANTS[owner(at)], "quotas": quotas}))
        .collect();
    let role = |who: usize, at: usize, action: &str| json!({"object_id": format!("object-{who}"), "scope": format!("/subscriptions/{}", SUBSCRIPTIONS[at]), "actions": [action]});
    let mut seed = json!({
        "tenants": TENANTS.map(|id| json!({"id": id, "principals": []})),
        "subscriptions": subscriptions,
        "roles": [role(0, 0, "*"), role(0, 1, "*"), role(1, 2, "*"), role(2, 0, "*/read"), role(2, 1, "*")],
        "resources": (0..3).flat_map(resources).collect::<Vec<_>>(),
        "switches": switches(mode),
        "throttle": {"enabled": false},
    });
    if mode.throttle {
        let bucket = json!({"bucket": 6, "per_s": 0.5});
        seed["throttle"] = json!({"reads": bucket, "writes": bucket, "deletes": bucket, "dns_reads_5min": 9});
    }
    seed
}

/// A simulated Azure for that mode; `random_seed` decides its GUIDs.
pub fn seeded_azure(preset: Preset, mode: Mode, random_seed: u64) -> SimulatedAzure {
    let mut azure = SimulatedAzure::new(preset, random_seed);
    let seed = seed(mode);
    let seed = Seed::parse(seed.to_string().as_bytes()).unwrap();
    azure.seed(start(), seed).unwrap();
    azure
}
