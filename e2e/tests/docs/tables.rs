//! Tables that list what is elsewhere: rights, codes, refusals, and the defences of SECURITY.md.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use regex::Regex;

use crate::source::product;

pub(crate) fn read(path: &str) -> Result<String> {
    std::fs::read_to_string(e2e::repository().join(path)).with_context(|| path.to_owned())
}

/// The first group of each match.
pub(crate) fn all(pattern: &str, text: &str) -> Result<BTreeSet<String>> {
    let pattern = Regex::new(pattern)?;
    Ok(pattern.captures_iter(text).map(|found| found[1].to_owned()).collect())
}

/// The text between `start` and the next `end`.
pub(crate) fn between<'a>(text: &'a str, start: &str, end: &str) -> Result<&'a str> {
    let (_, rest) = text.split_once(start).with_context(|| format!("no {start:?}"))?;
    let (inside, _) = rest.split_once(end).with_context(|| format!("no {end:?}"))?;
    Ok(inside)
}

#[test]
fn every_file_of_rights_has_a_row_and_each_that_is_named_exists() -> Result<()> {
    let mut files = BTreeSet::new();
    for entry in std::fs::read_dir(e2e::repository().join("charts/hyperlink/files"))? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        files.extend(name.starts_with("role-").then_some(name));
    }
    let rows = all(
        r"(?m)^\| `charts/hyperlink/files/(role-[a-z-]+\.yaml)`",
        &read("docs/permissions.md")?,
    )?;
    assert_eq!(rows, files);
    let changed = all(r"`(role-[a-z-]+\.yaml)`", &read("CHANGELOG.md")?)?;
    ensure!(!changed.is_empty() && changed.is_subset(&files), "{changed:?}");
    Ok(())
}

#[test]
fn every_sentence_of_advice_has_a_row_and_no_other() -> Result<()> {
    let source = read("src/azure/arm/error.rs")?;
    let advice = between(&source, "pub fn advice(", "\n    }\n")?;
    let in_sources = all(r#""([A-Za-z][^"\n]* [^"\n]*)""#, advice)?;
    let runbook = read("RUNBOOK.md")?;
    let table = between(&runbook, "| the message ends with |", "\n\n")?;
    assert_eq!(all(r"(?m)^\| `([^`]+)`", table)?, in_sources);
    Ok(())
}

#[test]
fn every_code_of_our_own_is_in_the_runbook() -> Result<()> {
    let mut own = BTreeSet::from([
        hyperlink::engine::failure::CALL_BUDGET_EXHAUSTED.to_owned(),
        hyperlink::azure::arm::error::TOO_MANY_UNANSWERED.to_owned(),
        hyperlink::engine::failure::NOT_READ_YET.to_owned(),
        "TokenRefused".to_owned(),
    ]);
    for folder in ["src/azure/arm", "src/engine", "src/engine/observation_cache"] {
        for entry in std::fs::read_dir(e2e::repository().join(folder))? {
            let path = entry?.path();
            let is_of_tests = path.ends_with("sample.rs") || path.ends_with("tests.rs");
            if path.extension().is_some_and(|ending| ending == "rs") && !is_of_tests {
                let text = std::fs::read_to_string(path)?;
                let lines: Vec<&str> = product(&text).collect();
                own.extend(all(r#"Class::\w+, "([A-Z]\w+)"\)"#, &lines.join("\n"))?);
            }
        }
    }
    let runbook = read("RUNBOOK.md")?;
    let documented = between(&runbook, "own, where Azure said none:", "`Http`")?;
    assert_eq!(all(r"`(\w+)`", documented)?, own);
    Ok(())
}

#[test]
fn every_refusal_by_the_allowed_scopes_is_quoted() -> Result<()> {
    let mut in_sources = BTreeSet::new();
    for file in ["scopes.rs", "azure/scopes.rs", "aws/scopes.rs"] {
        let source = read(&format!("src/hypershift/{file}"))?;
        in_sources.extend(all(r#""([^"\n]* (?:allowed scopes[^"\n]*|in the network))""#, &source)?);
    }
    ensure!(in_sources.len() == 8, "{in_sources:?}");
    let runbook = read("RUNBOOK.md")?;
    let entry = between(&runbook, "### ScopeNotAllowed", "\n### ")?;
    for message in &in_sources {
        let message = message.replace("{field}", "baseDomain").replace("{what}", "…");
        let message = message.replace("{lack} {value}", "vpcIDs lacks ID");
        ensure!(
            entry.contains(&format!("`{message}`")),
            "RUNBOOK.md does not quote {message:?}"
        );
    }
    Ok(())
}

#[test]
fn every_defence_names_a_test_that_exists() -> Result<()> {
    let security = read("SECURITY.md")?;
    let rows = between(&security, "| whom it is against |", "\n\n")?;
    for row in rows.lines().skip(2) {
        let tests = all(r"`((?:src|tests|e2e)/[^`]+)`", row)?;
        ensure!(!tests.is_empty(), "names no test: {row}");
        for test in tests {
            let (file, function) = test.split_once('#').unwrap_or((&test, ""));
            let there = read(file)?.contains(&format!("fn {function}"));
            ensure!(there, "no test {test}");
        }
    }
    Ok(())
}
