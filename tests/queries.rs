//! The alerts and the dashboard ask for metrics that exist, with labels and values that they have.

#![expect(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use std::collections::{BTreeMap, BTreeSet};

use hyperlink::metrics::Metrics;
use regex::Regex;
use serde_json::Value;

/// Labels that Prometheus gives to all series of a target.
const OF_TARGETS: [&str; 3] = ["job", "namespace", "instance"];

fn read(file: &str) -> String {
    let path = format!("{}/charts/hyperlink/files/{file}", env!("CARGO_MANIFEST_DIR"));
    std::fs::read_to_string(path).unwrap()
}

fn dashboard() -> Value {
    serde_json::from_str(&read("dashboard.json")).unwrap()
}

fn alerts() -> Vec<Value> {
    let file: Value = serde_saphyr::from_str(&read("alerts.yaml")).unwrap();
    let groups = file["groups"].as_array().unwrap();
    groups
        .iter()
        .flat_map(|group| group["rules"].as_array().unwrap().clone())
        .collect()
}

fn panels(dashboard: &Value) -> Vec<&Value> {
    dashboard["panels"].as_array().unwrap().iter().collect()
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("{value} is no text"))
}

fn queries() -> Vec<String> {
    let dashboard = dashboard();
    let mut all: Vec<String> = alerts().iter().map(|alert| text(&alert["expr"]).to_owned()).collect();
    for target in panels(&dashboard)
        .iter()
        .filter_map(|panel| panel["targets"].as_array())
        .flatten()
    {
        all.push(text(&target["expr"]).to_owned());
    }
    for variable in dashboard["templating"]["list"].as_array().unwrap() {
        if let Some(query) = variable["query"]["query"].as_str() {
            all.push(query.to_owned());
        }
    }
    all
}

/// A metric of the reference.
#[derive(Default)]
struct Known {
    kind: String,
    /// Its labels with their values; none where these are described in words.
    labels: BTreeMap<String, Vec<String>>,
}

/// The metrics of the reference, by name.
fn known() -> BTreeMap<String, Known> {
    let text = Metrics::new("1", "c").unwrap().reference();
    let (metrics, labels) = text.split_once("## Labels").unwrap();
    let mut known = BTreeMap::<String, Known>::new();
    for [name, kind, _] in rows(metrics) {
        known.entry(quoted(name).remove(0)).or_default().kind = kind.to_owned();
    }
    for [label, values, metrics] in rows(labels) {
        for metric in quoted(metrics) {
            let labels = &mut known.get_mut(&metric).unwrap().labels;
            labels.insert(quoted(label).remove(0), quoted(values));
        }
    }
    known
}

/// The first three cells of each row of a table.
fn rows(table: &str) -> impl Iterator<Item = [&str; 3]> {
    table.lines().filter(|line| line.starts_with("| `")).map(|row| {
        let mut cells = row.trim_start_matches("| ").split(" | ");
        [(); 3].map(|()| cells.next().unwrap())
    })
}

/// The words in backticks.
fn quoted(text: &str) -> Vec<String> {
    text.split('`').skip(1).step_by(2).map(str::to_owned).collect()
}

