//! What came out: one verdict per exchange and their counts, for people and for programs.

use std::collections::BTreeMap;
use std::fmt;

use serde::Serialize;

use super::compare::{Difference, DifferenceKind};

/// Stand-ins that are named one by one; a list of a whole subscription can need many.
const MOST_SEEDED: usize = 6;

/// How one exchange was answered, compared with its recording.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// Answered as recorded.
    Same,
    /// Answered otherwise.
    Differs,
    /// Answered otherwise, for reasons given.
    Explained,
    /// Not played.
    Skipped,
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Self::Same => "same",
            Self::Differs => "differs",
            Self::Explained => "explained",
            Self::Skipped => "skipped",
        }
    }
}

/// A difference and, where there is one, the reason why it is right.
#[derive(Clone, Debug, Serialize)]
pub struct Finding {
    /// What differs.
    #[serde(flatten)]
    pub difference: Difference,
    /// Why it is right.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub explained: Option<String>,
}

/// One exchange.
#[derive(Clone, Debug, Serialize)]
pub struct Line {
    /// Counted from 1.
    pub exchange: usize,
    /// The verdict.
    pub verdict: Verdict,
    /// The HTTP method.
    pub method: String,
    /// The path without subscription, group and provider.
    pub path: String,
    /// The recorded status.
    pub recorded: u16,
    /// The simulator's status; nothing for one that was not played.
    #[serde(rename = "ours", skip_serializing_if = "Option::is_none")]
    pub simulated: Option<u16>,
    /// Why it was not played.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<String>,
    /// Ids of stand-ins made for it.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub seeded: Vec<String>,
    /// All differences.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub differences: Vec<Finding>,
}

impl fmt::Display for Line {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            exchange,
            verdict,
            method,
            path,
            recorded,
            ..
        } = self;
        write!(out, "{exchange:4} {:9} {method:6} {path} {recorded}", verdict.word())?;
        if let Some(simulated) = self.simulated.filter(|simulated| simulated != recorded) {
            write!(out, " ({simulated})")?;
        }
        if let Some(reason) = &self.reason {
            write!(out, "  {reason}")?;
        }
        for id in self.seeded.iter().take(MOST_SEEDED) {
            write!(out, "\n       seeded {id}")?;
        }
        if self.seeded.len() > MOST_SEEDED {
            write!(out, "\n       seeded {} more", self.seeded.len() - MOST_SEEDED)?;
        }
        for Finding { difference, explained } in &self.differences {
            write!(out, "\n       {difference}")?;
            if let Some(reason) = explained {
                write!(out, "\n         explained: {reason}")?;
            }
        }
        Ok(())
    }
}

/// How often each verdict was given.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct Counts {
    /// Answered as recorded.
    pub same: usize,
    /// Answered otherwise without a reason.
    pub differs: usize,
    /// Answered otherwise with a reason.
    pub explained: usize,
    /// Answered as recorded but for words and letter case.
    pub other_words: usize,
    /// Stand-ins made.
    pub seeded: usize,
    /// Not played, by reason.
    pub skipped: BTreeMap<String, usize>,
}

impl Counts {
    /// Exchanges that were played.
    pub fn compared(&self) -> usize {
        self.same + self.differs + self.explained
    }

    /// Adds one exchange.
    pub fn add(&mut self, line: &Line) {
        match line.verdict {
            Verdict::Same => self.same += 1,
            Verdict::Differs => self.differs += 1,
            Verdict::Explained => self.explained += 1,
            Verdict::Skipped => {
                let reason = line.reason.clone().unwrap_or_default();
                *self.skipped.entry(reason).or_default() += 1;
            }
        }
        let words = |finding: &Finding| finding.difference.kind == DifferenceKind::Text;
        self.other_words += usize::from(line.verdict == Verdict::Same && line.differences.iter().any(words));
        self.seeded += line.seeded.len();
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let skipped: usize = self.skipped.values().sum();
        write!(
            out,
            "{} compared: {} same ({} in other words), {} explained, {} differ; {skipped} skipped, {} stand-ins seeded",
            self.compared(),
            self.same,
            self.other_words,
            self.explained,
            self.differs,
            self.seeded
        )?;
        for (reason, times) in &self.skipped {
            write!(out, "\n{times:6} skipped: {reason}")?;
        }
        Ok(())
    }
}
