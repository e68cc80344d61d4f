//! What a decision for the guest's side of an AWSEndpointService is made from, as Kubernetes shows it. Data only.

use std::collections::BTreeMap;

use crate::api::HostedControlPlane;
use crate::api::hypershift::{AwsPlatform, ClusterSpec};
use crate::aws::region::Region;
use crate::aws::role_arn::RoleArn;
use crate::aws::slot::Scope;
use crate::hypershift::aws::ids::{is_id, is_zone_id};
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::names::api_server_is_routed;
use crate::hypershift::aws::scopes::{Access, AwsScopes};
use crate::hypershift::identity::{self, Identity};
use crate::hypershift::problem::Problem;
use crate::runtime::prune::Prune;

use crate::api::Reason;

/// What Kubernetes shows around a custom resource.
#[derive(Debug, Clone)]
pub struct VpcEndpointInputs {
    /// As whom AWS is called.
    pub access: Access,
    /// The guest, if the control plane describes it.
    pub guest: Result<Guest, Problem>,
    /// What the HostedCluster shows, where the process serves many control planes.
    pub vouched: Vouched,
    /// The subnets that AWS has refused lately where nothing tells which it takes, each with AWS's code; an empty id
    /// for several together.
    pub refused_subnets: BTreeMap<String, String>,
    /// Whether the path is not wanted any more: the control plane is being deleted, or is not private.
    pub is_unwanted: bool,
    /// Why the cluster is not to be touched now.
    pub paused: Option<Problem>,
    /// `spec.pausedUntil` of the HostedControlPlane.
    pub paused_until: Option<String>,
}

/// What the HostedCluster shows of its cluster. Nothing where none is asked.
#[derive(Debug, Clone, Default)]
pub struct Vouched {
    /// Why the control plane is not served.
    pub refusal: Option<Problem>,
    /// The HostedCluster's own identity; none if it does not exist, or is younger than the custom resource.
    pub identity: Option<Identity>,
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
    /// The account and region of the VPC, and as whom they are called.
    pub account: Scope,
    /// Those of the internal zone.
    pub zone_account: Scope,
    /// The id of the internal zone, where it is given.
    pub zone: Option<String>,
    /// The networks of the workers, in CIDR notation.
    pub networks: Vec<String>,
    /// Whether the API server is behind the router.
    pub api_server_is_routed: bool,
}

impl VpcEndpointInputs {
    /// The account of the recorded endpoint, and as whom it is called.
    pub fn recorded_scope(&self, recorded: &CpoIntent) -> Option<Scope> {
        let guest = self.guest.as_ref().ok().map(|guest| &guest.account);
        let role = recorded.endpoint_role.as_deref();
        Some(self.called(recorded.scope()?, role, guest, AwsScopes::endpoint_scope))
    }

    /// The account of the recorded zone, and as whom it is called.
    pub fn recorded_zone_scope(&self, recorded: &CpoIntent) -> Option<Scope> {
        let guest = self.guest.as_ref().ok().map(|guest| &guest.zone_account);
        let role = recorded.records_role.as_deref();
        Some(self.called(recorded.zone_scope()?, role, guest, AwsScopes::zone_scope))
    }

    /// A recorded account with the role of the guest there, or of the operator's file. Only where neither says anything
    /// is the recorded role assumed, and not in the process' own account while the guest names none there.
    fn called(
        &self,
        account: Scope,
        role: Option<&str>,
        guest: Option<&Scope>,
        of_file: fn(&AwsScopes, &str) -> Scope,
    ) -> Scope {
        let in_account = |known: &Scope| known.is_same_place(&account);
        let called = match &self.access {
            Access::Refused(_) => None,
            Access::Allowed(scopes) => Some(of_file(scopes, &account.region)).filter(in_account),
            Access::AsNamed(own) => match guest {
                Some(guest) if in_account(guest) => Some(guest.clone()),
                Some(_) if account.account == *own => None,
                _ => {
                    let role = role.and_then(|text| RoleArn::parse(text).ok());
                    role.map(|role| Scope::of_role(role, &account.region))
                        .filter(in_account)
                }
            },
        };
        called.unwrap_or(account)
    }
}

