//! Microsoft.Network without private DNS, and the resource groups that everything is in.

mod group;

use crate::engine::kind::Kind;

/// The types, those that others refer to first.
pub(crate) static KINDS: &[&dyn Kind] = &[&group::ResourceGroups];
