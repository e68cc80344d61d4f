//! What an installed Prometheus gets of a cluster's life: it scrapes both roles, one of them by TLS and with a token,
//! by a job that scrapes another program too.

use std::path::Path;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::hyperlink::{Hyperlink, Role};
use e2e::pki::Authority;
use e2e::shared_env::{SOON, SharedEnv, alone, leases};
use e2e::{TestEnv, eventually, repository, roles};
use jiff::Timestamp;
use serde_json::{Value, json};

use crate::ALERTS;
use crate::dashboard::{Choice, Dashboard};
use crate::prometheus::{Prometheus, check_metrics};

/// File that names the guest side's process to Prometheus, as it may be replaced.
const TARGETS: &str = "targets.json";

#[test]
fn all_is_scraped_and_another_program_of_the_job_is_not_shown() {
    alone(async |test_env| {
        let shared_env = started(test_env).await?;
        let prometheus = watched(&shared_env, &repository().join(ALERTS)).await?;
        let begin = Timestamp::now().as_second();
        let cluster = HostedCluster::new(&shared_env.test_env, "watched");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        for job in ["ho", "cpo"] {
            let available_query = format!("hyperlink_object_available{{job=\"{job}\"}} == 1");
            eventually(&format!("{job} tells of the cluster"), SOON, || async {
                let found = prometheus.get("query", &[("query", &available_query)]).await?;
                ensure!(found["result"][0].is_object(), "{found}");
                Ok(())
            })
            .await?;
        }
        no_other_program_is_shown(&prometheus, begin).await?;
        alerts_are_loaded(&prometheus).await?;
        let (_, page) = shared_env.cpo.page("/metrics").await?;
        check_metrics(&page)?;
        check_metrics(&secure_page(&shared_env).await?)?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.ho.stop().await?;
        shared_env.cpo.stop().await
    });
}

/// Fails if the dashboard shows Prometheus itself, which has metrics that any program has, such as its memory.
async fn no_other_program_is_shown(prometheus: &Prometheus, begin: i64) -> Result<()> {
    let now = Timestamp::now().as_second();
    let dashboard = Dashboard::read()?;
    let own = prometheus
        .get("query", &[("query", "process_resident_memory_bytes")])
        .await?;
    ensure!(
        own.to_string().contains(prometheus.address()),
        "it is not scraped: {own}"
    );
    let (mut chosen, _) = dashboard.choose(prometheus, (begin, now), Choice::All).await?;
    chosen.extend(["__range", "__rate_interval"].map(|name| (name.to_owned(), "15s".to_owned())));
    let mut shown = 0;
    for query in dashboard.queries(&chosen)? {
        let data = prometheus.get("query", &[("query", &query.text)]).await?;
        let data = data["result"].to_string();
        ensure!(
            !data.contains(prometheus.address()),
            "{query:?}: of another program: {data}"
        );
        shown += usize::from(data != "[]");
    }
    ensure!(shown > 20, "only {shown} queries have shown anything");
    Ok(())
}

/// Both roles; the management side serves its metrics as it would off loopback.
pub(crate) async fn started(test_env: TestEnv) -> Result<SharedEnv> {
    leases(&test_env).await?;
    let control_plane = test_env.control_plane();
    roles::install_metrics(control_plane, "ho").await?;
    let token = roles::metrics_reader(control_plane, "prometheus").await?;
    std::fs::write(test_env.dir().join("token"), token)?;
    let keys = test_env.dir().join("keys");
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
    let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &secure).await?;
    let cpo = start_cpo(&test_env).await?;
    Ok(SharedEnv { test_env, ho, cpo })
}

/// Starts the guest side, and has Prometheus scrape it in place of the one before.
pub(crate) async fn start_cpo(test_env: &TestEnv) -> Result<Hyperlink> {
    let often = [("resync", "2s"), ("record-resync", "2s")];
    let cpo = Hyperlink::start(test_env, Role::Cpo, "cpo", &often).await?;
    let (file, new) = (test_env.dir().join(TARGETS), test_env.dir().join("new-targets.json"));
    std::fs::write(&new, targets(&cpo).to_string())?;
    std::fs::rename(new, file)?;
    Ok(cpo)
}

/// As Prometheus' configuration and its files of targets have them, with the labels that the chart's monitors give.
fn targets(hyperlink: &Hyperlink) -> Value {
    json!([{"targets": [hyperlink.metrics_address()], "labels": {"app": "hyperlink", "namespace": "hyperlink"}}])
}

/// Scrapes both every second, and evaluates the rules as often.
pub(crate) async fn watched(shared_env: &SharedEnv, rules: &Path) -> Result<Prometheus> {
    let dir = shared_env.test_env.dir();
    let configuration = json!({
        "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
        "rule_files": [rules],
        "scrape_configs": [
            {"job_name": "ho", "scheme": "https", "static_configs": targets(&shared_env.ho),
                "authorization": {"credentials_file": dir.join("token")},
                "tls_config": {"ca_file": dir.join("keys/ca.pem")}},
            {"job_name": "cpo", "file_sd_configs":
                [{"files": [dir.join(TARGETS), dir.join("another.json")], "refresh_interval": "1s"}]},
        ],
    });
    let file = dir.join("prometheus.yml");
    std::fs::write(&file, configuration.to_string())?;
    let prometheus = Prometheus::start(dir, &file).await?;
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

async fn alerts_are_loaded(prometheus: &Prometheus) -> Result<()> {
    let file: Value = serde_saphyr::from_str(&std::fs::read_to_string(repository().join(ALERTS))?)?;
    let shipped = file["groups"][0]["rules"].as_array().context("no rules")?;
    let shipped: Vec<_> = shipped.iter().map(|rule| rule["alert"].clone()).collect();
    eventually("every rule is evaluated and good", SOON, || async {
        let groups = prometheus.get("rules", &[]).await?;
        let rules = groups["groups"][0]["rules"].as_array().into_iter().flatten();
        let good = rules.filter(|rule| rule["health"] == "ok");
        let good: Vec<_> = good.map(|rule| rule["name"].clone()).collect();
        ensure!(good == shipped, "{groups}");
        Ok(())
    })
    .await
}

async fn secure_page(shared_env: &SharedEnv) -> Result<String> {
    let token = std::fs::read_to_string(shared_env.test_env.dir().join("token"))?;
    let ca = std::fs::read(shared_env.test_env.dir().join("keys/ca.pem"))?;
    let http = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(&ca)?])
        .timeout(Duration::from_secs(30))
        .build()?;
    let url = format!("https://{}/metrics", shared_env.ho.metrics_address());
    Ok(http
        .get(url)
        .bearer_auth(token)
        .send()
        .await?
        .error_for_status()?
        .text()
        .await?)
}
