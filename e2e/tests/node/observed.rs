//! What an operator sees of Pods: metrics behind their Service, and the lines of RUNBOOK.md that need a kubelet.

use std::net::SocketAddr;

use anyhow::{Context, Result, ensure};
use e2e::hosted_cluster::HostedCluster;
use e2e::node::{self, images::HYPERLINK};
use e2e::pki::Authority;
use e2e::{eventually, repository};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use kube::api::{Api, ListParams};
use regex::Regex;
use serde_json::json;

use crate::pods::{HOME, Pods, SOON, cpo, ho};

/// The Service of the metrics, and its port.
const METRICS: &str = "ho-hyperlink-metrics";
const PORT: u16 = 8443;

#[test]
fn metrics_are_read_where_their_service_leads_by_those_who_may() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let host = format!("{METRICS}.{HOME}.svc");
        let authority = Authority::new(cluster.dir())?;
        let tls = authority.sign(METRICS, &[&host])?;
        let read = |path| std::fs::read_to_string(path);
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"namespace": HOME, "name": "metrics"}, "stringData": {
            "tls.crt": read(&tls.certificate)?, "tls.key": read(&tls.key)?, "ca.crt": authority.pem()}});
        let monitors = repository().join("e2e/fixtures/prometheus-operator/servicemonitors.crd.yaml");
        installed.test_env.apply_yaml(&read(&monitors)?).await?;
        installed.test_env.apply_yaml(&secret.to_string()).await?;
        let mut values = ho(installed)?;
        values["metrics"] = json!({"enabled": true, "port": PORT, "readers": [{"namespace": HOME, "name": "prometheus"}],
            "certificate": {"secretName": "metrics"}, "serviceMonitor": {"enabled": true}});
        let pods = Pods::install(cluster, &values, &cpo(installed)?).await?;

        let mut leaders = 0;
        for address in endpoints(&pods).await? {
            let (status, page) = scraped(&pods, &authority, &host, address, Some("prometheus")).await?;
            ensure!(status == 200, "{status}: {page}");
            leaders += page
                .lines()
                .filter(|line| line.starts_with("hyperlink_leader{") && line.ends_with(" 1"))
                .count();
            let (status, page) = scraped(&pods, &authority, &host, address, Some("somebody")).await?;
            ensure!(status == 403, "{status}: {page}");
            let (status, page) = scraped(&pods, &authority, &host, address, None).await?;
            ensure!(status == 401, "{status}: {page}");
        }
        ensure!(leaders == 1, "{leaders} lead");
        Ok(())
    });
}

/// The addresses behind the Service: those of both Pods.
async fn endpoints(pods: &Pods<'_>) -> Result<Vec<SocketAddr>> {
    let slices: Api<EndpointSlice> = Api::namespaced(pods.cluster.test_env().client()?, HOME);
    let labelled = ListParams::default().labels(&format!("kubernetes.io/service-name={METRICS}"));
    eventually("the Service leads to both Pods", SOON, || async {
        let slices = slices.list(&labelled).await?.items;
        let found = slices
            .iter()
            .flat_map(|slice| &slice.endpoints)
            .flat_map(|one| &one.addresses);
        let found: Vec<SocketAddr> = found
            .map(|one| Ok(SocketAddr::new(one.parse()?, PORT)))
            .collect::<Result<_>>()?;
        ensure!(found.len() == 2, "{found:?}");
        Ok(found)
    })
    .await
}

/// The answer to a ServiceAccount's scrape of an address, by TLS with a checked certificate: status and text.
async fn scraped(
    pods: &Pods<'_>,
    authority: &Authority,
    host: &str,
    address: SocketAddr,
    account: Option<&str>,
) -> Result<(u16, String)> {
    let http = reqwest::Client::builder()
        .tls_certs_only([reqwest::Certificate::from_pem(authority.pem().as_bytes())?])
        .resolve(host, address)
        .build()?;
    let mut request = http.get(format!("https://{host}:{PORT}/metrics"));
    if let Some(account) = account {
        let control_plane = pods.cluster.test_env().control_plane();
        control_plane.service_account(HOME, account).await?;
        request = request.bearer_auth(control_plane.token(HOME, account, None).await?);
    }
    let answer = request.send().await?;
    Ok((answer.status().as_u16(), answer.text().await?))
}

#[test]
fn lines_of_the_runbook_that_need_a_kubelet_work() {
    node::scenario(&[HYPERLINK], async |cluster| {
        let installed = cluster.installed();
        let pods = Pods::install(cluster, &ho(installed)?, &cpo(installed)?).await?;
        let test_env = cluster.test_env();
        let hosted = HostedCluster::new(test_env, "looked-at");
        hosted.create(test_env).await?;
        hosted.becomes_available(test_env, SOON).await?;

        let text = std::fs::read_to_string(repository().join("RUNBOOK.md"))?;
        let commands = first_commands(&text, &hosted.control_plane_namespace())?;
        let shell = |line: &str| pods.kubectl.shell(&format!("{commands}\n{line}"));
        let conditions = shell("conditions")?;
        ensure!(
            conditions.contains("AzurePrivateLinkServiceAvailable=True"),
            "{conditions}"
        );
        for release in ["ho", "cpo"] {
            let plan = shell(&format!("plan {release}-hyperlink"))?;
            ensure!(plan.contains("nothing to do"), "{plan}");
            shell(&format!("warnings {release}"))?;
            // In a healthy cluster nothing is warned of, so look at what it looks through.
            let all = commands.replace(r#"select(.level=="WARN" and .namespace==$ns)"#, ".level");
            let levels = pods.kubectl.shell(&format!("{all}\nwarnings {release}"))?;
            ensure!(levels.contains("\"INFO\""), "{levels}");
        }
        let leader = pods.leader("ho").await?;
        pods.signal(&leader, "KILL").await?;
        pods.restarted(&leader, 1).await?;
        let mut ran = 0;
        for line in needs_a_kubelet(&text)? {
            let line = line.replace("POD", &leader);
            let printed = if line.contains(" port-forward ") {
                let asks = "curl --silent --show-error --retry 50 --retry-delay 1 --retry-connrefused";
                shell(&format!(
                    "{line} >/dev/null & trap 'kill $!' EXIT\n{asks} http://127.0.0.1:8081/readyz"
                ))?
            } else {
                shell(&line)?
            };
            ensure!(printed.contains("lease"), "{line}: {printed}");
            ran += 1;
        }
        ensure!(ran >= 2, "{ran} lines");
        Ok(())
    });
}

/// The block of commands at RUNBOOK.md's beginning, for this cluster and installation.
fn first_commands(text: &str, namespace: &str) -> Result<String> {
    let (_, text) = text.split_once("## First look\n\n```\n").context("no first look")?;
    let (block, _) = text.split_once("```").context("it does not end")?;
    let mut lines = Vec::new();
    for line in block.lines() {
        lines.push(if line.starts_with("NS=") {
            format!("NS={namespace}")
        } else if line.starts_with("IN=") {
            format!("IN={HOME}")
        } else {
            line.to_owned()
        });
    }
    Ok(lines.join("\n"))
}

/// The other commands in the text that go to the kubelets of Hyperlink's Pods, each once.
fn needs_a_kubelet(text: &str) -> Result<Vec<String>> {
    let command = Regex::new(r"`(kubectl -n \$IN [^`]*\b(?:exec|logs|port-forward)\b [^`]*)`")?;
    let mut found: Vec<_> = command
        .captures_iter(text)
        .map(|found| found[1].replace('\n', " "))
        .collect();
    found.sort();
    found.dedup();
    Ok(found)
}
