//! The items of `/readyz`, which all exist before the first probe.

use crate::api::Role;
use crate::config::Config;
use crate::http::{Readiness, ReadinessItem};

/// The items of one role.
pub(super) struct RoleItems {
    pub(super) kubernetes: ReadinessItem,
    pub(super) crd: ReadinessItem,
    pub(super) rights: ReadinessItem,
    pub(super) lease: ReadinessItem,
    pub(super) controllers: ReadinessItem,
}

impl RoleItems {
    pub(super) fn of(readiness: &Readiness, role: Role) -> Self {
        let item = |what: &str| readiness.item(format!("{what} ({role})"));
        Self {
            kubernetes: item("kubernetes"),
            crd: item("custom resource definition"),
            rights: item("rights"),
            lease: item("lease"),
            controllers: item("controllers"),
        }
    }
}

/// The items of the process.
pub(super) struct Items {
    pub(super) token: ReadinessItem,
    pub(super) arm: ReadinessItem,
    pub(super) scopes: Option<ReadinessItem>,
    pub(super) roles: Vec<(Role, RoleItems)>,
}

impl Items {
    pub(super) fn of(readiness: &Readiness, config: &Config) -> Self {
        let roles = config.roles.iter().copied();
        Self {
            token: readiness.item("azure token"),
            arm: readiness.item("azure resource manager"),
            scopes: config
                .scope
                .allow_scopes
                .as_ref()
                .map(|_| readiness.item("allowed scopes")),
            roles: roles.map(|role| (role, RoleItems::of(readiness, role))).collect(),
        }
    }
}
