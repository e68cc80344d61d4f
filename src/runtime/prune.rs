//! What watches keep of an object.

/// An object of which watches keep a part.
pub trait Prune {
    /// Drops the parts of the object that are never read.
    fn prune(&mut self);
}
