//! The address of a private endpoint, as far as Azure shows it.

use std::net::IpAddr;

use super::entry::DesiredEntry;
use super::reason::{Problem, Reason};
use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::same;
use crate::azure::body::progress;
use crate::azure::cloud::Observed;
use crate::azure::kinds::private_endpoint::{Approval, approval, interface_addresses, leads_anywhere, leads_to};
use crate::engine::failure::{Class, Failure};
use crate::engine::resource::Progress;

/// What is known of the address of a private endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// It has this address, and its connection is approved.
    Known(IpAddr),
    /// It has none, or none that may be used.
    Missing(Problem),
    /// Azure could not be asked; nothing is known to have changed.
    Unread(Problem),
}

/// The address of the private endpoint of an entry, as it was observed.
pub fn address(entry: &DesiredEntry, observed: &Observed) -> Address {
    let name = &entry.name;
    let body = match observed {
        Observed::Found(body) => body,
        Observed::ReadFailed(error) | Observed::WriteFailed(error) | Observed::DeleteFailed(error) => {
            return unread(name, error);
        }
        Observed::Absent | Observed::Pending => {
            return missing(
                Reason::WaitingForEndpoint,
                format!("CAPZ has not made private endpoint {name} yet"),
            );
        }
    };
    if progress(body) != Progress::Ready {
        let message = format!("private endpoint {name} is not in provisioningState Succeeded");
        return missing(Reason::WaitingForEndpoint, message);
    }
    // Azure shows no target of a connection whose Private Link Service is gone.
    if leads_anywhere(body) && !leads_to(body, &entry.service.to_string()) {
        let message = format!("private endpoint {name} leads to another Private Link Service than its entry");
        return missing(Reason::NotOurs, message);
    }
    match approval(body) {
        Approval::Approved => {}
        state => {
            let message = format!(
                "the connection of private endpoint {name} is {}, not Approved",
                state.word()
            );
            return missing(Reason::ConnectionNotApproved, message);
        }
    }
    match preferred(interface_addresses(body)) {
        Some(address) => Address::Known(address),
        None => missing(
            Reason::NoAddress,
            format!("private endpoint {name} has no private address"),
        ),
    }
}

fn missing(reason: Reason, message: String) -> Address {
    Address::Missing(Problem::new(reason, message))
}

fn unread(name: &str, error: &ArmError) -> Address {
    let reason = match error.class() {
        Class::Denied => Reason::AzureDenied,
        Class::Throttled => Reason::AzureThrottled,
        Class::Gone | Class::Busy | Class::Invalid | Class::Down => Reason::AzureError,
    };
    let problem = Problem::new(reason, format!("private endpoint {name}: {error}"));
    let is_certain = !error.class().is_back_pressure() && error.is_lasting();
    if is_certain {
        Address::Missing(problem)
    } else {
        Address::Unread(problem)
    }
}

/// The first address that can be one of a network interface; one of IPv4 before one of IPv6.
fn preferred(addresses: impl Iterator<Item = IpAddr>) -> Option<IpAddr> {
    let usable = |address: &IpAddr| !address.is_unspecified() && !address.is_loopback() && !address.is_multicast();
    let all: Vec<_> = addresses.filter(usable).collect();
    all.iter().find(|address| address.is_ipv4()).or(all.first()).copied()
}

