//! Network security groups: their rules, the default rules that every group has, and who uses them.

use serde_json::{Value, json};

use crate::engine::context::Context;
use crate::engine::error::ArmError;
use crate::engine::id::ResourceId;
use crate::engine::kind::Call;
use crate::engine::preset::Pace;
use crate::engine::resource::Resource;

use super::nic;
use super::reference::{not_in_use, referenced, referring, users};
use super::shape::{defaults, id_of, ids, items, named, nested, only_ids, properties, show, tracked};
use super::subnet;
use super::write::resource_guid;
use super::written::{About, Plan, Put, Written};

/// Microsoft.Network/networkSecurityGroups.
pub(crate) struct SecurityGroups;

const TYPE: &str = "Microsoft.Network/networkSecurityGroups";
const RULES: &str = "securityRules";
const DEFAULTS: &str = "defaultSecurityRules";

pub(crate) static ABOUT: About = About {
    resource_type: TYPE,
    first_version: "2015-05-01-preview",
    noun: "NetworkSecurityGroup",
    create: Pace::new(3.0, 3),
    update: Pace::new(3.0, 3),
    delete: Pace::new(10.0, 10),
};

/// The rules of every group: name, description, from, to, access, priority, direction.
const DEFAULT_RULES: [(&str, &str, &str, &str, &str, u32, &str); 6] = [
    (
        "AllowVnetInBound",
        "Allow inbound traffic from all VMs in VNET",
        "VirtualNetwork",
        "VirtualNetwork",
        "Allow",
        65000,
        "Inbound",
    ),
    (
        "AllowAzureLoadBalancerInBound",
        "Allow inbound traffic from azure load balancer",
        "AzureLoadBalancer",
        "*",
        "Allow",
        65001,
        "Inbound",
    ),
    (
        "DenyAllInBound",
        "Deny all inbound traffic",
        "*",
        "*",
        "Deny",
        65500,
        "Inbound",
    ),
    (
        "AllowVnetOutBound",
        "Allow outbound traffic from all VMs to all VMs in VNET",
        "VirtualNetwork",
        "VirtualNetwork",
        "Allow",
        65000,
        "Outbound",
    ),
    (
        "AllowInternetOutBound",
        "Allow outbound traffic from all VMs to Internet",
        "*",
        "Internet",
        "Allow",
        65001,
        "Outbound",
    ),
    (
        "DenyAllOutBound",
        "Deny all outbound traffic",
        "*",
        "*",
        "Deny",
        65500,
        "Outbound",
    ),
];

impl Written for SecurityGroups {
    fn about(&self) -> &About {
        &ABOUT
    }

    fn plan(&self, cx: &mut Context<'_>, put: &Put<'_>) -> Result<Plan, ArmError> {
        let given = named(put.id, &put.given["properties"][RULES])?;
        if put.call.is_some() {
            check(cx, put.id, &given)?;
        }
        let read_only = [DEFAULTS, "networkInterfaces", "subnets", "flowLogs"];
        let mut kept = properties(put.given, &read_only);
        kept.insert(
            RULES.to_owned(),
            given.into_iter().map(|(name, item)| rule(name, item)).collect(),
        );
        kept.insert("resourceGuid".to_owned(), resource_guid(cx, put.id));
        let mut body = tracked(put.location, put.given);
        body["properties"] = json!(kept);
        Ok(Plan::new(body))
    }

    fn may_go(&self, cx: &Context<'_>, _call: &Call<'_>, found: &Resource) -> Result<(), ArmError> {
        let code = "InUseNetworkSecurityGroupCannotBeDeleted";
        not_in_use(code, "Network security group", &found.id, &users(cx, &found.id))
    }

    fn show(&self, cx: &Context<'_>, resource: &Resource, shown: &mut Value) {
        let part = |item: &Value, list| nested(item, resource, list, TYPE, resource.state);
        let rules = items(resource.property(RULES)).iter();
        shown["properties"][RULES] = rules.map(|item| part(item, RULES)).collect();
        shown["properties"][DEFAULTS] = DEFAULT_RULES
            .iter()
            .map(|rule| part(&default_rule(rule), DEFAULTS))
            .collect();
        for (field, user) in [("subnets", subnet::TYPE), ("networkInterfaces", nic::TYPE)] {
            show(shown, field, ids(referring(cx, &resource.id, user)));
        }
    }
}

fn default_rule(rule: &(&str, &str, &str, &str, &str, u32, &str)) -> Value {
    let (name, description, from, to, access, priority, direction) = *rule;
    self::rule(
        name,
        &json!({ "properties": {
            "description": description,
            "protocol": "*",
            "sourcePortRange": "*",
            "destinationPortRange": "*",
            "sourceAddressPrefix": from,
            "destinationAddressPrefix": to,
            "access": access,
            "priority": priority,
            "direction": direction,
        }}),
    )
}

/// A rule as it is stored.
fn rule(name: &str, item: &Value) -> Value {
    let mut kept = properties(item, &[]);
    for list in [
        "sourceApplicationSecurityGroups",
        "destinationApplicationSecurityGroups",
    ] {
        only_ids(&mut kept, list);
    }
    defaults(
        &mut kept,
        &json!({
            "sourcePortRanges": [],
            "destinationPortRanges": [],
            "sourceAddressPrefixes": [],
            "destinationAddressPrefixes": [],
        }),
    );
    json!({ "name": name, "properties": kept })
}

/// Words and numbers of each rule, and that no two of a direction have one priority.
fn check(cx: &Context<'_>, id: &ResourceId, rules: &[(&str, &Value)]) -> Result<(), ArmError> {
    let refuse = |code: &str, message: String| Err(ArmError::service(400, code, message));
    let mut earlier: Vec<(String, i64, &str)> = Vec::new();
    for (name, item) in rules {
        let given = &item["properties"];
        for (field, known) in [
            ("protocol", &["*", "Tcp", "Udp", "Icmp", "Esp", "Ah"][..]),
            ("access", &["Allow", "Deny"][..]),
            ("direction", &["Inbound", "Outbound"][..]),
        ] {
            let value = given[field].as_str().unwrap_or_default();
            if !known.iter().any(|known| known.eq_ignore_ascii_case(value)) {
                let message = format!(
                    "Security rule {name} has invalid {field}. Value provided: '{value}'. Allowed values: {}.",
                    known.join(", ")
                );
                return refuse("SecurityRuleParameterContainsUnsupportedValue", message);
            }
        }
        let priority = given["priority"].as_i64().unwrap_or_default();
        if !(100..=4096).contains(&priority) {
            let message =
                format!("Security rule has invalid Priority. Value provided: {priority}. Allowed range 100-4096.");
            return refuse("SecurityRuleInvalidPriority", message);
        }
        let direction = given["direction"].as_str().unwrap_or_default().to_ascii_lowercase();
        let same = earlier
            .iter()
            .find(|(other, taken, _)| *other == direction && *taken == priority);
        if let Some((_, _, other)) = same {
            let message = format!(
                "Security rule {name} conflicts with rule {other}. Rules cannot have the same Priority and Direction."
            );
            return refuse("SecurityRuleConflict", message);
        }
        earlier.push((direction, priority, name));
        for list in [
            "sourceApplicationSecurityGroups",
            "destinationApplicationSecurityGroups",
        ] {
            let groups = items(&given[list]).iter().filter_map(id_of);
            for group in groups {
                referenced(cx, id, group)?;
            }
        }
    }
    Ok(())
}
