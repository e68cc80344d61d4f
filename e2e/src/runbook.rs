//! RUNBOOK.md as tests read it: an entry for each condition reason and each alert, which quotes observed conditions.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::hosted_cluster::Condition;

/// One entry, which is a `###` section of RUNBOOK.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The heading of the `##` section that it is in.
    pub chapter: String,
    /// The reason or alert that the entry explains.
    pub name: String,
    /// The text below the heading.
    pub text: String,
}

/// All entries, in their order.
///
/// # Errors
///
/// The file cannot be read.
pub fn entries() -> Result<Vec<Entry>> {
    let path = crate::repository().join("RUNBOOK.md");
    let text = std::fs::read_to_string(&path).with_context(|| format!("read {}", path.display()))?;
    Ok(split(&text))
}

fn split(text: &str) -> Vec<Entry> {
    let (mut chapter, mut entries) = (String::new(), Vec::<Entry>::new());
    for line in text.lines() {
        if let Some(heading) = line.strip_prefix("## ") {
            heading.clone_into(&mut chapter);
        } else if let Some(name) = line.strip_prefix("### ") {
            entries.push(Entry {
                chapter: chapter.clone(),
                name: name.to_owned(),
                text: String::new(),
            });
        } else if let Some(entry) = entries.last_mut().filter(|entry| entry.chapter == chapter) {
            entry.text.push_str(line);
            entry.text.push('\n');
        }
    }
    entries
}

/// Fails unless the entry of the condition's reason quotes it: a line `type=status reason: message`.
///
/// # Errors
///
/// The entry does not, or RUNBOOK.md cannot be read.
pub fn quotes(condition: &Condition) -> Result<()> {
    let Condition {
        kind,
        status,
        reason,
        message,
        ..
    } = condition;
    quotes_line(reason, format!("{kind}={status} {reason}: {message}").trim_end())
}

/// Fails unless the entry of this name has this line.
///
/// # Errors
///
/// The entry does not, or RUNBOOK.md cannot be read.
pub fn quotes_line(name: &str, line: &str) -> Result<()> {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    if ENTRIES.get().is_none() {
        // Another thread that reads the file at the same time reads the same text.
        let _ = ENTRIES.set(entries()?);
    }
    let own = ENTRIES.get().into_iter().flatten().filter(|entry| entry.name == name);
    let quoted = own.flat_map(|entry| entry.text.lines()).any(|quoted| quoted == line);
    ensure!(quoted, "RUNBOOK.md, {name} does not quote: {line}");
    Ok(())
}

/// The placeholder in quotes for what differs each time, such as a number or a duration.
const GAP: char = '…';

/// A line that an entry quotes: `NAME{LABEL="VALUE",…} TEXT`, as an alert with its summary or a sample with its value.
/// The text may have gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    /// The name of the alert or of the metric.
    pub name: String,
    /// All labels with their values.
    pub labels: BTreeMap<String, String>,
    /// The summary or the value.
    pub text: String,
}

impl Quote {
    /// Parses a line of this form; none if it has another form.
    pub fn read(line: &str) -> Option<Self> {
        let (series, text) = match line.split_once("} ") {
            Some((series, text)) => (series, text),
            None => line.split_once(' ')?,
        };
        let (name, labels) = series.split_once('{').unwrap_or((series, ""));
        let is_name = !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let pairs = labels.split(',').filter(|pair| !pair.is_empty());
        let pairs = pairs.map(|pair| {
            let (label, value) = pair.split_once("=\"")?;
            Some((label.to_owned(), value.strip_suffix('"')?.to_owned()))
        });
        let labels = pairs.collect::<Option<_>>()?;
        is_name.then(|| Self {
            name: name.to_owned(),
            labels,
            text: text.to_owned(),
        })
    }

