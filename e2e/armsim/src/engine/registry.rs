//! The resource types that there are, in the order in which a seed puts them.

use super::kind::Kind;
use crate::{dns, network, resources};

/// Types whose resources others refer to come first.
static KINDS: &[&[&dyn Kind]] = &[resources::KINDS, network::KINDS, dns::KINDS, network::KINDS_OVER_DNS];

/// Every type.
pub(crate) fn kinds() -> impl Iterator<Item = &'static dyn Kind> {
    KINDS.iter().flat_map(|kinds| kinds.iter().copied())
}

/// The type of that name, in any case.
pub(crate) fn kind(resource_type: &str) -> Option<&'static dyn Kind> {
    kinds().find(|kind| kind.resource_type().eq_ignore_ascii_case(resource_type))
}

/// The place of a type in the order of a seed; unknown types come last.
pub(crate) fn rank(resource_type: &str) -> usize {
    kinds()
        .position(|kind| kind.resource_type().eq_ignore_ascii_case(resource_type))
        .unwrap_or(usize::MAX)
}
