//! Processes as Pods that come and go, scraped by a real Prometheus that has the shipped rules with shorter times.

use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::hyperlink::Hyperlink;
use e2e::shared_env::SOON;
use serde_json::{Value, json};

use crate::prometheus::Prometheus;
use crate::rules::shortened;

/// The jobs, one for each role.
const JOBS: [&str; 3] = ["ho", "cpo", "capz"];

/// A Prometheus whose targets the test sets.
pub(crate) struct Watched {
    /// The Prometheus itself.
    pub(crate) prometheus: Prometheus,
    dir: PathBuf,
}

impl Watched {
    /// Scrapes nothing yet; scrapes every second, and evaluates the rules as often.
    pub(crate) async fn start(dir: &Path, minute: Duration) -> Result<Self> {
        let job = |job: &str| json!({"job_name": job, "file_sd_configs": [{"files": [dir.join(targets(job))], "refresh_interval": "1s"}]});
        let configuration = json!({
            "global": {"scrape_interval": "1s", "scrape_timeout": "1s", "evaluation_interval": "1s"},
            "rule_files": [shortened(dir, minute)?],
            "scrape_configs": JOBS.map(job),
        });
        let file = dir.join("prometheus.yml");
        std::fs::write(&file, configuration.to_string())?;
        let prometheus = Prometheus::start(dir, &file).await?;
        Ok(Self {
            prometheus,
            dir: dir.to_owned(),
        })
    }

    /// Sets the Pods of a job. A Pod whose container was restarted is the same Pod still, with the same address.
    pub(crate) fn scrapes(&self, job: &str, pods: &[(&str, &Hyperlink)]) -> Result<()> {
        let target = |(pod, hyperlink): &(&str, &Hyperlink)| {
            let labels = json!({"app": "hyperlink", "namespace": "hyperlink", "pod": pod, "instance": pod});
            json!({"targets": [hyperlink.metrics_address()], "labels": labels})
        };
        let new = self.dir.join("new-targets.json");
        let all: Vec<Value> = pods.iter().map(target).collect();
        std::fs::write(&new, Value::from(all).to_string())?;
        // Nobody reads half of it.
        Ok(std::fs::rename(new, self.dir.join(targets(job)))?)
    }

    /// Waits until so many Pods give their metrics.
    pub(crate) async fn sees(&self, pods: usize) -> Result<()> {
        let expected = pods.to_string();
        eventually(&format!("{pods} pods are scraped"), SOON, || async {
            let up = self.prometheus.get("query", &[("query", "sum(up)")]).await?;
            ensure!(up["result"][0]["value"][1] == *expected, "{up}");
            Ok(())
        })
        .await
    }
}

fn targets(job: &str) -> String {
    format!("targets-of-{job}.json")
}
