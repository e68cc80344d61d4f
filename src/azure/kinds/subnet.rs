//! The NAT subnet of a Private Link Service.

use std::time::Duration;

use hyperlink_engine::kind_rules::{ListRules, WriteTimes};
use hyperlink_engine::resource::{Difference, Owned, Resource};
use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::{Kind, KindSpec, ListScope, MAX_NAME, NETWORK, NETWORK_API, Rules};
use crate::arm::id::{ResourceId, lower};
use crate::body::{base, set};
use crate::cloud::Arm;

/// What generic code has to know of subnets.
pub const SPEC: KindSpec = KindSpec {
    label: "subnet",
    provider: NETWORK,
    path: &["virtualNetworks", "subnets"],
    api_version: NETWORK_API,
    service: NETWORK,
    max_name: Some(MAX_NAME),
    rules: Rules {
        // The time between two reads of a subnet in progress if Azure gives no time. A PUT takes about 3 s.
        // Source: recorded traffic of Azure, as in `e2e/armsim/src/network/subnet.rs`.
        pace: Duration::from_secs(2),
        list: Some(ListRules {
            of: ListScope::Parent,
            min_served: 10,
            rows: None,
            suffices: None,
        }),
        queued_in_parent: Some(WriteTimes {
            // How long a PUT of a subnet usually takes; the next write into the network waits as long.
            // Source: recorded traffic of Azure, as in `e2e/armsim/src/network/subnet.rs`.
            put: Duration::from_secs(3),
            // How long a DELETE of a subnet usually takes; the next write into the network waits as long.
            // Source: recorded traffic of Azure, as in `e2e/armsim/src/network/subnet.rs`.
            delete: Duration::from_secs(10),
        }),
        // The next prefix must not overlap with this one.
        put_changes_parent: true,
        in_use: Some("InUseSubnetCannotBeDeleted"),
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// A desired subnet for NAT addresses. It is owned by its exact name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatSubnet {
    /// The subnet's ARM id.
    pub id: ResourceId,
    /// The prefix to create it with; an existing subnet keeps its own.
    pub prefix: Option<Ipv4Net>,
}

/// Whether Private Link Services may take addresses from this subnet.
pub fn takes_link_services(subnet: &Value) -> bool {
    let policies = subnet
        .pointer("/properties/privateLinkServiceNetworkPolicies")
        .and_then(Value::as_str);
    policies.is_some_and(|p| p.eq_ignore_ascii_case("Disabled"))
}

/// The properties in which a subnet lists its users.
const USERS: [&str; 5] = [
    "ipConfigurations",
    "privateEndpoints",
    "delegations",
    "serviceAssociationLinks",
    "resourceNavigationLinks",
];

fn property<'a>(subnet: &'a Value, name: &str) -> Option<&'a Value> {
    subnet.get("properties").and_then(|p| p.get(name))
}

fn is_empty(value: &Value) -> bool {
    value.is_null() || value.as_array().is_some_and(Vec::is_empty)
}

/// The name of the first property that shows a use or a configuration of the subnet; none if there is none.
pub fn used_by_others(subnet: &Value) -> Option<&'static str> {
    const REFERENCES: [&str; 3] = ["networkSecurityGroup", "routeTable", "natGateway"];
    let all = USERS.into_iter().chain(REFERENCES);
    let mut in_use = all.filter(|name| property(subnet, name).is_some_and(|value| !is_empty(value)));
    in_use.next()
}

/// Whether nothing uses the subnet but addresses of these deleted Private Link Services. Azure removes such addresses a
/// little later.
pub fn used_only_by(subnet: &Value, services: &[ResourceId]) -> bool {
    let addresses = property(subnet, USERS[0]).and_then(Value::as_array);
    let are_own = addresses.is_some_and(|addresses| addresses.iter().all(|address| is_of_one(address, services)));
    let mut without_addresses = subnet.clone();
    set(&mut without_addresses, &["properties", USERS[0]], Value::Null);
    are_own && used_by_others(&without_addresses).is_none()
}

/// Whether an address of a subnet is in one of these Private Link Services, or in the network interface of one.
fn is_of_one(address: &Value, services: &[ResourceId]) -> bool {
    let id = lower(address.get("id").and_then(Value::as_str).unwrap_or_default());
    services.iter().any(|service| {
        let below = lower(&format!("{service}/"));
        let interface = format!("/networkinterfaces/{}.nic.", lower(service.name()));
        id.starts_with(&below) || id.contains(&interface)
    })
}

/// Whether the subnet is exactly as HyperShift's operator creates one: a /24 whose policies let Private Link Services
/// in, and nothing else set. What Azure fills in by itself does not count.
pub fn has_reference_shape(subnet: &Value) -> bool {
    let one = property(subnet, "addressPrefix").into_iter();
    let many = property(subnet, "addressPrefixes").and_then(Value::as_array);
    let prefixes: Vec<&Value> = one.chain(many.into_iter().flatten()).collect();
    let properties = subnet.get("properties").and_then(Value::as_object);
    matches!(prefixes.as_slice(), [only] if only.as_str().is_some_and(is_24))
        && takes_link_services(subnet)
        && properties.is_some_and(|all| all.iter().all(|(name, value)| is_as_created(name, value)))
}

