//! A cluster's life with faults, watched by a real Prometheus: both roles are scraped, one of them by TLS and with a token, and every
//! query of the dashboard has something to show.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pki::Authority;
use e2e::site::{SOON, Site, alone, leases};
use e2e::{Ground, eventually, repository, roles};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::ALERTS;
use crate::prometheus::{Prometheus, check_metrics};

/// As a dashboard that is looked at closely would have it.
const RATE: &str = "15s";

/// Where the process of the guest side is told to Prometheus, as it may be replaced.
const TARGETS: &str = "targets.json";

#[test]
fn every_panel_shows_the_life_of_a_cluster_with_faults() {
    alone(async |ground| {
        let site = started(ground).await?;
        let prometheus = watched(&site, &repository().join(ALERTS)).await?;
        let begin = Timestamp::now();
        let cluster = live(&site).await?;
        let shown = panels(&cluster)?;
        ensure!(shown.len() > 30, "{} panels", shown.len());
        for (panel, query) in &shown {
            eventually(&format!("{panel} shows data: {query}"), SOON, || async {
                let (from, to) = (begin.as_second().to_string(), Timestamp::now().as_second().to_string());
                let range = [("query", query.as_str()), ("start", &from), ("end", &to), ("step", "1")];
                let data = prometheus.get("query_range", &range).await?;
                ensure!(has_numbers(&data), "{data}");
                ensure!(
                    !data.to_string().contains(prometheus.address()),
                    "of another program: {data}"
                );
                Ok(())
            })
            .await?;
        }
        alerts_are_loaded(&prometheus).await?;
        let (_, page) = site.cpo.page("/metrics").await?;
        check_metrics(&page)?;
        check_metrics(&secure_page(&site).await?)?;
        cluster.delete(&site.ground, SOON).await?;
        site.ho.stop().await?;
        site.cpo.stop().await
    });
}

/// Both roles; the management side serves its metrics as it would off loopback.
pub(crate) async fn started(ground: Ground) -> Result<Site> {
    leases(&ground).await?;
    let control_plane = ground.control_plane();
    roles::install_metrics(control_plane, "ho").await?;
    let token = roles::metrics_reader(control_plane, "prometheus").await?;
    std::fs::write(ground.dir().join("token"), token)?;
    let keys = ground.dir().join("keys");
    std::fs::create_dir(&keys)?;
    let signed = Authority::new(&keys)?.sign("metrics", &["localhost"])?;
    let (certificate, key) = (signed.certificate.to_string_lossy(), signed.key.to_string_lossy());
    let secure = [
        ("resync", "2s"),
        ("probe-bind", "127.0.0.1:0"),
        ("metrics-secure", "true"),
        ("metrics-cert-file", &certificate),
        ("metrics-key-file", &key),
    ];
    let ho = Hyperlink::start(&ground, Role::Ho, "ho", &secure).await?;
    let cpo = start_cpo(&ground).await?;
    Ok(Site { ground, ho, cpo })
}

/// The guest side, in the place of the one before it.
pub(crate) async fn start_cpo(ground: &Ground) -> Result<Hyperlink> {
    let often = [("resync", "2s"), ("record-resync", "2s")];
    let cpo = Hyperlink::start(ground, Role::Cpo, "cpo", &often).await?;
    let (file, new) = (ground.dir().join(TARGETS), ground.dir().join("new-targets.json"));
    std::fs::write(&new, targets(&cpo).to_string())?;
    std::fs::rename(new, file)?;
    Ok(cpo)
}

/// As Prometheus' configuration and its files of targets have them, with the labels that the chart's monitors give.
fn targets(hyperlink: &Hyperlink) -> Value {
    json!([{"targets": [hyperlink.metrics_address()], "labels": {"app": "hyperlink", "namespace": "hyperlink"}}])
}

