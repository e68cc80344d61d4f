//! ARM's own: resource groups, subscriptions, tenants, providers and their registration, what is in a group, and what a
//! caller may do.

mod filter;
mod group;
mod inventory;
mod permissions;
mod providers;
mod registration;
mod subscriptions;
mod view;

pub(crate) use registration::Registrations;
pub(crate) use view::View;

use crate::engine::kind::Kind;

/// The types.
pub(crate) static KINDS: &[&dyn Kind] = &[&group::ResourceGroups];
