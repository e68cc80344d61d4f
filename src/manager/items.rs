//! The items of `/readyz`, which all exist before the first probe.

use crate::api::LedRole;
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
    pub(super) fn of(readiness: &Readiness, role: LedRole) -> Self {
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

/// The items of Azure.
pub(super) struct AzureItems {
    /// None where each cluster has an identity of its own.
    pub(super) token: Option<ReadinessItem>,
    pub(super) arm: ReadinessItem,
}

/// The items of the clouds of the chosen platforms.
pub(super) struct CloudItems {
    pub(super) azure: Option<AzureItems>,
    /// The session for AWS.
    pub(super) aws: Option<ReadinessItem>,
}

impl CloudItems {
    fn of(readiness: &Readiness, config: &Config) -> Self {
        Self {
            azure: config.azure.as_ref().map(|azure| AzureItems {
                token: azure.credential.as_ref().map(|_| readiness.item("azure token")),
                arm: readiness.item("azure resource manager"),
            }),
            aws: config.aws.as_ref().map(|_| readiness.item("aws session")),
        }
    }
}

/// The items of the process.
pub(super) struct Items {
    pub(super) clouds: CloudItems,
    pub(super) scopes: Option<ReadinessItem>,
    pub(super) roles: Vec<(LedRole, RoleItems)>,
}

impl Items {
    pub(super) fn of(readiness: &Readiness, config: &Config) -> Self {
        let platforms = || config.platforms();
        let roles = config.roles.iter();
        let roles = roles.flat_map(|role| platforms().map(|platform| LedRole::on(*role, platform)));
        Self {
            clouds: CloudItems::of(readiness, config),
            scopes: config
                .scope
                .allow_scopes
                .as_ref()
                .map(|_| readiness.item("allowed scopes")),
            roles: roles.map(|role| (role, RoleItems::of(readiness, role))).collect(),
        }
    }
}
