//! Who a caller is, and what its policies allow.

pub(crate) mod caller;
pub(crate) mod policy;
