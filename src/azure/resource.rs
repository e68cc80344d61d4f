//! What all kinds of ARM resources have in common: type, api-version, how they are compared and what body they want.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::time::Duration;

use serde_json::{Map, Value};

use super::error::ArmError;
use super::id::ResourceId;

/// The kinds of ARM resources that Hyperlink reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `Microsoft.Network/loadBalancers`, only read.
    LoadBalancer,
    /// `Microsoft.Network/virtualNetworks`, only read.
    VirtualNetwork,
    /// `Microsoft.Network/virtualNetworks/subnets`
    Subnet,
    /// `Microsoft.Network/privateLinkServices`
    PrivateLinkService,
    /// `Microsoft.Network/privateLinkServices/privateEndpointConnections`
    Connection,
    /// `Microsoft.Network/privateEndpoints`
    PrivateEndpoint,
    /// `Microsoft.Network/privateDnsZones`
    Zone,
    /// `Microsoft.Network/privateDnsZones/virtualNetworkLinks`
    ZoneLink,
    /// `Microsoft.Network/privateDnsZones/A`
    Record,
}

impl Kind {
    /// Every kind, for tables and labels.
    pub const ALL: [Kind; 9] = [
        Kind::LoadBalancer,
        Kind::VirtualNetwork,
        Kind::Subnet,
        Kind::PrivateLinkService,
        Kind::Connection,
        Kind::PrivateEndpoint,
        Kind::Zone,
        Kind::ZoneLink,
        Kind::Record,
    ];

    /// The metric label and the word for logs and messages.
    pub fn label(self) -> &'static str {
        match self {
            Kind::LoadBalancer => "load_balancer",
            Kind::VirtualNetwork => "virtual_network",
            Kind::Subnet => "subnet",
            Kind::PrivateLinkService => "private_link_service",
            Kind::Connection => "private_endpoint_connection",
            Kind::PrivateEndpoint => "private_endpoint",
            Kind::Zone => "private_dns_zone",
            Kind::ZoneLink => "virtual_network_link",
            Kind::Record => "record_set",
        }
    }

    /// The resource provider and the type's levels, outermost first.
    pub fn types(self) -> (&'static str, &'static [&'static str]) {
        let types: &'static [&'static str] = match self {
            Kind::LoadBalancer => &["loadBalancers"],
            Kind::VirtualNetwork => &["virtualNetworks"],
            Kind::Subnet => &["virtualNetworks", "subnets"],
            Kind::PrivateLinkService => &["privateLinkServices"],
            Kind::Connection => &["privateLinkServices", "privateEndpointConnections"],
            Kind::PrivateEndpoint => &["privateEndpoints"],
            Kind::Zone => &["privateDnsZones"],
            Kind::ZoneLink => &["privateDnsZones", "virtualNetworkLinks"],
            Kind::Record => &["privateDnsZones", "A"],
        };
        ("Microsoft.Network", types)
    }

    /// The api-version of every call to this kind.
    pub fn api_version(self) -> &'static str {
        match self {
            Kind::Zone | Kind::ZoneLink | Kind::Record => "2024-06-01",
            _ => "2024-05-01",
        }
    }

    /// How long to wait between two looks at a resource of this kind while it changes and Azure names no time.
    pub fn pace(self) -> Duration {
        match self {
            Kind::Subnet => Duration::from_secs(2),
            Kind::PrivateLinkService | Kind::Connection => Duration::from_secs(4),
            Kind::Zone | Kind::ZoneLink => Duration::from_secs(10),
            // Most take 30 to 45 s.
            Kind::PrivateEndpoint => Duration::from_secs(15),
            _ => Duration::from_secs(5),
        }
    }
}

/// What this process has never seen is gone for certain when reads have said so for this long.
pub const GONE_FOR: Duration = Duration::from_secs(30);

/// What was there and is not found counts as absent only when a second read, so long after the first, does not find it either.
pub const MISSED: Duration = Duration::from_secs(5);

/// What was seen of one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed {
    /// It is there; ARM's JSON.
    Found(Value),
    /// It is not there.
    Absent,
    /// A create was accepted and is still under way; nothing can be read yet.
    Pending,
    /// The last PUT of it was refused, or its operation failed.
    WriteFailed(ArmError),
    /// The last DELETE of it was refused, or its operation failed.
    DeleteFailed(ArmError),
    /// It could not be read.
    ReadFailed(ArmError),
}

impl Observed {
    /// ARM's JSON, if the resource is there.
    pub fn found(&self) -> Option<&Value> {
        match self {
            Observed::Found(body) => Some(body),
            _ => None,
        }
    }
}

