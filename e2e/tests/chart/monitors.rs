//! Prometheus shows its token to the installation alone, whose certificate it checks, and to nobody who answers in its
//! place.

use anyhow::{Context, Result, ensure};
use rstest::rstest;
use serde_json::{Value, json};

use crate::values::{RIGHT, render};

const SERVED: &str = r#"metrics.enabled=true"#;
const BY_SERVICE: &str = "metrics.serviceMonitor.enabled=true";
const BY_POD: &str = "metrics.podMonitor.enabled=true";
const TOKEN: &str = "metrics.tokenSecret.name=prometheus-token";
const CERTIFICATE: &str = "metrics.certificate.secretName=certificate";
const MAP: &str = "metrics.certificate.authority.configMap=authorities";
const FILE: &str = "metrics.certificate.authority.file=/etc/authorities/ca.crt";

/// The endpoints that the monitors rendered from these values scrape.
fn endpoints(values: &[&str]) -> Result<Vec<Value>> {
    let rendered = render(&[&RIGHT[..], &[SERVED], values].concat())?;
    let mut all = Vec::new();
    for object in serde_saphyr::from_multiple::<Value>(&rendered)? {
        let list = match object["kind"].as_str() {
            Some("ServiceMonitor") => "endpoints",
            Some("PodMonitor") => "podMetricsEndpoints",
            _ => continue,
        };
        all.extend(object["spec"][list].as_array().context("no endpoints")?.clone());
    }
    Ok(all)
}

#[rstest]
#[case::token_file(&[BY_SERVICE])]
#[case::token_in_a_secret(&[BY_SERVICE, TOKEN])]
#[case::pods(&[BY_POD, TOKEN])]
#[case::authority_of_no_certificate(&[BY_SERVICE, MAP])]
fn token_for_a_certificate_that_nobody_checks_is_refused(#[case] values: &[&str]) {
    let error = format!(
        "{:#}",
        endpoints(values).expect_err("the token goes to whoever answers")
    );
    let refusal = "at '/metrics/certificate/secretName': minLength: got 0, want 1";
    assert!(error.contains(refusal), "{error}");
}

#[rstest]
#[case::two_authorities(&[BY_SERVICE, MAP, FILE])]
#[case::file_for_a_pod_monitor(&[BY_POD, TOKEN, FILE])]
fn authority_that_a_monitor_cannot_use_is_refused(#[case] values: &[&str]) {
    let error = format!(
        "{:#}",
        endpoints(&[values, &[CERTIFICATE]].concat()).expect_err("it is taken")
    );
    let refusal = "at '/metrics/certificate/authority/file': maxLength: got 23, want 0";
    assert!(error.contains(refusal), "{error}");
}

#[rstest]
#[case::of_the_certificate(&[BY_SERVICE, BY_POD, TOKEN], json!({"ca": {"secret": {"name": "certificate", "key": "ca.crt"}}}))]
#[case::in_a_config_map(&[BY_SERVICE, BY_POD, TOKEN, MAP], json!({"ca": {"configMap": {"name": "authorities", "key": "ca.crt"}}}))]
#[case::in_a_file(&[BY_SERVICE, FILE], json!({"caFile": "/etc/authorities/ca.crt"}))]
fn monitors_check_name_and_authority(#[case] values: &[&str], #[case] mut expected: Value) {
    expected["serverName"] = "release-hyperlink-metrics.default.svc".into();
    let run = || {
        let endpoints = endpoints(&[values, &[CERTIFICATE]].concat())?;
        ensure!(!endpoints.is_empty(), "nothing is scraped");
        for endpoint in endpoints {
            ensure!(endpoint["tlsConfig"] == expected, "{endpoint}");
        }
        Ok(())
    };
    run().unwrap_or_else(|error: anyhow::Error| panic!("{error:#}"));
}
