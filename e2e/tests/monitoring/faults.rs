//! Alerts that faults cause on the ground: they fire with their labels while the fault lasts, and no longer. The rules are those that
//! are shipped, but 0.3 seconds are a minute.

use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use e2e::repository;
use e2e::site::{SOON, Site, alone};
use futures::future::try_join_all;
use regex::Regex;
use serde_json::{Value, json};

use crate::ALERTS;
use crate::life::{start_cpo, started, watched};
use crate::prometheus::Prometheus;

/// What a minute of the rules is here, in milliseconds.
const MINUTE: u64 = 300;

/// Alert, labels, and how its summary begins.
type Expected = (&'static str, &'static [(&'static str, &'static str)], &'static str);

const BY_FAULTS: [Expected; 5] = [
    (
        "HyperlinkConnectionWaiting",
        &[("job", "cpo"), ("severity", "warning")],
        "1 connections of Private Endpoints wait for approval.",
    ),
    (
        "HyperlinkNotAvailable",
        &[
            ("control_plane", "clusters-stuck"),
            ("reason", "Provisioning"),
            ("severity", "critical"),
        ],
        "clusters-stuck/private-router is not available since ",
    ),
    (
        "HyperlinkOperationStuck",
        &[("job", "ho"), ("kind", "private_link_service"), ("severity", "warning")],
        "An operation on a private_link_service is under way since ",
    ),
    (
        "HyperlinkForeignResource",
        &[
            ("job", "cpo"),
            ("type", "AzurePrivateDNSAvailable"),
            ("severity", "warning"),
        ],
        "A resource of somebody else is in the way of 1 clusters: AzurePrivateDNSAvailable.",
    ),
    (
        "HyperlinkDeletionStuck",
        &[("job", "cpo"), ("severity", "critical")],
        "An AzurePrivateLinkService is being deleted since ",
    ),
];

const BY_ABSENCE: Expected = (
    "HyperlinkMetricsMissing",
    &[("job", "cpo"), ("severity", "critical")],
    "No process of cpo in ",
);

#[test]
fn alerts_fire_while_a_fault_lasts_and_no_longer() {
    alone(async |ground| {
        let mut site = started(ground).await?;
        let prometheus = watched(&site, &shortened(&site)?).await?;
        let named = |name: &str| HostedCluster::new(&site.ground, name);
        let (waiting, stuck, taken, going) = (named("waiting"), named("stuck"), named("taken"), named("going"));
        for cluster in [&going, &waiting] {
            cluster.create(&site.ground).await?;
        }
        for cluster in [&going, &waiting] {
            site.heals(cluster).await?;
        }

        let rule = |method: &str, path: &str, answer: Value| json!({"match": {"method": method, "path": path, "times": 1_000_000}, "do": answer});
        let service = stuck.link_service(&site.ground);
        site.faults(json!([
            rule("PUT", &service, json!({"operation": "hang"})),
            rule("DELETE", &going.endpoint(), json!({"operation": "hang"})),
        ]))
        .await?;
        let (oracle, zone) = (site.ground.oracle(), taken.zones().remove(0));
        let group = json!({"location": site.ground.azure().location});
        oracle.drift_put(&taken.resource_group(), &group).await?;
        let foreign = json!({"location": "global", "tags": {"owner": "customer"}});
        oracle.drift_put(&zone, &foreign).await?;
        for cluster in [&stuck, &taken] {
            cluster.create(&site.ground).await?;
        }
        approve(&site, &waiting, "Pending").await?;
        let client = site.ground.client()?;
        let crs = going.api(&client, "AzurePrivateLinkService", &going.control_plane_namespace());
        crs.delete("private-router", &Default::default()).await?;
        try_join_all(BY_FAULTS.iter().map(|expected| fires(&prometheus, expected))).await?;

        site.faults(json!([])).await?;
        oracle.drift_delete(&zone).await?;
        oracle.drift_delete(&going.endpoint()).await?;
        // What hangs in Azure ends there.
        let mut ended = oracle.resources(&service).await?.remove(0);
        ended["properties"]["provisioningState"] = json!("Succeeded");
        oracle.drift_put(&service, &ended).await?;
        approve(&site, &waiting, "Approved").await?;
        for cluster in [&waiting, &stuck, &taken] {
            site.heals(cluster).await?;
        }
        all_rest(&prometheus).await?;

        site.cpo.stop().await?;
        fires(&prometheus, &BY_ABSENCE).await?;
        site.cpo = start_cpo(&site.ground).await?;
        all_rest(&prometheus).await?;
        site.ho.stop().await?;
        site.cpo.stop().await
    });
}

/// Says this of the connection of the cluster's endpoint, as the owner of the Private Link Service may.
async fn approve(site: &Site, cluster: &HostedCluster, status: &str) -> Result<()> {
    let prefix = format!("{}/privateEndpointConnections/", cluster.link_service(&site.ground));
    let mut connection = site.ground.oracle().resources(&prefix).await?;
    let mut connection = connection.pop().context("no connection")?;
    connection["properties"]["privateLinkServiceConnectionState"]["status"] = json!(status);
    let id = connection["id"].as_str().context("no id")?.to_owned();
    site.ground.oracle().drift_put(&id, &connection).await
}

/// A copy of the rules in which all durations are shorter, those of thresholds in seconds too.
fn shortened(site: &Site) -> Result<PathBuf> {
    let rules = std::fs::read_to_string(repository().join(ALERTS))?;
    let milliseconds = |minutes: u64| format!("{}ms", minutes * MINUTE);
    let number = |text: &str| text.parse::<u64>().unwrap_or_default();
    let duration = Regex::new(r"(for: |\[)(\d+)([mh])\b")?;
    let short = duration.replace_all(&rules, |found: &regex::Captures<'_>| {
        let minutes = number(&found[2]) * if &found[3] == "h" { 60 } else { 1 };
        format!("{}{}", &found[1], milliseconds(minutes))
    });
    let threshold = Regex::new(r"(_age_seconds(?:\{[^}]*\})?\s*\) > )(\d+)")?;
    let short = threshold.replace_all(&short, |found: &regex::Captures<'_>| {
        let seconds = number(&found[2]) as f64 / 60.0 * MINUTE as f64 / 1000.0;
        format!("{}{seconds}", &found[1])
    });
    ensure!(!short.contains("m]") && short.matches("ms").count() > 10, "{short}");
    ensure!(!short.contains("> 900") && !short.contains("> 1800"), "{short}");
    let file = site.ground.dir().join("alerts.yaml");
    std::fs::write(&file, &*short)?;
    Ok(file)
}

async fn alerts(prometheus: &Prometheus) -> Result<Vec<Value>> {
    let mut data = prometheus.get("alerts", &[]).await?;
    Ok(data["alerts"].as_array_mut().map(std::mem::take).unwrap_or_default())
}

async fn fires(prometheus: &Prometheus, (name, labels, summary): &Expected) -> Result<()> {
    eventually(&format!("{name} fires with {labels:?}"), SOON, || async {
        let all = alerts(prometheus).await?;
        let is_it = |alert: &&Value| {
            let has = |(label, value): &(&str, &str)| alert["labels"][label] == *value;
            alert["labels"]["alertname"] == *name && alert["state"] == "firing" && labels.iter().all(has)
        };
        let found = all.iter().find(is_it).with_context(|| format!("{all:?}"))?;
        let told = found["annotations"]["summary"].as_str().unwrap_or_default();
        ensure!(told.starts_with(summary), "{told}");
        Ok(())
    })
    .await
}

async fn all_rest(prometheus: &Prometheus) -> Result<()> {
    eventually("no alert fires", SOON, || async {
        let all = alerts(prometheus).await?;
        ensure!(!all.iter().any(|alert| alert["state"] == "firing"), "{all:?}");
        Ok(())
    })
    .await
}