/// The roles that a HostedControlPlane names in a shared VPC, for the endpoint and for the records.
type NamedRoles = Option<[RoleArn; 2]>;

impl Guest {
    /// The guest that a control plane describes, to a process in this region that calls AWS with this access.
    ///
    /// # Errors
    /// What of the description is missing or wrong, or not allowed.
    pub fn of(found: &HostedControlPlane, access: &Access, region: &Region) -> Result<Self, Problem> {
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
            let text = format!("{VPC} is not the id of a VPC");
            Problem::new(Reason::InvalidSpec, text)
        })?;
        let (roles, zone) = (roles(aws)?, zone(aws)?);
        let [account, zone_account] = called(access, roles, region.name())?;
        if let Access::Allowed(scopes) = access {
            scopes.check_vpc(VPC, vpc)?;
            zone.iter().try_for_each(|zone| scopes.check_zone(LOCAL_ZONE, zone))?;
        }
        Ok(Self {
            identity,
            vpc: vpc.to_owned(),
            account,
            zone_account,
            zone,
            networks: networks(spec),
            api_server_is_routed: api_server_is_routed(spec),
        })
    }
}

/// The fields of a HostedControlPlane that the operator's file is about.
const VPC: &str = "platform.aws.cloudProviderConfig.vpc";
const LOCAL_ZONE: &str = "platform.aws.sharedVPC.localZoneID";
const ENDPOINT_ROLE: &str = "platform.aws.sharedVPC.rolesRef.controlPlaneARN";
const RECORDS_ROLE: &str = "platform.aws.sharedVPC.rolesRef.ingressARN";

/// The accounts of the endpoint and of the zone, and as whom they are called.
fn called(access: &Access, named: NamedRoles, region: &str) -> Result<[Scope; 2], Problem> {
    match (access, named) {
        (Access::Refused(problem), _) => Err(problem.clone()),
        (Access::Allowed(scopes), named) => {
            if let Some([endpoint, records]) = named {
                scopes.check_endpoint_role(ENDPOINT_ROLE, &endpoint)?;
                scopes.check_records_role(RECORDS_ROLE, &records)?;
            }
            Ok([scopes.endpoint_scope(region), scopes.zone_scope(region)])
        }
        (Access::AsNamed(_), Some(roles)) => Ok(roles.map(|role| Scope::of_role(role, region))),
        (Access::AsNamed(own), None) => Ok([Scope::own(own, region), Scope::own(own, region)]),
    }
}

/// The roles in a shared VPC, both or none.
fn roles(aws: &AwsPlatform) -> Result<NamedRoles, Problem> {
    let Some(shared) = aws.shared() else {
        return Ok(None);
    };
    let role = |text: &Option<String>, field: &str| {
        RoleArn::parse(text.as_deref().unwrap_or_default()).map_err(|_| {
            let text = format!("{field} is not the ARN of a role");
            Problem::new(Reason::InvalidSpec, text)
        })
    };
    Ok(Some([
        role(&shared.roles_ref.control_plane_arn, ENDPOINT_ROLE)?,
        role(&shared.roles_ref.ingress_arn, RECORDS_ROLE)?,
    ]))
}

/// The internal zone, where a shared VPC gives it.
fn zone(aws: &AwsPlatform) -> Result<Option<String>, Problem> {
    let given = aws.shared().and_then(|shared| shared.local_zone_id.clone());
    match given.filter(|zone| !zone.is_empty()) {
        Some(zone) if !is_zone_id(&zone) => {
            let text = format!("{LOCAL_ZONE} is not the id of a hosted zone");
            Err(Problem::new(Reason::InvalidSpec, text))
        }
        given => Ok(given),
    }
}

fn networks(spec: &ClusterSpec) -> Vec<String> {
    let networks = spec.networking.machine_network.iter();
    networks.filter_map(|network| network.cidr.clone()).collect()
}

#[cfg(test)]
mod tests;