    /// Whether this quote fits what was observed, with anything in the gaps.
    pub fn fits(&self, observed: &Self) -> bool {
        let parts: Vec<_> = self.text.split(GAP).map(str::to_owned).collect();
        self.name == observed.name && self.labels == observed.labels && fits(&observed.text, &parts)
    }
}

/// The alerts that the entry of this name quotes: lines that begin with its name.
///
/// # Errors
///
/// The entry quotes no alert, or RUNBOOK.md cannot be read.
pub fn quoted_alerts(name: &str) -> Result<Vec<Quote>> {
    let mut found = quoted(name)?;
    found.retain(|quote| quote.name == name);
    ensure!(!found.is_empty(), "RUNBOOK.md, {name} quotes no alert");
    Ok(found)
}

/// Fails unless each sample that the entry of this name quotes is on one of these pages of metrics.
///
/// # Errors
///
/// A sample is on no page, the entry quotes no sample, or RUNBOOK.md cannot be read.
pub fn quotes_samples_of(name: &str, pages: &[String]) -> Result<()> {
    let mut samples = quoted(name)?;
    samples.retain(|quote| quote.name.starts_with("hyperlink_"));
    ensure!(!samples.is_empty(), "RUNBOOK.md, {name} quotes no sample");
    let lines = pages.iter().flat_map(|page| page.lines());
    let observed: Vec<_> = lines.filter_map(Quote::read).collect();
    for sample in samples {
        let shown = observed.iter().any(|observed| sample.fits(observed));
        ensure!(shown, "RUNBOOK.md, {name}: no page has {sample:?}");
    }
    Ok(())
}

/// All quotes in the entry of this name.
fn quoted(name: &str) -> Result<Vec<Quote>> {
    let all = entries()?;
    let entry = all.iter().find(|entry| entry.name == name);
    let text = &entry.with_context(|| format!("RUNBOOK.md has no {name}"))?.text;
    Ok(text.lines().filter_map(Quote::read).collect())
}

/// Whether `text` consists of these parts, with anything between them.
pub fn fits(text: &str, parts: &[String]) -> bool {
    let [first, between @ .., last] = parts else {
        return parts.first().is_some_and(|only| only == text);
    };
    let Some(mut rest) = text.strip_prefix(first.as_str()) else {
        return false;
    };
    for part in between {
        match rest.split_once(part.as_str()) {
            Some((_, after)) => rest = after,
            None => return false,
        }
    }
    rest.ends_with(last.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entry_is_what_stands_below_its_heading() {
        let entries = split("# R\n\nx\n\n## Reasons\n\ny\n\n### A\n\none\n\n### B\ntwo\n\n## More\n\nthree\n");
        let entry = |name: &str, text: &str| Entry {
            chapter: "Reasons".into(),
            name: name.into(),
            text: text.into(),
        };
        assert_eq!(entries, [entry("A", "\none\n\n"), entry("B", "two\n\n")]);
    }

    #[test]
    fn quote_fits_the_same_labels_and_any_number_in_the_gap() {
        let read = |line| Quote::read(line).unwrap();
        let quote = read("A{job=\"ho\",severity=\"warning\"} It ends in … and stays.");
        assert!(quote.fits(&read("A{severity=\"warning\",job=\"ho\"} It ends in 3m 2s and stays.")));
        for other in [
            "B{job=\"ho\",severity=\"warning\"} It ends in 1s and stays.",
            "A{job=\"cpo\",severity=\"warning\"} It ends in 1s and stays.",
            "A{job=\"ho\"} It ends in 1s and stays.",
            "A{job=\"ho\",severity=\"warning\"} It ends in 1s and goes.",
        ] {
            assert!(!quote.fits(&read(other)), "{other}");
        }
        assert!(read("x_total{a=\"b\"} …").fits(&read("x_total{a=\"b\"} 12")));
        assert_eq!(read("x 1").labels.len(), 0);
        assert_eq!(Quote::read("| `x` | y |"), None);
    }
}
