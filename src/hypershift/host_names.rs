//! The host names that a cluster is published under, and its base domain.

use crate::api::hypershift::{ClusterSpec, PublishedService, PublishingType};

/// The host name of OAuth without its first label, else the cluster's base domain, else nothing. An error says what is
/// wrong.
pub fn base_domain(cluster: &str, spec: &ClusterSpec) -> Result<Option<String>, String> {
    let prefix = format!("oauth-{cluster}.");
    for host in hosts(spec, "OAuthServer") {
        let host = host.map_err(|wrong| format!("{wrong}: the base domain is left as it is"))?;
        if let Some(domain) = host.strip_prefix(&prefix) {
            return Ok(Some(domain.to_owned()));
        }
    }
    let given = spec.dns.base_domain.as_deref().filter(|domain| !domain.is_empty());
    let Some(given) = given else {
        return Ok(None);
    };
    match dns_name(given) {
        Some(domain) => Ok(Some(domain)),
        None => Err("dns.baseDomain is not a DNS name: the base domain is left as it is".to_owned()),
    }
}

/// The host names that a service of the cluster is published under; those of its router first.
fn hosts<'a>(spec: &'a ClusterSpec, service: &'a str) -> impl Iterator<Item = Result<String, String>> + 'a {
    let by_route = hosts_by(PublishingType::Route, spec, service);
    let all = by_route.chain(hosts_by(PublishingType::LoadBalancer, spec, service));
    all.map(move |host| dns_name(host).ok_or_else(|| format!("the host name of {service} is not a DNS name")))
}

/// The host names that a service of the cluster is published under in this way.
fn hosts_by<'a>(kind: PublishingType, spec: &'a ClusterSpec, service: &'a str) -> impl Iterator<Item = &'a str> {
    let published = spec
        .services
        .iter()
        .filter(move |s| s.service.as_deref() == Some(service));
    let hosts = published.filter_map(PublishedService::host);
    hosts.filter(move |(by, _)| *by == kind).map(|(_, host)| host)
}

/// A DNS name in lower case and without a dot at its end, as the definition requires it.
pub fn dns_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    (name.len() <= 253 && name.split('.').all(is_label)).then_some(name)
}

fn is_label(text: &str) -> bool {
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let length = (1..=63).contains(&text.len());
    length && text.chars().all(inner) && !text.starts_with('-') && !text.ends_with('-')
}
