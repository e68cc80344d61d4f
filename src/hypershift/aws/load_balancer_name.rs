//! Which network load balancer a Service has, and whether a custom resource may have an endpoint service for it. Pure.

use std::time::Duration;

use crate::api::Reason;
use crate::aws::region::Region;
use crate::hypershift::names::load_balancer;
use crate::hypershift::problem::Problem;

/// How a load balancer is proven to belong to the Service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NlbMatch {
    /// By its name, which the in-tree cloud provider derives from the Service's UID, and by its host name.
    Uid,
    /// By its host name alone, for the AWS Load Balancer Controller. Who may write the status of Services can claim any
    /// load balancer so.
    Hostname,
}

/// The Service of the same name as the custom resource.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ServiceFacts {
    /// Its `metadata.uid` field.
    pub uid: String,
    /// Whether the HostedControlPlane of the namespace owns it.
    pub owned: bool,
    /// The host names in `status.loadBalancer.ingress`.
    pub host_names: Vec<String>,
}

/// A load balancer that the Service vouches for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Vouched {
    /// Its name.
    pub name: String,
    /// Its host name, as the Service reports it.
    pub host_name: String,
}

impl Vouched {
    /// Whether the load balancer with this host name is the one that the Service reports. A name may be given again
    /// once a load balancer is deleted; the host name differs.
    pub fn is_reached_by(&self, dns_name: &str) -> bool {
        dns_name.eq_ignore_ascii_case(&self.host_name)
    }

    /// Whether the load balancer with this ARN may be the one that the Service reports: the ARN and the host name end with
    /// the same id, if they end with one.
    ///
    /// Format: <https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html#dns-name>
    pub fn may_be(&self, arn: &str) -> bool {
        let label = self.host_name.split('.').next().unwrap_or_default();
        let ids = [arn.rsplit('/').next(), label.rsplit('-').next()];
        let ids = ids.map(|id| id.filter(|id| id.len() == 16 && id.bytes().all(|digit| digit.is_ascii_hexdigit())));
        match ids {
            [Some(one), Some(other)] => one.eq_ignore_ascii_case(other),
            _ => true,
        }
    }
}

/// The longest name of a load balancer.
///
/// Source: <https://docs.aws.amazon.com/elasticloadbalancing/latest/APIReference/API_CreateLoadBalancer.html>
const LONGEST: usize = 32;

/// The wait before the Service is read again though no event came, while something is missing of it. Events come
/// sooner.
const SERVICE_POLL: Duration = Duration::from_secs(30);

/// The name of the network load balancer with this host name: its first label without the last part, which AWS has
/// added. None if it is no load balancer's in this region.
///
/// Format: <https://docs.aws.amazon.com/elasticloadbalancing/latest/network/network-load-balancers.html#dns-name>
pub fn of_host_name(host_name: &str, region: &Region) -> Option<String> {
    let host_name = host_name.to_ascii_lowercase();
    let end = format!(".elb.{}.{}", region.name(), region.partition().dns_suffix());
    let label = host_name.strip_suffix(&end)?;
    let name = label.rsplit_once('-').map_or(label, |(name, _)| name);
    (is_name(name) && label.chars().all(is_allowed)).then(|| name.to_owned())
}

/// Whether a load balancer may have this name.
pub fn is_name(name: &str) -> bool {
    let has_length = (1..=LONGEST).contains(&name.len());
    has_length && !name.starts_with('-') && !name.ends_with('-') && name.chars().all(is_allowed)
}

fn is_allowed(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '-'
}

/// The name of the load balancer of a Service with these host names: the first that is one of a load balancer.
pub fn of_service<'a>(host_names: impl IntoIterator<Item = &'a str>, region: &Region) -> Option<String> {
    host_names
        .into_iter()
        .find_map(|host_name| of_host_name(host_name, region))
}

