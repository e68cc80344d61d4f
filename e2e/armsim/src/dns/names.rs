//! Which names private DNS accepts for zones, links and record sets.
//!
//! Decides only whether a name is well formed and how it is stored: the service keeps names in lower case. Whether the
//! resource may exist (quotas, parents, conflicts) is decided elsewhere.
//! Rules: <https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules#microsoftnetwork>
//! and <https://learn.microsoft.com/azure/dns/private-dns-privatednszone#restrictions>.

use super::record::RecordType;

/// The longest name DNS can carry, in characters without the trailing dot.
const LONGEST_NAME: usize = 253;
const LONGEST_LABEL: usize = 63;
const MOST_ZONE_LABELS: usize = 34;
const LONGEST_LINK_NAME: usize = 80;
/// Names that Azure itself needs, in all its clouds.
const RESERVED_ZONES: [&str; 24] = [
    "azclient.ms",
    "azure.com",
    "cloudapp.net",
    "core.windows.net",
    "microsoft.com",
    "msidentity.com",
    "trafficmanager.net",
    "windows.net",
    "azclient.us",
    "azure.us",
    "usgovcloudapp.net",
    "core.usgovcloudapi.net",
    "microsoft.us",
    "msidentity.us",
    "usgovtrafficmanager.net",
    "usgovcloudapi.net",
    "azclient.cn",
    "azure.cn",
    "chinacloudapp.cn",
    "core.chinacloudapi.cn",
    "microsoft.cn",
    "msidentity.cn",
    "trafficmanager.cn",
    "chinacloudapi.cn",
];

/// The zone's name as it is stored, or the service's message.
pub(crate) fn zone(name: &str) -> Result<String, String> {
    let labels: Vec<&str> = name.split('.').collect();
    if labels.len() < 2 {
        return Err(format!(
            "The zone name '{name}' does not have enough labels. Zone names must have two or more labels."
        ));
    }
    if labels.len() > MOST_ZONE_LABELS {
        return Err(format!(
            "The zone name '{name}' has too many labels. Zone names must have {MOST_ZONE_LABELS} or fewer labels."
        ));
    }
    if name.len() > LONGEST_NAME || !labels.iter().all(|label| is_label(label)) {
        return Err(format!("The zone name '{name}' is invalid."));
    }
    if RESERVED_ZONES
        .iter()
        .any(|reserved| name.eq_ignore_ascii_case(reserved))
    {
        return Err(format!(
            "The zone '{name}' is not available to be created. The zone is reserved."
        ));
    }
    Ok(name.to_ascii_lowercase())
}

/// The link's name as it is stored, or the service's message.
pub(crate) fn link(name: &str) -> Result<String, String> {
    let inner = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-');
    let well_formed = name.len() <= LONGEST_LINK_NAME
        && name.chars().all(inner)
        && name.starts_with(|c: char| c.is_ascii_alphanumeric())
        && name.ends_with(|c: char| c.is_ascii_alphanumeric() || c == '_');
    if well_formed {
        Ok(name.to_ascii_lowercase())
    } else {
        Err(format!("The virtual network link name '{name}' is invalid."))
    }
}

/// The record set's name relative to its zone as it is stored (`@` is the apex, `*` may stand for the first label),
/// or the service's message.
pub(crate) fn record(kind: RecordType, name: &str, zone: &str) -> Result<String, String> {
    let refused = || Err(format!("The domain name '{name}' is invalid."));
    if name == "@" {
        return if kind == RecordType::Cname {
            refused()
        } else {
            Ok(name.to_owned())
        };
    }
    if kind == RecordType::Soa || fqdn(name, zone).len() > LONGEST_NAME + 1 {
        return refused();
    }
    let rest = match name.strip_prefix("*.") {
        Some(rest) => rest,
        None if name == "*" => return Ok(name.to_owned()),
        None => name,
    };
    if rest.split('.').all(is_label) {
        Ok(name.to_ascii_lowercase())
    } else {
        refused()
    }
}

/// Whether `name` can stand as the target of a CNAME, MX, SRV or PTR record: labels, an optional trailing dot.
pub(crate) fn is_domain(name: &str) -> bool {
    let name = name.strip_suffix('.').unwrap_or(name);
    name.len() <= LONGEST_NAME && name.split('.').all(is_label)
}

/// The full name of a record set, in lower case and with the trailing dot that the service adds.
pub(crate) fn fqdn(relative: &str, zone: &str) -> String {
    let full = if relative == "@" {
        format!("{zone}.")
    } else {
        format!("{relative}.{zone}.")
    };
    full.to_ascii_lowercase()
}

fn is_label(label: &str) -> bool {
    (1..=LONGEST_LABEL).contains(&label.len())
        && label
            .chars()
            .all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'))
        && !label.starts_with('-')
        && !label.ends_with('-')
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("example.com", Ok("example.com"))]
    #[case("Example.Hypershift.LOCAL", Ok("example.hypershift.local"))]
    #[case("_tcp.example-1.com", Ok("_tcp.example-1.com"))]
    #[case("local", Err("does not have enough labels"))]
    #[case("a..b", Err("is invalid"))]
    #[case("-a.com", Err("is invalid"))]
    #[case("a.com.", Err("is invalid"))]
    #[case("a b.com", Err("is invalid"))]
    #[case("Azure.com", Err("is reserved"))]
    #[case("privatelink.azure.com", Ok("privatelink.azure.com"))]
    fn zone_names(#[case] name: &str, #[case] expected: Result<&str, &str>) {
        match (zone(name), expected) {
            (Ok(got), Ok(expected)) => assert_eq!(got, expected),
            (Err(got), Err(expected)) => assert!(got.contains(expected), "{got}"),
            (got, expected) => panic!("{name}: got {got:?}, want {expected:?}"),
        }
    }

    #[test]
    fn a_zone_has_at_most_34_labels_of_at_most_63_characters() {
        assert!(zone(&vec!["a"; 34].join(".")).is_ok());
        assert!(zone(&vec!["a"; 35].join(".")).is_err());
        assert!(zone(&format!("{}.com", "a".repeat(63))).is_ok());
        assert!(zone(&format!("{}.com", "a".repeat(64))).is_err());
    }

    #[rstest]
    #[case("vnet1-Link_", true)]
    #[case("-link", false)]
    #[case("link-", false)]
    #[case("a/b", false)]
    fn link_names(#[case] name: &str, #[case] accepted: bool) {
        assert_eq!(link(name).is_ok(), accepted);
        assert!(link(&"a".repeat(81)).is_err());
    }

    #[rstest]
    #[case(RecordType::A, "api", true)]
    #[case(RecordType::A, "@", true)]
    #[case(RecordType::A, "*", true)]
    #[case(RecordType::A, "*.apps", true)]
    #[case(RecordType::A, "x.*.apps", false)]
    #[case(RecordType::A, "a*", false)]
    #[case(RecordType::A, "a..b", false)]
    #[case(RecordType::Cname, "@", false)]
    #[case(RecordType::Soa, "api", false)]
    #[case(RecordType::Soa, "@", true)]
    fn record_names(#[case] kind: RecordType, #[case] name: &str, #[case] accepted: bool) {
        assert_eq!(record(kind, name, "example.com").is_ok(), accepted);
    }

    #[test]
    fn a_full_name_ends_with_a_dot_and_is_lower_case() {
        assert_eq!(fqdn("@", "Example.com"), "example.com.");
        assert_eq!(fqdn("*.Apps", "example.com"), "*.apps.example.com.");
    }
}
