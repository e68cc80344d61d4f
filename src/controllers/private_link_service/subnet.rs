//! The NAT subnet of the HO role: how it is chosen, made and checked. Pure.

use std::time::Duration;

use ipnet::Ipv4Net;

use super::basis::{Basis, Stop};
use super::nat_prefix::{self, Refused};
use crate::api::Reason;
use crate::azure::arm::id::{IdError, ResourceId, lower};
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::load_balancer::Frontend;
use crate::azure::kinds::private_link_service::nat_subnet;
use crate::azure::kinds::subnet::{NatSubnet, takes_link_services};
use crate::azure::plan::Step;
use crate::controllers::azure::{Facts, Needs};
use crate::engine::plan::ensure_present;
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;
use crate::hypershift::problem::Problem;

/// The time until a problem with the NAT subnet that a person has to fix is checked again.
const SUBNET_POLL: Duration = Duration::from_secs(300);

/// The NAT subnet of a custom resource that is not deleted.
pub(super) enum Chosen {
    /// The one of the cluster's name, which this role makes and repairs.
    Own(ResourceId),
    /// A given one, and the field or setting that gives it. It is never written.
    Given(ResourceId, &'static str),
}

/// The field of the custom resource, which is the cluster owner's.
const BY_OWNER: &str = "natSubnetID";
/// The operator's setting.
const BY_OPERATOR: &str = "--nat-subnet-id";

impl Chosen {
    pub(super) fn id(&self) -> &ResourceId {
        match self {
            Self::Own(id) | Self::Given(id, _) => id,
        }
    }
}

/// The NAT subnet that clusters share, unless this one's owner gives another, its load balancer is in another network,
/// or its service is in another subnet, which can never be changed.
pub(super) fn shared(basis: Basis<'_>, frontend: &Frontend, service: &ResourceId) -> Result<Option<ResourceId>, Needs> {
    let Some(shared) = &basis.settings.nat_subnet else {
        return Ok(None);
    };
    if shared.parent() != frontend.subnet.parent() || basis.cr.spec.nat_subnet_id.is_some() {
        return Ok(None);
    }
    let observed = basis.facts.read(Kind::PrivateLinkService, service)?;
    let used = observed.found().and_then(nat_subnet);
    Ok(Some(shared)
        .filter(|shared| used.is_none_or(|used| used == **shared))
        .cloned())
}

fn failed(text: impl Into<String>) -> Problem {
    Problem::new(Reason::NATSubnetCreationFailed, text)
}

fn invalid(error: IdError) -> Problem {
    failed(format!("NAT subnet: {error}"))
}

/// Chooses the NAT subnet, in the virtual network of the frontend. A problem with it does not stop the guest's side.
///
/// One of the cluster's name that an older HostedCluster gives is not used.
pub(super) fn choose(
    basis: Basis<'_>,
    identity: &Identity,
    frontend: &Frontend,
    shared: Option<ResourceId>,
) -> Result<Chosen, Problem> {
    if let Some(shared) = shared {
        return Ok(Chosen::Given(shared, BY_OPERATOR));
    }
    let network = frontend.subnet.parent().ok_or_else(|| invalid(IdError::Form))?;
    if let Some(text) = &basis.cr.spec.nat_subnet_id {
        let given = ResourceId::parse_as(Kind::Subnet, text).map_err(invalid)?;
        if given.parent().as_ref() != Some(&network) {
            return Err(failed("natSubnetID is not in the load balancer's virtual network"));
        }
        return Ok(Chosen::Given(given, BY_OWNER));
    }
    let own = network
        .child(Kind::Subnet, &names::nat_subnet(&identity.infra_id))
        .map_err(invalid)?;
    if basis.inputs.subnets_of_older.contains(&lower(&own.to_string())) {
        let text = format!("subnet {} is the natSubnetID of an older HostedCluster", own.name());
        return Err(failed(text).requeue_after(SUBNET_POLL));
    }
    Ok(Chosen::Own(own))
}

/// The step that makes or repairs the cluster's own NAT subnet.
pub(super) fn ensure_own(
    basis: Basis<'_>,
    identity: &Identity,
    id: &ResourceId,
    refused: &[Refused],
) -> Result<Step, Stop> {
    let observed = basis.facts.read(Kind::Subnet, id)?;
    let prefix = match observed {
        Observed::Absent => Some(free_prefix(basis, identity, id, refused)?),
        _ => None,
    };
    let desired = NatSubnet { id: id.clone(), prefix };
    Ok(ensure_present(&desired, observed))
}

/// A free prefix in the virtual network of a subnet that is to be made.
fn free_prefix(basis: Basis<'_>, identity: &Identity, id: &ResourceId, refused: &[Refused]) -> Result<Ipv4Net, Stop> {
    let network = id.parent().ok_or_else(|| failed(IdError::Form.to_string()))?;
    let body = match basis.facts.read(Kind::VirtualNetwork, &network)? {
        Observed::Found(body) => body,
        other => return Err(no_network(&network, other).into()),
    };
    let rules = basis.settings.nat;
    if let Some(prefix) = nat_prefix::choose(body, rules, &identity.infra_id, refused) {
        return Ok(prefix);
    }
    // Others may have made room since.
    let body = match basis.facts.fresh_read(Kind::VirtualNetwork, &network)? {
        Observed::Found(body) => body,
        other => return Err(no_network(&network, other).into()),
    };
    nat_prefix::choose(body, rules, &identity.infra_id, refused).ok_or_else(|| {
        failed("the virtual network has no room for a NAT subnet")
            .requeue_after(SUBNET_POLL)
            .into()
    })
}

/// The problem with a virtual network that was not found.
fn no_network(network: &ResourceId, observed: &Observed) -> Problem {
    match observed {
        Observed::ReadFailed(error) => {
            let subject = format!("virtual_network {}", network.name());
            Problem::unread(Reason::NATSubnetCreationFailed, &subject, error).requeue_after(error.delay(1))
        }
        _ => failed("the virtual network does not exist").requeue_after(SUBNET_POLL),
    }
}

/// Checks a NAT subnet that was given. It is never written.
pub(super) fn check_given(id: &ResourceId, by: &str, facts: &Facts) -> Result<(), Stop> {
    let problem = match facts.read(Kind::Subnet, id)? {
        Observed::Found(body) if takes_link_services(body) => return Ok(()),
        Observed::Found(_) => {
            let text = format!("{by}: set its privateLinkServiceNetworkPolicies to Disabled");
            failed(text).requeue_after(SUBNET_POLL)
        }
        Observed::ReadFailed(error) | Observed::WriteFailed(error) | Observed::DeleteFailed(error) => {
            let subject = format!("subnet {}", id.name());
            Problem::unread(Reason::NATSubnetCreationFailed, &subject, error).requeue_after(error.delay(1))
        }
        Observed::Absent | Observed::Pending => failed(format!("{by} does not exist")).requeue_after(SUBNET_POLL),
    };
    Err(problem.into())
}
