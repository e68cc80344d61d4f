//! Which frontend of which load balancer belongs to a custom resource. Pure.

use std::net::IpAddr;
use std::time::Duration;

use kube::ResourceExt;

use super::plan::{Found, PrivateLinkServiceInputs, Settings};
use crate::api::{AzurePrivateLinkService, Reason};
use crate::azure::error::ArmError;
use crate::azure::id::ResourceId;
use crate::azure::kinds::load_balancer::{Frontend, internal_frontends};
use crate::azure::resource::Kind;
use crate::controllers::facts::{Facts, Needs};
use crate::hypershift::problem::Problem;
use crate::names;

pub use crate::names::FrontendMatch;

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

/// How often a missing frontend is searched for: soon enough for a new one, seldom enough for the request budget.
const AGAIN: Duration = Duration::from_secs(10);

/// How long until a list that is older than the reconcile can be read again.
const AT_ONCE: Duration = Duration::from_secs(1);

/// The address that the frontend must have, and the Service that vouches for it.
fn vouched<'a>(spec: Option<&str>, service: Option<&'a ServiceFacts>) -> Result<(&'a ServiceFacts, IpAddr), Problem> {
    let waiting = |message: &str| Problem::new(Reason::WaitingForLoadBalancer, message).requeue_after(AGAIN * 3);
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
    Ok((service, address))
}

/// The problem with an address that an older custom resource has: where nothing else proves a frontend, the younger
/// Service may have asked for the address of the older one.
fn claimed() -> Problem {
    Problem::new(
        Reason::AmbiguousLoadBalancer,
        "an older custom resource has the address",
    )
    .requeue_after(AGAIN * 6)
}

/// Whether a frontend has the name that Azure's cloud provider derives from the Service's UID, which nobody can choose.
pub(super) fn is_named_after(frontend: &str, service: &ServiceFacts) -> bool {
    let suffix = frontend.strip_prefix(&names::load_balancer(&service.uid));
    !service.uid.is_empty() && suffix.is_some_and(|suffix| suffix.is_empty() || suffix.starts_with('-'))
}

/// The one frontend that has the address and belongs to the Service.
fn choose<'a>(
    frontends: &'a [Frontend],
    address: IpAddr,
    service: &ServiceFacts,
    rule: FrontendMatch,
) -> Result<&'a Frontend, Problem> {
    let belongs = |name: &str| match rule {
        FrontendMatch::Name => is_named_after(name, service),
        FrontendMatch::Address => is_named_after(name, service) || !names::is_load_balancer(name),
    };
    let fits = |f: &&Frontend| f.address == address && belongs(&f.name);
    match frontends.iter().filter(fits).collect::<Vec<_>>().as_slice() {
        [only] => Ok(only),
        [] => Err(Problem::new(
            Reason::WaitingForLoadBalancer,
            "no load balancer frontend belongs to the Service",
        )
        .requeue_after(AGAIN)),
        _ => Err(Problem::new(
            Reason::AmbiguousLoadBalancer,
            "several load balancer frontends have the address",
        )
        .requeue_after(AGAIN * 6)),
    }
}

/// The frontend that belongs to the custom resource's Service.
pub(super) fn find(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    facts: &Facts,
    settings: &Settings,
) -> Result<Found, Needs> {
    let (service, address) = match vouched(cr.spec.load_balancer_ip.as_deref(), inputs.service.as_ref()) {
        Ok(found) => found,
        Err(problem) => return Ok(Err(problem)),
    };
    if settings.frontend_match == FrontendMatch::Address && inputs.address_claimed {
        return Ok(Err(claimed()));
    }
    let pick = |list: &Result<Vec<Frontend>, ArmError>| match list {
        Ok(list) => choose(list, address, service, settings.frontend_match).cloned(),
        Err(error) => {
            Err(Problem::unread(Reason::ILBLookupFailed, "load balancers", error).requeue_after(error.delay(1)))
        }
    };
    let namespace = cr.namespace().unwrap_or_default();
    let is_missing = |problem: &Problem| problem.reason == Reason::WaitingForLoadBalancer;
    let find_in = |group: Option<&str>| -> Result<Found, Needs> {
        let chosen = pick(facts.frontends(&settings.subscription, group)?);
        if chosen.as_ref().is_err_and(is_missing) {
            return Ok(pick(facts.new_frontends(&settings.subscription, group, &namespace)?));
        }
        Ok(chosen)
    };
    let is_unlisted = |problem: &Problem| problem.reason == Reason::ILBLookupFailed;
    let search = || -> Result<Found, Needs> {
        match find_in(Some(&settings.resource_group))? {
            Err(problem) if is_missing(&problem) => {}
            result => return Ok(result),
        }
        for group in settings.further_groups() {
            match find_in(Some(group))? {
                // A group that is gone or may not be read hides nothing: the whole subscription is searched next.
                Err(problem) if is_missing(&problem) || is_unlisted(&problem) => {}
                result => return Ok(result),
            }
        }
        find_in(None)
    };
    let mut found = search()?;
    if let Err(problem) = &mut found
        && facts.older_frontends
        && problem.reason == Reason::WaitingForLoadBalancer
    {
        problem.requeue_after = Some(AT_ONCE);
    }
    // A list may lack an existing load balancer. Anybody can write the status, so it causes no more reads than a list.
    let lacks = found.as_ref().is_err_and(is_missing) && !facts.held_frontends;
    if (lacks || found.as_ref().is_err_and(is_unlisted))
        && let Some(read) = read_alone(cr, address, service, facts, settings, lacks)?
    {
        return Ok(Ok(read));
    }
    Ok(found)
}

/// The frontend from a read of the load balancer in the status: where no list can be read, or `uncached`, where the
/// list lacks it. Anybody can write the status, so only the frontend's name proves it.
fn read_alone(
    cr: &AzurePrivateLinkService,
    address: IpAddr,
    service: &ServiceFacts,
    facts: &Facts,
    settings: &Settings,
    uncached: bool,
) -> Result<Option<Frontend>, Needs> {
    let shown = cr
        .status
        .as_ref()
        .and_then(|status| status.internal_load_balancer_id.as_deref());
    let shown = shown.and_then(|text| ResourceId::parse_as(Kind::LoadBalancer, text).ok());
    let Some(id) = shown.filter(|id| *id.subscription() == settings.subscription) else {
        return Ok(None);
    };
    let observed = if uncached {
        facts.fresh_read(Kind::LoadBalancer, &id)?
    } else {
        facts.read(Kind::LoadBalancer, &id)?
    };
    let frontends = internal_frontends(observed.found().map(std::slice::from_ref).unwrap_or_default());
    Ok(choose(&frontends, address, service, FrontendMatch::Name).ok().cloned())
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
