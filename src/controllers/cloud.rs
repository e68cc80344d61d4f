//! What decisions have to know of a cloud, beside what the engine does.

use std::fmt::Debug;
use std::hash::Hash;

use crate::engine::cloud::Cloud;

/// A cloud in which custom resources have resources, as decisions see it: without any I/O.
pub trait ServedCloud: Cloud {
    /// A list that a decision needs to know.
    type ListNeed: Clone + Debug + Eq + Hash + Send + Sync;
    /// What lists have shown to a decision.
    type ListFacts: ListFacts<Self>;

    /// Whether two ids name one resource.
    fn is_same(id: &str, other: &str) -> bool;
}

/// What lists have shown to a decision.
pub trait ListFacts<C: Cloud>: Clone + Debug + Default + Send + Sync {
    /// Forgets what could not be read, so that it is tried again.
    fn forget_unread(&mut self);

    /// Forgets what a write may have changed.
    fn forget_changed(&mut self);

    /// The lists, for the dry run.
    fn shown(&self) -> Vec<ShownList<C>>;
}

/// A list that was read.
#[derive(Debug)]
pub struct ShownList<C: Cloud> {
    /// The kind of resources in it.
    pub kind: C::Kind,
    /// The id of what it is a list of.
    pub scope: String,
    /// How many rows it has, or why it could not be read.
    pub found: Result<usize, C::Error>,
    /// What its rows are, for a person.
    pub rows: &'static str,
}
