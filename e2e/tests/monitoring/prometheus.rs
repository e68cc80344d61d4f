//! A real Prometheus on loopback.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::process::{Process, Program};
use e2e::repository;
use serde_json::Value;

const START: Duration = Duration::from_secs(60);

/// Path of Prometheus or promtool.
pub(crate) fn program(name: &str) -> Result<PathBuf> {
    let fetch = Command::new(repository().join("hack/prometheus"))
        .stderr(Stdio::inherit())
        .output()?;
    ensure!(fetch.status.success(), "hack/prometheus failed");
    Ok(Path::new(String::from_utf8(fetch.stdout)?.trim()).join(name))
}

/// Fails if `promtool check metrics` has a complaint about a page.
pub(crate) fn check_metrics(page: &str) -> Result<()> {
    let mut check = Command::new(program("promtool")?)
        .args(["check", "metrics"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    check.stdin.take().context("no input")?.write_all(page.as_bytes())?;
    let output = check.wait_with_output()?;
    let printed = [output.stdout, output.stderr].concat();
    // It also prints complaints for which it does not fail.
    ensure!(
        output.status.success() && printed.is_empty(),
        "{}",
        String::from_utf8_lossy(&printed)
    );
    Ok(())
}

/// A running Prometheus. Dropping it kills it.
pub(crate) struct Prometheus {
    process: Process,
    url: String,
    http: reqwest::Client,
}

impl Prometheus {
    /// Starts one with this file of its configuration; what it writes is in `dir`.
    pub(crate) async fn start(dir: &Path, configuration: &Path) -> Result<Self> {
        let process = Program::new(program("prometheus")?)
            .flag("config.file", configuration)
            .flag("storage.tsdb.path", dir.join("prometheus"))
            .flag("web.listen-address", "127.0.0.1:0")
            .flag("log.format", "json")
            .spawn("prometheus", dir)?;
        let url = process
            .until("Prometheus listens", START, async || listens_at(&process))
            .await?;
        Ok(Self {
            process,
            url,
            http: reqwest::Client::new(),
        })
    }

    /// Address on which it listens and gives its own metrics.
    pub(crate) fn address(&self) -> &str {
        self.url.trim_start_matches("http://")
    }

    /// One page of its API: what is in `data`.
    pub(crate) async fn get(&self, path: &str, query: &[(&str, &str)]) -> Result<Value> {
        self.process.check()?;
        let answer = self
            .http
            .get(format!("{}/api/v1/{path}", self.url))
            .query(query)
            .send()
            .await?;
        let mut answer: Value = answer.json().await?;
        ensure!(answer["status"] == "success", "{path} {query:?}: {answer}");
        Ok(answer["data"].take())
    }
}

fn listens_at(process: &Process) -> Result<String> {
    let log = std::fs::read_to_string(process.log())?;
    let mut lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let line = lines
        .find(|line| line["msg"] == "Listening on")
        .context("it does not listen yet")?;
    Ok(format!("http://{}", line["address"].as_str().context("no address")?))
}
