//! A role on one platform: what a process leads, by a lease of its own.

use super::{Platform, Role};

/// A role on one platform.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LedRole {
    /// The role.
    pub role: Role,
    /// The platform.
    pub platform: Platform,
}

impl LedRole {
    /// Every one, in order.
    pub const ALL: [Self; 5] = [
        Self::on(Role::Ho, Platform::Azure),
        Self::on(Role::Cpo, Platform::Azure),
        Self::on(Role::Ho, Platform::Aws),
        Self::on(Role::Cpo, Platform::Aws),
        Self::on(Role::Capz, Platform::Azure),
    ];

    /// The role on this platform.
    pub const fn on(role: Role, platform: Platform) -> Self {
        Self { role, platform }
    }

    /// The metric label, and the part of the lease's name. On Azure it is the role alone.
    pub fn as_str(self) -> &'static str {
        match (self.role, self.platform) {
            (role, Platform::Azure) => role.as_str(),
            (Role::Ho, Platform::Aws) => "ho-aws",
            (Role::Cpo, Platform::Aws) => "cpo-aws",
            // The settings refuse it.
            (Role::Capz, Platform::Aws) => "capz",
        }
    }
}

impl std::fmt::Display for LedRole {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
