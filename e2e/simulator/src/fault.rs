//! Fault rules: which calls go wrong. Decides and counts; what happens to a call (`A`) is the cloud's.

use regex::{Regex, RegexBuilder};
use serde::{Deserialize, Serialize, de::DeserializeOwned};

/// One rule: what it matches and what it does.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultRule<A> {
    /// Which calls.
    #[serde(rename = "match")]
    pub matches: FaultMatch,
    /// What happens to them.
    #[serde(rename = "do")]
    pub action: A,
}

/// Which calls a rule is for. Absent fields match everything.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FaultMatch {
    /// HTTP method, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// Unanchored, case-insensitive regular expression on the path without query.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<PathPattern>,
    /// The first of the matching calls that is hit, from 1.
    #[serde(default = "one")]
    pub from: u64,
    /// How many are hit.
    #[serde(default = "one")]
    pub times: u64,
    /// Who calls, as the journal names it, in any case.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub principal: Option<String>,
}

fn one() -> u64 {
    1
}

/// A compiled pattern that saves as its text.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct PathPattern(Regex);

impl TryFrom<String> for PathPattern {
    type Error = regex::Error;

    fn try_from(text: String) -> Result<Self, regex::Error> {
        RegexBuilder::new(&text).case_insensitive(true).build().map(Self)
    }
}

impl From<PathPattern> for String {
    fn from(pattern: PathPattern) -> Self {
        pattern.0.as_str().to_owned()
    }
}

/// When a connection is dropped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum DropWhen {
    /// Nothing was applied.
    Before,
    /// The call was applied.
    After,
}

/// Whether a call is carried out that is answered by `status` or dropped.
pub fn applies(status: Option<u16>, drop: Option<DropWhen>) -> bool {
    match drop {
        Some(DropWhen::After) => true,
        Some(DropWhen::Before) => false,
        None => status.is_none(),
    }
}

/// Why rules are refused.
#[derive(Debug, thiserror::Error)]
#[error("faults: {0}")]
pub struct FaultError(String);

/// Reads a list of rules. `wrong` names what is wrong with what a rule does.
///
/// # Errors
/// An unknown key, which is named, or a value out of range.
pub fn parse<A: DeserializeOwned>(
    json: &[u8],
    wrong: impl Fn(&A) -> Option<&'static str>,
) -> Result<Vec<FaultRule<A>>, FaultError> {
    let rules: Vec<FaultRule<A>> = serde_json::from_slice(json).map_err(|error| FaultError(error.to_string()))?;
    for (at, rule) in rules.iter().enumerate() {
        let never = (rule.matches.from == 0).then_some("`from` counts from 1");
        if let Some(why) = never.or_else(|| wrong(&rule.action)) {
            return Err(FaultError(format!("rule {at}: {why}")));
        }
    }
    Ok(rules)
}

/// What is wrong with the answer that a rule sets. `has_text`: it has a code or a message.
pub fn wrong_answer(status: Option<u16>, has_text: bool) -> Option<&'static str> {
    match status {
        None if has_text => Some("`code` and `message` need a `status`"),
        Some(..=99 | 600..) => Some("`status` is no HTTP status"),
        _ => None,
    }
}

/// The rules in force and how often each has matched.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Faults<A> {
    rules: Vec<(FaultRule<A>, u64)>,
}

impl<A> Default for Faults<A> {
    fn default() -> Self {
        Self { rules: vec![] }
    }
}

impl<A: Clone> Faults<A> {
    /// Replaces all rules and their counts.
    pub fn set(&mut self, rules: Vec<FaultRule<A>>) {
        self.rules = rules.into_iter().map(|rule| (rule, 0)).collect();
    }

    /// Counts the call for every rule up to the one that hits it, and returns that one's action.
    pub fn hit(&mut self, method: &str, path: &str, principal: &str) -> Option<A> {
        for (rule, count) in &mut self.rules {
            let criteria = &rule.matches;
            let matches = criteria
                .method
                .as_ref()
                .is_none_or(|expected| expected.eq_ignore_ascii_case(method))
                && criteria.path.as_ref().is_none_or(|pattern| pattern.0.is_match(path))
                && criteria
                    .principal
                    .as_ref()
                    .is_none_or(|expected| expected.eq_ignore_ascii_case(principal));
            if !matches {
                continue;
            }
            *count += 1;
            if *count >= criteria.from && *count - criteria.from < criteria.times {
                return Some(rule.action.clone());
            }
        }
        None
    }
}
