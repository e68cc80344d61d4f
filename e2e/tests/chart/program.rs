//! The chart's values are the settings of the program with its defaults, and its version is the program's.

use std::collections::BTreeMap;

use anyhow::{Context, ensure};
use clap::CommandFactory;
use e2e::helm::chart;
use hyperlink::config::RunSettings;
use serde_json::Value;

use crate::values::defaults;

/// The flags that the chart sets by itself, or that make no sense in a pod.
const OF_THE_CHART: [&str; 17] = [
    "role",
    "namespace",
    "allow-scopes",
    "management-scopes",
    // Each deployment has its own.
    "shard",
    "credential",
    "metrics-bind",
    "metrics-secure",
    "metrics-cert-file",
    "metrics-key-file",
    "probe-bind",
    // The release's namespace, which the pod knows.
    "lease-namespace",
    "kubeconfig",
    // Those of role capz are below `capz`.
    "management-cluster-name",
    "management-cluster-namespace",
    "azure-cluster-gates",
    "delete-dropped-endpoints",
];

#[test]
fn settings_are_those_of_the_program_with_its_defaults() {
    let run = || {
        let defaults = defaults()?;
        let mut settings: BTreeMap<String, String> = BTreeMap::new();
        for (name, value) in defaults["settings"].as_object().context("no settings")? {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Array(items) if items.is_empty() => String::new(),
                other => other.to_string(),
            };
            settings.insert(kebab(name), text);
        }
        for arg in RunSettings::command().get_arguments() {
            let flag = arg.get_long().context("no flag")?;
            if OF_THE_CHART.contains(&flag) {
                continue;
            }
            let found = settings.remove(flag);
            let default = arg.get_default_values().first();
            let expected = match default.and_then(|value| value.to_str()) {
                // Logs of pods are read by programs.
                Some(_) if flag == "log-format" => "json",
                Some(value) => value,
                None => "",
            };
            ensure!(
                found.as_deref() == Some(expected),
                "--{flag} is {found:?} in values.yaml; name it there and in the schema, or in OF_THE_CHART"
            );
        }
        ensure!(settings.is_empty(), "no flags of the program: {settings:?}");
        Ok(())
    };
    run().unwrap_or_else(|error: anyhow::Error| panic!("{error:#}"));
}

/// A duration that the template does not compare is refused by the program alone, in a crash loop.
#[test]
fn template_compares_each_duration_among_the_settings() {
    let template = std::fs::read_to_string(chart().join("templates/_check.tpl")).unwrap();
    let settings = defaults().unwrap()["settings"].as_object().unwrap().clone();
    let is_duration =
        |text: &str| text.ends_with(['h', 'm', 's']) && text.starts_with(|first: char| first.is_ascii_digit());
    let durations = settings
        .iter()
        .filter(|(_, value)| value.as_str().is_some_and(is_duration));
    let names: Vec<&String> = durations.map(|(name, _)| name).collect();
    assert!(names.len() >= 5, "{names:?}");
    let missing = names.iter().filter(|name| !template.contains(&format!("\"{name}\"")));
    assert_eq!(missing.collect::<Vec<_>>(), Vec::<&&String>::new());
}

fn kebab(name: &str) -> String {
    let mut flag = String::new();
    for letter in name.chars() {
        if letter.is_ascii_uppercase() {
            flag.push('-');
        }
        flag.push(letter.to_ascii_lowercase());
    }
    flag
}

#[test]
fn chart_has_the_version_of_the_program() {
    let text = std::fs::read_to_string(chart().join("Chart.yaml")).unwrap();
    let chart: Value = serde_saphyr::from_str(&text).unwrap();
    for field in ["version", "appVersion"] {
        assert_eq!(chart[field], env!("CARGO_PKG_VERSION"), "{field}");
    }
}
