//! RUNBOOK.md as tests read it: an entry for each condition reason and each alert, with conditions as they were seen.

use std::sync::OnceLock;

use anyhow::{Context, Result, ensure};

use crate::hosted_cluster::Condition;

/// One `###` of RUNBOOK.md.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// The `##` above it.
    pub chapter: String,
    /// The reason or alert that it is for.
    pub name: String,
    /// What it says.
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
/// It does not, or RUNBOOK.md cannot be read.
pub fn quotes(condition: &Condition) -> Result<()> {
    let Condition {
        kind,
        status,
        reason,
        message,
    } = condition;
    quotes_line(reason, &format!("{kind}={status} {reason}: {message}"))
}

/// Fails unless the entry of this name has this line.
///
/// # Errors
///
/// It does not, or RUNBOOK.md cannot be read.
pub fn quotes_line(name: &str, line: &str) -> Result<()> {
    static ENTRIES: OnceLock<Vec<Entry>> = OnceLock::new();
    if ENTRIES.get().is_none() {
        // Whoever reads it at the same time reads the same.
        let _ = ENTRIES.set(entries()?);
    }
    let own = ENTRIES.get().into_iter().flatten().filter(|entry| entry.name == name);
    let quoted = own.flat_map(|entry| entry.text.lines()).any(|quoted| quoted == line);
    ensure!(quoted, "RUNBOOK.md, {name} does not quote: {line}");
    Ok(())
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
}
