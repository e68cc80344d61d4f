//! The dashboard as Grafana asks for it: the values of its variables, and the queries of its panels with what was
//! chosen.
//!
//! Grafana lists `label_values(SELECTOR, LABEL)` by Prometheus' page of the values of a label. It inserts a choice into
//! a query like this: of a variable with several values each is quoted for a regular expression, and more than one
//! becomes `(a|b)`; "All" is the `allValue` as it is; of any other variable only what would end the text is quoted.

use std::collections::BTreeMap;
use std::process::Command;

use anyhow::{Context, Result, ensure};
use e2e::{repository, scenario};
use regex::{Captures, Regex};
use serde_json::Value;

use crate::demo::OF_CAPZ;
use crate::prometheus::{Prometheus, program};
use crate::succeeds;

const FILE: &str = "charts/hyperlink/files/dashboard.json";

/// A choice of a variable with several values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Choice<'a> {
    /// The first entry of the list.
    All,
    /// Some of the values.
    These(&'a [&'a str]),
}

/// The text that replaces each `$name` in queries.
pub(crate) type Chosen = BTreeMap<String, String>;

/// One query of a panel.
#[derive(Debug)]
pub(crate) struct Query {
    /// The panel's title.
    pub(crate) panel: String,
    /// Its name in the panel.
    pub(crate) name: String,
    /// What Prometheus is asked.
    pub(crate) text: String,
    /// Whether only the present is shown.
    pub(crate) instant: bool,
}

pub(crate) struct Dashboard(Value);

impl Dashboard {
    pub(crate) fn read() -> Result<Self> {
        let text = std::fs::read_to_string(repository().join(FILE))?;
        Ok(Self(serde_json::from_str(&text)?))
    }

    /// Those whose values Prometheus has, in the order of the file: each may depend on those before it.
    fn variables(&self) -> impl Iterator<Item = &Value> {
        let all = self.0["templating"]["list"].as_array().into_iter().flatten();
        all.filter(|variable| variable["type"] == "query")
    }

    /// Opens the lists one after the other: what each offers between these times, in seconds since 1970. Of one with
    /// several values it takes `choice`, of any other the first value.
    pub(crate) async fn choose(
        &self,
        prometheus: &Prometheus,
        (from, to): (i64, i64),
        choice: Choice<'_>,
    ) -> Result<(Chosen, BTreeMap<String, Vec<String>>)> {
        let (mut chosen, mut offers) = (Chosen::new(), BTreeMap::new());
        for variable in self.variables() {
            let name = text(&variable["name"])?;
            let query = filled(&text(&variable["query"]["query"])?, &chosen)?;
            let (selector, label) = label_values(&query)?;
            let (from, to) = (from.to_string(), to.to_string());
            let page = format!("label/{label}/values");
            let values = prometheus
                .get(&page, &[("match[]", &selector), ("start", &from), ("end", &to)])
                .await?;
            let values: Vec<String> = serde_json::from_value(values)?;
            let several = variable["multi"] == true || variable["includeAll"] == true;
            let value = match choice {
                _ if !several => quoted(values.first().with_context(|| format!("{query} gives nothing"))?),
                Choice::All => text(&variable["allValue"])?,
                Choice::These(some) => one_of(some),
            };
            chosen.insert(name.clone(), value);
            offers.insert(name, values);
        }
        Ok((chosen, offers))
    }

    /// The queries of all panels.
    pub(crate) fn queries(&self, chosen: &Chosen) -> Result<Vec<Query>> {
        let mut all = Vec::new();
        for panel in self.0["panels"].as_array().context("no panels")? {
            for target in panel["targets"].as_array().into_iter().flatten() {
                all.push(Query {
                    panel: text(&panel["title"])?,
                    name: text(&target["refId"])?,
                    text: filled(&text(&target["expr"])?, chosen)?,
                    instant: target["instant"] == true,
                });
            }
        }
        Ok(all)
    }
}

fn text(value: &Value) -> Result<String> {
    value
        .as_str()
        .map(str::to_owned)
        .with_context(|| format!("{value} is no text"))
}

/// The selector and the label of a variable's query.
fn label_values(query: &str) -> Result<(String, String)> {
    let form = Regex::new(r"^label_values\((?:(.+),\s*)([a-zA-Z_][a-zA-Z0-9_]*)\)\s*$")?;
    let found = form.captures(query).with_context(|| query.to_owned())?;
    Ok((found[1].to_owned(), found[2].to_owned()))
}

