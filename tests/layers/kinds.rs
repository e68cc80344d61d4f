//! Files that are about all kinds of resources name none: a `KindSpec` says what they have to know. So does what all
//! controllers of custom resources share.

use std::collections::BTreeMap;

use super::source;

/// The files that are about certain kinds: a virtual network is a scope, and frontends are parts of load balancers.
const ABOUT_KINDS: [&str; 3] = ["azure/kinds/", "azure/arm/scope.rs", "azure/frontends.rs"];

/// One line for each kind that a generic file names.
pub(crate) fn named_kinds(sources: &BTreeMap<String, String>) -> Vec<String> {
    let mut found = Vec::new();
    for (file, text) in sources.iter().filter(|(file, _)| is_generic(file)) {
        for path in source::read(text).paths {
            if path.segments.windows(2).any(|pair| names_a_kind(&pair[0], &pair[1])) {
                let (line, path) = (path.line, path.segments.join("::"));
                found.push(format!(
                    "src/{file}:{line}: names {path}; add a field to KindSpec instead"
                ));
            }
        }
    }
    found
}

fn is_generic(file: &str) -> bool {
    let for_tests = file.split('/').any(|part| part == "tests" || part == "tests.rs");
    let is_of_azure = file.starts_with("azure/") && !ABOUT_KINDS.iter().any(|about| file.starts_with(about));
    !for_tests && (is_of_azure || is_shared_by_controllers(file))
}

/// Whether this is a file of all controllers: in `controllers` itself, or in the folder of a part of it.
fn is_shared_by_controllers(file: &str) -> bool {
    let rest = file
        .strip_prefix("controllers/")
        .filter(|rest| !rest.contains("samples"));
    rest.is_some_and(|rest| !rest.contains('/') || rest.starts_with("driver/") || rest.starts_with("custom_resource/"))
}

/// Whether this is `Kind::Variant`, or `kinds::file`.
fn names_a_kind(outer: &str, inner: &str) -> bool {
    let mut letters = inner.chars();
    let first_is_upper = letters.next().is_some_and(char::is_uppercase);
    let second_is_lower = letters.next().is_some_and(char::is_lowercase);
    match outer {
        "Kind" => first_is_upper && second_is_lower,
        "kinds" => !first_is_upper,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn count(file: &str, text: &str) -> usize {
        named_kinds(&BTreeMap::from([(file.to_owned(), text.to_owned())])).len()
    }

    #[test]
    fn variant_or_file_of_a_kind_is_named() {
        assert_eq!(count("azure/arm/client.rs", "fn f() { kind == Kind::Subnet }"), 1);
        assert_eq!(
            count(
                "azure/arm/client.rs",
                "fn f() { matches!(kind, Kind::PrivateDnsZone | Kind::RecordSet) }"
            ),
            2
        );
        assert_eq!(
            count("azure/arm/client.rs", "use super::kinds::{Kind, zone::links};"),
            1
        );
    }

    #[test]
    fn all_kinds_and_specs_are_not() {
        assert_eq!(
            count(
                "azure/arm/id.rs",
                "use super::kinds::{Kind, KindSpec}; fn f() { Kind::ALL }"
            ),
            0
        );
        assert_eq!(
            count(
                "azure/arm/id.rs",
                "#[cfg(test)] mod tests { fn f() { Kind::PrivateDnsZone } }"
            ),
            0
        );
        assert_eq!(
            count("azure/kinds/private_dns_zone.rs", "fn f() { Kind::PrivateDnsZone }"),
            0
        );
    }

    #[rstest]
    #[case("controllers/event.rs", 1)]
    #[case("controllers/driver/gone.rs", 1)]
    #[case("controllers/private_endpoint/plan.rs", 0)]
    #[case("controllers/samples.rs", 0)]
    fn what_all_controllers_share_names_no_kind(#[case] file: &str, #[case] found: usize) {
        assert_eq!(count(file, "fn f() { Kind::Subnet }"), found);
    }
}
