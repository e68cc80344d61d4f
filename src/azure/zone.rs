//! A private DNS zone.

use serde_json::{Value, json};

use super::id::ResourceId;
use super::mark::Marks;
use super::resource::{Difference, Kind, Resource, base, mark, set};

/// The limit of tags on private DNS resources.
pub(super) const MAX_DNS_TAGS: usize = 15;

/// A private DNS zone as it is wanted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Zone {
    /// Its id; the name is the zone's domain.
    pub id: ResourceId,
    /// Tags, one of which proves ownership.
    pub marks: Marks,
    /// Whether it is on record that this zone was seen and ours.
    pub recorded: bool,
}

impl Resource for Zone {
    fn kind(&self) -> Kind {
        Kind::Zone
    }

    fn id(&self) -> &ResourceId {
        &self.id
    }

    fn ours(&self, current: &Value) -> bool {
        self.marks.prove(current) || self.recorded
    }

    fn differs(&self, _: &Value) -> Vec<Difference> {
        Vec::new()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        set(&mut body, &["location"], json!("global"));
        mark(&mut body, "tags", &self.marks.all(), MAX_DNS_TAGS);
        body
    }
}
