//! What is kept of an object while nothing is done with it.

/// What is kept in part: an object by a watch, or what was read for one at rest.
pub trait Prune {
    /// Drops the parts that are not used from then on.
    fn prune(&mut self);
}