/// The text with its variables replaced.
fn filled(text: &str, chosen: &Chosen) -> Result<String> {
    let variable = Regex::new(r"\$(\w+)")?;
    for found in variable.captures_iter(text) {
        ensure!(
            chosen.contains_key(&found[1]),
            "{text}: ${} is not known yet",
            &found[1]
        );
    }
    let value = |found: &Captures<'_>| chosen.get(&found[1]).cloned().unwrap_or_default();
    Ok(variable.replace_all(text, value).into_owned())
}

fn quoted(value: &str) -> String {
    value.replace('\\', r"\\").replace('"', r#"\""#)
}

fn one_of(values: &[&str]) -> String {
    // Quoted twice: for the expression, and for the text that it stands in.
    let special = |value: &str| {
        let parts = value.chars().map(|c| match c {
            '\\' => r"\\\\".to_owned(),
            c if "$^*{}[]+?.()|".contains(c) => format!(r"\\{c}"),
            c => c.to_string(),
        });
        parts.collect::<String>()
    };
    let all: Vec<_> = values.iter().map(|value| special(value)).collect();
    match all.as_slice() {
        [only] => only.clone(),
        _ => format!("({})", all.join("|")),
    }
}

#[test]
fn choices_stand_in_queries_as_grafana_has_them() -> Result<()> {
    for (values, expected) in [
        (&["hyperlink-ho"][..], "hyperlink-ho"),
        (&["a.b"], r"a\\.b"),
        (&["clusters/a", r"b\c"], r"(clusters/a|b\\\\c)"),
    ] {
        assert_eq!(one_of(values), expected);
    }
    assert_eq!(quoted(r#"a"b\c.d"#), r#"a\"b\\c.d"#);
    let chosen = Chosen::from([("job".into(), ".*".into()), ("__range".into(), "60s".into())]);
    let text = filled(r#"increase(a{job=~"$job"}[$__range])"#, &chosen)?;
    assert_eq!(text, r#"increase(a{job=~".*"}[60s])"#);
    ensure!(filled("a{b=\"$control_plane\"}", &chosen).is_err());
    let (selector, label) = label_values(r#"label_values(a{b="c", d="e"}, job)"#)?;
    assert_eq!((selector.as_str(), label.as_str()), (r#"a{b="c", d="e"}"#, "job"));
    Ok(())
}

/// By Prometheus' own unit tests, in which panels are named in place of their queries.
#[test]
fn path_counts_once_whoever_reports_it() {
    scenario(async {
        let chosen = [
            ("job", ".*"),
            ("control_plane", "clusters-one"),
            ("__range", "1h"),
            ("__rate_interval", "5m"),
        ];
        let chosen = chosen.map(|(name, value)| (name.to_owned(), value.to_owned())).into();
        let queries = Dashboard::read()?.queries(&chosen)?;
        let fixture = std::fs::read_to_string(repository().join("e2e/fixtures/dashboard_test.yaml"))?;
        let mut tests: Value = serde_saphyr::from_str(&fixture)?;
        let is_tested_here = |query: &&Query| query.text.contains("hyperlink_object_") || query.text.contains(OF_CAPZ);
        for query in queries.iter().filter(is_tested_here) {
            let is_tested = fixture.contains(&format!("{} {}", query.panel, query.name));
            ensure!(is_tested, "nothing tests {query:?}");
        }
        for case in tests["tests"].as_array_mut().context("no tests")? {
            for check in case["promql_expr_test"].as_array_mut().context("nothing is checked")? {
                let named = text(&check["expr"])?;
                let mut found = queries
                    .iter()
                    .filter(|query| format!("{} {}", query.panel, query.name) == named);
                check["expr"] = found
                    .next()
                    .with_context(|| format!("no query {named}"))?
                    .text
                    .as_str()
                    .into();
                ensure!(found.next().is_none(), "two queries {named}");
            }
        }
        let dir = tempfile::tempdir()?;
        let file = dir.path().join("dashboard_test.yaml");
        std::fs::write(&file, serde_saphyr::to_string(&tests)?)?;
        succeeds(Command::new(program("promtool")?).args(["test", "rules"]).arg(&file))
    });
}
