//! Differences that are right, each with its reason: the rules of a YAML list, and what the service did otherwise once.

use jiff::civil::Date;
use jiff::{Timestamp, tz::TimeZone};
use regex::Regex;
use serde::Deserialize;

use super::compare::Difference;
use super::report::Line;

/// One reason and what it is for. Absent conditions hold.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rule {
    /// Part of the cassette's file name.
    #[serde(default)]
    cassette: String,
    /// Found in `METHOD path`.
    #[serde(default)]
    exchange: String,
    /// Found in the difference as it is printed.
    #[serde(default)]
    difference: String,
    /// Only for recordings that say that they are older than this day.
    #[serde(default)]
    before: Option<Date>,
    reason: String,
}

struct Compiled {
    rule: Rule,
    exchange: Regex,
    difference: Regex,
    used: bool,
}

/// Rules that hold for every recording of their time.
const ERAS: &str = include_str!("eras.yaml");

/// All reasons, and which of them were of use.
pub struct Explained {
    given: Vec<Compiled>,
    eras: Vec<Compiled>,
}

impl Default for Explained {
    fn default() -> Self {
        Self {
            given: vec![],
            // Part of the build; its form is tested.
            eras: compile(ERAS).unwrap_or_default(),
        }
    }
}

/// Why a list of reasons is refused.
#[derive(Debug, thiserror::Error)]
pub enum ExplainedError {
    /// Not the form of such a list.
    #[error("explained differences: {0}")]
    Form(#[from] serde_saphyr::Error),
    /// A pattern that does not compile.
    #[error("explained differences: {0}")]
    Pattern(#[from] regex::Error),
}

impl Explained {
    /// Reads a YAML list of `{cassette?, exchange?, difference?, before?, reason}`: part of the file's name,
    /// two regular expressions, and a date.
    pub fn parse(yaml: &str) -> Result<Self, ExplainedError> {
        let given = compile(yaml)?;
        Ok(Self {
            given,
            ..Self::default()
        })
    }

    /// Why a difference is right.
    pub(super) fn reason(
        &mut self,
        (cassette, recorded): (&str, Option<Timestamp>),
        line: &Line,
        difference: &Difference,
    ) -> Option<String> {
        let day = recorded.map(|recorded| recorded.to_zoned(TimeZone::UTC).date());
        let exchange = format!("{} {}", line.method, line.path);
        let printed = difference.to_string();
        let found = self.given.iter_mut().chain(&mut self.eras).find(|known| {
            cassette.contains(&known.rule.cassette)
                && known
                    .rule
                    .before
                    .is_none_or(|before| day.is_some_and(|day| day < before))
                && known.exchange.is_match(&exchange)
                && known.difference.is_match(&printed)
        })?;
        found.used = true;
        Some(found.rule.reason.clone())
    }

    /// How many reasons were given.
    pub fn given(&self) -> usize {
        self.given.len()
    }

    /// Given reasons that explained nothing.
    pub fn unused(&self) -> Vec<&str> {
        let unused = self.given.iter().filter(|known| !known.used);
        unused.map(|known| known.rule.reason.as_str()).collect()
    }
}

fn compile(yaml: &str) -> Result<Vec<Compiled>, ExplainedError> {
    let rules: Vec<Rule> = serde_saphyr::from_str(yaml)?;
    let compiled = rules.into_iter().map(|rule| {
        Ok(Compiled {
            exchange: Regex::new(&rule.exchange)?,
            difference: Regex::new(&rule.difference)?,
            rule,
            used: false,
        })
    });
    compiled.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_once_has_an_end() {
        let eras = compile(ERAS).unwrap();
        assert!(!eras.is_empty());
        assert!(eras.iter().all(|era| era.rule.before.is_some()));
    }
}
