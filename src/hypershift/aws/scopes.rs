//! Which parts of AWS a control plane may use, and as whom, as the operator's file says it. Pure.
//!
//! The file names the roles that are assumed, so that nobody in a control plane's namespace chooses an identity. The
//! process' own identity assumes these roles and does nothing else: what it may do in its own account is no tenant's.

use std::collections::BTreeSet;

use serde::Deserialize;

use crate::api::{ClusterRef, Reason};
use crate::aws::role_arn::RoleArn;
use crate::aws::slot::Scope;
use crate::hypershift::aws::ids::{is_id, is_zone_id};
use crate::hypershift::problem::Problem;
use crate::hypershift::scopes::{AllowedScopes, OF_ANOTHER};

/// What an entry of the file has for AWS, as written.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
pub(in crate::hypershift) struct WrittenAws {
    #[serde(rename = "roleARN")]
    role: String,
    #[serde(rename = "recordsRoleARN")]
    records_role: Option<String>,
    #[serde(rename = "vpcIDs")]
    vpcs: BTreeSet<String>,
    #[serde(rename = "hostedZoneIDs")]
    zones: BTreeSet<String>,
}

/// What the control planes of an entry may use on AWS, and as whom.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AwsScopes {
    /// The role that is assumed for endpoints and security groups.
    role: RoleArn,
    /// The role that is assumed for records.
    records_role: RoleArn,
    vpcs: BTreeSet<String>,
    zones: BTreeSet<String>,
}

/// As whom AWS is called for a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Access {
    /// As its HostedControlPlane says: as the process' own identity, of this account, or as the roles that it names.
    AsNamed(String),
    /// As the operator's file says, which allows this and nothing else.
    Allowed(AwsScopes),
    /// As nobody.
    Refused(Problem),
}

impl Access {
    /// Whether records may be in the hosted zone with this id.
    pub fn allows_zone(&self, zone: &str) -> bool {
        match self {
            Self::AsNamed(_) => true,
            Self::Allowed(scopes) => scopes.zones.contains(zone),
            Self::Refused(_) => false,
        }
    }
}

impl WrittenAws {
    /// What is written, if each part has its form.
    pub(in crate::hypershift) fn read(self) -> Result<AwsScopes, String> {
        let role = |text: &str| RoleArn::parse(text).map_err(|error| error.to_string());
        if let Some(wrong) = self.vpcs.iter().find(|id| !is_id("vpc", id)) {
            return Err(format!("{wrong:?} is not the id of a VPC"));
        }
        if let Some(wrong) = self.zones.iter().find(|id| !is_zone_id(id)) {
            return Err(format!("{wrong:?} is not the id of a hosted zone"));
        }
        Ok(AwsScopes {
            records_role: role(self.records_role.as_ref().unwrap_or(&self.role))?,
            role: role(&self.role)?,
            vpcs: self.vpcs,
            zones: self.zones,
        })
    }
}

impl AllowedScopes {
    /// As whom AWS is called for the control plane in this namespace. A name is that of the HostedCluster which the control
    /// plane claims, where nothing else vouches for it.
    pub fn on_aws(&self, namespace: &str, cluster: Option<&str>) -> Access {
        let found = self.only_entry(namespace).and_then(|entry| {
            if cluster.is_some_and(|name| !entry.is_for(&entry.cluster(name), namespace)) {
                return Err(OF_ANOTHER.to_owned());
            }
            let aws = entry.aws.as_ref();
            aws.ok_or_else(|| "the entry in the allowed scopes has nothing on AWS: it lacks aws".to_owned())
        });
        match found {
            Ok(aws) => Access::Allowed(aws.clone()),
            Err(message) => Access::Refused(Problem::new(Reason::ScopeNotAllowed, message)),
        }
    }

    /// The HostedCluster whose control plane is in this namespace, if it may use something on AWS.
    pub fn cluster_on_aws(&self, namespace: &str) -> Option<ClusterRef> {
        let entry = self.only_entry(namespace).ok()?;
        entry.aws.as_ref().and(entry.named())
    }

    /// The account whose request limits the control plane in this namespace uses most.
    pub fn account_on_aws(&self, namespace: &str) -> Option<String> {
        let aws = self.only_entry(namespace).ok()?.aws.as_ref()?;
        Some(aws.role.account().to_owned())
    }
}

impl AwsScopes {
    /// Where endpoints and security groups are in this region, and as whom that is called.
    pub fn endpoint_scope(&self, region: &str) -> Scope {
        Scope::of_role(self.role.clone(), region)
    }

    /// Where hosted zones are, and as whom that is called.
    pub fn zone_scope(&self, region: &str) -> Scope {
        Scope::of_role(self.records_role.clone(), region)
    }

    /// Why the role that a field names for endpoints is not that which is assumed.
    pub fn check_endpoint_role(&self, field: &str, named: &RoleArn) -> Result<(), Problem> {
        check(*named == self.role, field, "roleARN is not", named.as_str())
    }

    /// Why the role that a field names for records is not that which is assumed.
    pub fn check_records_role(&self, field: &str, named: &RoleArn) -> Result<(), Problem> {
        check(
            *named == self.records_role,
            field,
            "recordsRoleARN is not",
            named.as_str(),
        )
    }

    /// Why endpoint and security group must not be in this VPC.
    pub fn check_vpc(&self, what: &str, vpc: &str) -> Result<(), Problem> {
        check(self.vpcs.contains(vpc), what, "vpcIDs lacks", vpc)
    }

    /// Why records must not be in this hosted zone.
    pub fn check_zone(&self, what: &str, zone: &str) -> Result<(), Problem> {
        check(self.zones.contains(zone), what, "hostedZoneIDs lacks", zone)
    }

    /// Why what was recorded in an account must not be touched: no role is assumed there.
    pub fn check_account(&self, what: &str, scope: &Scope) -> Result<(), Problem> {
        check(scope.role.is_some(), what, "no role is in account", &scope.account)
    }
}

/// What is outside, and what the operator would have to add.
fn check(is_allowed: bool, what: &str, lack: &str, value: &str) -> Result<(), Problem> {
    if is_allowed {
        return Ok(());
    }
    let text = format!("{what} is outside of the allowed scopes; {lack} {value}");
    Err(Problem::new(Reason::ScopeNotAllowed, text))
}

#[cfg(test)]
mod tests;
