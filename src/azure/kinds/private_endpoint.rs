//! The Private Endpoint: one manual connection to an alias, and the address that it gives.

use std::net::IpAddr;
use std::time::Duration;

use hyperlink_engine::kind_rules::ListRules;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::{Kind, KindSpec, ListScope, MAX_NAME, NETWORK, NETWORK_API, Rules};
use crate::arm::id::{ResourceId, same};
use crate::body::{base, id_at, mark, set};
use crate::cloud::Arm;
use crate::owner_tags::{MAX_TAGS, OwnerTags};

/// What generic code has to know of Private Endpoints.
pub const SPEC: KindSpec = KindSpec {
    label: "private_endpoint",
    provider: NETWORK,
    path: &["privateEndpoints"],
    api_version: NETWORK_API,
    service: NETWORK,
    max_name: Some(MAX_NAME),
    expand: Some("networkInterfaces"),
    rules: Rules {
        // The time between two reads of a Private Endpoint in progress if Azure gives no time. Most creates take 30 to
        // 45 s.
        // Source: recorded traffic of Azure, as in `e2e/armsim/src/network/endpoint.rs`.
        pace: Duration::from_secs(15),
        list: Some(ListRules {
            of: ListScope::Subscription,
            min_served: 10,
            rows: None,
            // A row has no address. While the connection is approved, the one that is known stands.
            suffices: Some(|row| approval(row) == Approval::Approved),
        }),
        // The answer to a PUT does not show the address.
        read_after_put: true,
        // Its DNS names are deleted after it.
        proves_gone: true,
        shows_predecessor: true,
        ..Rules::DEFAULT
    },
    ..KindSpec::DEFAULT
};

/// A desired Private Endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrivateEndpoint {
    /// The endpoint's ARM id.
    pub id: ResourceId,
    /// The Azure region.
    pub location: String,
    /// Tags, one of which proves ownership.
    pub owner_tags: OwnerTags,
    /// The subnet that it takes its address from.
    pub subnet: ResourceId,
    /// The alias of the Private Link Service; none while that is not known or no longer desired.
    pub alias: Option<String>,
    /// Whether this process observed it as owned before it came to lead elsewhere.
    pub proven: bool,
    /// The message that the owner of the Private Link Service reads with the request.
    pub request_message: &'static str,
}

/// The state of the connection, as the Private Endpoint shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Approval {
    /// The connection carries traffic.
    Approved,
    /// The owner of the Private Link Service has not decided.
    Pending,
    /// The owner rejected the connection.
    Rejected,
    /// The Private Link Service or its end of the connection is gone.
    Disconnected,
    /// An unknown state, or none.
    Unknown,
}

impl Approval {
    /// The word that ARM uses.
    pub fn word(self) -> &'static str {
        match self {
            Approval::Approved => "Approved",
            Approval::Pending => "Pending",
            Approval::Rejected => "Rejected",
            Approval::Disconnected => "Disconnected",
            Approval::Unknown => "Unknown",
        }
    }
}

/// The state of the endpoint's connection.
pub fn approval(body: &Value) -> Approval {
    let state = connection(body).and_then(|c| c.pointer("/properties/privateLinkServiceConnectionState/status"));
    match state.and_then(Value::as_str) {
        Some("Approved") => Approval::Approved,
        Some("Pending") => Approval::Pending,
        Some("Rejected") => Approval::Rejected,
        Some("Disconnected") => Approval::Disconnected,
        _ => Approval::Unknown,
    }
}

/// The endpoint's address: the first one of any DNS configuration or network interface. Needs a body that was read with
/// the network interfaces expanded. Azure shows empty ones beside it.
pub fn address(body: &Value) -> Option<IpAddr> {
    let configurations = items(&body["properties"]["customDnsConfigs"]);
    let of_configurations = configurations.flat_map(|one| items(&one["ipAddresses"]));
    parsed(of_configurations).chain(interface_addresses(body)).next()
}

/// The addresses of the endpoint's network interfaces, in Azure's order. Needs a body that was read with the network
/// interfaces expanded.
pub fn interface_addresses(body: &Value) -> impl Iterator<Item = IpAddr> {
    let interfaces = items(&body["properties"]["networkInterfaces"]);
    let configurations = interfaces.flat_map(|interface| items(&interface["properties"]["ipConfigurations"]));
    parsed(configurations.map(|configuration| &configuration["properties"]["privateIPAddress"]))
}

