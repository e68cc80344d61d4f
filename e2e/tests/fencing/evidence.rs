//! What the simulator's journal and the API server's audit log say about a process, and faults that keep it busy.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use e2e::shared_env::control;
use e2e::test_env::Call;
use e2e::{TestEnv, eventually};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::candidate::{Candidate, SOON};

/// From now on the simulator takes writes of `candidate` at once, and answers them this much later.
pub(crate) async fn delay_answers_to_writes(test_env: &TestEnv, candidate: &Candidate, delay_ms: u64) -> Result<()> {
    let rules = json!([{
        "match": {"method": "PUT", "principal": candidate.client, "times": 1_000_000},
        "do": {"delay_ms": delay_ms},
    }]);
    control(test_env, reqwest::Method::PUT, "/faults", rules).await
}

/// The calls of `candidate` to ARM.
pub(crate) async fn calls(test_env: &TestEnv, candidate: &Candidate) -> Result<Vec<Call>> {
    let mut calls = test_env.oracle().journal(0).await?;
    calls.retain(|call| call.principal.as_deref() == Some(&candidate.client));
    Ok(calls)
}

/// Waits until a write of `candidate` is under way that came after call `since`.
pub(crate) async fn writes(test_env: &TestEnv, candidate: &Candidate, since: u64) -> Result<()> {
    eventually("it writes", SOON, async || {
        let calls = calls(test_env, candidate).await?;
        let writes = |call: &Call| call.seq > since && call.is_write();
        ensure!(calls.iter().any(writes), "{} calls", calls.len());
        Ok(())
    })
    .await
}

/// Fails if a write of `candidate` reached ARM at `time` or later.
pub(crate) async fn wrote_nothing_since(test_env: &TestEnv, candidate: &Candidate, time: Timestamp) -> Result<()> {
    let calls = calls(test_env, candidate).await?;
    let (late, before): (Vec<_>, Vec<_>) = calls
        .iter()
        .filter(|call| call.is_write())
        .partition(|call| call.time >= time);
    ensure!(!before.is_empty(), "it has written before");
    ensure!(late.is_empty(), "written since {time}: {late:#?}");
    Ok(())
}

/// Fails if a resource was removed or made more than once: until now only building was asked for.
pub(crate) async fn built_once(test_env: &TestEnv) -> Result<()> {
    let mut made: HashMap<String, usize> = HashMap::new();
    for call in test_env.oracle().journal(0).await?.iter().filter(|call| call.changed) {
        ensure!(call.method == "PUT", "{call:?}");
        if matches!(call.status, 201 | 202) {
            *made.entry(call.path.to_lowercase()).or_default() += 1;
        }
    }
    made.retain(|_, times| *times > 1);
    ensure!(made.is_empty(), "made more than once: {made:?}");
    Ok(())
}

/// A write that reached the API server.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct KubeWrite {
    verb: String,
    #[serde(rename = "requestURI")]
    request_uri: String,
    request_received_timestamp: Timestamp,
    user: Value,
    #[serde(default)]
    response_status: Value,
}

impl KubeWrite {
    /// Whether it is a renewal that the API server refused, because another process has the lease. One that was on its
    /// way when the process was stopped arrives when it continues, and changes nothing.
    fn is_refused_renewal(&self) -> bool {
        self.request_uri.starts_with("/apis/coordination.k8s.io/") && self.response_status["code"] == 409
    }
}

/// The writes of `candidate` that reached the API server at `since` or later.
pub(crate) fn kube_writes(test_env: &TestEnv, candidate: &Candidate, since: Timestamp) -> Result<Vec<KubeWrite>> {
    let log = std::fs::read_to_string(test_env.control_plane().audit_log())?;
    let token = json!([format!("JTI={}", candidate.token)]);
    let mut writes = Vec::new();
    // The last line may be half written.
    for line in log.rsplit_once('\n').context("an audit log")?.0.lines() {
        let event: KubeWrite = serde_json::from_str(line)?;
        let whose = &event.user["extra"]["authentication.kubernetes.io/credential-id"];
        // A review of access is a question, created and never stored.
        let asks = event.request_uri.starts_with("/apis/authorization.k8s.io/");
        let reads = asks || matches!(event.verb.as_str(), "get" | "list" | "watch");
        if *whose == token && !reads && !event.is_refused_renewal() && event.request_received_timestamp >= since {
            writes.push(event);
        }
    }
    Ok(writes)
}
