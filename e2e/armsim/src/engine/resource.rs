//! One resource as the world keeps it, and the store of all of them.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::id::ResourceId;

/// `properties.provisioningState`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) enum ProvisioningState {
    Succeeded,
    Updating,
    Deleting,
    Failed,
    Canceled,
}

impl ProvisioningState {
    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::Succeeded => "Succeeded",
            Self::Updating => "Updating",
            Self::Deleting => "Deleting",
            Self::Failed => "Failed",
            Self::Canceled => "Canceled",
        }
    }
}

/// A resource. What its type shows of it is the type's decision.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Resource {
    pub(crate) id: ResourceId,
    /// In Azure's spelling.
    pub(crate) resource_type: String,
    /// Everything shown, but for `id`, `name`, `type`, `etag` and the provisioning state.
    pub(crate) body: Value,
    /// As in the `ETag` header.
    pub(crate) etag: String,
    pub(crate) state: ProvisioningState,
    /// The operation in flight, or the last one.
    pub(crate) operation: Option<String>,
    /// When the last write ended.
    pub(crate) settled: Timestamp,
    /// What the server knows and does not show.
    #[serde(default)]
    pub(crate) hidden: Value,
}

impl Resource {
    /// `properties.NAME`, null if absent.
    pub(crate) fn property(&self, name: &str) -> &Value {
        &self.body["properties"][name]
    }

    /// Sets `properties.NAME`.
    pub(crate) fn set(&mut self, name: &str, value: Value) {
        self.body["properties"][name] = value;
    }

    /// Whether no operation is changing it.
    pub(crate) fn is_settled(&self) -> bool {
        !matches!(
            self.state,
            ProvisioningState::Updating | ProvisioningState::Deleting
        )
    }
}

/// All resources, by id without regard to case.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Store(BTreeMap<String, Resource>);

impl Store {
    pub(crate) fn get(&self, id: &ResourceId) -> Option<&Resource> {
        self.0.get(&id.key())
    }

    pub(crate) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Resource> {
        self.0.get_mut(&id.key())
    }

    /// Looks up a reference as a body has it: any case, perhaps no id at all.
    pub(crate) fn find(&self, id: &str) -> Option<&Resource> {
        self.0.get(&id.to_ascii_lowercase())
    }

    pub(crate) fn insert(&mut self, resource: Resource) {
        self.0.insert(resource.id.key(), resource);
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) -> Option<Resource> {
        self.0.remove(&id.key())
    }

    /// Everything below `scope`, itself not included, in the order of ids.
    pub(crate) fn below(&self, scope: &ResourceId) -> impl Iterator<Item = &Resource> {
        let prefix = format!("{}/", scope.key());
        self.0
            .range(prefix.clone()..)
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(_, found)| found)
    }

    /// The resources of one type below `scope`.
    pub(crate) fn of_type(
        &self,
        scope: &ResourceId,
        resource_type: &str,
    ) -> impl Iterator<Item = &Resource> {
        self.below(scope)
            .filter(move |found| found.resource_type.eq_ignore_ascii_case(resource_type))
    }

    /// Everything, in the order of ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Resource> {
        self.0.values()
    }
}