fn parsed<'a>(addresses: impl Iterator<Item = &'a Value>) -> impl Iterator<Item = IpAddr> {
    let texts = addresses.filter_map(Value::as_str);
    texts.filter_map(|text| text.parse().ok())
}

fn items(list: &Value) -> impl Iterator<Item = &Value> {
    list.as_array().into_iter().flatten()
}

/// The first connection that has a target; without one, the first connection.
fn connection(body: &Value) -> Option<&Value> {
    let with_target = connections(body).find(|connection| has_target(connection));
    with_target.or_else(|| connections(body).next())
}

/// All connections, those first that a person has to approve.
fn connections(body: &Value) -> impl Iterator<Item = &Value> {
    let properties = &body["properties"];
    let manual = items(&properties["manualPrivateLinkServiceConnections"]);
    manual.chain(items(&properties["privateLinkServiceConnections"]))
}

fn has_target(connection: &Value) -> bool {
    let target = connection["properties"]["privateLinkServiceId"].as_str();
    target.is_some_and(|target| !target.is_empty())
}

fn target(body: &Value) -> Option<&str> {
    connection(body)?
        .pointer("/properties/privateLinkServiceId")
        .and_then(Value::as_str)
}

/// Whether the body shows a target of the connection.
pub fn leads_anywhere(body: &Value) -> bool {
    target(body).is_some_and(|to| !to.is_empty())
}

/// Whether it leads to the Private Link Service with this alias.
pub fn leads_to(body: &Value, alias: &str) -> bool {
    target(body).is_some_and(|found| same(found, alias))
}

impl PrivateEndpoint {
    fn in_desired_subnet(&self, current: &Value) -> bool {
        id_at(current, "/properties/subnet/id").as_ref() == Some(&self.subnet)
    }

    fn leads_to_desired(&self, current: &Value) -> bool {
        self.alias.as_deref().is_some_and(|alias| leads_to(current, alias))
    }

    /// Whether it is owned without the owner tags: its address is from the desired subnet, and it leads to the desired
    /// service, or did.
    fn resembles_owned(&self, current: &Value) -> bool {
        self.in_desired_subnet(current) && (self.leads_to_desired(current) || self.proven)
    }
}

impl Owned<Arm> for PrivateEndpoint {
    fn kind(&self) -> Kind {
        Kind::PrivateEndpoint
    }

    fn key(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owner_tags.prove(current) || (self.resembles_owned(current) && !self.owner_tags.deny(current))
    }
}

impl Resource<Arm> for PrivateEndpoint {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let dead = matches!(approval(current), Approval::Rejected | Approval::Disconnected);
        let rules = [
            (!self.leads_to_desired(current), "privateLinkServiceId"),
            (!self.in_desired_subnet(current), "subnet"),
            (dead, "privateLinkServiceConnectionState"),
        ];
        rules
            .into_iter()
            .filter_map(|(differs, field)| differs.then_some(Difference::by_replacement(field)))
            .collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        set(&mut body, &["location"], json!(self.location));
        if current.is_none() {
            let connection =
                json!({"privateLinkServiceId": self.alias, "groupIds": [], "requestMessage": self.request_message});
            let connections = json!([{"name": self.id.name(), "properties": connection}]);
            set(
                &mut body,
                &["properties", "subnet"],
                json!({"id": self.subnet.to_string()}),
            );
            set(
                &mut body,
                &["properties", "manualPrivateLinkServiceConnections"],
                connections,
            );
        }
        mark(&mut body, "tags", &self.owner_tags.all(), MAX_TAGS);
        body
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
    const ALIAS: &str = "pls.guid.eastus.azure.privatelinkservice";

    fn desired() -> PrivateEndpoint {
        PrivateEndpoint {
            id: ResourceId::parse(&format!("{NET}/privateEndpoints/private-router-pe")).unwrap(),
            location: "eastus".into(),
            owner_tags: OwnerTags {
                owner: ("cluster".into(), "x".into()),
                ..OwnerTags::default()
            },
            subnet: ResourceId::parse(&format!("{NET}/virtualNetworks/v/subnets/guest")).unwrap(),
            alias: Some(ALIAS.into()),
            proven: false,
            request_message: "hello",
        }
    }

