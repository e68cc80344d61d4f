//! The roles that are assumed in an account.

use crate::role_arn::RoleArn;

/// The roles that are assumed in an account. Without one the process' own identity calls.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccountRoles {
    /// For EC2.
    pub endpoints: Option<RoleArn>,
    /// For Route 53.
    pub records: Option<RoleArn>,
}
