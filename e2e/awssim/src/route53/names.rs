//! Domain names: lower case, a dot at the end, `\052` for the asterisk, and the order in which records are listed.

/// A name as it is kept: lower case, a dot at the end, a plain asterisk.
pub(crate) fn plain(name: &str) -> String {
    let name = name.to_ascii_lowercase().replace("\\052", "*");
    match name.ends_with('.') {
        true => name,
        false => format!("{name}."),
    }
}

/// A name as answers show it.
pub(crate) fn shown(name: &str) -> String {
    name.replace('*', "\\052")
}

/// What lists are ordered by: the labels from the last to the first.
pub(crate) fn order(name: &str) -> String {
    let name = shown(name);
    let labels: Vec<&str> = name.trim_end_matches('.').rsplit('.').collect();
    labels.join(".") + "."
}

/// Whether a name is in a zone.
pub(crate) fn is_in(name: &str, zone: &str) -> bool {
    name == zone || name.strip_suffix(zone).is_some_and(|head| head.ends_with('.'))
}

/// Whether a record of this name answers for a name: itself, or as a wildcard.
pub(crate) fn covers(record: &str, name: &str) -> bool {
    match record.strip_prefix("*.") {
        Some(rest) => name
            .strip_suffix(rest)
            .is_some_and(|head| head.len() > 1 && head.ends_with('.')),
        None => record == name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcard_covers_what_is_below_it_and_not_its_own_parent() {
        assert!(covers("*.apps.z.", "a.apps.z.") && covers("*.apps.z.", "a.b.apps.z."));
        assert!(!covers("*.apps.z.", "apps.z.") && !covers("*.apps.z.", "aapps.z."));
    }

    #[test]
    fn records_are_ordered_from_the_last_label() {
        let mut names = ["b.z.", "a.b.z.", "z.", "*.b.z."];
        names.sort_by_key(|name| order(name));
        assert_eq!(names, ["z.", "b.z.", "*.b.z.", "a.b.z."]);
    }
}
