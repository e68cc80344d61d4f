//! Parses one value at a time: a text becomes a type, or a sentence that names valid values.

use std::convert::Infallible;
use std::fs::File;
use std::net::SocketAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::SignedDuration;

use super::FrontendMatch;
use crate::azure::id::{self, ResourceId, SubscriptionId};
use crate::azure::resource::Kind;
use crate::azure::scope::Scope;
use crate::names;
use crate::scopes_file::ScopesFile;
use crate::telemetry;

/// The longest interval that a setting may have.
const LONGEST: Duration = Duration::from_secs(7 * 24 * 3600);

/// The prefix lengths that a NAT subnet may have; Azure takes five addresses of each subnet.
const NAT_PREFIX_LENGTHS: std::ops::RangeInclusive<u8> = 24..=28;

pub(super) fn duration(text: &str) -> Result<Duration, String> {
    let wrong = || format!("{text:?} is not a duration: write 90s, 5m or 1h30m");
    let signed: SignedDuration = text.parse().map_err(|_| wrong())?;
    let duration = Duration::try_from(signed).map_err(|_| wrong())?;
    match duration {
        Duration::ZERO => Err(format!("{text:?} must be longer than nothing")),
        _ if duration > LONGEST => Err(format!("{text:?} is longer than a week")),
        _ => Ok(duration),
    }
}

pub(super) fn whole_seconds(text: &str) -> Result<Duration, String> {
    let duration = duration(text)?;
    if duration.subsec_nanos() == 0 {
        Ok(duration)
    } else {
        Err(format!("{text:?} must be whole seconds"))
    }
}

pub(super) fn namespace(text: &str) -> Result<String, String> {
    if names::is_namespace(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not the name of a namespace"))
    }
}

pub(super) fn concurrency(text: &str) -> Result<NonZeroU16, String> {
    let wrong = |_| format!("{text:?} is not a number from 1 to 65535");
    text.parse().map_err(wrong)
}

pub(super) fn address(text: &str) -> Result<SocketAddr, String> {
    let wrong = |_| format!("{text:?} is not an IP address with a port, such as 127.0.0.1:8080");
    text.parse().map_err(wrong)
}

/// Accepts any path; the code that reads the file reports what is wrong with it.
pub(super) fn path(text: &str) -> Result<PathBuf, Infallible> {
    Ok(PathBuf::from(text))
}

pub(super) fn readable_file(text: &str) -> Result<PathBuf, String> {
    let readable = File::open(text).and_then(|file| file.metadata());
    match readable {
        Ok(metadata) if metadata.is_file() => Ok(PathBuf::from(text)),
        Ok(_) => Err(format!("{text} is not a file")),
        Err(error) => Err(format!("{text} cannot be read: {}", error.kind())),
    }
}

pub(super) fn scopes_file(text: &str) -> Result<ScopesFile, String> {
    ScopesFile::read(text.as_ref()).map_err(|error| format!("{text}: {error}"))
}

pub(super) fn subscription(text: &str) -> Result<SubscriptionId, String> {
    let right = SubscriptionId::parse(text).ok().filter(|_| id::is_uuid(text));
    right.ok_or_else(|| format!("{text:?} is not the id of a subscription, a UUID"))
}

pub(super) fn resource_group(text: &str) -> Result<String, String> {
    if id::is_group_name(text) {
        Ok(text.to_owned())
    } else {
        Err(format!("{text:?} is not the name of a resource group"))
    }
}

/// Parses a subscription or a resource group.
pub(super) fn scope(text: &str) -> Result<Scope, String> {
    match Scope::parse(text) {
        Ok(scope @ (Scope::Subscription(_) | Scope::Group(..))) if id::is_uuid(scope.subscription().as_str()) => {
            Ok(scope)
        }
        _ => Err(format!(
            "{text:?} is not a scope: write /subscriptions/ID or /subscriptions/ID/resourceGroups/NAME"
        )),
    }
}

pub(super) fn subnet(text: &str) -> Result<ResourceId, String> {
    ResourceId::parse_as(Kind::Subnet, text).map_err(|_| format!("{text:?} is not the ARM id of a subnet"))
}

pub(super) fn nat_prefix_length(text: &str) -> Result<u8, String> {
    match text.parse() {
        Ok(length) if NAT_PREFIX_LENGTHS.contains(&length) => Ok(length),
        _ => Err(format!("{text:?} is not a prefix length from 24 to 28")),
    }
}

pub(super) fn network(text: &str) -> Result<Ipv4Net, String> {
    let network: Ipv4Net = text
        .parse()
        .map_err(|_| format!("{text:?} is not an IPv4 network, such as 10.1.0.0/16"))?;
    if network.addr() == network.network() {
        Ok(network)
    } else {
        let network_part = network.trunc();
        Err(format!("{text} is an address in {network_part}; write the network"))
    }
}

pub(super) fn boolean(text: &str) -> Result<bool, String> {
    text.parse().map_err(|_| "use true or false".to_owned())
}

pub(super) fn frontend_match(text: &str) -> Result<FrontendMatch, String> {
    match text {
        "name" => Ok(FrontendMatch::Name),
        "address" => Ok(FrontendMatch::Address),
        _ => Err(format!("unknown rule {text:?}: use name or address")),
    }
}

pub(super) fn log_format(text: &str) -> Result<telemetry::Format, String> {
    match text {
        "text" => Ok(telemetry::Format::Text),
        "json" => Ok(telemetry::Format::Json),
        _ => Err(format!("unknown format {text:?}: use text or json")),
    }
}

pub(super) fn log_filter(text: &str) -> Result<String, String> {
    match telemetry::filter(text) {
        Ok(_) => Ok(text.to_owned()),
        Err(_) => Err(format!(
            "{text:?} is not a log filter: write error, warn, info, debug, trace or target=level, with commas between"
        )),
    }
}
