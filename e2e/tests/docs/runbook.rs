//! RUNBOOK.md has an entry for each reason and each alert, none for anything else, and quotes what the code can say.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::runbook::{Entry, entries};
use hyperlink::api::{ConditionType, Reason};

use crate::source::Texts;

fn chapter(name: &str) -> Result<Vec<Entry>> {
    let mut found = entries()?;
    found.retain(|entry| entry.chapter == name);
    Ok(found)
}

/// The lines of an entry that quote a condition: type, status and message.
fn quoted(entry: &Entry) -> Result<Vec<(&str, &str, &str)>> {
    let mut found = Vec::new();
    for line in entry.text.lines() {
        let Some((condition, message)) = line.split_once(&format!(" {}: ", entry.name)) else {
            continue;
        };
        let (kind, status) = condition.split_once('=').context("no status")?;
        found.push((kind, status, message));
    }
    Ok(found)
}

#[test]
fn every_reason_has_an_entry_and_every_entry_a_reason() -> Result<()> {
    let entries = chapter("Reasons")?;
    let names: Vec<&str> = entries.iter().map(|entry| entry.name.as_str()).collect();
    let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
    assert_eq!(names, reasons);
    Ok(())
}

#[test]
fn every_reason_is_quoted_as_the_code_says_it() -> Result<()> {
    let texts = Texts::of_the_product()?;
    for entry in chapter("Reasons")? {
        let quotes = quoted(&entry)?;
        ensure!(!quotes.is_empty(), "{} quotes no condition", entry.name);
        for (kind, status, message) in quotes {
            let known = ConditionType::ALL.iter().any(|one| one.as_str() == kind);
            ensure!(
                known && ["True", "False"].contains(&status),
                "{}: {kind}={status}",
                entry.name
            );
            ensure!(texts.can_say(message), "{}: nothing says {message:?}", entry.name);
        }
    }
    Ok(())
}

#[test]
fn every_entry_says_what_it_means_and_what_to_do() -> Result<()> {
    for entry in chapter("Reasons")?.into_iter().chain(chapter("Alerts")?) {
        ensure!(entry.text.contains("**Means:**"), "{}", entry.name);
        ensure!(
            entry.text.contains("**Do:**") || entry.text.contains("**Look and do:**"),
            "{}",
            entry.name
        );
    }
    Ok(())
}

#[test]
fn every_reason_is_seen_by_a_test_that_exists() -> Result<()> {
    for entry in chapter("Reasons")? {
        let seen = entry
            .text
            .split_once("Seen by `")
            .and_then(|(_, rest)| rest.split_once('`'));
        let (seen, _) = seen.with_context(|| format!("{} names no test", entry.name))?;
        let (file, function) = seen.split_once('#').with_context(|| seen.to_owned())?;
        let text = std::fs::read_to_string(e2e::repository().join(file)).with_context(|| seen.to_owned())?;
        ensure!(text.contains(&format!("fn {function}(")), "no test {seen}");
    }
    Ok(())
}

/// The names of the lines of `/readyz`, as the process makes them.
fn readiness_items() -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(e2e::repository().join("src/manager.rs"))?;
    let made = text.split("item(\"").skip(1).filter_map(|rest| rest.split_once('"'));
    let made: BTreeSet<_> = made.map(|(name, _)| name.to_owned()).collect();
    ensure!(made.contains("azure token") && made.contains("rights"), "{made:?}");
    Ok(made)
}

#[test]
fn every_line_of_readyz_is_shown_and_explained_and_no_other() -> Result<()> {
    let entries = chapter("First look")?;
    let readyz = entries.iter().find(|entry| entry.name == "readyz");
    let text = &readyz.context("no entry")?.text;
    let sample = text.lines().filter_map(|line| line.strip_prefix("[+] "));
    let names = sample.filter_map(|line| line.split([':', '(']).next());
    let shown: BTreeSet<_> = names.map(|name| name.trim().to_owned()).collect();
    let rows = text.lines().filter_map(|line| line.strip_prefix("| `"));
    let names = rows.filter_map(|row| row.split_once("` |"));
    let explained: BTreeSet<_> = names.map(|(name, _)| name.to_owned()).collect();
    assert_eq!(shown, readiness_items()?);
    assert_eq!(explained, shown);
    Ok(())
}

#[test]
fn settings_for_a_plan_in_the_pod_are_those_that_plan_takes() -> Result<()> {
    let runbook = std::fs::read_to_string(e2e::repository().join("RUNBOOK.md"))?;
    let found = runbook.split_once("test(\"^--(");
    let found = found.and_then(|(_, rest)| rest.split_once(')'));
    let left_out: Vec<_> = found.context("nothing is left out")?.0.split('|').collect();
    let settings = std::fs::read_to_string(e2e::repository().join("docs/configuration.md"))?;
    let rows = settings.lines().filter_map(|line| line.strip_prefix("| `--"));
    let rows: Vec<_> = rows.filter_map(|row| row.split_once('`')).collect();
    ensure!(rows.len() > 20, "read only {} settings", rows.len());
    for (flag, rest) in rows {
        let of_run_alone = rest.starts_with(" ¹ |");
        let is_left_out = left_out.iter().any(|start| flag.starts_with(start));
        ensure!(of_run_alone == is_left_out, "--{flag}");
    }
    Ok(())
}

#[test]
fn every_alert_has_an_entry_and_leads_to_it() -> Result<()> {
    let path = e2e::repository().join("charts/hyperlink/files/alerts.yaml");
    let alerts: serde_json::Value = serde_yaml_ng::from_str(&std::fs::read_to_string(path)?)?;
    let groups = alerts["groups"].as_array().context("no groups")?;
    let rules = groups.iter().flat_map(|group| group["rules"].as_array()).flatten();
    let mut names = BTreeSet::new();
    for rule in rules {
        let Some(name) = rule["alert"].as_str() else { continue };
        let url = rule["annotations"]["runbook_url"].as_str().unwrap_or_default();
        let anchor = format!("/RUNBOOK.md#{}", name.to_lowercase());
        ensure!(url.ends_with(&anchor), "{name} leads to {url:?}");
        names.insert(name.to_owned());
    }
    ensure!(!names.is_empty(), "no alerts");
    let entries: BTreeSet<String> = chapter("Alerts")?.into_iter().map(|entry| entry.name).collect();
    assert_eq!(entries, names);
    Ok(())
}
