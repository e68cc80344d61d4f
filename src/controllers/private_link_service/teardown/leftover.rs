//! The cluster's own NAT subnet during a teardown: where it is, and whether it is deleted. Pure.

use std::collections::BTreeSet;
use std::time::Duration;

use crate::azure::arm::id::{ResourceId, lower, same};
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::load_balancer::internal_frontends;
use crate::azure::kinds::subnet::{NatSubnet, has_reference_shape, used_by_others, used_only_by};
use crate::azure::plan::{Step, Why};
use crate::controllers::abandon::LEFT_AFTER;
use crate::controllers::azure::{Facts, Needs};
use crate::controllers::private_link_service::basis::Basis;
use crate::controllers::private_link_service::settings::Settings;
use crate::engine::plan::{Verb, ensure_absent};
use crate::hypershift::azure::intent::HoIntent;
use crate::hypershift::azure::names;
use crate::hypershift::identity::Identity;

/// What is known of the NAT subnet of a custom resource under deletion. Anybody in its namespace can forge the record.
#[derive(Debug, Clone, Copy)]
pub(super) struct Leftover<'a> {
    /// The cluster's identity.
    pub(super) identity: &'a Identity,
    /// The services that the cluster has had in it.
    pub(super) services: &'a [ResourceId],
    /// What this role recorded: the subnet, and whether it made it.
    pub(super) recorded: &'a HoIntent,
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

    /// The subnet of the cluster's name: as recorded, as the service showed it, or in the load balancer's network.
    pub(super) fn find(&self, balancer: Option<&ResourceId>, basis: Basis<'_>) -> Result<Option<ResourceId>, Needs> {
        let recorded = self.recorded.nat_subnet.as_deref();
        let recorded = recorded.and_then(|id| ResourceId::parse_as(Kind::Subnet, id).ok());
        let known = recorded.or_else(|| self.shown.cloned());
        if let Some(known) = known.filter(|id| self.may_be(id, basis.settings)) {
            return Ok(Some(known));
        }
        match balancer {
            Some(balancer) => self.beside(balancer, basis),
            None => Ok(None),
        }
    }

    /// Whether a subnet can be the cluster's: its name is, and this process may touch it.
    fn may_be(&self, id: &ResourceId, settings: &Settings) -> bool {
        let infra_id = &self.identity.infra_id;
        let named = !infra_id.is_empty() && same(id.name(), &names::nat_subnet(infra_id));
        named && settings.allows_subnet(id) && settings.nat_subnet.as_ref() != Some(id)
    }

    /// The subnet of the cluster's name in the one network that a load balancer is in.
    fn beside(&self, load_balancer: &ResourceId, basis: Basis<'_>) -> Result<Option<ResourceId>, Needs> {
        if self.identity.infra_id.is_empty() || !basis.settings.allows_subnet(load_balancer) {
            return Ok(None);
        }
        let observed = basis.facts.read(Kind::LoadBalancer, load_balancer)?;
        let frontends = internal_frontends(observed.found().map(std::slice::from_ref).unwrap_or_default());
        let networks: BTreeSet<String> = frontends
            .iter()
            .filter_map(|frontend| Some(lower(&frontend.subnet.parent()?.to_string())))
            .collect();
        let only = frontends.first().filter(|_| networks.len() == 1);
        let name = names::nat_subnet(&self.identity.infra_id);
        let subnet = only.and_then(|frontend| frontend.subnet.parent()?.child(Kind::Subnet, &name).ok());
        Ok(subnet.filter(|id| self.may_be(id, basis.settings)))
    }

    /// For how long none of the services can have used the subnet: since the last of them is gone, and at most since
    /// the deletion began.
    fn unused_for(&self, facts: &Facts) -> Result<Duration, Needs> {
        let named: Vec<_> = self.services.iter().map(|id| (Kind::PrivateLinkService, id)).collect();
        facts.reads(&named)?;
        let gone = self.services.iter().map(|id| self.gone_for(id, facts));
        Ok(gone.fold(self.waited, Duration::min))
    }

    /// For how long a service is gone. A foreign one under such a name may stay for ever: it counts as gone since the
    /// deletion began.
    fn gone_for(&self, service: &ResourceId, facts: &Facts) -> Duration {
        match facts.reads.get(service) {
            Some(Observed::Absent) => facts.gone_for(service),
            _ => self.waited,
        }
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
            && self.unused_for(facts)? < LEFT_AFTER
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
        } else if self.recorded.nat_subnet_made || has_reference_shape(body) {
            step
        } else {
            step.leave("whoever made it")
        })
    }
}
