//! What all kinds of resources have in common: what is observed of them, and how they are compared.

use std::borrow::Cow;
use std::fmt::Debug;
use std::time::Duration;

use serde_json::Value;

use super::cloud::Cloud;

/// A resource that this process has never observed is gone for certain after reads have shown that for this long, unless
/// the cloud's reads are further behind.
///
/// Rule: D3 in `docs/compatibility.md`.
pub const GONE_FOR: Duration = Duration::from_secs(30);

/// A resource that was there and is not found counts as absent only if a second read, this long after the first, does
/// not find it either, unless the cloud's reads are further behind. A read may be behind for seconds.
///
/// Rule: D3 in `docs/compatibility.md`.
pub const MISSED: Duration = Duration::from_secs(5);

/// What was observed of one resource.
#[derive(Debug, Clone, PartialEq)]
pub enum Observed<C: Cloud> {
    /// The resource is there; holds its body.
    Found(Value),
    /// The resource is not there.
    Absent,
    /// A create was accepted and is still under way; nothing can be read yet.
    Pending,
    /// The last PUT of the resource was refused, or its operation failed.
    WriteFailed(C::Error),
    /// The last DELETE of the resource was refused, or its operation failed.
    DeleteFailed(C::Error),
    /// The resource could not be read.
    ReadFailed(C::Error),
}

impl<C: Cloud> Observed<C> {
    /// The resource's body, if the resource is there.
    pub fn found(&self) -> Option<&Value> {
        match self {
            Observed::Found(body) => Some(body),
            _ => None,
        }
    }
}

/// The state of a resource, as its body shows it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// Nothing is under way.
    Ready,
    /// An operation creates or changes the resource.
    InProgress,
    /// An operation deletes the resource.
    Deleting,
    /// The last operation failed or was cancelled.
    Failed,
}

/// A field that is not as desired.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Difference {
    /// The field's name in the body.
    pub field: &'static str,
    /// Whether the cloud cannot change it: the resource has to be recreated.
    pub needs_replacement: bool,
}

impl Difference {
    /// A field that a PUT can change.
    pub fn of(field: &'static str) -> Self {
        Self {
            field,
            needs_replacement: false,
        }
    }

    /// A field that only a new resource can have.
    pub fn by_replacement(field: &'static str) -> Self {
        Self {
            field,
            needs_replacement: true,
        }
    }
}

/// What must be known of a resource to delete it.
pub trait Owned<C: Cloud>: Debug + Send + Sync {
    /// The resource's kind.
    fn kind(&self) -> C::Kind;
    /// The resource's key.
    fn key(&self) -> &C::Key;
    /// Whether `current` is owned for certain: by the owner tags, or by a structure that only this cluster's resource
    /// can have.
    fn is_owned(&self, current: &Value) -> bool;
    /// What of it is owned, where others may have put something beside it under the same key. All of it if nothing is.
    fn own_part<'a>(&self, current: &'a Value) -> Cow<'a, Value> {
        Cow::Borrowed(current)
    }
}

/// A desired resource.
pub trait Resource<C: Cloud>: Owned<C> {
    /// Whether an operation under way was certainly started by others and leaves the resource in force meanwhile.
    fn moved_by_others(&self, _current: &Value) -> bool {
        false
    }
    /// The fields that are not as desired in `current`. Missing owner tags are no difference.
    fn differs(&self, current: &Value) -> Vec<Difference>;
    /// The body to PUT: the desired fields, laid over what is there.
    fn body(&self, current: Option<&Value>) -> Value;
}