fn is_24(text: &str) -> bool {
    text.parse().is_ok_and(|prefix: Ipv4Net| prefix.prefix_len() == 24)
}

/// Whether HyperShift's operator sets this property of a subnet, or Azure fills it in.
fn is_as_created(name: &str, value: &Value) -> bool {
    match name {
        "addressPrefix"
        | "addressPrefixes"
        | "privateLinkServiceNetworkPolicies"
        | "provisioningState"
        | "purpose"
        | "defaultOutboundAccess" => true,
        "privateEndpointNetworkPolicies" => value == "Disabled",
        _ => is_empty(value),
    }
}

impl Owned<Arm> for NatSubnet {
    fn kind(&self) -> Kind {
        Kind::Subnet
    }

    fn key(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, _: &Value) -> bool {
        true
    }
}

impl Resource<Arm> for NatSubnet {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let closed = !takes_link_services(current);
        closed
            .then_some(Difference::of("privateLinkServiceNetworkPolicies"))
            .into_iter()
            .collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        if current.is_none()
            && let Some(prefix) = self.prefix
        {
            set(&mut body, &["properties", "addressPrefix"], json!(prefix.to_string()));
        }
        set(
            &mut body,
            &["properties", "privateLinkServiceNetworkPolicies"],
            json!("Disabled"),
        );
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subnet() -> NatSubnet {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/x-pls-nat";
        NatSubnet {
            id: ResourceId::parse(id).unwrap(),
            prefix: "10.1.2.0/28".parse().ok(),
        }
    }

    #[test]
    fn repair_keeps_prefix_and_what_others_attached() {
        let found = json!({"etag": "e", "properties": {"addressPrefix": "10.9.0.0/24", "privateLinkServiceNetworkPolicies": "Enabled",
            "provisioningState": "Succeeded", "networkSecurityGroup": {"id": "nsg"}}});
        assert_eq!(subnet().differs(&found).len(), 1);
        let body = subnet().body(Some(&found));
        assert_eq!(
            body,
            json!({"properties": {"addressPrefix": "10.9.0.0/24", "privateLinkServiceNetworkPolicies": "Disabled",
                "networkSecurityGroup": {"id": "nsg"}}})
        );
    }

    #[test]
    fn addresses_of_the_own_service_are_distinguished_from_others() {
        let net = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        let service = [ResourceId::parse(&format!("{net}/privateLinkServices/pls-x")).unwrap()];
        let used = |ids: &[&str]| {
            let users: Vec<Value> = ids.iter().map(|id| json!({"id": format!("{net}/{id}")})).collect();
            json!({"properties": {"ipConfigurations": users}})
        };
        let own = "PrivateLinkServices/PLS-X/ipConfigurations/pls-nat-ip";
        let interface = "networkInterfaces/pls-x.nic.6b1f/ipConfigurations/pls-nat-ip";
        assert!(used_only_by(&used(&[own, interface]), &service));
        assert!(!used_only_by(
            &used(&[own, "networkInterfaces/pls-xy.nic.1/ipConfigurations/i"]),
            &service
        ));
        assert!(!used_only_by(
            &used(&["privateLinkServices/pls-xy/ipConfigurations/i"]),
            &service
        ));
        let mut also = used(&[own]);
        set(&mut also, &["properties", "natGateway"], json!({"id": "x"}));
        assert!(!used_only_by(&also, &service));
    }

    #[test]
    fn only_a_plain_24_has_the_shape_of_the_reference() {
        let made = json!({"addressPrefix": "10.0.7.0/24", "provisioningState": "Succeeded", "delegations": [],
            "privateLinkServiceNetworkPolicies": "Disabled", "privateEndpointNetworkPolicies": "Disabled"});
        let shape = |field: &str, value: Value| {
            let mut subnet = json!({"properties": made.clone()});
            set(&mut subnet, &["properties", field], value);
            has_reference_shape(&subnet)
        };
        assert!(shape("purpose", Value::Null));
        assert!(!shape("addressPrefix", json!("10.0.7.0/25")));
        assert!(!shape("addressPrefixes", json!(["fd00::/64"])));
        assert!(!shape("privateLinkServiceNetworkPolicies", json!("Enabled")));
        assert!(!shape("networkSecurityGroup", json!({"id": "x"})));
        assert!(!shape("serviceEndpoints", json!([{"service": "Microsoft.Storage"}])));
        assert!(!shape("privateEndpointNetworkPolicies", json!("Enabled")));
    }

    #[test]
    fn subnet_in_use_is_recognized() {
        let lists = USERS.map(|name| (name, json!([{"id": "x"}])));
        let references = ["networkSecurityGroup", "routeTable", "natGateway"].map(|name| (name, json!({"id": "x"})));
        for (name, value) in lists.into_iter().chain(references) {
            assert_eq!(used_by_others(&json!({"properties": {name: value}})), Some(name));
        }
        assert_eq!(
            used_by_others(&json!({"properties": {"ipConfigurations": [], "delegations": []}})),
            None
        );
    }
}