/// The load balancer in the spec, if the Service vouches for it.
///
/// # Errors
/// What is missing, or why the custom resource may not have it.
pub fn vouched(
    spec: &str,
    service: Option<&ServiceFacts>,
    rule: NlbMatch,
    region: &Region,
) -> Result<Vouched, Problem> {
    let service = service.ok_or_else(|| waiting("the Service does not exist"))?;
    if !service.owned {
        let text = "the Service does not belong to the HostedControlPlane";
        return Err(Problem::new(Reason::NotOurs, text));
    }
    let hosts = service.host_names.iter();
    let balancers: Vec<_> = hosts
        .filter_map(|host| Some((of_host_name(host, region)?, host)))
        .collect();
    if balancers.is_empty() {
        return Err(waiting(format!(
            "the Service has no host name of a load balancer in {region}"
        )));
    }
    let Some((name, host_name)) = balancers.into_iter().find(|(name, _)| name.eq_ignore_ascii_case(spec)) else {
        return Err(waiting("the Service does not report spec.networkLoadBalancerName"));
    };
    if rule == NlbMatch::Uid && !is_named_after(&name, service) {
        let text = "the load balancer is not named after the UID of the Service (--nlb-match)";
        return Err(Problem::new(Reason::NotOurs, text));
    }
    Ok(Vouched {
        name,
        host_name: host_name.clone(),
    })
}

/// The problem with a load balancer that an older custom resource has: it can have one endpoint service.
pub fn claimed() -> Problem {
    let text = "an older custom resource has the load balancer";
    Problem::new(Reason::AmbiguousLoadBalancer, text).requeue_after(SERVICE_POLL * 2)
}

/// Whether a load balancer has the name that the cloud provider derives from the Service's UID, which nobody chooses.
pub fn is_named_after(name: &str, service: &ServiceFacts) -> bool {
    !service.uid.is_empty() && name == load_balancer(&service.uid)
}

