//! The link of a private DNS zone to a virtual network.

use std::time::Duration;

use hyperlink_engine::kind_rules::{ListRules, Resync};
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::private_dns_zone::{DNS_API, DNS_READS, DNS_SERVICE, MAX_DNS_TAGS, links, rows};
use super::{Kind, KindSpec, ListScope, MAX_NAME, NETWORK, Rules};
use crate::arm::id::ResourceId;
use crate::body::{base, id_at, mark, set};
use crate::cloud::Arm;
use crate::owner_tags::OwnerTags;

/// What generic code has to know of virtual network links.
pub const SPEC: KindSpec = KindSpec {
    label: "virtual_network_link",
    provider: NETWORK,
    path: &["privateDnsZones", "virtualNetworkLinks"],
    api_version: DNS_API,
    service: DNS_SERVICE,
    reads_in_5_minutes: Some(DNS_READS),
    max_name: Some(MAX_NAME),
    rules: Rules {
        // The time between two reads of a virtual network link in progress if Azure gives no time. Most writes take up
        // to half a minute.
        // Source: recorded traffic of Azure, as in `e2e/armsim/src/dns/links.rs`.
        pace: Duration::from_secs(10),
        resync: Resync::Counted,
        list: Some(ListRules {
            of: ListScope::Parent,
            min_served: 2,
            rows: Some(rows),
            suffices: None,
        }),
        completed,
        count_in_parent: Some(links),
        create_if_new: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// A desired virtual network link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VirtualNetworkLink {
    /// The link's ARM id.
    pub id: ResourceId,
    /// Tags, one of which proves ownership.
    pub owner_tags: OwnerTags,
    /// The virtual network whose machines resolve names in the zone.
    pub virtual_network: ResourceId,
    /// Whether other resources prove that the link is owned, if it leads to that network: the zone's owner tags, or
    /// this cluster's records in the zone.
    pub proven: bool,
}

/// The virtual network that a link leads to.
pub fn virtual_network(body: &Value) -> Option<ResourceId> {
    id_at(body, "/properties/virtualNetwork/id")
}

/// Whether the link is in force. The success of its operation alone does not prove that.
pub fn completed(body: &Value) -> bool {
    body.pointer("/properties/virtualNetworkLinkState")
        .and_then(Value::as_str)
        .is_none_or(|state| state == "Completed")
}

impl VirtualNetworkLink {
    /// Whether it leads to the desired virtual network.
    pub fn leads_to_desired(&self, current: &Value) -> bool {
        virtual_network(current).as_ref() == Some(&self.virtual_network)
    }
}

impl Owned<Arm> for VirtualNetworkLink {
    fn kind(&self) -> Kind {
        Kind::VirtualNetworkLink
    }

    fn key(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owner_tags.prove(current)
            || (self.proven && self.leads_to_desired(current) && !self.owner_tags.deny(current))
    }
}

impl Resource<Arm> for VirtualNetworkLink {
    /// As with zones: a link that is as desired keeps resolving names while others write it again.
    fn moved_by_others(&self, current: &Value) -> bool {
        !self.owner_tags.prove(current)
    }

    fn differs(&self, current: &Value) -> Vec<Difference> {
        let registers = current
            .pointer("/properties/registrationEnabled")
            .and_then(Value::as_bool)
            .unwrap_or(false);
        let rules = [
            (
                !self.leads_to_desired(current),
                Difference::by_replacement("virtualNetwork"),
            ),
            (registers, Difference::of("registrationEnabled")),
        ];
        rules
            .into_iter()
            .filter_map(|(differs, difference)| differs.then_some(difference))
            .collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        set(&mut body, &["location"], json!("global"));
        set(&mut body, &["properties", "registrationEnabled"], json!(false));
        set(
            &mut body,
            &["properties", "virtualNetwork"],
            json!({"id": self.virtual_network.to_string()}),
        );
        if let Some(properties) = body["properties"].as_object_mut() {
            properties.remove("virtualNetworkLinkState");
        }
        mark(&mut body, "tags", &self.owner_tags.all(), MAX_DNS_TAGS);
        body
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn desired(proven: bool) -> VirtualNetworkLink {
        let net = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        VirtualNetworkLink {
            id: ResourceId::parse(&format!(
                "{net}/privateDnsZones/z.z/virtualNetworkLinks/private-router-vnet-link"
            ))
            .unwrap(),
            owner_tags: OwnerTags {
                owner: ("cluster".into(), "x".into()),
                ..OwnerTags::default()
            },
            virtual_network: ResourceId::parse(&format!("{net}/virtualNetworks/guest")).unwrap(),
            proven,
        }
    }

    #[test]
    fn untagged_link_is_owned_if_proven_and_to_the_desired_network() {
        let body = json!({"properties": {"virtualNetwork": {"id": desired(true).virtual_network.to_string().to_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/")}}});
        assert!(desired(true).is_owned(&body));
        assert!(!desired(false).is_owned(&body));
        assert!(!desired(true).is_owned(&json!({"properties": {"virtualNetwork": {"id": "/other"}}})));
        let mut theirs = body;
        theirs["tags"] = json!({"cluster": "y"});
        assert!(!desired(true).is_owned(&theirs), "the mark of another cluster");
    }

    #[test]
    fn link_that_registers_names_is_repaired() {
        let mut body = desired(true).body(None);
        set(&mut body, &["properties", "registrationEnabled"], json!(true));
        assert_eq!(desired(true).differs(&body), [Difference::of("registrationEnabled")]);
    }
}
