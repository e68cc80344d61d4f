//! ARM as a cloud of the engine.

use hyperlink_engine::cloud::{Cloud, Key, ResourceKind};
use hyperlink_engine::kind_rules::KindRules;
use hyperlink_engine::resource::{self, Progress};
use serde_json::Value;
use url::Url;

use crate::arm::error::ArmError;
use crate::arm::id::ResourceId;
use crate::arm::resource_list::ResourceList;
use crate::body::progress;
use crate::kinds::{Kind, ListScope};

/// Azure Resource Manager.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct Arm;

/// What was observed of one resource.
pub type Observed = resource::Observed<Arm>;
impl Cloud for Arm {
    type Kind = Kind;
    type Key = ResourceId;
    type Error = ArmError;
    type OperationId = Url;
    type ListScope = ListScope;
    type List = ResourceList;

    const NAME: &'static str = "Azure";
    const PROGRESS_FIELD: &'static str = "provisioningState";
    const VERSION_FIELD: &'static str = "etag";
    /// The rows of a page of private DNS
    /// (<https://learn.microsoft.com/rest/api/dns/privatedns/private-zones/list>).
    const PAGE: usize = 100;

    fn state(body: &Value) -> Option<&str> {
        body["properties"]["provisioningState"].as_str()
    }

    fn progress(body: &Value) -> Progress {
        progress(body)
    }

    fn instance(body: &Value) -> &str {
        let properties = &body["properties"];
        let given = properties["resourceGuid"]
            .as_str()
            .or(properties["internalId"].as_str());
        given.unwrap_or_default()
    }

    /// The etag. For Microsoft.Network it was observed that a write holds only for it, for private DNS it is documented
    /// (<https://learn.microsoft.com/rest/api/dns/privatedns/record-sets/create-or-update>).
    fn version(body: &Value) -> Option<&str> {
        body.get(Self::VERSION_FIELD).and_then(Value::as_str)
    }

    fn key_of(row: &Value) -> Option<ResourceId> {
        ResourceId::parse(row.get("id")?.as_str()?).ok()
    }

    fn kind_of(id: &ResourceId) -> Option<Kind> {
        id.kind()
    }

    fn list(kind: Kind, id: &ResourceId, scope: ListScope) -> Option<ResourceList> {
        ResourceList::of(kind, id, scope)
    }
}

/// The caller chooses the id of each resource, so it can be the key.
impl Key for ResourceId {
    fn name(&self) -> &str {
        ResourceId::name(self)
    }

    fn parent(&self) -> Option<Self> {
        ResourceId::parent(self)
    }

    fn is_in(&self, other: &Self) -> bool {
        ResourceId::is_in(self, other)
    }
}

impl ResourceKind<Arm> for Kind {
    fn label(self) -> &'static str {
        Kind::label(self)
    }

    fn rules(self) -> &'static KindRules<Arm> {
        &self.spec().rules
    }
}