/// Scrapes both every second, and evaluates the rules as often.
pub(crate) async fn watched(site: &Site, rules: &Path) -> Result<Prometheus> {
    let dir = site.ground.dir();
    let configuration = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [rules],
        "scrape_configs": [
            {"job_name": "ho", "scheme": "https", "static_configs": targets(&site.ho),
                "authorization": {"credentials_file": dir.join("token")},
                "tls_config": {"ca_file": dir.join("keys/ca.pem")}},
            {"job_name": "cpo", "file_sd_configs":
                [{"files": [dir.join(TARGETS), dir.join("another.json")], "refresh_interval": "1s"}]},
        ],
    });
    let prometheus = Prometheus::start(dir, &configuration).await?;
    // One job may scrape all Pods of a cluster, so another program is in it: Prometheus itself.
    let another = json!([{"targets": [prometheus.address()]}]);
    std::fs::write(dir.join("another.json"), another.to_string())?;
    eventually("all are scraped", SOON, || async {
        let up = prometheus.get("query", &[("query", "sum(up)")]).await?;
        ensure!(up["result"][0]["value"][1] == "3", "{up}");
        Ok(())
    })
    .await?;
    Ok(prometheus)
}

/// It comes up while Azure throttles, is busy and fails, and is robbed of its endpoint and of a record.
async fn live(site: &Site) -> Result<HostedCluster> {
    let rule =
        |method: &str, path: &str, answer: Value| json!({"match": {"method": method, "path": path}, "do": answer});
    site.faults(json!([
        rule("PUT", "/privateDnsZones/[^/]+$", json!({"operation": "fail"})),
        rule(
            "PUT",
            "/privateEndpoints/",
            json!({"status": 429, "code": "RetryableError", "headers": {"Retry-After": "1"}})
        ),
        rule(
            "PUT",
            "/subnets/",
            json!({"status": 429, "code": "TooManyRequests", "headers": {"Retry-After": "1"}})
        ),
    ]))
    .await?;
    let cluster = HostedCluster::new(&site.ground, "watched").with_base_domain("apps.example.com");
    cluster.create(&site.ground).await?;
    site.heals(&cluster).await?;
    let record = format!("{}/A/api", cluster.zones().first().context("no zone")?);
    for drifted in [cluster.endpoint(), record] {
        site.ground.oracle().drift_delete(&drifted).await?;
        site.heals(&cluster).await?;
    }
    Ok(cluster)
}

/// The title and the query of each panel, as Grafana would ask.
fn panels(cluster: &HostedCluster) -> Result<Vec<(String, String)>> {
    let text = std::fs::read_to_string(repository().join("charts/hyperlink/files/dashboard.json"))?;
    let dashboard: Value = serde_json::from_str(&text)?;
    let mut all = Vec::new();
    for panel in dashboard["panels"].as_array().context("no panels")? {
        for target in panel["targets"].as_array().into_iter().flatten() {
            let query = target["expr"].as_str().context("no query")?;
            let query = query
                .replace("$__rate_interval", RATE)
                .replace("$__range", "10m")
                .replace("$control_plane", &cluster.control_plane_namespace())
                .replace("$job", ".*");
            ensure!(!query.contains('$'), "{query}");
            all.push((panel["title"].to_string(), query));
        }
    }
    Ok(all)
}

/// Series without a number, as of a quantile of nothing, draw nothing.
fn has_numbers(data: &Value) -> bool {
    let series = data["result"].as_array().into_iter().flatten();
    let mut values = series.filter_map(|one| one["values"].as_array()).flatten();
    values.any(|value| {
        value[1]
            .as_str()
            .is_some_and(|number| !["NaN", "+Inf"].contains(&number))
    })
}

async fn alerts_are_loaded(prometheus: &Prometheus) -> Result<()> {
    eventually("every rule is evaluated and good", SOON, || async {
        let groups = prometheus.get("rules", &[]).await?;
        let rules: Vec<_> = groups["groups"][0]["rules"].as_array().into_iter().flatten().collect();
        ensure!(
            rules.len() == 15 && rules.iter().all(|rule| rule["health"] == "ok"),
            "{rules:?}"
        );
        Ok(())
    })
    .await
}

async fn secure_page(site: &Site) -> Result<String> {
    let token = std::fs::read_to_string(site.ground.dir().join("token"))?;
    let ca = std::fs::read(site.ground.dir().join("keys/ca.pem"))?;
    let http = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&ca)?])
        .timeout(Duration::from_secs(30))
        .build()?;
    let url = format!("https://{}/metrics", site.ho.metrics_address());
    Ok(http
        .get(url)
        .bearer_auth(token)
        .send()
        .await?
        .error_for_status()?
        .text()
        .await?)
}
