//! Which frontend of which load balancer belongs to a custom resource. Pure.

use std::net::IpAddr;
use std::time::Duration;

use kube::ResourceExt;

use super::basis::{Basis, Stop};
use crate::api::Reason;
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::Kind;
use crate::azure::kinds::load_balancer::FrontendList;
use crate::azure::kinds::load_balancer::{Frontend, internal_frontends};
use crate::controllers::azure::Needs;
use crate::controllers::azure::lists::NEW_LIST_AGE;
use crate::hypershift::azure::names;
use crate::hypershift::problem::Problem;

pub use crate::hypershift::azure::names::FrontendMatch;

/// The Service of the same name as the custom resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Its `metadata.uid` field.
    pub uid: String,
    /// Whether the HostedControlPlane of the namespace owns it.
    pub owned: bool,
    /// The addresses in `status.loadBalancer.ingress`.
    pub addresses: Vec<IpAddr>,
}

/// The first wait before a missing load balancer frontend is searched for again. It is three times as long while
/// something is missing of the Service, and six times if the address is ambiguous. Later waits are longer. Soon enough
/// for a new frontend, seldom enough for the request budget.
///
/// Rule: W14 in `docs/compatibility.md`.
const FRONTEND_POLL: Duration = Duration::from_secs(10);

/// A Service that vouches for the address that the frontend must have.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct VouchedAddress<'a> {
    service: &'a ServiceFacts,
    address: IpAddr,
}

fn waiting(message: &str) -> Problem {
    Problem::new(Reason::WaitingForLoadBalancer, message).requeue_after(FRONTEND_POLL * 3)
}

/// The address in the spec, if the Service vouches for it.
fn vouched<'a>(spec: Option<&str>, service: Option<&'a ServiceFacts>) -> Result<VouchedAddress<'a>, Problem> {
    let text = spec.ok_or_else(|| waiting("the Service has no address yet"))?;
    let address = text
        .parse()
        .map_err(|_| Problem::new(Reason::InvalidSpec, "spec.loadBalancerIP is not an address"))?;
    let service = service.ok_or_else(|| waiting("the Service does not exist"))?;
    if !service.owned {
        return Err(Problem::new(
            Reason::NotOurs,
            "the Service does not belong to the HostedControlPlane",
        ));
    }
    if !service.addresses.contains(&address) {
        return Err(waiting("the Service does not report spec.loadBalancerIP"));
    }
    Ok(VouchedAddress { service, address })
}

/// The problem with an address that an older custom resource has: where nothing else proves a frontend, the younger
/// Service may have asked for the address of the older one.
fn claimed() -> Problem {
    Problem::new(
        Reason::AmbiguousLoadBalancer,
        "an older custom resource has the address",
    )
    .requeue_after(FRONTEND_POLL * 6)
}

/// Whether a frontend has the name that Azure's cloud provider derives from the Service's UID, which nobody can choose.
pub(super) fn is_named_after(frontend: &str, service: &ServiceFacts) -> bool {
    let suffix = frontend.strip_prefix(&names::load_balancer(&service.uid));
    !service.uid.is_empty() && suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('-'))
}

/// Whether a frontend of this name can be the Service's.
fn belongs(frontend: &str, service: &ServiceFacts, rule: FrontendMatch) -> bool {
    match rule {
        FrontendMatch::Name => is_named_after(frontend, service),
        FrontendMatch::Address => is_named_after(frontend, service) || !names::is_load_balancer(frontend),
    }
}

/// The one frontend that has the address and belongs to the Service.
fn choose<'a>(
    frontends: &'a [Frontend],
    address: IpAddr,
    service: &ServiceFacts,
    rule: FrontendMatch,
) -> Result<&'a Frontend, Problem> {
    let fitting: Vec<_> = frontends
        .iter()
        .filter(|frontend| frontend.address == address && belongs(&frontend.name, service, rule))
        .collect();
    match fitting.as_slice() {
        [only] => Ok(only),
        [] => Err(Problem::new(
            Reason::WaitingForLoadBalancer,
            "no load balancer frontend belongs to the Service",
        )
        .requeue_after(FRONTEND_POLL)),
        _ => Err(Problem::new(
            Reason::AmbiguousLoadBalancer,
            "several load balancer frontends have the address",
        )
        .requeue_after(FRONTEND_POLL * 6)),
    }
}

