//! What a workload cluster publishes: its addresses in annotations, and its condition.

use std::net::IpAddr;

use kube::ResourceExt;

use super::address::{Address, is_published};
use super::links::{api_server_link, entry_name};
use super::patch::Annotation;
use super::reason::{Problem, Reason};
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::{API_SERVER_ADDRESS, CONDITION, GATEWAY_ADDRESS};

/// What is known of one desired private endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// The name of its entry.
    pub name: String,
    /// Whether its entry was there before: an address that is published may be of it.
    pub was_there: bool,
    /// Its address, or why there is no entry.
    pub address: Address,
}

/// One direction of the private path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Side {
    /// It does not apply to the cluster.
    NotDesired,
    /// Nothing can be decided on it.
    Undecided(Problem),
    /// These private endpoints are desired; beside them there may be a problem.
    Desired(Vec<Endpoint>, Option<Problem>),
}

/// What a workload cluster should publish.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Published {
    /// The annotations that change.
    pub annotations: Vec<Annotation>,
    /// The problem of the condition; none if it is True.
    pub problem: Option<Problem>,
    /// Whether the condition stays as it is.
    pub keeps_condition: bool,
    /// Whether the cluster has the condition at all: neither side applies to it.
    pub applies: bool,
}

/// What a workload cluster should publish; `api_server` is the way to it, `gateway` the way from it.
pub fn published(workload: &AzureCluster, api_server: &Side, gateway: &Side) -> Published {
    let first = match api_server {
        Side::Desired(endpoints, _) => api_server_endpoint(workload, endpoints),
        _ => None,
    };
    let of_gateway = match gateway {
        Side::Desired(endpoints, _) => endpoints.first(),
        _ => None,
    };
    let annotations = [
        annotation(workload, API_SERVER_ADDRESS, api_server, first),
        annotation(workload, GATEWAY_ADDRESS, gateway, of_gateway),
    ];
    let mut certain: Vec<&Problem> = Vec::new();
    let mut unread: Vec<&Problem> = Vec::new();
    for side in [api_server, gateway] {
        match side {
            Side::NotDesired => {}
            Side::Undecided(problem) => certain.push(problem),
            Side::Desired(endpoints, problem) => {
                certain.extend(problem);
                for endpoint in endpoints {
                    match &endpoint.address {
                        Address::Known(_) => {}
                        Address::Missing(problem) => certain.push(problem),
                        Address::Unread(problem) => unread.push(problem),
                    }
                }
            }
        }
    }
    let is_true = workload
        .condition(CONDITION)
        .is_some_and(|condition| condition.is_true());
    // What waits does not turn to another reason and back with each request that has to wait.
    let is_held_back = unread.iter().all(|problem| problem.reason == Reason::AzureThrottled);
    let is_kept = is_true || is_held_back && workload.condition(CONDITION).is_some();
    let keeps_condition = is_kept && certain.is_empty() && !unread.is_empty();
    let problem = certain
        .into_iter()
        .chain(unread)
        .min_by_key(|problem| problem.reason)
        .cloned();
    Published {
        annotations: annotations.into_iter().flatten().collect(),
        problem,
        keeps_condition,
        applies: ![api_server, gateway].iter().all(|side| **side == Side::NotDesired),
    }
}

/// The endpoint whose address is published: that of the API server's link, else the one with the lowest name.
fn api_server_endpoint<'a>(workload: &AzureCluster, endpoints: &'a [Endpoint]) -> Option<&'a Endpoint> {
    let name = entry_name(&api_server_link(&workload.name_any()));
    let preferred = endpoints.iter().find(|endpoint| endpoint.name == name);
    preferred.or_else(|| endpoints.iter().min_by_key(|endpoint| &endpoint.name))
}

