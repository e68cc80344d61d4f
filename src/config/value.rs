//! Parses one value at a time: a text becomes a type, or a sentence that says what to write. clap puts flag and value
//! before the sentence.

use std::fs::File;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::time::Duration;

use ipnet::Ipv4Net;
use jiff::SignedDuration;

use crate::api::platform::UnknownPlatform;
use crate::api::role::UnknownRole;
use crate::api::{Platform, Role};
use crate::azure::arm::auth::CloudError;
use crate::azure::arm::id::{self, ResourceId, SubscriptionId};
use crate::azure::arm::scope::AzureScope;
use crate::azure::kinds::Kind;
use crate::engine::text::is_uuid;
use crate::hypershift::aws::load_balancer_name::NlbMatch;
use crate::hypershift::azure::management_scopes::ManagementScopes;
use crate::hypershift::azure::names::FrontendMatch;
use crate::hypershift::names;
use crate::scopes_file::{ScopesFile, ScopesFileError};
use crate::telemetry;

/// The variable of `--log-format`, which is read also where the command line cannot be parsed.
pub(super) const LOG_FORMAT: &str = "HYPERLINK_LOG_FORMAT";

/// The longest interval that a setting may have.
const LONGEST_SETTING: Duration = Duration::from_secs(7 * 24 * 3600);

/// The clouds, spelt as HostedControlPlanes spell them. The last three need their addresses as settings.
const CLOUDS: [&str; 6] = [
    "AzurePublicCloud",
    "AzureUSGovernmentCloud",
    "AzureChinaCloud",
    "AzureGermanCloud",
    "AzureBleuCloud",
    "AzureStackCloud",
];

pub(super) fn role(text: &str) -> Result<Role, UnknownRole> {
    text.trim().parse()
}

pub(super) fn platform(text: &str) -> Result<Platform, UnknownPlatform> {
    text.trim().parse()
}

pub(super) fn duration(text: &str) -> Result<Duration, &'static str> {
    let wrong = "not a duration: write 90s, 5m or 1h30m";
    let signed: SignedDuration = text.parse().map_err(|_| wrong)?;
    match Duration::try_from(signed) {
        Err(_) => Err(wrong),
        Ok(Duration::ZERO) => Err("must be longer than nothing"),
        Ok(duration) if duration > LONGEST_SETTING => Err("longer than a week"),
        Ok(duration) => Ok(duration),
    }
}

pub(super) fn whole_seconds(text: &str) -> Result<Duration, &'static str> {
    let duration = duration(text)?;
    let whole = duration.subsec_nanos() == 0;
    whole.then_some(duration).ok_or("must be whole seconds")
}

pub(super) fn namespace(text: &str) -> Result<String, &'static str> {
    let name = Some(text.trim()).filter(|name| names::is_namespace(name));
    name.map(str::to_owned).ok_or("not the name of a namespace")
}

pub(super) fn object_name(text: &str) -> Result<String, &'static str> {
    names::is_object_name(text)
        .then(|| text.to_owned())
        .ok_or("write the name of an object of Kubernetes")
}

pub(super) fn address(text: &str) -> Result<SocketAddr, &'static str> {
    let wrong = "not an IP address with a port, such as 127.0.0.1:8080";
    text.parse().map_err(|_| wrong)
}

pub(super) fn readable_file(text: &str) -> Result<PathBuf, String> {
    match File::open(text).and_then(|file| file.metadata()) {
        Ok(metadata) if metadata.is_file() => Ok(PathBuf::from(text)),
        Ok(_) => Err("not a file".to_owned()),
        Err(error) => Err(format!("it cannot be read: {}", error.kind())),
    }
}

pub(super) fn scopes_file(text: &str) -> Result<ScopesFile, ScopesFileError> {
    ScopesFile::read(text.as_ref())
}

pub(super) fn management_scopes(text: &str) -> Result<ManagementScopes, String> {
    let read = std::fs::read_to_string(text);
    let text = read.map_err(|error| format!("it cannot be read: {}", error.kind()))?;
    ManagementScopes::parse(&text).map_err(|error| error.to_string())
}

pub(super) fn cloud(text: &str) -> Result<&'static str, CloudError> {
    let known = CLOUDS.into_iter().find(|name| name.eq_ignore_ascii_case(text));
    known.ok_or_else(|| CloudError::UnknownName(text.to_owned()))
}

pub(super) fn subscription(text: &str) -> Result<SubscriptionId, &'static str> {
    let right = SubscriptionId::parse(text).ok().filter(|_| is_uuid(text));
    right.ok_or("not the id of a subscription, a UUID")
}

pub(super) fn resource_group(text: &str) -> Result<String, &'static str> {
    let name = Some(text).filter(|name| id::is_group_name(name));
    name.map(str::to_owned).ok_or("not the name of a resource group")
}

/// Parses a subscription or a resource group.
pub(super) fn scope(text: &str) -> Result<AzureScope, &'static str> {
    match AzureScope::parse(text.trim()) {
        Ok(scope @ (AzureScope::Subscription(_) | AzureScope::Group(..))) if is_uuid(scope.subscription().as_str()) => {
            Ok(scope)
        }
        _ => Err("not a scope: write /subscriptions/ID or /subscriptions/ID/resourceGroups/NAME"),
    }
}

pub(super) fn subnet(text: &str) -> Result<ResourceId, &'static str> {
    ResourceId::parse_as(Kind::Subnet, text).map_err(|_| "not the ARM id of a subnet")
}

pub(super) fn network(text: &str) -> Result<Ipv4Net, String> {
    let wrong = "not an IPv4 network, such as 10.1.0.0/16";
    let network: Ipv4Net = text.parse().map_err(|_| wrong)?;
    if network == network.trunc() {
        Ok(network)
    } else {
        Err(format!(
            "an address in a network; write the network, {}",
            network.trunc()
        ))
    }
}

pub(super) fn frontend_match(text: &str) -> Result<FrontendMatch, &'static str> {
    match text {
        "name" => Ok(FrontendMatch::Name),
        "address" => Ok(FrontendMatch::Address),
        _ => Err("unknown rule: use name or address"),
    }
}

pub(super) fn nlb_match(text: &str) -> Result<NlbMatch, &'static str> {
    match text {
        "uid" => Ok(NlbMatch::Uid),
        "hostname" => Ok(NlbMatch::Hostname),
        _ => Err("unknown rule: use uid or hostname"),
    }
}

pub(super) fn log_format(text: &str) -> Result<telemetry::Format, &'static str> {
    match text {
        "text" => Ok(telemetry::Format::Text),
        "json" => Ok(telemetry::Format::Json),
        _ => Err("unknown format: use text or json"),
    }
}

pub(super) fn log_filter(text: &str) -> Result<String, &'static str> {
    const WRONG: &str = "not a log filter: write error, warn, info, debug, trace or target=level, with commas between";
    let directives: Vec<&str> = text.split(',').filter(|directive| !directive.is_empty()).collect();
    // A blank, or a filter by spans, would pass for the name of a target that logs nothing.
    let is_target_or_level = |text: &&str| text.chars().all(|c| c.is_ascii_alphanumeric() || "_-:=".contains(c));
    if directives.is_empty() || !directives.iter().all(is_target_or_level) {
        return Err(WRONG);
    }
    let filter = directives.join(",");
    telemetry::filter(&filter).map(|_| filter).map_err(|_| WRONG)
}
