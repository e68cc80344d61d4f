//! The shipped rules with shorter times, and the alerts that Prometheus raises by them: those that RUNBOOK.md quotes,
//! word by word.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::runbook::{Quote, quoted_alerts};
use e2e::shared_env::SOON;
use e2e::{eventually, repository};
use futures::future::try_join_all;
use regex::{Captures, Regex};
use serde_json::Value;

use crate::ALERTS;
use crate::prometheus::Prometheus;

/// The one rule that has no time in it: its metric covers an hour by itself.
const TIMELESS: &str = "HyperlinkDriftRepeats";

/// Writes a copy of the rules to `dir` in which a minute is as long as `minute`, also in thresholds in seconds.
pub(crate) fn shortened(dir: &Path, minute: Duration) -> Result<PathBuf> {
    let text = std::fs::read_to_string(repository().join(ALERTS))?;
    let mut rules: Value = serde_saphyr::from_str(&text)?;
    for rule in rules["groups"][0]["rules"].as_array_mut().context("no rules")? {
        shorten(rule, minute).with_context(|| rule["alert"].to_string())?;
    }
    let file = dir.join("alerts.yaml");
    std::fs::write(&file, rules.to_string())?;
    Ok(file)
}

fn shorten(rule: &mut Value, minute: Duration) -> Result<()> {
    let expression = rule["expr"].as_str().context("no expression")?;
    let ranges = Regex::new(r"(\[|offset )(\d+)([mh])\b")?;
    let mut short = ranges.replace_all(expression, |found: &Captures<'_>| {
        format!("{}{}", &found[1], milliseconds(&found[2], &found[3], minute))
    });
    let of_seconds = expression.contains("_seconds");
    let threshold = Regex::new(r"(?m)( [<>] )(\d+)$")?;
    if of_seconds {
        ensure!(threshold.is_match(expression), "no threshold in {expression}");
        let shorter = threshold.replace_all(&short, |found: &Captures<'_>| {
            let minutes = found[2].parse::<f64>().unwrap_or_default() / 60.0;
            format!("{}{}", &found[1], minutes * minute.as_secs_f64())
        });
        short = shorter.into_owned().into();
    }
    let lasting = match rule["for"].as_str() {
        None => None,
        Some(long) => {
            let whole = Regex::new(r"^(\d+)([mh])$")?;
            let found = whole.captures(long).with_context(|| long.to_owned())?;
            Some(milliseconds(&found[1], &found[2], minute))
        }
    };
    let has_time = short != expression || lasting.is_some();
    ensure!(has_time != (rule["alert"] == TIMELESS), "{expression}");
    ensure!(
        !Regex::new(r"\d[smhdwy]\b")?.is_match(&short.replace("ms", "")),
        "{short}"
    );
    rule["expr"] = short.into_owned().into();
    if let Some(lasting) = lasting {
        rule["for"] = lasting.into();
    }
    Ok(())
}

fn milliseconds(number: &str, unit: &str, minute: Duration) -> String {
    let minutes = number.parse::<u128>().unwrap_or_default() * if unit == "h" { 60 } else { 1 };
    format!("{}ms", minutes * minute.as_millis())
}

#[test]
fn all_times_of_a_rule_are_shortened_or_it_is_refused() -> Result<()> {
    let minute = Duration::from_millis(300);
    let shortened = |name: &str, expression: &str, lasting: &str| -> Result<Value> {
        let mut rule = serde_json::json!({"alert": name, "expr": expression, "for": lasting});
        shorten(&mut rule, minute)?;
        Ok(rule)
    };
    let rule = shortened("A", "rate(x[10m] offset 1h) > 0.05", "15m")?;
    assert_eq!(
        (rule["expr"].as_str(), rule["for"].as_str()),
        (Some("rate(x[3000ms] offset 18000ms) > 0.05"), Some("4500ms"))
    );
    let rule = shortened("A", "min(x_expires_in_seconds) < 600", "5m")?;
    assert_eq!(rule["expr"], "min(x_expires_in_seconds) < 3");
    let rule = shortened("A", "x_seconds > 900\nor y_seconds > 60", "5m")?;
    assert_eq!(rule["expr"], "x_seconds > 4.5\nor y_seconds > 0.3");
    for (name, expression, lasting) in [
        ("A", "rate(x[1d]) > 0", "5m"),
        ("A", "x_seconds > 2 * 600 ", "5m"),
        ("A", "x > 0", "5s"),
        (TIMELESS, "x > 0", "5m"),
    ] {
        assert!(shortened(name, expression, lasting).is_err(), "{expression}");
    }
    Ok(())
}

/// All alerts that fire now, in the form in which RUNBOOK.md quotes them.
pub(crate) async fn firing(prometheus: &Prometheus) -> Result<Vec<Quote>> {
    let data = prometheus.get("alerts", &[]).await?;
    let all = data["alerts"].as_array().context("no list")?.iter();
    let firing = all.filter(|alert| alert["state"] == "firing");
    let quotes = firing.map(|alert| -> Result<_> {
        let mut labels: std::collections::BTreeMap<String, String> = serde_json::from_value(alert["labels"].clone())?;
        let name = labels.remove("alertname").context("no name")?;
        let text = alert["annotations"]["summary"].as_str().context("no summary")?.into();
        Ok(Quote { name, labels, text })
    });
    quotes.collect()
}

/// Waits until these alerts fire as their entries quote them, all of them at once.
pub(crate) async fn fire(prometheus: &Prometheus, names: &[&str]) -> Result<()> {
    let quotes = names
        .iter()
        .map(|name| quoted_alerts(name))
        .collect::<Result<Vec<_>>>()?;
    let each = quotes.iter().flatten().map(|quote| async move {
        eventually(&format!("{quote:?} fires"), SOON, || async {
            let all = firing(prometheus).await?;
            ensure!(all.iter().any(|observed| quote.fits(observed)), "{all:?}");
            Ok(())
        })
        .await
    });
    try_join_all(each).await.map(drop)
}

/// Waits until none of these alerts fires any more.
pub(crate) async fn resolve(prometheus: &Prometheus, names: &[&str]) -> Result<()> {
    eventually(&format!("{names:?} rest"), SOON, || async {
        let all = firing(prometheus).await?;
        ensure!(
            !all.iter().any(|observed| names.contains(&observed.name.as_str())),
            "{all:?}"
        );
        Ok(())
    })
    .await
}

/// Waits until no alert fires.
pub(crate) async fn all_resolve(prometheus: &Prometheus) -> Result<()> {
    eventually("no alert fires", SOON, || async {
        let all = firing(prometheus).await?;
        ensure!(all.is_empty(), "{all:?}");
        Ok(())
    })
    .await
}