    fn found(status: &str) -> Value {
        let mut body = desired().body(None);
        let connection = &mut body["properties"]["manualPrivateLinkServiceConnections"][0]["properties"];
        connection["privateLinkServiceConnectionState"] = json!({"status": status});
        body
    }

    #[rstest]
    #[case::approved("Approved", 0)]
    #[case::pending_is_waited_for("Pending", 0)]
    #[case::rejected_is_dead("Rejected", 1)]
    #[case::disconnected_is_dead("Disconnected", 1)]
    fn state_of_the_connection(#[case] status: &str, #[case] differences: usize) {
        assert_eq!(desired().differs(&found(status)).len(), differences);
    }

    #[test]
    fn endpoint_to_an_old_alias_is_replaced() {
        let new = PrivateEndpoint {
            alias: Some("pls.new.eastus.azure.privatelinkservice".into()),
            ..desired()
        };
        assert_eq!(
            new.differs(&found("Approved")),
            [Difference::by_replacement("privateLinkServiceId")]
        );
    }

    #[test]
    fn untagged_endpoint_is_owned_by_subnet_and_alias_only() {
        let mut body = found("Approved");
        body.as_object_mut().unwrap().remove("tags");
        assert!(desired().is_owned(&body));
        let elsewhere = PrivateEndpoint {
            subnet: ResourceId::parse(&format!("{NET}/virtualNetworks/w/subnets/guest")).unwrap(),
            ..desired()
        };
        assert!(!elsewhere.is_owned(&body));
        let other = PrivateEndpoint {
            alias: Some("other".into()),
            ..desired()
        };
        assert!(!other.is_owned(&body));
    }

    #[test]
    fn untagged_endpoint_to_an_old_alias_is_owned_only_if_proven() {
        let mut body = found("Disconnected");
        body.as_object_mut().unwrap().remove("tags");
        let new = PrivateEndpoint {
            alias: Some("pls.new.eastus.azure.privatelinkservice".into()),
            ..desired()
        };
        assert!(!new.is_owned(&body));
        let proven = PrivateEndpoint { proven: true, ..new };
        assert!(proven.is_owned(&body));
        body["tags"] = json!({"cluster": "another"});
        assert!(!proven.is_owned(&body) && !desired().is_owned(&body));
    }

    #[test]
    fn address_is_the_interfaces_if_there_is_no_dns_configuration() {
        let nic = json!([{"properties": {"ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.5"}}]}}]);
        assert_eq!(
            address(&json!({"properties": {"customDnsConfigs": [], "networkInterfaces": nic}})),
            "10.0.0.5".parse().ok()
        );
        assert_eq!(
            address(&json!({"properties": {"networkInterfaces": [{"id": "only"}]}})),
            None
        );
    }

    #[rstest]
    #[case::second_configuration(json!({"customDnsConfigs": [{}, {"ipAddresses": []}, {"ipAddresses": ["", "10.0.0.5"]}]}))]
    #[case::second_interface(json!({"customDnsConfigs": [{"ipAddresses": []}], "networkInterfaces": [{"id": "only"}, {"properties":
        {"ipConfigurations": [{"properties": {}}, {"properties": {"privateIPAddress": "10.0.0.5"}}]}}]}))]
    fn empty_ones_before_the_address_are_skipped(#[case] properties: Value) {
        assert_eq!(address(&json!({"properties": properties})), "10.0.0.5".parse().ok());
    }

    #[test]
    fn empty_connection_before_the_own_one_is_skipped() {
        let mut body = found("Approved");
        let connections = &mut body["properties"]["manualPrivateLinkServiceConnections"];
        let own = connections[0].take();
        *connections = json!([{}, {"properties": {"privateLinkServiceId": ""}}, own]);
        assert_eq!(approval(&body), Approval::Approved);
        assert!(desired().is_owned(&body) && desired().differs(&body).is_empty());
        let properties = body["properties"].as_object_mut().unwrap();
        let automatic = properties.remove("manualPrivateLinkServiceConnections").unwrap();
        properties.insert("privateLinkServiceConnections".into(), automatic);
        assert_eq!(approval(&body), Approval::Approved);
    }
}
