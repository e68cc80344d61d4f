//! The private DNS zone.

use serde_json::{Value, json};

use super::id::ResourceId;
use super::owner_tags::OwnerTags;
use super::resource::{Difference, Kind, Owned, Resource, base, mark, set};

/// The limit of tags on private DNS resources.
pub(super) const MAX_DNS_TAGS: usize = 15;

/// A desired private DNS zone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// The ARM id; its name is the zone's domain.
    pub id: ResourceId,
    /// Tags, one of which proves ownership.
    pub owner_tags: OwnerTags,
    /// Whether its structure proves that it is owned: this cluster's link and records are in it, or were when this
    /// process read it.
    pub proven: bool,
}

/// How many networks are linked to the zone, if the body says so.
pub fn links(body: &Value) -> Option<u64> {
    body.pointer("/properties/numberOfVirtualNetworkLinks")?.as_u64()
}

impl Owned for Zone {
    fn kind(&self) -> Kind {
        Kind::Zone
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owner_tags.prove(current) || (self.proven && !self.owner_tags.deny(current))
    }
}

impl Resource for Zone {
    /// Every PUT of Hyperlink carries the owner tags; HyperShift's PUTs, which do not end, remove them.
    fn moved_by_others(&self, current: &Value) -> bool {
        !self.owner_tags.prove(current)
    }

    fn differs(&self, _: &Value) -> Vec<Difference> {
        Vec::new()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        set(&mut body, &["location"], json!("global"));
        mark(&mut body, "tags", &self.owner_tags.all(), MAX_DNS_TAGS);
        body
    }
}