fn waiting(message: impl Into<String>) -> Problem {
    Problem::new(Reason::WaitingForLoadBalancer, message).requeue_after(SERVICE_POLL)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const UID: &str = "a1b2c3d4-e5f6-0718-293a-4b5c6d7e8f90";
    const NAME: &str = "aa1b2c3d4e5f60718293a4b5c6d7e8f9";
    const END: &str = "elb.us-east-1.amazonaws.com";

    fn region(name: &str) -> Region {
        Region::parse(name).unwrap()
    }

    fn service(host_names: &[&str]) -> ServiceFacts {
        ServiceFacts {
            uid: UID.to_owned(),
            owned: true,
            host_names: host_names.iter().map(|name| (*name).to_owned()).collect(),
        }
    }

    #[rstest]
    #[case::of_the_cloud_provider("us-east-1", "a1b2c3-0123abcd.elb.us-east-1.amazonaws.com", Some("a1b2c3"))]
    #[case::of_the_load_balancer_controller(
        "us-east-1",
        "k8s-clusters-kubeapis-db6fee3a62-8008741421d14306.elb.us-east-1.amazonaws.com",
        Some("k8s-clusters-kubeapis-db6fee3a62")
    )]
    #[case::without_hyphen("us-east-1", "a1b2c3.elb.us-east-1.amazonaws.com", Some("a1b2c3"))]
    #[case::upper_case("us-east-1", "A1b2-01.ELB.us-east-1.amazonaws.com", Some("a1b2"))]
    #[case::china("cn-north-1", "a1-01.elb.cn-north-1.amazonaws.com.cn", Some("a1"))]
    #[case::china_without_its_suffix("cn-north-1", "a1-01.elb.cn-north-1.amazonaws.com", None)]
    #[case::other_region("us-east-1", "a1-01.elb.us-west-2.amazonaws.com", None)]
    #[case::domain_of_somebody("us-east-1", "a1-01.elb.us-east-1.amazonaws.com.example", None)]
    #[case::classic_load_balancer("us-east-1", "a1-01.us-east-1.elb.amazonaws.com", None)]
    #[case::several_labels("us-east-1", "x.a1-01.elb.us-east-1.amazonaws.com", None)]
    #[case::no_name("us-east-1", "-01.elb.us-east-1.amazonaws.com", None)]
    #[case::no_label("us-east-1", ".elb.us-east-1.amazonaws.com", None)]
    #[case::longest_name(
        "us-east-1",
        "a123456789a123456789a123456789a1-01.elb.us-east-1.amazonaws.com",
        Some("a123456789a123456789a123456789a1")
    )]
    #[case::too_long(
        "us-east-1",
        "a123456789a123456789a123456789a12-01.elb.us-east-1.amazonaws.com",
        None
    )]
    #[case::hyphen_in_front("us-east-1", "-a1-01.elb.us-east-1.amazonaws.com", None)]
    #[case::hyphen_at_the_end("us-east-1", "a1--01.elb.us-east-1.amazonaws.com", None)]
    #[case::strange_letters("us-east-1", "a&b-01.elb.us-east-1.amazonaws.com", None)]
    #[case::address("us-east-1", "10.0.0.4", None)]
    #[case::empty("us-east-1", "", None)]
    fn name_is_in_the_host_name(#[case] in_region: &str, #[case] host: &str, #[case] name: Option<&str>) {
        assert_eq!(of_host_name(host, &region(in_region)).as_deref(), name);
    }

    #[test]
    fn first_host_name_of_a_load_balancer_counts() {
        let hosts = [
            "proxy.example.com",
            "a1-01.elb.us-east-1.amazonaws.com",
            "b2-01.elb.us-east-1.amazonaws.com",
        ];
        assert_eq!(of_service(hosts, &region("us-east-1")).as_deref(), Some("a1"));
        assert_eq!(of_service(["proxy.example.com"], &region("us-east-1")), None);
    }

    #[rstest]
    #[case::named_after_the_uid(NAME, NlbMatch::Uid, Ok(()))]
    #[case::other_name_of_the_same_service("k8s-x", NlbMatch::Uid, Err(Reason::NotOurs))]
    #[case::any_name_by_its_host_name("k8s-x", NlbMatch::Hostname, Ok(()))]
    #[case::name_in_upper_case("K8S-X", NlbMatch::Hostname, Ok(()))]
    #[case::load_balancer_of_another("victim", NlbMatch::Hostname, Err(Reason::WaitingForLoadBalancer))]
    #[case::load_balancer_of_another_by_uid("victim", NlbMatch::Uid, Err(Reason::WaitingForLoadBalancer))]
    #[case::empty("", NlbMatch::Hostname, Err(Reason::WaitingForLoadBalancer))]
    #[case::junk("x\n&Action=y", NlbMatch::Hostname, Err(Reason::WaitingForLoadBalancer))]
    fn load_balancer_counts_only_with_a_proof(
        #[case] spec: &str,
        #[case] rule: NlbMatch,
        #[case] expected: Result<(), Reason>,
    ) {
        let service = service(&[&format!("{NAME}-01.{END}"), &format!("k8s-x-02.{END}")]);
        let found = vouched(spec, Some(&service), rule, &region("us-east-1"));
        assert_eq!(found.map(|_| ()).map_err(|problem| problem.reason), expected);
    }

    #[rstest]
    #[case::no_service(None, Reason::WaitingForLoadBalancer, "the Service does not exist")]
    #[case::of_somebody(
        Some(ServiceFacts { owned: false, ..service(&[]) }),
        Reason::NotOurs,
        "the Service does not belong to the HostedControlPlane"
    )]
    #[case::address_only(
        Some(service(&[])),
        Reason::WaitingForLoadBalancer,
        "the Service has no host name of a load balancer in us-east-1"
    )]
    #[case::host_name_of_a_proxy(
        Some(service(&["proxy.example.com"])),
        Reason::WaitingForLoadBalancer,
        "the Service has no host name of a load balancer in us-east-1"
    )]
    #[case::service_without_a_uid(
        Some(ServiceFacts { uid: String::new(), ..service(&[&format!("{NAME}-01.{END}")]) }),
        Reason::NotOurs,
        "the load balancer is not named after the UID of the Service (--nlb-match)"
    )]
    fn what_the_service_lacks_is_reported(
        #[case] service: Option<ServiceFacts>,
        #[case] reason: Reason,
        #[case] message: &str,
    ) {
        let problem = vouched(NAME, service.as_ref(), NlbMatch::Uid, &region("us-east-1")).unwrap_err();
        assert_eq!((problem.reason, problem.message.as_str()), (reason, message));
    }

    #[test]
    fn new_load_balancer_of_a_name_is_another_one() {
        let service = service(&[&format!("{NAME}-01.{END}")]);
        let found = vouched(NAME, Some(&service), NlbMatch::Uid, &region("us-east-1")).unwrap();
        assert_eq!(found.name, NAME);
        assert!(found.is_reached_by(&format!("{}-01.{END}", NAME.to_uppercase())));
        assert!(!found.is_reached_by(&format!("{NAME}-02.{END}")) && !found.is_reached_by(""));
    }

    #[test]
    fn load_balancer_of_an_older_custom_resource_is_refused() {
        let problem = claimed();
        assert_eq!(problem.reason, Reason::AmbiguousLoadBalancer);
        assert!(problem.requeue().is_some());
    }
}
