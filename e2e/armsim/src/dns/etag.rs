//! Entity tags of private DNS and the conditions that callers put on them.
//!
//! Decides whether a write may go on; how a refusal is delivered (at once for record sets, in the operation for zones
//! and links) is the caller's part. Zones and record sets carry a bare GUID, links a quoted strong tag.

use serde::{Deserialize, Serialize};

/// What `If-Match` and `If-None-Match` ask for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Condition {
    match_tag: Option<String>,
    must_be_new: bool,
}

/// Why a condition does not hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unmet {
    /// `If-None-Match: *` met an existing resource.
    Exists,
    /// `If-Match` named another version, or nothing is there.
    Modified,
}

impl Condition {
    /// Reads the two headers. An empty `If-Match` asks for nothing, and so does any `If-None-Match` but `*`.
    pub(crate) fn new(if_match: Option<&str>, if_none_match: Option<&str>) -> Self {
        let match_tag = if_match.map(str::trim).filter(|tag| !tag.is_empty());
        Self {
            match_tag: match_tag.map(str::to_owned),
            must_be_new: if_none_match.map(str::trim) == Some("*"),
        }
    }

    /// Compares with the tag of what is there now.
    pub(crate) fn check(&self, current: Option<&str>) -> Result<(), Unmet> {
        if self.must_be_new && current.is_some() {
            return Err(Unmet::Exists);
        }
        match (&self.match_tag, current) {
            (None, _) => Ok(()),
            (Some(tag), Some(_)) if tag == "*" => Ok(()),
            (Some(tag), Some(current)) if unquoted(tag) == unquoted(current) => Ok(()),
            (Some(_), _) => Err(Unmet::Modified),
        }
    }
}

fn unquoted(tag: &str) -> &str {
    tag.strip_prefix('"')
        .and_then(|tag| tag.strip_suffix('"'))
        .unwrap_or(tag)
}

/// A link's tag: quoted, its last group the second of the change, as the service's store makes them.
pub(crate) fn of_link(guid: &str, changed_unix_s: i64) -> String {
    let head = guid.get(..13).unwrap_or_default();
    format!("\"{head}-0100-0000-{:08x}0000\"", changed_unix_s as u32)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case(None, None, Some("a"), Ok(()))]
    #[case(None, None, None, Ok(()))]
    #[case(Some(""), None, Some("a"), Ok(()))]
    #[case(Some("a"), None, Some("a"), Ok(()))]
    #[case(Some("\"a\""), None, Some("\"a\""), Ok(()))]
    #[case(Some("b"), None, Some("a"), Err(Unmet::Modified))]
    #[case(Some("a"), None, None, Err(Unmet::Modified))]
    #[case(Some("*"), None, Some("a"), Ok(()))]
    #[case(Some("*"), None, None, Err(Unmet::Modified))]
    #[case(None, Some("*"), Some("a"), Err(Unmet::Exists))]
    #[case(None, Some("*"), None, Ok(()))]
    #[case(None, Some("a"), Some("a"), Ok(()))]
    fn conditions(
        #[case] if_match: Option<&str>,
        #[case] if_none_match: Option<&str>,
        #[case] current: Option<&str>,
        #[case] expected: Result<(), Unmet>,
    ) {
        assert_eq!(
            Condition::new(if_match, if_none_match).check(current),
            expected
        );
    }

    #[test]
    fn a_links_tag_has_the_recorded_form() {
        let tag = of_link("2a05a971-0000-4000-8000-000000000000", 0x672e_8530);
        assert_eq!(tag, "\"2a05a971-0000-0100-0000-672e85300000\"");
    }
}