/// How an annotation changes, if it does.
fn annotation(
    workload: &AzureCluster,
    name: &'static str,
    side: &Side,
    endpoint: Option<&Endpoint>,
) -> Option<Annotation> {
    let current = workload.annotations().get(name).map(String::as_str);
    let desired: Option<IpAddr> = match (side, endpoint) {
        (Side::Undecided(_), _) => return None,
        (
            _,
            Some(Endpoint {
                address: Address::Known(address),
                ..
            }),
        ) => Some(*address),
        // Whatever is published may be its address.
        (_, Some(Endpoint { was_there: true, .. })) => return None,
        _ => None,
    };
    match desired {
        Some(address) if is_published(current, address) => None,
        Some(address) => Some((name, Some(address.to_string()))),
        None => current.map(|_| (name, None)),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::reason::Reason;
    use crate::capz::samples::workload;

    fn problem(reason: Reason) -> Problem {
        Problem::new(reason, "why")
    }

    fn endpoint(link: &str, address: Address) -> Endpoint {
        Endpoint {
            name: entry_name(link),
            was_there: true,
            address,
        }
    }

    fn known(address: &str) -> Address {
        Address::Known(address.parse().unwrap())
    }

    fn missing(reason: Reason) -> Address {
        Address::Missing(problem(reason))
    }

    fn desired(endpoints: &[Endpoint]) -> Side {
        Side::Desired(endpoints.to_vec(), None)
    }

    fn with(annotations: Value) -> AzureCluster {
        workload("wc").with("/metadata/annotations", annotations).cluster()
    }

    #[test]
    fn address_of_the_api_servers_link_is_published() {
        let mut all = [
            endpoint("a", known("10.0.0.1")),
            endpoint("wc-api-privatelink", known("10.0.0.2")),
        ];
        let mut others = [endpoint("z", known("10.0.0.3")), endpoint("b", known("10.0.0.1"))];
        // In whichever order the links are.
        for _ in 0..2 {
            let found = published(&with(json!(null)), &desired(&all), &Side::NotDesired);
            assert_eq!(found.annotations, [(API_SERVER_ADDRESS, Some("10.0.0.2".to_owned()))]);
            assert_eq!((found.problem, found.applies), (None, true));
            let lowest = with(json!({API_SERVER_ADDRESS: "10.0.0.1"}));
            let found = published(&lowest, &desired(&others), &Side::NotDesired);
            assert_eq!(found.annotations, []);
            all.reverse();
            others.reverse();
        }
    }

    #[test]
    fn address_stays_while_its_endpoint_is_there() {
        let cluster = with(json!({API_SERVER_ADDRESS: "10.0.0.1", GATEWAY_ADDRESS: "10.0.0.2"}));
        for address in [
            missing(Reason::ConnectionNotApproved),
            Address::Unread(problem(Reason::AzureError)),
        ] {
            let side = desired(&[endpoint("wc-api-privatelink", address)]);
            let gateway = Side::Undecided(problem(Reason::SubnetsNotSet));
            assert_eq!(published(&cluster, &side, &gateway).annotations, []);
        }
    }

    #[test]
    fn address_of_what_is_not_desired_is_removed() {
        let cluster = with(json!({API_SERVER_ADDRESS: "10.0.0.1", GATEWAY_ADDRESS: "10.0.0.2"}));
        let renamed = Endpoint {
            was_there: false,
            ..endpoint("new", missing(Reason::WaitingForEndpoint))
        };
        let found = published(&cluster, &desired(&[renamed]), &Side::NotDesired);
        assert_eq!(found.annotations, [(API_SERVER_ADDRESS, None), (GATEWAY_ADDRESS, None)]);
        let none = Side::Desired(Vec::new(), Some(problem(Reason::LinksNotAllowed)));
        let found = published(&cluster, &none, &Side::NotDesired);
        assert_eq!(found.annotations.len(), 2);
        assert_eq!(found.problem.unwrap().reason, Reason::LinksNotAllowed);
    }

    #[test]
    fn one_side_waits_and_the_other_is_published() {
        let api_server = desired(&[endpoint("wc-api-privatelink", known("10.0.0.1"))]);
        let gateway = desired(&[endpoint("g", missing(Reason::NoAddress))]);
        let found = published(&with(json!(null)), &api_server, &gateway);
        assert_eq!(found.annotations, [(API_SERVER_ADDRESS, Some("10.0.0.1".to_owned()))]);
        assert_eq!(found.problem.unwrap().reason, Reason::NoAddress);
    }

    #[test]
    fn what_a_person_has_to_do_is_published_first() {
        let api_server = Side::Desired(
            vec![endpoint("a", missing(Reason::WaitingForEndpoint))],
            Some(problem(Reason::InvalidLinkName)),
        );
        let found = published(&with(json!(null)), &api_server, &Side::NotDesired);
        assert_eq!(found.problem.unwrap().reason, Reason::InvalidLinkName);
    }

    #[test]
    fn failed_read_keeps_a_condition_that_is_true() {
        let side = desired(&[endpoint("a", Address::Unread(problem(Reason::AzureThrottled)))]);
        let condition = json!([{"type": CONDITION, "status": "True"}]);
        let ready = workload("wc").with("/status/conditions", condition).cluster();
        assert!(published(&ready, &side, &Side::NotDesired).keeps_condition);
        assert!(!published(&with(json!(null)), &side, &Side::NotDesired).keeps_condition);
        let gateway = desired(&[endpoint("g", missing(Reason::NoAddress))]);
        assert!(!published(&ready, &side, &gateway).keeps_condition);
    }

    #[test]
    fn cluster_without_a_private_side_has_no_condition() {
        assert!(!published(&with(json!(null)), &Side::NotDesired, &Side::NotDesired).applies);
    }

    #[test]
    fn reason_stays_while_requests_have_to_wait() {
        let waiting = json!([{"type": CONDITION, "status": "False", "reason": "WaitingForEndpoint"}]);
        let waits = workload("wc").with("/status/conditions", waiting).cluster();
        let unread = |reason| desired(&[endpoint("a", Address::Unread(problem(reason)))]);
        let keeps = |reason| published(&waits, &unread(reason), &Side::NotDesired).keeps_condition;
        assert!(keeps(Reason::AzureThrottled));
        assert!(!keeps(Reason::AzureError));
        let new = workload("wc").cluster();
        assert!(!published(&new, &unread(Reason::AzureThrottled), &Side::NotDesired).keeps_condition);
    }
}
