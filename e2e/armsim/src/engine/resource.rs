//! One resource as the simulated Azure keeps it, and the store of all of them.

use std::collections::{BTreeMap, BTreeSet};

use jiff::Timestamp;
use serde::{Deserialize, Serialize, Serializer};
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
    /// When it was first put.
    pub(crate) created: Timestamp,
    /// When the last write ended.
    #[serde(rename = "settled")]
    pub(crate) changed: Timestamp,
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

    /// Whether no operation is changing or deleting it.
    pub(crate) fn is_idle(&self) -> bool {
        !matches!(self.state, ProvisioningState::Updating | ProvisioningState::Deleting)
    }
}

/// All resources, by id without regard to case; also by type, and by what they refer to.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(from = "BTreeMap<String, Resource>")]
pub(crate) struct Store {
    all: BTreeMap<String, Resource>,
    /// Keys by type in lower case.
    by_type: BTreeMap<String, BTreeSet<String>>,
    /// Keys of those that refer to an id, by the key of that id.
    referring: BTreeMap<String, BTreeSet<String>>,
}

impl Store {
    pub(crate) fn get(&self, id: &ResourceId) -> Option<&Resource> {
        self.all.get(&id.key())
    }

    /// To change anything but what the resource refers to; for that, insert it again.
    pub(crate) fn get_mut(&mut self, id: &ResourceId) -> Option<&mut Resource> {
        self.all.get_mut(&id.key())
    }

    /// Looks up a reference as a body has it: any case, perhaps no id at all.
    pub(crate) fn find(&self, id: &str) -> Option<&Resource> {
        self.all.get(&id.to_ascii_lowercase())
    }

    /// Puts a resource, in place of the one of that id, whose age it takes over.
    pub(crate) fn insert(&mut self, mut resource: Resource) {
        let key = resource.id.key();
        if let Some(old) = self.forget(&key) {
            resource.created = old.created;
        }
        for id in references(&resource.body) {
            self.referring.entry(id).or_default().insert(key.clone());
        }
        let of_type = self.by_type.entry(resource.resource_type.to_ascii_lowercase());
        of_type.or_default().insert(key.clone());
        self.all.insert(key, resource);
    }

    pub(crate) fn remove(&mut self, id: &ResourceId) -> Option<Resource> {
        self.forget(&id.key())
    }

    fn forget(&mut self, key: &str) -> Option<Resource> {
        let old = self.all.remove(key)?;
        for id in references(&old.body) {
            take(&mut self.referring, &id, key);
        }
        take(&mut self.by_type, &old.resource_type.to_ascii_lowercase(), key);
        Some(old)
    }

    /// Everything below `scope`, itself not included, in the order of ids.
    pub(crate) fn below(&self, scope: &ResourceId) -> impl Iterator<Item = &Resource> {
        self.starting(format!("{}/", scope.key()))
    }

    /// Everything whose id in lower case starts with `prefix`, in the order of ids.
    pub(crate) fn starting(&self, prefix: String) -> impl Iterator<Item = &Resource> {
        self.all
            .range(prefix.clone()..)
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .map(|(_, found)| found)
    }

    /// The resources of one type below `scope`, in the order of ids.
    pub(crate) fn of_type(&self, scope: &ResourceId, resource_type: &str) -> impl Iterator<Item = &Resource> {
        let prefix = format!("{}/", scope.key());
        let keys = self.by_type.get(&resource_type.to_ascii_lowercase());
        keys.into_iter()
            .flat_map(move |keys| {
                let from = keys.range(prefix.clone()..);
                let prefix = prefix.clone();
                from.take_while(move |key| key.starts_with(&prefix))
            })
            .filter_map(|key| self.all.get(key))
    }

    /// The resources of one type in whatever subscription, in the order of ids.
    pub(crate) fn all_of_type(&self, resource_type: &str) -> impl Iterator<Item = &Resource> {
        let keys = self.by_type.get(&resource_type.to_ascii_lowercase());
        keys.into_iter().flatten().filter_map(|key| self.all.get(key))
    }

