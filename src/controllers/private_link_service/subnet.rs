//! The NAT subnet of the HO role: how it is chosen, made, checked and deleted. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use super::nat_prefix::{self, Refused};
use super::plan::Settings;
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::id::{IdError, ResourceId, lower, same};
use crate::azure::kinds::load_balancer::{Frontend, internal_frontends};
use crate::azure::kinds::private_link_service::nat_subnet;
use crate::azure::kinds::subnet::{NatSubnet, has_reference_shape, takes_link_services, used_by_others, used_only_by};
use crate::azure::plan::{Step, Verb, Why, ensure_absent, ensure_present};
use crate::azure::resource::{Kind, Observed};
use crate::controllers::abandon::OVERDUE;
use crate::controllers::facts::{Facts, Needs};
use crate::controllers::identity::Identity;
use crate::hypershift::problem::Problem;
use crate::names;

/// How long until a problem that a person has to fix is checked again.
const AGAIN: Duration = Duration::from_secs(300);

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
pub(super) fn shared(
    cr: &AzurePrivateLinkService,
    frontend: &Frontend,
    service: &ResourceId,
    facts: &Facts,
    settings: &Settings,
) -> Result<Option<ResourceId>, Needs> {
    let network = frontend.subnet.parent();
    let shared = settings.nat_subnet.as_ref().filter(|id| id.parent() == network);
    let Some(shared) = shared.filter(|_| cr.spec.nat_subnet_id.is_none()) else {
        return Ok(None);
    };
    let used = facts
        .read(Kind::PrivateLinkService, service)?
        .found()
        .and_then(nat_subnet);
    Ok(Some(shared)
        .filter(|shared| used.is_none_or(|used| used == **shared))
        .cloned())
}

/// Chooses the NAT subnet, in the virtual network of the frontend. A problem with it does not stop the guest's side.
///
/// One of the cluster's name that is in `of_older`, so given by an older HostedCluster, is not used.
pub(super) fn choose(
    cr: &AzurePrivateLinkService,
    identity: &Identity,
    frontend: &Frontend,
    shared: Option<ResourceId>,
    of_older: &[String],
) -> Result<Chosen, Problem> {
    if let Some(shared) = shared {
        return Ok(Chosen::Given(shared, BY_OPERATOR));
    }
    let invalid = |error: IdError| Problem::new(Reason::NATSubnetCreationFailed, format!("NAT subnet: {error}"));
    let network = frontend.subnet.parent().ok_or_else(|| invalid(IdError::Form))?;
    let Some(text) = &cr.spec.nat_subnet_id else {
        let own = network
            .child(Kind::Subnet, &names::nat_subnet(&identity.infra_id))
            .map_err(invalid)?;
        if of_older.contains(&lower(&own.to_string())) {
            let text = format!("subnet {} is the natSubnetID of an older HostedCluster", own.name());
            return Err(Problem::new(Reason::NATSubnetCreationFailed, text).requeue_after(AGAIN));
        }
        return Ok(Chosen::Own(own));
    };
    let given = ResourceId::parse_as(Kind::Subnet, text).map_err(invalid)?;
    if given.parent().as_ref() == Some(&network) {
        Ok(Chosen::Given(given, BY_OWNER))
    } else {
        let text = "natSubnetID is not in the load balancer's virtual network";
        Err(Problem::new(Reason::NATSubnetCreationFailed, text))
    }
}

/// The step that makes or repairs the cluster's own NAT subnet.
pub(super) fn ensure_own(
    id: &ResourceId,
    identity: &Identity,
    facts: &Facts,
    settings: &Settings,
    refused: &[Refused],
) -> Result<Result<Step, Problem>, Needs> {
    let failed = |text: String| Problem::new(Reason::NATSubnetCreationFailed, text);
    let observed = facts.read(Kind::Subnet, id)?;
    let mut desired = NatSubnet {
        id: id.clone(),
        prefix: None,
    };
    if *observed == Observed::Absent {
        let Some(network) = id.parent() else {
            return Ok(Err(failed(IdError::Form.to_string())));
        };
        let chosen = |body| nat_prefix::choose(body, settings.nat, &identity.infra_id, refused);
        let mut read = facts.read(Kind::VirtualNetwork, &network)?;
        if read.found().is_some_and(|body| chosen(body).is_none()) {
            // Others may have made room since.
            read = facts.fresh_read(Kind::VirtualNetwork, &network)?;
        }
        desired.prefix = match read {
            Observed::Found(body) => chosen(body),
            Observed::ReadFailed(error) => {
                let subject = format!("virtual_network {}", network.name());
                let problem = Problem::unread(Reason::NATSubnetCreationFailed, &subject, error);
                return Ok(Err(problem.requeue_after(error.delay(1))));
            }
            _ => {
                let text = "the virtual network does not exist".to_owned();
                return Ok(Err(failed(text).requeue_after(AGAIN)));
            }
        };
        if desired.prefix.is_none() {
            let text = "the virtual network has no room for a NAT subnet".to_owned();
            return Ok(Err(failed(text).requeue_after(AGAIN)));
        }
    }
    Ok(Ok(ensure_present(&desired, observed)))
}

