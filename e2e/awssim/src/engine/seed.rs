//! The seed: accounts, who may do what, and the things that are there at the start. Unknown keys are errors that name
//! them.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;
use simulator::seed;
pub use simulator::seed::SeedError;

use super::switches::Switches;
use super::throttle::ThrottleSeed;
use crate::iam::policy::Policy;

/// The state to start from. What is absent has its default.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Seed {
    /// Accounts; calls to others are refused.
    pub accounts: Vec<Account>,
    /// Things, each with its ARN as `id` and its own members.
    pub resources: Vec<Value>,
    /// What stands behind load balancers.
    pub services: Vec<KubernetesService>,
    /// Budgets.
    pub throttle: ThrottleSeed,
    /// Choices where AWS's own answer is not known.
    pub switches: Switches,
    /// ARN of the role of the machine on which clients run, if it has one.
    pub machine_role: Option<String>,
}

impl Seed {
    /// Reads a seed.
    ///
    /// # Errors
    /// Another form, an unknown key, which is named.
    pub fn parse(json: &[u8]) -> Result<Self, SeedError> {
        seed::parse(json)
    }
}

/// An account and its IAM.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Account {
    /// Twelve digits.
    pub id: String,
    /// `aws`, `aws-cn` or `aws-us-gov`.
    #[serde(default = "public_partition")]
    pub partition: String,
    /// Who has access keys.
    #[serde(default)]
    pub users: Vec<User>,
    /// Who can be assumed.
    #[serde(default)]
    pub roles: Vec<Role>,
    /// Issuers of web identity tokens.
    #[serde(default)]
    pub oidc_providers: Vec<OidcProvider>,
    /// Zone ids to this account's zone names, where they are not the usual ones.
    #[serde(default)]
    pub zone_names: BTreeMap<String, String>,
    /// Limits.
    #[serde(default)]
    pub quotas: Quotas,
}

fn public_partition() -> String {
    "aws".to_owned()
}

/// A user with one access key.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct User {
    /// Name.
    pub name: String,
    /// `AKIA…`.
    pub access_key_id: String,
    /// Its secret.
    pub secret_access_key: String,
    /// What the user may do.
    #[serde(default)]
    pub policies: Vec<Policy>,
}

/// A role.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Role {
    /// Name.
    pub name: String,
    /// IAM path, `/` at both ends.
    #[serde(default = "root_path")]
    pub path: String,
    /// ARNs of users, roles, or accounts' `root`, that may assume it.
    #[serde(default)]
    pub trusted: Vec<String>,
    /// Web identities that may assume it.
    #[serde(default)]
    pub web_identities: Vec<WebIdentity>,
    /// Longest session in seconds.
    #[serde(default = "an_hour")]
    pub max_session_s: i64,
    /// What the role may do.
    #[serde(default)]
    pub policies: Vec<Policy>,
}

fn root_path() -> String {
    "/".to_owned()
}

fn an_hour() -> i64 {
    3600
}

/// A trusted web identity.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct WebIdentity {
    /// `iss` of the token.
    pub issuer: String,
    /// `sub` of the token.
    pub subject: String,
    /// `aud` of the token.
    pub audience: String,
}

/// An issuer that an account trusts.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct OidcProvider {
    /// `https://…`.
    pub issuer: String,
    /// Its RSA keys, as a JWKS.
    pub jwks: Value,
    /// Its keys cannot be fetched now: `IDPCommunicationError`.
    #[serde(default)]
    pub unreachable: bool,
}

/// An account's limits; AWS's own unless given.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub struct Quotas {
    /// Interface endpoints in a VPC.
    pub endpoints_per_vpc: usize,
    /// Security groups in a region.
    pub security_groups: usize,
    /// Rules of one direction in a security group.
    pub rules_per_group: usize,
    /// Security groups on a network interface.
    pub groups_per_interface: usize,
    /// Endpoint services in a region.
    pub endpoint_services: usize,
    /// Records in a hosted zone.
    pub records_per_zone: usize,
}

impl Default for Quotas {
    fn default() -> Self {
        Self {
            endpoints_per_vpc: 50,
            security_groups: 2500,
            rules_per_group: 60,
            groups_per_interface: 5,
            endpoint_services: 20,
            records_per_zone: 10_000,
        }
    }
}

/// What stands behind a load balancer.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct KubernetesService {
    /// ARN of the load balancer.
    pub load_balancer: String,
    /// `namespace/name`.
    pub name: String,
}
