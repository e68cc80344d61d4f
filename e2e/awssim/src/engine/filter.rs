//! EC2's filters: all must match, each by any of its values; `*` and `?` are wildcards.

use super::tags::Tags;
use crate::wire::error::AwsError;
use crate::wire::params::Params;

/// The most values that one call may filter by.
const MOST_VALUES: usize = 200;

/// The filters of a call.
pub(crate) struct Filters(Vec<(String, Vec<String>)>);

impl Filters {
    /// # Errors
    /// A filter that is not among `known`, or without values.
    pub(crate) fn read(params: &Params, known: &[&str]) -> Result<Self, AwsError> {
        let mut filters = Vec::new();
        for filter in params.structures("Filter") {
            let name = filter.required("Name")?.to_owned();
            let values: Vec<String> = filter.list("Value").into_iter().map(str::to_owned).collect();
            if !known.contains(&name.as_str()) && !name.starts_with("tag:") {
                let message = format!("The filter '{name}' is invalid");
                return Err(AwsError::bad("InvalidParameterValue", message));
            }
            if values.is_empty() || values.len() > MOST_VALUES {
                let message = format!("The filter '{name}' needs 1 to {MOST_VALUES} values");
                return Err(AwsError::bad("InvalidParameterValue", message));
            }
            filters.push((name, values));
        }
        Ok(Self(filters))
    }

    /// Whether a thing with these tags matches. `values` gives what it has under a filter's name.
    pub(crate) fn hit(&self, tags: &Tags, values: impl Fn(&str) -> Vec<String>) -> bool {
        self.0.iter().all(|(name, expected)| {
            let has = match name.strip_prefix("tag:") {
                Some(key) => tags.get(key).cloned().into_iter().collect(),
                None if name == "tag-key" => tags.keys().cloned().collect(),
                None => values(name),
            };
            has.iter()
                .any(|value| expected.iter().any(|pattern| matches(pattern, value)))
        })
    }
}

/// Whether a text matches a pattern with `*` and `?`.
pub(crate) fn matches(pattern: &str, value: &str) -> bool {
    let (pattern, value): (Vec<char>, Vec<char>) = (pattern.chars().collect(), value.chars().collect());
    let (mut p, mut v, mut star) = (0, 0, None);
    while v < value.len() {
        match pattern.get(p) {
            Some('*') => {
                star = Some((p, v));
                p += 1;
            }
            Some(c) if *c == '?' || *c == value[v] => {
                p += 1;
                v += 1;
            }
            _ => match star {
                Some((at, from)) => {
                    p = at + 1;
                    v = from + 1;
                    star = Some((at, v));
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wildcards_match_any_text_and_one_character() {
        for (pattern, value) in [
            ("*", ""),
            ("a*c", "abbc"),
            ("a?c", "abc"),
            ("*a*", "xax"),
            ("a*b*c", "aXbYbc"),
        ] {
            assert!(matches(pattern, value), "{pattern} {value}");
        }
        for (pattern, value) in [
            ("", "a"),
            ("a?c", "ac"),
            ("a*c", "ab"),
            ("ec2:Describe*", "ec2:DeleteTags"),
        ] {
            assert!(!matches(pattern, value), "{pattern} {value}");
        }
    }
}