/// The frontend that belongs to the custom resource's Service.
pub(super) fn find(basis: Basis<'_>) -> Result<Frontend, Stop> {
    let vouched = vouched(basis.cr.spec.load_balancer_ip.as_deref(), basis.inputs.service.as_ref())?;
    if basis.settings.frontend_match == FrontendMatch::Address && basis.inputs.address_claimed {
        return Err(claimed().into());
    }
    let search = Search { basis, vouched };
    let mut problem = match search.in_all_scopes() {
        Err(Stop::Blocked(problem)) => problem,
        result => return result,
    };
    if is_missing(&problem) && basis.facts.lists.older_frontends {
        problem.requeue_after = Some(NEW_LIST_AGE);
    }
    // A list may lack an existing load balancer. Anybody can write the status, so it causes no more reads than a list.
    let lacks = is_missing(&problem) && !basis.facts.lists.held_frontends;
    if (lacks || is_unlisted(&problem))
        && let Some(read) = search.alone(lacks)?
    {
        return Ok(read);
    }
    Err(problem.into())
}

/// Whether the lists do not show the frontend.
fn is_missing(problem: &Problem) -> bool {
    problem.reason == Reason::WaitingForLoadBalancer
}

/// Whether a list could not be read.
fn is_unlisted(problem: &Problem) -> bool {
    problem.reason == Reason::ILBLookupFailed
}

/// A search for the frontend in lists of load balancers.
struct Search<'a> {
    basis: Basis<'a>,
    vouched: VouchedAddress<'a>,
}

