//! What a decision for the guest's side of an AWSEndpointService is made from, as Kubernetes shows it. Data only.

use crate::api::HostedControlPlane;
use crate::api::hypershift::{AwsPlatform, ClusterSpec};
use crate::aws::account_roles::AccountRoles;
use crate::aws::region::Region;
use crate::aws::role_arn::RoleArn;
use crate::aws::slot::Scope;
use crate::hypershift::aws::ids::{is_id, is_zone_id};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::names::api_server_is_routed;
use crate::hypershift::identity::{self, Identity};
use crate::hypershift::problem::Problem;
use crate::runtime::prune::Prune;

use crate::api::Reason;

/// What Kubernetes shows around a custom resource.
#[derive(Debug, Clone)]
pub struct VpcEndpointInputs {
    /// The guest, if the control plane describes it.
    pub guest: Result<Guest, Problem>,
    /// Whether the path is not wanted any more: the control plane is being deleted, or is not private.
    pub is_unwanted: bool,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// `spec.pausedUntil` of the HostedControlPlane.
    pub paused_until: Option<String>,
}

impl Prune for VpcEndpointInputs {
    fn prune(&mut self) {}
}

/// The guest's side of a cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Guest {
    /// The cluster.
    pub identity: Identity,
    /// The id of its VPC.
    pub vpc: String,
    /// The account and region of the VPC.
    pub account: Scope,
    /// The account of the internal zone.
    pub zone_account: Scope,
    /// The roles that are assumed in them.
    pub roles: Roles,
    /// The id of the internal zone, where it is given.
    pub zone: Option<String>,
    /// The networks of the workers, in CIDR notation.
    pub networks: Vec<String>,
    /// Whether the API server is behind the router.
    pub api_server_is_routed: bool,
}

/// The roles that are assumed for a cluster, in a shared VPC.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Roles {
    /// For endpoint and security group.
    pub endpoint: Option<RoleArn>,
    /// For records.
    pub records: Option<RoleArn>,
}

impl Roles {
    /// What is recorded of them. A text that is no role's ARN counts as none.
    pub fn recorded(intent: &CpoIntent) -> Self {
        let role = |text: &Option<String>| RoleArn::parse(text.as_deref()?).ok();
        Self {
            endpoint: role(&intent.endpoint_role),
            records: role(&intent.records_role),
        }
    }

    /// The roles by the account in which they are.
    pub fn by_account(&self) -> Vec<(&str, AccountRoles)> {
        let in_account = |account: &str| {
            let fits = |role: &&RoleArn| role.account() == account;
            AccountRoles {
                endpoints: self.endpoint.as_ref().filter(fits).cloned(),
                records: self.records.as_ref().filter(fits).cloned(),
            }
        };
        let accounts = [&self.endpoint, &self.records]
            .into_iter()
            .flatten()
            .map(RoleArn::account);
        accounts.map(|account| (account, in_account(account))).collect()
    }
}

impl Guest {
    /// The guest that a control plane describes, to a process in this region with an identity of account `own`.
    ///
    /// # Errors
    /// What of the description is missing or wrong.
    pub fn of(found: &HostedControlPlane, own: &str, region: &Region) -> Result<Self, Problem> {
        let spec = &found.spec;
        let name = found.metadata.name.as_deref().unwrap_or_default();
        let identity = identity::of_spec(name, spec)?;
        let aws = spec.aws().ok_or_else(|| {
            let text = "the HostedControlPlane is not on AWS";
            Problem::new(Reason::CloudMismatch, text)
        })?;
        let elsewhere = aws.region.as_deref().filter(|named| *named != region.name());
        if let Some(named) = elsewhere {
            let text = format!("the cluster is in {named}, this process serves {region}");
            return Err(Problem::new(Reason::CloudMismatch, text));
        }
        let vpc = aws.vpc().filter(|vpc| is_id("vpc", vpc)).ok_or_else(|| {
            let text = "platform.aws.cloudProviderConfig.vpc is not the id of a VPC";
            Problem::new(Reason::InvalidSpec, text)
        })?;
        let roles = roles(aws)?;
        let account = |role: &Option<RoleArn>| Scope {
            account: role.as_ref().map_or(own, RoleArn::account).to_owned(),
            region: region.name().to_owned(),
        };
        Ok(Self {
            identity,
            vpc: vpc.to_owned(),
            account: account(&roles.endpoint),
            zone_account: account(&roles.records),
            zone: zone(aws)?,
            networks: networks(spec),
            api_server_is_routed: api_server_is_routed(spec),
            roles,
        })
    }
}

/// The roles in a shared VPC, both or none.
fn roles(aws: &AwsPlatform) -> Result<Roles, Problem> {
    let Some(shared) = aws.shared() else {
        return Ok(Roles::default());
    };
    let role = |text: &Option<String>, field: &str| {
        RoleArn::parse(text.as_deref().unwrap_or_default())
            .map(Some)
            .map_err(|_| {
                let text = format!("platform.aws.sharedVPC.rolesRef.{field} is not the ARN of a role");
                Problem::new(Reason::InvalidSpec, text)
            })
    };
    Ok(Roles {
        endpoint: role(&shared.roles_ref.control_plane_arn, "controlPlaneARN")?,
        records: role(&shared.roles_ref.ingress_arn, "ingressARN")?,
    })
}

/// The internal zone, where a shared VPC gives it.
fn zone(aws: &AwsPlatform) -> Result<Option<String>, Problem> {
    let given = aws.shared().and_then(|shared| shared.local_zone_id.clone());
    match given.filter(|zone| !zone.is_empty()) {
        Some(zone) if !is_zone_id(&zone) => {
            let text = "platform.aws.sharedVPC.localZoneID is not the id of a hosted zone";
            Err(Problem::new(Reason::InvalidSpec, text))
        }
        given => Ok(given),
    }
}

fn networks(spec: &ClusterSpec) -> Vec<String> {
    let networks = spec.networking.machine_network.iter();
    networks.filter_map(|network| network.cidr.clone()).collect()
}