/// Where a resource stands by its own account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is under way.
    Ready,
    /// An operation is changing or making it.
    InProgress,
    /// An operation is removing it.
    Deleting,
    /// The last operation failed or was cancelled.
    Failed,
}

/// Reads `properties.provisioningState`. Absent means settled, unknown words mean moving
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/async-operations>).
pub fn progress(body: &Value) -> Progress {
    match body.pointer("/properties/provisioningState").and_then(Value::as_str) {
        None | Some("Succeeded") => Progress::Ready,
        Some("Failed" | "Canceled") => Progress::Failed,
        Some("Deleting") => Progress::Deleting,
        Some(_) => Progress::InProgress,
    }
}

/// A field of ours that is not as wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The field's name in ARM's JSON.
    pub field: &'static str,
    /// Azure cannot change it: the resource has to be made anew.
    pub immutable: bool,
}

impl Difference {
    /// A field that a PUT can change.
    pub fn of(field: &'static str) -> Self {
        Self {
            field,
            immutable: false,
        }
    }

    /// A field that only a new resource can have.
    pub fn immutable(field: &'static str) -> Self {
        Self { field, immutable: true }
    }
}

/// A resource as far as it must be known to be taken away.
pub trait Owned: Debug + Send + Sync {
    /// Its kind.
    fn kind(&self) -> Kind;
    /// Its id.
    fn id(&self) -> &ResourceId;
    /// Whether `current` is provably ours: by our mark, or by a structure that only ours can have.
    fn is_owned(&self, current: &Value) -> bool;
}

/// A resource as it is wanted.
pub trait Resource: Owned {
    /// Whether a change under way shows by itself that it is not of our making, and keeps what is there in force.
    fn moved_by_others(&self, _current: &Value) -> bool {
        false
    }
    /// The fields of ours that differ in `current`. A missing mark is no difference.
    fn differs(&self, current: &Value) -> Vec<Difference>;
    /// The body to PUT: what we own, laid over what is there.
    fn body(&self, current: Option<&Value>) -> Value;
}

/// The body to start from: what is there without what only the service writes, or the empty object.
pub(super) fn base(current: Option<&Value>) -> Value {
    let mut body = current.cloned().unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(root) = body.as_object_mut() {
        root.remove("etag");
        if let Some(properties) = root.get_mut("properties").and_then(Value::as_object_mut) {
            properties.remove("provisioningState");
        }
    }
    body
}

/// Sets the value at a path of object keys, making the objects on the way.
pub(super) fn set(body: &mut Value, path: &[&str], value: Value) {
    let mut at = body;
    for key in path {
        if !at.is_object() {
            *at = Value::Object(Map::new());
        }
        at = &mut at[*key];
    }
    *at = value;
}

/// Adds tags (or record metadata) at `path`, keeping others, if there is room for all of ours.
pub(super) fn mark(body: &mut Value, path: &str, owner_tags: &BTreeMap<String, String>, room: usize) {
    let mut all = body.get(path).and_then(Value::as_object).cloned().unwrap_or_default();
    for (key, value) in owner_tags {
        all.insert(key.clone(), Value::String(value.clone()));
    }
    if all.len() <= room {
        set(body, &[path], Value::Object(all));
    }
}

/// The id at a JSON pointer, if there is one that parses.
pub fn id_at(body: &Value, pointer: &str) -> Option<ResourceId> {
    body.pointer(pointer)
        .and_then(Value::as_str)
        .and_then(|text| ResourceId::parse(text).ok())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn words_never_seen_before_mean_moving() {
        let state = |word: &str| progress(&json!({"properties": {"provisioningState": word}}));
        assert_eq!(state("Succeeded"), Progress::Ready);
        assert_eq!(state("Canceled"), Progress::Failed);
        assert_eq!(state("Updating"), Progress::InProgress);
        assert_eq!(state("Pondering"), Progress::InProgress);
        assert_eq!(progress(&json!({})), Progress::Ready);
    }

    #[test]
    fn no_room_for_marks_means_no_marks_and_the_others_stay() {
        let full: Map<String, Value> = (0..15).map(|n| (format!("t{n}"), json!("x"))).collect();
        let mut body = json!({"tags": full.clone()});
        mark(
            &mut body,
            "tags",
            &BTreeMap::from([("ours".to_owned(), "1".to_owned())]),
            15,
        );
        assert_eq!(body["tags"], Value::Object(full));
    }
}
