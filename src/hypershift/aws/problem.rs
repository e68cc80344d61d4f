//! What keeps a private path on AWS from being as desired and is no failed call, in the words of a condition. Pure.

use std::time::Duration;

use crate::api::Reason;
use crate::hypershift::names::internal_zone;
use crate::hypershift::problem::Problem;

/// The wait before what no event announces is read again. Later waits are longer.
const POLL: Duration = Duration::from_secs(30);

/// The load balancer is in another state than `active`.
pub fn load_balancer_in_state(name: &str, state: &str) -> Problem {
    let text = format!("load balancer {name} is {state}, not active");
    polled(Reason::LoadBalancerNotActive, text)
}

/// The load balancer that the Service reports does not exist, or has another host name.
pub fn load_balancer_gone(name: &str) -> Problem {
    let text = format!("load balancer {name} does not exist in the management account");
    polled(Reason::LoadBalancerNotActive, text)
}

/// The endpoint waits for somebody who accepts it.
pub fn not_accepted() -> Problem {
    let text = "the connection waits for its acceptance on the endpoint service";
    polled(Reason::EndpointNotAccepted, text)
}

/// The connection was rejected, or it has expired.
pub fn rejected(state: &str) -> Problem {
    let text = format!("the connection is {state} on the endpoint service; the endpoint is created again");
    polled(Reason::EndpointRejected, text)
}

/// AWS could not create the endpoint.
pub fn endpoint_failed() -> Problem {
    let text = "AWS could not create the endpoint; it is created again";
    polled(Reason::EndpointFailed, text)
}

/// The guest is in another VPC or account than when the endpoint was made.
pub fn guest_moved() -> Problem {
    let text = "the guest's VPC or account has changed; delete the custom resource to have the endpoint there";
    Problem::new(Reason::ConfigurationChanged, text)
}

/// Nobody has named a subnet.
pub fn no_subnets() -> Problem {
    let text = "no NodePool names a subnet, and spec.subnetIDs is empty";
    Problem::new(Reason::NoSubnets, text)
}

/// None of the subnets can serve, for these reasons: AWS knows none of them, or those that `exist` are in zones in which
/// the load balancer is not.
pub fn no_subnet_serves(exist: bool, reasons: &[String]) -> Problem {
    let reason = if exist { Reason::NoCommonZone } else { Reason::NoSubnets };
    polled(reason, format!("no subnet can serve: {}", reasons.join("; ")))
}

/// There is no internal zone, which the installer makes.
pub fn no_hosted_zone(cluster: &str) -> Problem {
    let text = format!("there is no private hosted zone {}", internal_zone(cluster));
    polled(Reason::HostedZoneNotFound, text)
}

/// There are several internal zones, and nothing tells which is the cluster's.
pub fn several_hosted_zones(cluster: &str) -> Problem {
    let text = format!("several private hosted zones have the name {}", internal_zone(cluster));
    polled(Reason::AmbiguousHostedZone, text)
}

fn polled(reason: Reason, text: impl Into<String>) -> Problem {
    Problem::new(reason, text).requeue_after(POLL)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::condition::ConditionType;
    use crate::aws::api::error::AwsError;
    use crate::engine::failure::Class;

    #[rstest]
    #[case(
        load_balancer_in_state("a1b2", "provisioning"),
        "load balancer a1b2 is provisioning, not active"
    )]
    #[case(
        load_balancer_gone("a1b2"),
        "load balancer a1b2 does not exist in the management account"
    )]
    #[case(not_accepted(), "the connection waits for its acceptance on the endpoint service")]
    #[case(
        rejected("rejected"),
        "the connection is rejected on the endpoint service; the endpoint is created again"
    )]
    #[case(endpoint_failed(), "AWS could not create the endpoint; it is created again")]
    #[case(no_subnets(), "no NodePool names a subnet, and spec.subnetIDs is empty")]
    #[case(
        no_subnet_serves(false, &["a is unknown".to_owned(), "b is, too".to_owned()]),
        "no subnet can serve: a is unknown; b is, too"
    )]
    #[case(
        no_hosted_zone("example"),
        "there is no private hosted zone example.hypershift.local"
    )]
    #[case(
        several_hosted_zones("example"),
        "several private hosted zones have the name example.hypershift.local"
    )]
    fn each_problem_has_a_reason_of_its_own(#[case] problem: Problem, #[case] message: &str) {
        assert_eq!(problem.message, message);
        let successes = ConditionType::ALL.map(ConditionType::success);
        assert!(!successes.contains(&problem.reason) && problem.class.is_none() && !problem.unread);
    }

    #[rstest]
    #[case(
        Reason::EndpointServiceFailed,
        "endpoint_service a1b2",
        Class::Denied,
        "UnauthorizedOperation",
        "endpoint_service a1b2: UnauthorizedOperation: check the policies of the identity"
    )]
    #[case(
        Reason::PrincipalsFailed,
        "allowed_principals a1b2",
        Class::Invalid,
        "InvalidPrincipal",
        "allowed_principals a1b2: InvalidPrincipal: AWS does not accept the request"
    )]
    fn refused_call_names_what_to_check(
        #[case] reason: Reason,
        #[case] subject: &str,
        #[case] class: Class,
        #[case] code: &'static str,
        #[case] message: &str,
    ) {
        let problem = Problem::error(reason, subject, &AwsError::own(class, code));
        assert_eq!((problem.message.as_str(), problem.class), (message, Some(class)));
    }

    #[test]
    fn only_what_an_event_announces_is_not_polled() {
        assert_eq!(no_subnets().requeue_after, None);
        assert_eq!(no_subnet_serves(true, &[]).requeue_after, Some(POLL));
    }
}
