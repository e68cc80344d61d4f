//! What the engine has to know of a cloud: the names of its resources, and how it
//! shows their state.

use std::fmt::{Debug, Display};
use std::hash::Hash;
use std::time::Duration;

use serde_json::Value;

use super::failure::Failure;
use super::kind_rules::KindRules;
use super::resource::{GONE_FOR, MISSED, Progress};

/// A cloud whose resources the engine reads and writes. A resource is shown as JSON, its body.
pub trait Cloud: Debug + Default + Clone + Copy + PartialEq + Eq + Send + Sync + 'static {
    /// The kinds of resources.
    type Kind: ResourceKind<Self>;
    /// What names a resource before it exists.
    type Key: Key;
    /// Why a call did not succeed.
    type Error: Failure;
    /// Where the state of a long-running operation can be read.
    type OperationId: Clone + Debug + PartialEq + Send + Sync;
    /// Which resources a list shows.
    type ListScope: Copy + Debug + Send + Sync;
    /// A list of resources.
    type List: List<Self::Key>;

    /// The cloud's name, for a person.
    const NAME: &'static str;
    /// The field of a body that shows the state, for a person.
    const PROGRESS_FIELD: &'static str;
    /// The field of a body, at any depth, that shows a version.
    const VERSION_FIELD: &'static str;
    /// The rows of the shortest page of a list.
    const PAGE: usize;
    /// How long after the first read that does not find what was there a second one has to confirm that.
    const MISSED: Duration = MISSED;
    /// How long reads have to find nothing until what no read has ever shown is gone for certain. Longer than a create
    /// that was not answered may take, and then be hidden.
    const GONE_FOR: Duration = GONE_FOR;
    /// Whether a write that was not answered may show so late that earlier reads do not prove an absence.
    const LOST_WRITES_SHOW_LATE: bool = false;

    /// The state that this body shows, in the cloud's word.
    fn state(body: &Value) -> Option<&str>;
    /// The state of the resource that this body shows.
    fn progress(body: &Value) -> Progress;
    /// The resources that have failed by this body, by what names each.
    fn failed(body: &Value) -> Vec<&str> {
        match Self::progress(body) {
            Progress::Failed => vec![Self::instance(body)],
            _ => Vec::new(),
        }
    }
    /// What the cloud names a resource when it is created: a recreated one has another name. Empty for a kind without.
    fn instance(body: &Value) -> &str;
    /// The version that the body shows, for the precondition of a write.
    fn version(body: &Value) -> Option<&str>;
    /// The key of the resource that a row of a list shows.
    fn key_of(row: &Value) -> Option<Self::Key>;
    /// The kind of the resource with this key, if the engine knows it.
    fn kind_of(key: &Self::Key) -> Option<Self::Kind>;
    /// The list of this scope that shows the resource.
    fn list(kind: Self::Kind, key: &Self::Key, scope: Self::ListScope) -> Option<Self::List>;
}

/// The slot that a resource fills: known before the resource exists, and of at most one resource at a time. The cloud's
/// own id can be a key only where the caller chooses it.
pub trait Key: Clone + Debug + Display + Eq + Hash + Send + Sync + 'static {
    /// The name of the resource, without that of what it is in.
    fn name(&self) -> &str;
    /// The resource in which this one is.
    fn parent(&self) -> Option<Self>;
    /// Whether this resource is in the other one, at any depth.
    fn is_in(&self, other: &Self) -> bool;
}

/// A kind of resources.
pub trait ResourceKind<C: Cloud>: Copy + Debug + Ord + Hash + Send + Sync + 'static {
    /// The word for logs and messages.
    fn label(self) -> &'static str;
    /// What the engine has to know of the kind.
    fn rules(self) -> &'static KindRules<C>;
}

/// A list that shows ready resources of one kind.
pub trait List<K>: Debug + Send + Sync {
    /// What tells lists apart: equal for equal lists.
    fn address(&self) -> String;
    /// Whether the list shows this resource of its kind.
    fn shows(&self, key: &K) -> bool;
}
