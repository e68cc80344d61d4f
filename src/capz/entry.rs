//! The private endpoint that an entry should make, what of an entry differs from it, and what changes that.

use crate::api::capi::{AzureCluster, Connection, Entry};
use crate::azure::arm::id::{ResourceId, lower, same};
use crate::azure::kinds::Kind;

/// The longest message that Azure takes with a request for a connection, in bytes.
/// Source: the definition of AzureCluster, `privateLinkServiceConnections[].requestMessage`.
pub const MAX_MESSAGE: usize = 140;

/// A desired private endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DesiredEntry {
    /// Its name.
    pub name: String,
    /// Its region.
    pub location: Option<String>,
    /// The name of its connection.
    pub connection: String,
    /// What it connects to.
    pub service: ResourceId,
    /// What the owner of the Private Link Service reads, where he has to approve the connection.
    pub request_message: Option<String>,
}

/// A field of an entry that is not as desired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Field {
    /// `location`
    Location,
    /// `manualApproval`
    ManualApproval,
    /// `privateLinkServiceConnections`
    Connections,
}

impl Field {
    /// The name of the field.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Location => "location",
            Self::ManualApproval => "manualApproval",
            Self::Connections => "privateLinkServiceConnections",
        }
    }
}

/// Where an entry is in an AzureCluster: the position of its subnet, and its own in that.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// The position of the subnet.
    pub subnet: usize,
    /// The position in the subnet.
    pub entry: usize,
}

/// A change of one entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Change {
    /// It is added to the subnet at this position.
    Add {
        /// The position of the subnet.
        subnet: usize,
        /// The new entry.
        entry: DesiredEntry,
    },
    /// Some of its fields are set.
    Repair {
        /// Where it is.
        at: Position,
        /// How it should be.
        entry: DesiredEntry,
        /// What differs.
        fields: Vec<Field>,
    },
    /// It is removed.
    Remove {
        /// Where it is.
        at: Position,
        /// Its name.
        name: String,
    },
}

impl Change {
    /// The name of the entry.
    pub fn name(&self) -> &str {
        match self {
            Self::Add { entry, .. } | Self::Repair { entry, .. } => &entry.name,
            Self::Remove { name, .. } => name,
        }
    }
}

impl DesiredEntry {
    /// How many bytes it has as an entry, as an estimate that is rather too much.
    pub fn size(&self) -> usize {
        let texts = [&self.name, &self.connection].map(String::len).iter().sum::<usize>();
        let more = self.location.as_ref().map_or(0, String::len) + self.request_message.as_ref().map_or(0, String::len);
        texts + more + self.service.to_string().len() + 200
    }

    /// The fields of an entry that are not as desired. All others are somebody else's.
    pub fn differs(&self, entry: &Entry) -> Vec<Field> {
        let is_manual = self.request_message.is_some();
        let rules = [
            (!self.has_location(entry), Field::Location),
            (
                entry.manual_approval.unwrap_or_default() != is_manual,
                Field::ManualApproval,
            ),
            (!self.has_connection(entry), Field::Connections),
        ];
        rules
            .into_iter()
            .filter(|(differs, _)| *differs)
            .map(|(_, field)| field)
            .collect()
    }

    fn has_location(&self, entry: &Entry) -> bool {
        match (&self.location, &entry.location) {
            (Some(desired), Some(found)) => same(desired, found),
            (None, _) => true,
            (Some(_), None) => false,
        }
    }

    fn has_connection(&self, entry: &Entry) -> bool {
        let [only] = entry.connections() else {
            return false;
        };
        only.name.as_ref() == Some(&self.connection)
            && service(only).is_some_and(|found| found == self.service)
            && only.request_message.as_deref().unwrap_or_default()
                == self.request_message.as_deref().unwrap_or_default()
    }
}

/// The Private Link Service that a connection names.
pub fn service(connection: &Connection) -> Option<ResourceId> {
    let id = connection.private_link_service_id.as_deref()?;
    ResourceId::parse_as(Kind::PrivateLinkService, id.trim()).ok()
}

