//! The network load balancer of a Service, made by the cloud provider of the management cluster: only read.
//!
//! Body: `Id` (the ARN), `Name`, `State`, `DNSName`, `Zones` (names in its own account).

use std::time::Duration;

use serde_json::Value;

use super::Rules;
use crate::body::{state, text};

/// What the engine has to know of load balancers.
pub const RULES: Rules = Rules {
    // The time between two reads of a load balancer that is not active yet, which takes some minutes.
    pace: Duration::from_secs(20),
    create_if_new: true,
    ..Rules::DEFAULT
};

/// Whether it carries traffic, though not everywhere.
pub fn is_impaired(body: &Value) -> bool {
    state(body) == "active_impaired"
}

/// The name in a load balancer's ARN; none if it is the ARN of something else.
///
/// Format: <https://docs.aws.amazon.com/service-authorization/latest/reference/list_awselasticloadbalancingv2.html>
pub fn name_in_arn(arn: &str) -> Option<&str> {
    let resource = arn.split_once(":loadbalancer/net/")?.1;
    let (name, hash) = resource.split_once('/')?;
    (!name.is_empty() && !hash.is_empty()).then_some(name)
}

/// The account in an ARN.
pub fn account_in_arn(arn: &str) -> Option<&str> {
    arn.split(':').nth(4).filter(|account| !account.is_empty())
}

/// The host name under which it can be reached.
pub fn dns_name(body: &Value) -> &str {
    text(body, "DNSName")
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(
        "arn:aws:elasticloadbalancing:us-east-1:123456789012:loadbalancer/net/a1b2/50dc6c495c0c9188",
        Some("a1b2")
    )]
    #[case("arn:aws-cn:elasticloadbalancing:cn-north-1:1:loadbalancer/net/x/1", Some("x"))]
    #[case("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/app/a1b2/1", None)]
    #[case("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net/a1b2", None)]
    #[case("arn:aws:elasticloadbalancing:us-east-1:1:loadbalancer/net//1", None)]
    #[case("", None)]
    fn only_the_arn_of_a_network_load_balancer_has_its_name(#[case] arn: &str, #[case] name: Option<&str>) {
        assert_eq!(name_in_arn(arn), name);
    }
}