/// What is wrong with a NAT subnet that was given. It is never written.
pub(super) fn check_given(id: &ResourceId, by: &str, facts: &Facts) -> Result<Option<Problem>, Needs> {
    let failed = |text: String| Some(Problem::new(Reason::NATSubnetCreationFailed, text).requeue_after(AGAIN));
    Ok(match facts.read(Kind::Subnet, id)? {
        Observed::Found(body) if takes_link_services(body) => None,
        Observed::Found(_) => failed(format!("{by}: set its privateLinkServiceNetworkPolicies to Disabled")),
        Observed::ReadFailed(error) | Observed::WriteFailed(error) | Observed::DeleteFailed(error) => {
            let subject = format!("subnet {}", id.name());
            Some(Problem::unread(Reason::NATSubnetCreationFailed, &subject, error).requeue_after(error.delay(1)))
        }
        Observed::Absent | Observed::Pending => failed(format!("{by} does not exist")),
    })
}

/// What is known of the NAT subnet of a custom resource under deletion. Anybody in its namespace can forge the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover<'a> {
    /// The cluster's identity.
    pub(super) identity: &'a Identity,
    /// The services that the cluster has had in it.
    pub(super) services: &'a [ResourceId],
    /// Whether this role recorded that it made the subnet.
    pub(super) made: bool,
    /// Whether the HostedCluster has the name, so that no record has to be believed.
    pub(super) vouched: bool,
    /// The one that the cluster's own service uses or used.
    pub(super) shown: Option<&'a ResourceId>,
    /// The NAT subnets that somebody gives, in lower case.
    pub(super) given: &'a [String],
    /// For how long the custom resource has been under deletion.
    pub(super) waited: Duration,
}

impl Leftover<'_> {
    /// The subnet's kind and name, if the cluster can have one.
    pub(super) fn name(&self) -> Option<String> {
        let infra_id = Some(&self.identity.infra_id).filter(|infra_id| !infra_id.is_empty())?;
        Some(format!("{} {}", Kind::Subnet.label(), names::nat_subnet(infra_id)))
    }

    /// Whether a subnet can be the cluster's: its name is, and this process may touch it.
    pub(super) fn may_be(&self, id: &ResourceId, settings: &Settings) -> bool {
        let infra_id = &self.identity.infra_id;
        let named = !infra_id.is_empty() && same(id.name(), &names::nat_subnet(infra_id));
        named && settings.allows_subnet(id) && settings.nat_subnet.as_ref() != Some(id)
    }

    /// The subnet of the cluster's name in the one network that a load balancer is in.
    pub(super) fn beside(
        &self,
        load_balancer: &ResourceId,
        facts: &Facts,
        settings: &Settings,
    ) -> Result<Option<ResourceId>, Needs> {
        if self.identity.infra_id.is_empty() || !settings.allows_subnet(load_balancer) {
            return Ok(None);
        }
        let observed = facts.read(Kind::LoadBalancer, load_balancer)?;
        let frontends = internal_frontends(observed.found().map(std::slice::from_ref).unwrap_or_default());
        let networks: BTreeSet<String> = frontends
            .iter()
            .filter_map(|frontend| Some(lower(&frontend.subnet.parent()?.to_string())))
            .collect();
        let only = frontends.first().filter(|_| networks.len() == 1);
        let name = names::nat_subnet(&self.identity.infra_id);
        let subnet = only.and_then(|frontend| frontend.subnet.parent()?.child(Kind::Subnet, &name).ok());
        Ok(subnet.filter(|id| self.may_be(id, settings)))
    }

    /// For how long none of the services can have used the subnet: since the last of them is gone, and at most since
    /// the deletion began. A foreign one under such a name may stay for ever: it counts as gone since then.
    fn unused_for(&self, facts: &Facts) -> Result<Duration, Needs> {
        let named: Vec<_> = self.services.iter().map(|id| (Kind::PrivateLinkService, id)).collect();
        facts.reads(&named)?;
        let gone = |id: &ResourceId| match facts.reads.get(id) {
            Some(Observed::Absent) => facts.gone_for(id),
            _ => self.waited,
        };
        Ok(self.services.iter().map(gone).fold(self.waited, Duration::min))
    }

    /// The step that deletes the subnet, unless others own or use it.
    pub(super) fn remove(&self, id: ResourceId, facts: &Facts) -> Result<Step, Needs> {
        let observed = facts.read(Kind::Subnet, &id)?;
        let given = self.given.contains(&lower(&id.to_string()));
        let proven = self.vouched || self.shown == Some(&id);
        let step = ensure_absent(&NatSubnet { id, prefix: None }, observed);
        let body = match observed {
            Observed::Found(body) if step.verb == Verb::Delete => body,
            _ => return Ok(step),
        };
        Ok(if given {
            step.leave("natSubnetID of a cluster")
        } else if used_by_others(body).is_some()
            && used_only_by(body, self.services)
            && self.unused_for(facts)? < OVERDUE
        {
            Step {
                verb: Verb::Wait,
                why: Why::Needs("the service's addresses to go"),
                ..step
            }
        } else if let Some(used) = used_by_others(body) {
            step.leave(used)
        } else if !proven {
            Step {
                verb: Verb::Refuse,
                why: Why::NotOurs,
                ..step
            }
        } else if self.made || has_reference_shape(body) {
            step
        } else {
            step.leave("whoever made it")
        })
    }
}