/// What is wrong with the metrics that a query names.
fn mistakes(query: &str, known: &BTreeMap<String, Known>) -> Vec<String> {
    let metric = Regex::new(r"\b((?:hyperlink|process)_\w+)(?:\{([^}]*)\})?").unwrap();
    let matcher = Regex::new(r#"(\w+)(=~|!~|!=|=)"([^"]*)""#).unwrap();
    let mut wrong = Vec::new();
    for found in metric.captures_iter(query) {
        let name = &found[1];
        let bucket_of = name.strip_suffix("_bucket").and_then(|name| known.get(name));
        let histogram = bucket_of.filter(|one| one.kind == "histogram");
        let Some(one) = known.get(name).or(histogram) else {
            wrong.push(format!("no metric {name}"));
            continue;
        };
        for found in matcher.captures_iter(found.get(2).map_or("", |labels| labels.as_str())) {
            let (label, value) = (&found[1], &found[3]);
            match one.labels.get(label) {
                None if !OF_TARGETS.contains(&label) => wrong.push(format!("{name} has no label {label}")),
                Some(all) if !all.is_empty() => {
                    let unknown = value.split('|').filter(|value| !all.iter().any(|one| one == value));
                    wrong.extend(unknown.map(|value| format!("{name} never has {label}={value}")));
                }
                _ => {}
            }
        }
    }
    wrong
}

#[test]
fn every_query_names_metrics_labels_and_values_that_exist() {
    let (known, all) = (known(), queries());
    assert!(all.len() > 40, "{}", all.len());
    for query in all {
        assert_eq!(mistakes(&query, &known), Vec::<String>::new(), "{query}");
    }
}

#[test]
fn query_that_asks_for_what_does_not_exist_is_found() {
    let known = known();
    for (query, mistake) in [
        ("hyperlink_pases_total > 0", "no metric hyperlink_pases_total"),
        (r#"hyperlink_leader{pod="a"}"#, "hyperlink_leader has no label pod"),
        (
            r#"rate(hyperlink_reconcile_total{job="x", result=~"failed|lost"}[5m])"#,
            "hyperlink_reconcile_total never has result=lost",
        ),
        (
            r#"hyperlink_kube_writes_total{verb="GET"}"#,
            "hyperlink_kube_writes_total never has verb=GET",
        ),
        (
            "hyperlink_reconcile_total_bucket",
            "no metric hyperlink_reconcile_total_bucket",
        ),
    ] {
        assert_eq!(mistakes(query, &known), [mistake]);
    }
}

#[test]
fn every_alert_has_a_severity_a_summary_and_a_runbook_entry() {
    let alerts = alerts();
    let names: BTreeSet<_> = alerts.iter().map(|alert| text(&alert["alert"])).collect();
    assert_eq!(names.len(), alerts.len(), "{names:?}");
    assert!(!names.is_empty());
    for alert in &alerts {
        let name = text(&alert["alert"]);
        assert!(
            ["critical", "warning"].contains(&text(&alert["labels"]["severity"])),
            "{name}"
        );
        let annotations = &alert["annotations"];
        assert!(text(&annotations["summary"]).ends_with('.'), "{name}");
        let anchor = format!("/RUNBOOK.md#{}", name.to_lowercase());
        assert!(text(&annotations["runbook_url"]).ends_with(&anchor), "{name}");
    }
}

#[test]
fn panels_have_their_own_ids_and_places() {
    let dashboard = dashboard();
    let mut ids = BTreeSet::new();
    let mut covered = BTreeSet::new();
    for panel in panels(&dashboard) {
        assert!(ids.insert(panel["id"].as_u64().unwrap()), "{}", panel["title"]);
        let place = |side: &str| panel["gridPos"][side].as_u64().unwrap();
        assert!(place("x") + place("w") <= 24, "{} is too wide", panel["title"]);
        for x in place("x")..place("x") + place("w") {
            for y in place("y")..place("y") + place("h") {
                assert!(covered.insert((x, y)), "{} lies on another panel", panel["title"]);
            }
        }
    }
}

#[test]
fn variables_are_defined_and_used() {
    let dashboard = dashboard();
    let list = dashboard["templating"]["list"].as_array().unwrap();
    let defined: BTreeSet<_> = list.iter().map(|variable| text(&variable["name"])).collect();
    let own = Regex::new(r"\$\{?([a-z_]+)\}?").unwrap();
    let whole = read("dashboard.json");
    let used: BTreeSet<_> = own
        .captures_iter(&whole)
        .map(|found| found.get(1).unwrap().as_str())
        .collect();
    // Grafana's own begin with two underscores.
    let used: BTreeSet<_> = used.into_iter().filter(|name| !name.starts_with("__")).collect();
    assert_eq!(used, defined);
}