/// The Private Link Service that an entry connects to, if it is one alone.
pub fn only_service(entry: &Entry) -> Option<ResourceId> {
    match entry.connections() {
        [only] => service(only),
        _ => None,
    }
}

/// The name of an entry as Azure and the Azure Service Operator compare it: two entries of one name in this sense are
/// one private endpoint, or one object of that operator.
pub fn key(name: &str) -> String {
    let allowed = |c: char| c.is_ascii_lowercase() || c.is_ascii_digit();
    lower(name).chars().map(|c| if allowed(c) { c } else { '-' }).collect()
}

/// All entries of a cluster, with their positions.
pub fn entries(cluster: &AzureCluster) -> impl Iterator<Item = (Position, &Entry)> {
    let subnets = cluster.spec.network_spec.subnets.iter().enumerate();
    subnets.flat_map(|(subnet, found)| {
        let entries = found.entries().iter().enumerate();
        entries.map(move |(entry, found)| (Position { subnet, entry }, found))
    })
}

/// A message that Azure takes: cut at a character's end.
pub fn request_message(mut text: String) -> String {
    text.truncate(text.floor_char_boundary(MAX_MESSAGE));
    text
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    const SERVICE: &str =
        "/subscriptions/s/resourceGroups/wc/providers/Microsoft.Network/privateLinkServices/wc-api-privatelink";

    fn desired() -> DesiredEntry {
        DesiredEntry {
            name: "e".to_owned(),
            location: Some("westeurope".to_owned()),
            connection: "c".to_owned(),
            service: ResourceId::parse(SERVICE).unwrap(),
            request_message: None,
        }
    }

    fn entry(changed: Value) -> Entry {
        let mut entry = json!({"name": "e", "location": "westeurope",
            "privateLinkServiceConnections": [{"name": "c", "privateLinkServiceID": SERVICE}]});
        for (name, value) in changed.as_object().unwrap() {
            entry[name] = value.clone();
        }
        serde_json::from_value(entry).unwrap()
    }

    #[rstest]
    #[case::as_desired(json!({}), &[])]
    #[case::other_case(json!({"location": "WestEurope", "privateLinkServiceConnections": [{"name": "c",
        "privateLinkServiceID": SERVICE.to_uppercase()}]}), &[])]
    #[case::of_others(json!({"manualApproval": false, "customNetworkInterfaceName": "n"}), &[])]
    #[case::location(json!({"location": "eastus"}), &[Field::Location])]
    #[case::no_location(json!({"location": null}), &[Field::Location])]
    #[case::manual(json!({"manualApproval": true}), &[Field::ManualApproval])]
    #[case::no_connection(json!({"privateLinkServiceConnections": null}), &[Field::Connections])]
    #[case::another_service(json!({"privateLinkServiceConnections": [{"name": "c",
        "privateLinkServiceID": SERVICE.replace("/wc/", "/prod/")}]}), &[Field::Connections])]
    #[case::another_name(json!({"privateLinkServiceConnections": [{"name": "d", "privateLinkServiceID": SERVICE}]}),
        &[Field::Connections])]
    #[case::a_message(json!({"privateLinkServiceConnections": [{"name": "c", "privateLinkServiceID": SERVICE,
        "requestMessage": "please"}]}), &[Field::Connections])]
    #[case::two(json!({"privateLinkServiceConnections": [{"name": "c", "privateLinkServiceID": SERVICE}, {}]}),
        &[Field::Connections])]
    fn what_differs_is_named(#[case] changed: Value, #[case] expected: &[Field]) {
        assert_eq!(desired().differs(&entry(changed)), expected);
    }

    #[test]
    fn message_is_cut_at_a_characters_end() {
        assert_eq!(request_message("x".repeat(200)).len(), MAX_MESSAGE);
        let cut = request_message("東".repeat(60));
        assert_eq!((cut.len(), cut.chars().count()), (138, 46));
    }
}
