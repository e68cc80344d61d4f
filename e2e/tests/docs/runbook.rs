//! RUNBOOK.md has an entry for each reason and each alert, none for anything else, and quotes texts that the code can
//! produce.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::runbook::{Entry, Quote, entries, fits, quoted_alerts};
use hyperlink::api::{ConditionType, Reason};
use hyperlink::telemetry::FIELDS;
use regex::Regex;
use serde_json::Value;

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
        let Some((condition, message)) = line.split_once(&format!(" {}:", entry.name)) else {
            continue;
        };
        let message = message.trim_start();
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
fn every_reason_is_quoted_as_the_code_has_it() -> Result<()> {
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
            // HyperShift has no message for what is well on AWS.
            let is_empty = message.is_empty() && entry.name == Reason::AWSSuccess.as_str();
            ensure!(
                is_empty || texts.can_produce(message),
                "{}: nothing says {message:?}",
                entry.name
            );
        }
    }
    Ok(())
}

#[test]
fn every_entry_explains_its_problem_and_what_to_do() -> Result<()> {
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
fn every_reason_and_alert_names_a_test_that_exists() -> Result<()> {
    for entry in chapter("Reasons")?.into_iter().chain(chapter("Alerts")?) {
        let test = entry
            .text
            .split_once("Seen by `")
            .and_then(|(_, rest)| rest.split_once('`'));
        let (test, _) = test.with_context(|| format!("{} names no test", entry.name))?;
        let (file, function) = test.split_once('#').with_context(|| test.to_owned())?;
        let text = std::fs::read_to_string(e2e::repository().join(file)).with_context(|| test.to_owned())?;
        ensure!(text.contains(&format!("fn {function}(")), "no test {test}");
    }
    Ok(())
}

/// The names of the lines of `/readyz`, as the process makes them.
fn readiness_items() -> Result<BTreeSet<String>> {
    let text = std::fs::read_to_string(e2e::repository().join("src/manager/items.rs"))?;
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

/// The rules of alerts, by their names.
fn rules() -> Result<BTreeMap<String, Value>> {
    let path = e2e::repository().join("charts/hyperlink/files/alerts.yaml");
    let alerts: Value = serde_saphyr::from_str(&std::fs::read_to_string(path)?)?;
    let groups = alerts["groups"].as_array().context("no groups")?;
    let rules = groups.iter().flat_map(|group| group["rules"].as_array()).flatten();
    let named = rules.filter_map(|rule| Some((rule["alert"].as_str()?.to_owned(), rule.clone())));
    let named: BTreeMap<_, _> = named.collect();
    ensure!(!named.is_empty(), "no alerts");
    Ok(named)
}

#[test]
fn every_alert_has_an_entry_and_leads_to_it() -> Result<()> {
    let rules = rules()?;
    for (name, rule) in &rules {
        let url = rule["annotations"]["runbook_url"].as_str().unwrap_or_default();
        let anchor = format!("/RUNBOOK.md#{}", name.to_lowercase());
        ensure!(url.ends_with(&anchor), "{name} leads to {url:?}");
    }
    let entries: BTreeSet<String> = chapter("Alerts")?.into_iter().map(|entry| entry.name).collect();
    assert_eq!(entries, rules.into_keys().collect());
    Ok(())
}

/// Whether an alert of this rule can have the quoted labels and summary.
fn rule_can_produce(rule: &Value, quote: &Quote) -> Result<bool> {
    let expression = rule["expr"].as_str().context("no expression")?;
    let by = Regex::new(r"by \(([^)]+)\)")?;
    let kept_labels = by.captures(expression).context("a rule that keeps all labels")?;
    let own = rule["labels"].as_object().context("no labels")?;
    let mut names: BTreeSet<&str> = kept_labels[1].split(',').map(str::trim).collect();
    names.extend(own.keys().map(String::as_str));
    let has = |(label, value): (&String, &Value)| quote.labels.get(label).map(String::as_str) == value.as_str();
    let labels = quote.labels.keys().map(String::as_str).eq(names) && own.iter().all(has);

    let mut template = rule["annotations"]["summary"]
        .as_str()
        .context("no summary")?
        .to_owned();
    for (label, value) in &quote.labels {
        template = template.replace(&format!("{{{{ $labels.{label} }}}}"), value);
    }
    let parts: Vec<_> = Regex::new(r"\{\{ \$value[^}]*\}\}")?
        .split(&template)
        .map(str::to_owned)
        .collect();
    Ok(labels && !template.contains("$labels") && fits(&quote.text, &parts))
}

#[test]
fn every_alert_is_quoted_as_its_rule_has_it() -> Result<()> {
    for (name, rule) in rules()? {
        for quote in quoted_alerts(&name)? {
            ensure!(rule_can_produce(&rule, &quote)?, "{name} cannot tell {quote:?}");
        }
    }
    Ok(())
}

#[test]
fn quote_with_another_label_or_summary_is_found() -> Result<()> {
    let rule = serde_json::json!({"expr": "sum by (job, kind) (x) > 5", "labels": {"severity": "warning"},
        "annotations": {"summary": "{{ $value }} of {{ $labels.kind }} are gone."}});
    for (line, right) in [
        (r#"A{job="j",kind="k",severity="warning"} 7 of k are gone."#, true),
        (r#"A{job="j",kind="k",severity="warning"} … of k are gone."#, true),
        (r#"A{job="j",kind="k",severity="warning"} 7 of l are gone."#, false),
        (r#"A{job="j",kind="k",severity="critical"} 7 of k are gone."#, false),
        (
            r#"A{job="j",kind="k",pod="p",severity="warning"} 7 of k are gone."#,
            false,
        ),
        (r#"A{kind="k",severity="warning"} 7 of k are gone."#, false),
    ] {
        ensure!(
            rule_can_produce(&rule, &Quote::read(line).context(line)?)? == right,
            "{line}"
        );
    }
    Ok(())
}

/// The labels of each metric with their values, from the reference. A label without values there is described in words.
fn metrics() -> Result<BTreeMap<String, BTreeMap<String, Vec<String>>>> {
    let text = std::fs::read_to_string(e2e::repository().join("docs/metrics.md"))?;
    let mut metrics: BTreeMap<String, BTreeMap<_, _>> = BTreeMap::new();
    let (all, labels) = text.split_once("## Labels").context("no labels")?;
    for row in all.lines().filter_map(|line| line.strip_prefix("| `")) {
        let (name, _) = row.split_once('`').context("no name")?;
        metrics.entry(name.to_owned()).or_default();
    }
    for row in labels.lines().filter(|line| line.starts_with("| `")) {
        let cells: Vec<_> = row.trim_matches(['|', ' ']).split(" | ").map(in_backticks).collect();
        let [label, values, of] = cells.try_into().ok().context("not three cells")?;
        for metric in of {
            let labels = metrics.get_mut(&metric).context(metric)?;
            labels.insert(label[0].clone(), values.clone());
        }
    }
    ensure!(metrics.len() > 20, "read only {} metrics", metrics.len());
    Ok(metrics)
}

fn in_backticks(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

#[test]
fn every_named_metric_exists_with_the_labels_shown() -> Result<()> {
    let (metrics, named) = (metrics()?, Regex::new(r"\bhyperlink_[a-z_]+")?);
    let mut samples = 0;
    for entry in chapter("Alerts")? {
        for name in named.find_iter(&entry.text) {
            ensure!(metrics.contains_key(name.as_str()), "{}: {}", entry.name, name.as_str());
        }
        let quotes = entry.text.lines().filter_map(Quote::read);
        for quote in quotes.filter(|quote| quote.name.starts_with("hyperlink_")) {
            let labels = &metrics[&quote.name];
            let mut shown = quote.labels.iter();
            let can = |(label, value): (&String, &String)| {
                let known = labels.get(label);
                known.is_some_and(|values| values.is_empty() || values.contains(value))
            };
            ensure!(
                shown.len() == labels.len() && shown.all(can),
                "{}: {quote:?}",
                entry.name
            );
            samples += 1;
        }
    }
    ensure!(samples > 10, "read only {samples} samples");
    Ok(())
}

/// The words that an entry quotes from the log: those in backticks after `the log's`, up to the end of that part of the
/// sentence.
fn of_the_log(text: &str) -> Vec<&str> {
    let parts = text.split("the log's ").skip(1);
    let parts = parts.filter_map(|part| part.split([';', '.']).next());
    parts.flat_map(|part| part.split('`').skip(1).step_by(2)).collect()
}

#[test]
fn every_word_of_the_log_is_a_message_or_a_field() -> Result<()> {
    let texts = Texts::of_the_product()?;
    let mut words = 0;
    for entry in chapter("Alerts")? {
        for word in of_the_log(&entry.text) {
            let is_field = FIELDS.iter().any(|(field, _)| *field == word);
            ensure!(is_field || texts.has(word), "{}: nothing logs {word:?}", entry.name);
            words += 1;
        }
    }
    ensure!(words > 10, "read only {words} words");
    assert_eq!(
        of_the_log("Look: the log's `a b`, which says `c`; `d`. the log's `e`."),
        ["a b", "c", "e"]
    );
    Ok(())
}