impl Search<'_> {
    /// In the own group first, then in further ones, then in the whole subscription.
    fn in_all_scopes(&self) -> Result<Frontend, Stop> {
        let settings = self.basis.settings;
        match self.in_scope(Some(&settings.scope.resource_group)) {
            Err(Stop::Blocked(problem)) if is_missing(&problem) => {}
            result => return result,
        }
        for group in settings.further_groups() {
            match self.in_scope(Some(group)) {
                // A group that is gone or may not be read hides nothing: the whole subscription is searched next.
                Err(Stop::Blocked(problem)) if is_missing(&problem) || is_unlisted(&problem) => {}
                result => return result,
            }
        }
        self.in_scope(None)
    }

    /// In one group, or in the whole subscription. A list that lacks the frontend is read again.
    fn in_scope(&self, group: Option<&str>) -> Result<Frontend, Stop> {
        let facts = self.basis.facts;
        let subscription = &self.basis.settings.scope.subscription;
        let mut picked = self.pick(facts.frontends(subscription, group)?);
        if picked.as_ref().is_err_and(is_missing) {
            let namespace = self.basis.cr.namespace().unwrap_or_default();
            picked = self.pick(facts.new_frontends(subscription, group, &namespace)?);
        }
        Ok(picked?)
    }

    fn pick(&self, list: &FrontendList) -> Result<Frontend, Problem> {
        let rule = self.basis.settings.frontend_match;
        match list {
            Ok(list) => choose(list, self.vouched.address, self.vouched.service, rule).cloned(),
            Err(error) => {
                Err(Problem::unread(Reason::ILBLookupFailed, "load balancers", error).requeue_after(error.delay(1)))
            }
        }
    }

    /// In the load balancer in the status: where no list can be read, or `uncached`, where the list lacks it. Anybody
    /// can write the status, so only the frontend's name proves it.
    fn alone(&self, uncached: bool) -> Result<Option<Frontend>, Needs> {
        let status = self.basis.cr.status.as_ref();
        let shown = status.and_then(|status| status.internal_load_balancer_id.as_deref());
        let shown = shown.and_then(|text| ResourceId::parse_as(Kind::LoadBalancer, text).ok());
        let Some(id) = shown.filter(|id| *id.subscription() == self.basis.settings.scope.subscription) else {
            return Ok(None);
        };
        let observed = if uncached {
            self.basis.facts.fresh_read(Kind::LoadBalancer, &id)?
        } else {
            self.basis.facts.read(Kind::LoadBalancer, &id)?
        };
        let frontends = internal_frontends(observed.found().map(std::slice::from_ref).unwrap_or_default());
        let VouchedAddress { service, address } = self.vouched;
        Ok(choose(&frontends, address, service, FrontendMatch::Name).ok().cloned())
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const UID: &str = "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11";

    fn frontend(name: &str, address: &str) -> Frontend {
        let base = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";
        Frontend {
            load_balancer: ResourceId::parse(&format!("{base}/loadBalancers/lb")).unwrap(),
            id: format!("{base}/loadBalancers/lb/frontendIPConfigurations/{name}"),
            name: name.to_owned(),
            address: address.parse().unwrap(),
            subnet: ResourceId::parse(&format!("{base}/virtualNetworks/v/subnets/s")).unwrap(),
        }
    }

    fn service() -> ServiceFacts {
        ServiceFacts {
            uid: UID.into(),
            owned: true,
            addresses: vec!["10.0.0.4".parse().unwrap()],
        }
    }

    #[rstest]
    #[case::name_and_address(vec![frontend("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1", "10.0.0.4")], Ok(0))]
    #[case::name_with_subnet(vec![frontend("x", "10.0.0.4"), frontend("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1-lb-subnet", "10.0.0.4")], Ok(1))]
    #[case::address_of_another_service(vec![frontend("aother", "10.0.0.4")], Err(Reason::WaitingForLoadBalancer))]
    #[case::name_that_only_begins_alike(vec![frontend("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1x", "10.0.0.4")], Err(Reason::WaitingForLoadBalancer))]
    #[case::old_address(vec![frontend("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1", "10.0.0.5")], Err(Reason::WaitingForLoadBalancer))]
    #[case::two_of_them(vec![frontend("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1", "10.0.0.4"), frontend("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1-b", "10.0.0.4")], Err(Reason::AmbiguousLoadBalancer))]
    fn frontend_is_chosen_by_name_and_address(#[case] list: Vec<Frontend>, #[case] expected: Result<usize, Reason>) {
        let chosen = choose(&list, "10.0.0.4".parse().unwrap(), &service(), FrontendMatch::Name);
        assert_eq!(chosen.map_err(|p| p.reason), expected.map(|at| &list[at]));
    }

    #[test]
    fn other_providers_are_matched_by_address() {
        let list = [frontend("whatever", "10.0.0.4")];
        assert!(choose(&list, "10.0.0.4".parse().unwrap(), &service(), FrontendMatch::Address).is_ok());
    }

    #[rstest]
    #[case::of_another_service("a6f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1", None)]
    #[case::of_another_service_in_a_subnet("a6f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1-lb-subnet", None)]
    #[case::of_the_service("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1", Some(0))]
    #[case::another_word_of_that_length("application-of-another-provider-x", Some(0))]
    #[case::short("abc", Some(0))]
    fn frontend_named_after_another_service_is_refused(#[case] name: &str, #[case] expected: Option<usize>) {
        let list = [frontend(name, "10.0.0.4")];
        let chosen = choose(&list, "10.0.0.4".parse().unwrap(), &service(), FrontendMatch::Address);
        assert_eq!(chosen.ok(), expected.map(|at| &list[at]));
    }

    #[rstest]
    #[case::no_address_yet(None, Some(service()), Reason::WaitingForLoadBalancer)]
    #[case::no_service(Some("10.0.0.4"), None, Reason::WaitingForLoadBalancer)]
    #[case::forged_service(Some("10.0.0.4"), Some(ServiceFacts { owned: false, ..service() }), Reason::NotOurs)]
    #[case::forged_address(Some("10.0.0.9"), Some(service()), Reason::WaitingForLoadBalancer)]
    fn address_needs_a_service_that_vouches(
        #[case] spec: Option<&str>,
        #[case] facts: Option<ServiceFacts>,
        #[case] reason: Reason,
    ) {
        assert_eq!(vouched(spec, facts.as_ref()).map_err(|p| p.reason), Err(reason));
    }
}
