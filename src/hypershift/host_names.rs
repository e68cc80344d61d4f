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
    let wrong = || "dns.baseDomain is not a DNS name: the base domain is left as it is".to_owned();
    given.map(|domain| dns_name(domain).ok_or_else(wrong)).transpose()
}

/// The host names that a service of the cluster is published under; those of its router first.
fn hosts<'a>(spec: &'a ClusterSpec, service: &'a str) -> impl Iterator<Item = Result<String, String>> + 'a {
    let of = move |kind: PublishingType| {
        let published = spec
            .services
            .iter()
            .filter(move |s| s.service.as_deref() == Some(service));
        let hosts = published.filter_map(PublishedService::host);
        hosts.filter(move |(by, _)| *by == kind).map(|(_, host)| host)
    };
    let all = of(PublishingType::Route).chain(of(PublishingType::LoadBalancer));
    all.map(move |host| dns_name(host).ok_or_else(|| format!("the host name of {service} is not a DNS name")))
}

/// A DNS name in lower case and without a dot at its end, as the definition requires it.
pub fn dns_name(text: &str) -> Option<String> {
    let name = text.strip_suffix('.').unwrap_or(text).to_ascii_lowercase();
    let inner = |c: char| c.is_ascii_alphanumeric() || c == '-';
    let is_label = |label: &str| {
        (1..=63).contains(&label.len()) && label.chars().all(inner) && !label.starts_with('-') && !label.ends_with('-')
    };
    (name.len() <= 253 && name.split('.').all(is_label)).then_some(name)
}