    /// Those whose properties name `id`, in the order of ids.
    pub(crate) fn referring(&self, id: &ResourceId) -> impl Iterator<Item = &Resource> {
        let keys = self.referring.get(&id.key());
        keys.into_iter().flatten().filter_map(|key| self.all.get(key))
    }

    /// Those whose properties name something nested in `id`; in no order, one that names several of them several times.
    pub(crate) fn referring_below(&self, id: &ResourceId) -> impl Iterator<Item = &Resource> {
        let prefix = format!("{}/", id.key());
        let named = self.referring.range(prefix.clone()..);
        named
            .take_while(move |(key, _)| key.starts_with(&prefix))
            .flat_map(|(_, keys)| keys)
            .filter_map(|key| self.all.get(key))
    }

    /// Everything, in the order of ids.
    pub(crate) fn all(&self) -> impl Iterator<Item = &Resource> {
        self.all.values()
    }
}

impl Serialize for Store {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.all.serialize(serializer)
    }
}

impl From<BTreeMap<String, Resource>> for Store {
    fn from(all: BTreeMap<String, Resource>) -> Self {
        let mut store = Self::default();
        all.into_values().for_each(|resource| store.insert(resource));
        store
    }
}

/// Takes `key` out of the set under `of`, and the set away with its last key.
fn take(sets: &mut BTreeMap<String, BTreeSet<String>>, of: &str, key: &str) {
    if let Some(keys) = sets.get_mut(of) {
        keys.remove(key);
        if keys.is_empty() {
            sets.remove(of);
        }
    }
}

/// The keys of all ids that the properties name as `{"id": "/..."}`.
fn references(body: &Value) -> BTreeSet<String> {
    fn collect(value: &Value, ids: &mut BTreeSet<String>) {
        match value {
            Value::Array(all) => all.iter().for_each(|item| collect(item, ids)),
            Value::Object(fields) => {
                if let Some(id) = fields.get("id").and_then(Value::as_str) {
                    let id = id.strip_suffix('/').unwrap_or(id);
                    ids.extend(Some(id).filter(|id| id.starts_with('/')).map(str::to_ascii_lowercase));
                }
                fields.values().for_each(|value| collect(value, ids));
            }
            _ => {}
        }
    }
    let mut ids = BTreeSet::new();
    collect(&body["properties"], &mut ids);
    ids
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn resource(name: &str, target: &str) -> Resource {
        Resource {
            id: ResourceId::parse(&format!("/subscriptions/s/resourceGroups/g/providers/P/t/{name}")).unwrap(),
            resource_type: "P/t".into(),
            body: json!({ "properties": { "list": [{ "properties": { "to": { "id": target } } }] } }),
            etag: String::new(),
            state: ProvisioningState::Succeeded,
            operation: None,
            created: Timestamp::UNIX_EPOCH,
            changed: Timestamp::UNIX_EPOCH,
            hidden: Value::Null,
        }
    }

    fn names<'a>(found: impl Iterator<Item = &'a Resource>) -> Vec<&'a str> {
        found.map(|resource| resource.id.name()).collect()
    }

    #[test]
    fn who_refers_follows_every_write() {
        let target = ResourceId::parse("/subscriptions/S/resourceGroups/G/providers/P/u/x").unwrap();
        let mut store = Store::default();
        store.insert(resource("a", &target.key()));
        store.insert(resource("b", &format!("{target}/parts/y")));
        assert_eq!(names(store.referring(&target)), ["a"]);
        assert_eq!(names(store.referring_below(&target)), ["b"]);
        store.insert(resource("a", "/elsewhere"));
        assert_eq!(names(store.referring(&target)), [""; 0]);
        let saved = serde_json::to_string(&store).unwrap();
        let loaded: Store = serde_json::from_str(&saved).unwrap();
        assert_eq!(names(loaded.referring_below(&target)), ["b"]);
        let group = target.group_id().unwrap();
        assert_eq!(names(loaded.of_type(&group, "p/T")), ["a", "b"]);
        store.remove(&resource("b", "").id);
        assert_eq!(names(store.referring_below(&target)), [""; 0]);
        assert_eq!(names(store.all_of_type("P/t")), ["a"]);
        assert_eq!(store.referring.len() + store.by_type.len(), 2);
    }
}