/// Whether an annotation has this address.
pub fn is_published(annotation: Option<&str>, address: IpAddr) -> bool {
    annotation.is_some_and(|text| same(text, &address.to_string()))
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::links;
    use crate::capz::samples::{management, workload};

    fn desired() -> DesiredEntry {
        let links = links::desired(&workload("wc").cluster(), &management().cluster());
        links.entries.into_iter().next().unwrap()
    }

    fn endpoint(changed: Value) -> Value {
        let service = desired().service.to_string();
        let mut properties = json!({"provisioningState": "Succeeded",
            "privateLinkServiceConnections": [{"properties": {"privateLinkServiceId": service,
                "privateLinkServiceConnectionState": {"status": "Approved"}}}],
            "networkInterfaces": [{"properties": {"ipConfigurations": [
                {"properties": {"privateIPAddress": "10.10.10.10"}}]}}]});
        for (name, value) in changed.as_object().unwrap() {
            properties[name] = value.clone();
        }
        json!({"properties": properties})
    }

    fn interfaces(addresses: &[&str]) -> Value {
        let all: Vec<_> = addresses
            .iter()
            .map(|address| json!({"properties": {"privateIPAddress": address}}))
            .collect();
        json!({"networkInterfaces": [{"id": "x"}, {"properties": {"ipConfigurations": all}}]})
    }

    fn connection(status: &str, service: &str) -> Value {
        json!({"privateLinkServiceConnections": [], "manualPrivateLinkServiceConnections": [{"properties": {
            "privateLinkServiceId": service, "privateLinkServiceConnectionState": {"status": status}}}]})
    }

    #[rstest]
    #[case::one(json!({}), Ok("10.10.10.10"))]
    #[case::ipv4_first(interfaces(&["fd00::1", "10.0.0.4"]), Ok("10.0.0.4"))]
    #[case::ipv6_alone(interfaces(&["", "fd00::1"]), Ok("fd00::1"))]
    #[case::no_interface(json!({"networkInterfaces": []}), Err(Reason::NoAddress))]
    #[case::no_valid_address(interfaces(&["<nil>", "0.0.0.0"]), Err(Reason::NoAddress))]
    #[case::dns_configuration_alone(json!({"networkInterfaces": [], "customDnsConfigs": [{"ipAddresses": ["10.0.0.9"]}]}),
        Err(Reason::NoAddress))]
    #[case::under_way(json!({"provisioningState": "Updating"}), Err(Reason::WaitingForEndpoint))]
    #[case::failed(json!({"provisioningState": "Failed"}), Err(Reason::WaitingForEndpoint))]
    #[case::approved_by_hand(connection("Approved", &desired().service.to_string()), Ok("10.10.10.10"))]
    #[case::pending(connection("Pending", &desired().service.to_string()), Err(Reason::ConnectionNotApproved))]
    #[case::rejected(connection("Rejected", &desired().service.to_string()), Err(Reason::ConnectionNotApproved))]
    #[case::disconnected(connection("Disconnected", ""), Err(Reason::ConnectionNotApproved))]
    #[case::elsewhere(connection("Approved", &desired().service.to_string().replace("/wc/", "/prod/")),
        Err(Reason::NotOurs))]
    fn address_counts_when_the_connection_is_approved(#[case] changed: Value, #[case] expected: Result<&str, Reason>) {
        match (address(&desired(), &Observed::Found(endpoint(changed))), expected) {
            (Address::Known(found), Ok(expected)) => assert_eq!(found.to_string(), expected),
            (Address::Missing(problem), Err(expected)) => assert_eq!(problem.reason, expected),
            (found, expected) => panic!("{found:?}, not {expected:?}"),
        }
    }

    #[rstest]
    #[case(Class::Throttled, Reason::AzureThrottled)]
    #[case(Class::Denied, Reason::AzureDenied)]
    #[case(Class::Down, Reason::AzureError)]
    fn failed_read_shows_nothing_until_it_lasts(#[case] class: Class, #[case] reason: Reason) {
        let error = ArmError::own(class, "Code");
        let found = address(&desired(), &Observed::ReadFailed(error.clone()));
        assert!(
            matches!(&found, Address::Unread(problem) if problem.reason == reason),
            "{found:?}"
        );
        let lasting = address(&desired(), &Observed::ReadFailed(error.with_lasting(true)));
        assert_eq!(
            matches!(lasting, Address::Missing(_)),
            class != Class::Throttled,
            "{lasting:?}"
        );
    }

    #[test]
    fn endpoint_that_is_not_made_yet_is_waited_for() {
        for observed in [Observed::Absent, Observed::Pending] {
            let found = address(&desired(), &observed);
            assert!(matches!(&found, Address::Missing(problem) if problem.reason == Reason::WaitingForEndpoint));
        }
    }
}
