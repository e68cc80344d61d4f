//! Metrics, alerts and dashboard, by Prometheus' own programs and Grafana's own types.

#[path = "aws.rs"]
mod aws;
#[path = "calls.rs"]
mod calls;
#[path = "capz.rs"]
mod capz;
#[path = "dashboard.rs"]
mod dashboard;
#[path = "demo.rs"]
mod demo;
#[path = "demo_variants.rs"]
mod demo_variants;
#[path = "faults.rs"]
mod faults;
#[path = "life.rs"]
mod life;
#[path = "pods.rs"]
mod pods;
#[path = "processes.rs"]
mod processes;
#[path = "prometheus.rs"]
mod prometheus;
#[path = "rules.rs"]
mod rules;
#[path = "watched.rs"]
mod watched;

use std::process::Command;

use anyhow::{Result, ensure};
use e2e::scenario::skipped;
use e2e::{repository, scenario};

/// The rules that are shipped.
const ALERTS: &str = "charts/hyperlink/files/alerts.yaml";

/// Fails unless a program succeeds; the error has its output.
fn succeeds(command: &mut Command) -> Result<()> {
    let output = command.current_dir(repository()).output()?;
    let printed = [output.stdout, output.stderr].concat();
    ensure!(
        output.status.success(),
        "{command:?}: {}",
        String::from_utf8_lossy(&printed)
    );
    Ok(())
}

#[test]
fn alerts_fire_and_resolve_as_their_tests_expect() {
    scenario(async {
        let promtool = prometheus::program("promtool")?;
        let (rules, tests) = (ALERTS, "e2e/fixtures/alerts_test.yaml");
        succeeds(Command::new(&promtool).args(["check", "rules", "--lint-fatal", rules]))?;
        succeeds(Command::new(&promtool).args(["test", "rules", tests]))?;
        // The tests show every alert firing, and not firing.
        let rules: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(repository().join(rules))?)?;
        let tests: serde_json::Value = serde_saphyr::from_str(&std::fs::read_to_string(repository().join(tests))?)?;
        let cases: Vec<_> = tests["tests"].as_array().into_iter().flatten().collect();
        let checks = cases
            .iter()
            .filter_map(|case| case["alert_rule_test"].as_array())
            .flatten();
        let checks: Vec<_> = checks.collect();
        for rule in rules["groups"][0]["rules"].as_array().into_iter().flatten() {
            for fires in [true, false] {
                let shown = checks.iter().any(|check| {
                    let expected = check["exp_alerts"].as_array();
                    check["alertname"] == rule["alert"] && expected.is_some_and(|all| all.is_empty() != fires)
                });
                ensure!(shown, "no test in which {} fires: {fires}", rule["alert"]);
            }
        }
        Ok(())
    });
}

#[test]
fn dashboard_is_of_the_types_that_grafana_publishes() {
    scenario(async {
        if Command::new("npm").arg("--version").output().is_err() {
            skipped("no npm here, which gets Grafana's types");
            return Ok(());
        }
        let check = "hack/check-dashboard";
        succeeds(Command::new(check).arg("charts/hyperlink/files/dashboard.json"))?;
        // The check sees what is wrong.
        let text = std::fs::read_to_string(repository().join("charts/hyperlink/files/dashboard.json"))?;
        let dir = tempfile::tempdir()?;
        for (right, wrong) in [
            (r#""showPoints": "never""#, r#""showPoints": "nobody""#),
            (r#""legendFormat""#, r#""legend""#),
            (r#""schemaVersion": 38"#, r#""schemaVersion": "38""#),
        ] {
            let file = dir.path().join("wrong.json");
            std::fs::write(&file, text.replace(right, wrong))?;
            ensure!(succeeds(Command::new(check).arg(&file)).is_err(), "{wrong} is taken");
        }
        Ok(())
    });
}
