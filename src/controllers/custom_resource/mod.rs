//! The custom resources that controllers reconcile, a file each; and `store`, those that one role watches.

mod aws_endpoint_service;
mod azure_private_link_service;
pub mod read_siblings;
pub mod store;

use std::fmt::Debug;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::api::role::RolePart;
use crate::api::{ConditionType, Platform, Reason, Role, held_by, other_writer};
use crate::controllers::cloud::ServedCloud;
use crate::engine::cloud::Cloud;
use crate::hypershift::conditions::NewCondition;

pub use azure_private_link_service::guest_is_locked;

/// What a reconcile has to know of a custom resource.
pub trait CustomResource:
    Resource<DynamicType = (), Scope = NamespaceResourceScope>
    + Clone
    + Debug
    + Serialize
    + DeserializeOwned
    + Send
    + Sync
    + 'static
{
    /// The cloud in which its resources lie.
    type Cloud: ServedCloud;

    /// The platform of its hosted clusters.
    const PLATFORM: Platform;

    /// What each role writes.
    const PARTS: &'static [RolePart];

    /// The reason of a condition about a failure for which there is no other.
    const ERROR: Reason;

    /// The names that it has for real. New objects with these names wait for none of other names.
    const EXPECTED_NAMES: &'static [&'static str];

    /// The annotations whose change needs a reconcile.
    const READ_ANNOTATIONS: &'static [&'static str];

    /// What `role` writes; nothing if it does not serve the custom resource.
    fn part(role: Role) -> Option<&'static RolePart> {
        Self::PARTS.iter().find(|part| part.role == role)
    }

    /// The finalizer that `role` keeps, if it serves the custom resource.
    fn finalizer(role: Role) -> Option<&'static str> {
        Self::part(role).map(|part| part.finalizer)
    }

    /// Whether `role` keeps its finalizer here now.
    fn is_held_by(&self, role: Role) -> bool {
        Self::finalizer(role).is_some_and(|finalizer| held_by(self, finalizer))
    }

    /// Whether `role` tears down what it made for this object, once that is being deleted: while its finalizer is
    /// there, and longer where others take the finalizer away before that is done.
    fn is_torn_down_by(&self, role: Role) -> bool {
        self.is_held_by(role)
    }

    /// The conditions that only `role` writes.
    fn conditions_of(role: Role) -> impl Iterator<Item = ConditionType> {
        let part = Self::part(role).into_iter();
        part.flat_map(|part| part.conditions).copied()
    }

    /// The ids in the status of what `role` deletes.
    fn recorded_ids(&self, role: Role) -> Vec<String> {
        let status = self.status_fields();
        let fields = Self::part(role).into_iter().flat_map(|part| part.deleted_resources);
        let ids = fields.filter_map(|field| status[*field].as_str());
        ids.map(str::to_owned).collect()
    }

    /// What names a resource to a person who searches for it: its key, with the id in the status if the key has none.
    fn named(&self, key: &<Self::Cloud as Cloud>::Key) -> String {
        key.to_string()
    }

    /// The condition that sums up all others, if one does.
    fn summary_kind() -> Option<ConditionType> {
        Self::PARTS.iter().find_map(|part| part.summary)
    }

    /// The controller that has written the part of `role` besides it in this much time, if one has.
    fn other_writer(&self, role: Role, now: Timestamp, recent: Duration) -> Option<&str> {
        other_writer(self.meta(), Self::PARTS, role, now, recent)
    }

    /// The conditions that the status has, of all roles.
    fn conditions(&self) -> &[Condition];

    /// The status as it is stored; null if there is none.
    fn status_fields(&self) -> Value;

    /// The generation that the conditions name; none where HyperShift's name none.
    fn condition_generation(&self) -> Option<i64> {
        self.meta().generation
    }

    /// The condition about what a field of the status records.
    fn condition_of(field: &str) -> ConditionType;

    /// The condition that sums up all others, of which `own` were just decided; none if none does.
    fn summary(&self, own: &[NewCondition]) -> Option<NewCondition>;

    /// Whether other roles report that a lock prevents a deletion, and `role` has to pass that on.
    fn is_locked_for_others(&self, _role: Role) -> bool {
        false
    }
}
