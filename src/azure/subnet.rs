//! The NAT subnet of a private link service.

use ipnet::Ipv4Net;
use serde_json::{Value, json};

use super::id::ResourceId;
use super::resource::{Difference, Kind, Resource, base, set};

/// A subnet for NAT addresses. Its exact name is its ownership.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NatSubnet {
    /// Its id.
    pub id: ResourceId,
    /// The prefix to create it with; one that exists keeps its own.
    pub prefix: Option<Ipv4Net>,
}

/// Whether private link services may take addresses from this subnet.
pub fn takes_link_services(subnet: &Value) -> bool {
    let policies = subnet
        .pointer("/properties/privateLinkServiceNetworkPolicies")
        .and_then(Value::as_str);
    policies.is_some_and(|p| p.eq_ignore_ascii_case("Disabled"))
}

/// What else than we uses or configures the subnet, if anything does.
pub fn used_by_others(subnet: &Value) -> Option<&'static str> {
    const LISTS: [&str; 5] = [
        "ipConfigurations",
        "privateEndpoints",
        "delegations",
        "serviceAssociationLinks",
        "resourceNavigationLinks",
    ];
    const REFERENCES: [&str; 3] = ["networkSecurityGroup", "routeTable", "natGateway"];
    let properties = subnet.get("properties");
    let at = |key: &str| properties.and_then(|p| p.get(key));
    let list = LISTS
        .into_iter()
        .find(|key| at(key).and_then(Value::as_array).is_some_and(|list| !list.is_empty()));
    list.or_else(|| {
        REFERENCES
            .into_iter()
            .find(|key| at(key).is_some_and(|reference| !reference.is_null()))
    })
}

impl Resource for NatSubnet {
    fn kind(&self) -> Kind {
        Kind::Subnet
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn ours(&self, _: &Value) -> bool {
        true
    }

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
    fn a_subnet_in_use_is_seen_as_such() {
        assert_eq!(
            used_by_others(&json!({"properties": {"ipConfigurations": [{"id": "x"}]}})),
            Some("ipConfigurations")
        );
        assert_eq!(
            used_by_others(&json!({"properties": {"natGateway": {"id": "x"}}})),
            Some("natGateway")
        );
        assert_eq!(
            used_by_others(&json!({"properties": {"ipConfigurations": [], "delegations": []}})),
            None
        );
    }
}
