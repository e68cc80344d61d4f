//! RUNBOOK.md about role `capz`: a row for each reason of its condition and each Event, none for anything else, and
//! messages that the code can produce.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::runbook::{Entry, entries};
use hyperlink::api::markers::capz::CONDITION;
use hyperlink::capz::reason::Reason;

use crate::source::{Texts, product};
use crate::tables::{all, between, read};

fn entry(name: &str) -> Result<Entry> {
    let found = entries()?.into_iter().find(|entry| entry.name == name);
    found.with_context(|| format!("RUNBOOK.md has no {name}"))
}

/// The first cells of the rows of an entry's tables, without the headings.
fn first_cells(entry: &Entry) -> Vec<&str> {
    let rows = entry.text.lines().filter_map(|line| line.strip_prefix("| `"));
    rows.filter_map(|row| row.split_once(" | "))
        .map(|(cell, _)| cell)
        .collect()
}

fn reasons() -> Vec<&'static str> {
    Reason::ALL.iter().map(|reason| reason.as_str()).collect()
}

#[test]
fn every_reason_of_capz_has_a_row_and_no_other() -> Result<()> {
    let entry = entry(CONDITION)?;
    let rows: Vec<_> = first_cells(&entry)
        .into_iter()
        .map(|cell| cell.trim_end_matches('`'))
        .collect();
    assert_eq!(rows, reasons());
    Ok(())
}

#[test]
fn every_reason_of_capz_is_quoted_as_the_code_has_it() -> Result<()> {
    let (entry, texts) = (entry(CONDITION)?, Texts::of_the_product()?);
    let start = format!("{CONDITION}=False ");
    let mut quoted = Vec::new();
    for line in entry.text.lines().filter_map(|line| line.strip_prefix(&start)) {
        let (reason, message) = line.split_once(": ").context("no message")?;
        ensure!(texts.can_produce(message), "{reason}: nothing says {message:?}");
        quoted.push(reason);
    }
    quoted.dedup();
    assert_eq!(quoted, reasons());
    Ok(())
}

/// The reasons of the Events that the role's controllers write.
fn events() -> Result<BTreeSet<String>> {
    let source = read("src/runtime/event.rs")?;
    let table = between(&source, "pub fn reason(", "\n    }\n")?;
    let reason_of = |what: &str| -> Result<String> {
        let found = all(&format!(r#"What::{what} => "(\w+)""#), table)?;
        found.into_iter().next().with_context(|| format!("no reason of {what}"))
    };
    let (mut found, mut folders) = (BTreeSet::new(), vec![e2e::repository().join("src/controllers/capz")]);
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder)? {
            let path = entry?.path();
            if path.is_dir() {
                folders.push(path);
            } else if !path.ends_with("tests.rs") {
                let text = std::fs::read_to_string(path)?;
                let code: Vec<&str> = product(&text).collect();
                found.extend(all(r"\bWhat::(\w+)", &code.join("\n"))?);
            }
        }
    }
    found.iter().map(|what| reason_of(what)).collect()
}

#[test]
fn every_event_of_capz_has_a_row_and_no_other() -> Result<()> {
    let entry = entry("Events of role capz")?;
    let cells = first_cells(&entry);
    let rows = cells.iter().flat_map(|cell| cell.split(", "));
    let mut counts = BTreeMap::<String, usize>::new();
    for event in rows {
        *counts.entry(event.trim_matches('`').to_owned()).or_default() += 1;
    }
    ensure!(counts.values().all(|count| *count == 1), "{counts:?}");
    assert_eq!(counts.into_keys().collect::<BTreeSet<_>>(), events()?);
    Ok(())
}
