//! Whether the zone of a base domain hides public names from the guest. Pure.
//!
//! A private zone answers for every name below its own: whatever is not in it does not exist for the linked network.
//! Names are at risk where the cluster's ingress domain (`apps.<prefix>.<dns.baseDomain>`; the prefix is the cluster's
//! name unless the spec gives another or an empty one) is the zone or lies in it, or a published host name does that is
//! not a record of the cluster. So they are where the base domain equals, or is a parent of, the cluster's domain, and
//! are not where it is a child without a published name, or a domain of its own. A more specific private zone that an
//! administrator linked (as `<name>.<dns.baseDomain>` of HyperShift's own infrastructure) saves the names in it; the
//! others stay hidden.

use crate::api::hypershift::{ClusterSpec, PublishedService};

/// The public names that a cluster is known to have.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct PublicNames {
    /// The domain of its ingress, and the host names of its published services.
    pub names: Vec<String>,
}

impl PublicNames {
    /// Those of a cluster of this name.
    pub fn of(cluster: &str, spec: &ClusterSpec) -> Self {
        let base_domain = spec.dns.base_domain.as_deref().filter(|domain| !domain.is_empty());
        let ingress = base_domain.map(|domain| match spec.dns.base_domain_prefix.as_deref() {
            Some("") => format!("apps.{domain}"),
            prefix => format!("apps.{}.{domain}", prefix.unwrap_or(cluster)),
        });
        let hosts = spec.services.iter().filter_map(PublishedService::host);
        let hosts = hosts.map(|(_, host)| host.to_owned());
        Self {
            names: ingress.into_iter().chain(hosts).collect(),
        }
    }

    /// Whether `zone` with these records in it hides one of them.
    pub fn hidden_by(&self, zone: &str, records: &[String]) -> bool {
        let mut in_zone = self.names.iter().filter_map(|name| relative(name, zone));
        in_zone.any(|name| !records.iter().any(|record| record.eq_ignore_ascii_case(&name)))
    }
}

/// A name without the zone that it is in; empty for the zone itself. None if it is not in it.
fn relative(name: &str, zone: &str) -> Option<String> {
    let name = plain(name);
    let zone = plain(zone);
    if name == zone {
        return Some(String::new());
    }
    name.strip_suffix(&format!(".{zone}")).map(str::to_owned)
}

fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn names(prefix: Option<&str>, host: &str) -> PublicNames {
        let services = json!([{"service": "APIServer", "servicePublishingStrategy": {"type": "Route", "route": {"hostname": host}}}]);
        let mut dns = json!({"baseDomain": "example.com"});
        if let Some(prefix) = prefix {
            dns["baseDomainPrefix"] = json!(prefix);
        }
        PublicNames::of(
            "c",
            &serde_json::from_value(json!({"dns": dns, "services": services})).unwrap(),
        )
    }

    #[rstest]
    #[case::zone_is_the_public_domain("example.com", "api-c.example.com", true)]
    #[case::zone_is_its_parent("com", "api-c.com", true)]
    #[case::zone_is_the_clusters_domain("c.example.com", "api-c.c.example.com", true)]
    #[case::zone_is_the_ingress_domain("apps.c.example.com", "api-c.apps.c.example.com", true)]
    #[case::zone_is_a_child_of_its_own("private.c.example.com", "api-c.private.c.example.com", false)]
    #[case::zone_is_a_sibling_domain("ext.example.com", "api-c.ext.example.com", false)]
    #[case::zone_is_elsewhere("example.net", "API-C.Example.Net.", false)]
    #[case::zone_has_another_published_name("example.net", "api.example.net", true)]
    #[case::name_only_ends_alike("ple.net", "api.example.net", false)]
    fn public_names_are_hidden(#[case] zone: &str, #[case] host: &str, #[case] hidden: bool) {
        let records = ["api-c".to_owned(), "oauth-c".to_owned()];
        assert_eq!(names(None, host).hidden_by(zone, &records), hidden);
    }

    #[test]
    fn prefix_of_the_base_domain_is_heeded() {
        assert_eq!(names(None, "x").names, ["apps.c.example.com", "x"]);
        assert_eq!(names(Some("p"), "x").names, ["apps.p.example.com", "x"]);
        assert_eq!(names(Some(""), "x").names, ["apps.example.com", "x"]);
    }
}
