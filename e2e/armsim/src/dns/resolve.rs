//! How a name is looked up in one VNet's view of private DNS.
//!
//! Pure: given the zones linked to the VNet and the names in a zone, decides which zone answers and which record set.
//! The most specific linked zone answers alone: a name that it lacks does not exist, even if a shorter linked zone has
//! it. Wildcards follow RFC 4592: they stand only for names below an ancestor that has no closer relative in the zone.

/// Of the `zones` (in any case, without trailing dot), the position of the longest that holds `name`.
pub(crate) fn most_specific<'a>(zones: impl Iterator<Item = &'a str>, name: &str) -> Option<usize> {
    zones
        .enumerate()
        .filter_map(|(position, zone)| relative(name, zone).map(|_| (zone.len(), position)))
        .max_by_key(|(length, _)| *length)
        .map(|(_, position)| position)
}

/// `name` relative to `zone`: `@` for the apex, the labels before the zone's name below it, nothing outside.
pub(crate) fn relative(name: &str, zone: &str) -> Option<String> {
    let name = normal(name);
    let zone = normal(zone);
    if name == zone {
        return Some("@".to_owned());
    }
    let labels = name.strip_suffix(&zone)?.strip_suffix('.')?;
    Some(labels.to_owned())
}

/// The name of the record sets that answer for `relative`, given all record set names of the zone (lower case).
pub(crate) fn answering<'a>(names: &[&'a str], relative: &str) -> Option<&'a str> {
    if let Some(exact) = names.iter().find(|name| **name == relative) {
        return Some(exact);
    }
    // A name that exists only as the ancestor of others has no records, and no wildcard stands for it.
    if exists(names, relative) {
        return None;
    }
    let mut ancestor = relative;
    loop {
        ancestor = ancestor.split_once('.').map_or("", |(_, rest)| rest);
        if ancestor.is_empty() {
            return names.iter().find(|name| **name == "*").copied();
        }
        if exists(names, ancestor) {
            return names
                .iter()
                .find(|name| name.strip_prefix("*.") == Some(ancestor))
                .copied();
        }
    }
}

/// Whether the zone knows `relative`: as a record set's name or as the ancestor of one.
pub(crate) fn exists(names: &[&str], relative: &str) -> bool {
    names
        .iter()
        .any(|name| *name == relative || name.strip_suffix(relative).is_some_and(|rest| rest.ends_with('.')))
}

/// Lower case, without the trailing dot.
pub(crate) fn normal(name: &str) -> String {
    name.strip_suffix('.').unwrap_or(name).to_ascii_lowercase()
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(&["example.com", "apps.example.com"], "x.apps.example.com", Some(1))]
    #[case(&["apps.example.com", "example.com"], "X.Apps.Example.com.", Some(0))]
    #[case(&["example.com"], "example.com", Some(0))]
    #[case(&["example.com"], "badexample.com", None)]
    #[case(&["example.com"], "com", None)]
    #[case(&[], "example.com", None)]
    fn the_most_specific_zone_answers(#[case] zones: &[&str], #[case] name: &str, #[case] expected: Option<usize>) {
        assert_eq!(most_specific(zones.iter().copied(), name), expected);
    }

    #[rstest]
    #[case("api", Some("api"))]
    #[case("@", Some("@"))]
    #[case("x.apps", Some("*.apps"))]
    #[case("y.x.apps", Some("*.apps"))]
    #[case("apps", None)]
    #[case("a.b", Some("a.b"))]
    #[case("b", None)]
    #[case("c.b", None)]
    #[case("x.api", None)]
    #[case("other", None)]
    fn exact_names_come_before_wildcards(#[case] relative: &str, #[case] expected: Option<&str>) {
        let names = ["@", "api", "*.apps", "a.b"];
        assert_eq!(answering(&names, relative), expected);
    }

    #[test]
    fn a_wildcard_at_the_apex_stands_for_unknown_names_only() {
        let names = ["@", "*", "api"];
        assert_eq!(answering(&names, "x.y"), Some("*"));
        assert_eq!(answering(&names, "api"), Some("api"));
        assert_eq!(answering(&names, "x.api"), None);
    }
}
