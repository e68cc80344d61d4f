//! What the simulator's journal and the API server's audit log say about a process, and faults that keep it busy.

use std::collections::HashMap;

use anyhow::{Context, Result, ensure};
use e2e::ground::Call;
use e2e::site::control;
use e2e::{Ground, eventually};
use jiff::Timestamp;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::candidate::{Candidate, SOON};

/// From now on the simulator takes writes of `candidate` at once, and answers them this much later.
pub(crate) async fn delay_answers_to_writes(ground: &Ground, candidate: &Candidate, delay_ms: u64) -> Result<()> {
    let rules = json!([{
        "match": {"method": "PUT", "principal": candidate.client, "times": 1_000_000},
        "do": {"delay_ms": delay_ms},
    }]);
    control(ground, reqwest::Method::PUT, "/faults", rules).await
}

/// The calls of `candidate` to ARM.
pub(crate) async fn calls(ground: &Ground, candidate: &Candidate) -> Result<Vec<Call>> {
    let mut calls = ground.oracle().journal(0).await?;
    calls.retain(|call| call.principal.as_deref() == Some(&candidate.client));
    Ok(calls)
}

/// Waits until a write of `candidate` is under way.
pub(crate) async fn writes(ground: &Ground, candidate: &Candidate) -> Result<()> {
    eventually("it writes", SOON, async || {
        let calls = calls(ground, candidate).await?;
        ensure!(calls.iter().any(Call::is_write), "{} reads", calls.len());
        Ok(())
    })
    .await
}

/// Fails if a write of `candidate` reached ARM at `time` or later.
pub(crate) async fn wrote_nothing_since(ground: &Ground, candidate: &Candidate, time: Timestamp) -> Result<()> {
    let calls = calls(ground, candidate).await?;
    let (late, before): (Vec<_>, Vec<_>) = calls
        .iter()
        .filter(|call| call.is_write())
        .partition(|call| call.time >= time);
    ensure!(!before.is_empty(), "it has written before");
    ensure!(late.is_empty(), "written since {time}: {late:#?}");
    Ok(())
}

/// Fails if a resource was removed or made more than once: until now only building was asked for.
pub(crate) async fn built_once(ground: &Ground) -> Result<()> {
    let mut made: HashMap<String, usize> = HashMap::new();
    for call in ground.oracle().journal(0).await?.iter().filter(|call| call.changed) {
        ensure!(call.method == "PUT", "{call:?}");
        if call.status == 201 || (call.status == 202 && !made.contains_key(&call.path)) {
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
}

/// The writes of `candidate` that reached the API server at `since` or later.
pub(crate) fn kube_writes(ground: &Ground, candidate: &Candidate, since: Timestamp) -> Result<Vec<KubeWrite>> {
    let log = std::fs::read_to_string(ground.control_plane().audit_log())?;
    let token = json!([format!("JTI={}", candidate.token)]);
    let mut writes = Vec::new();
    // The last line may be half written.
    for line in log.rsplit_once('\n').context("an audit log")?.0.lines() {
        let event: KubeWrite = serde_json::from_str(line)?;
        let whose = &event.user["extra"]["authentication.kubernetes.io/credential-id"];
        // A review of access is a question, created and never stored.
        let asks = event.request_uri.starts_with("/apis/authorization.k8s.io/");
        let reads = asks || matches!(event.verb.as_str(), "get" | "list" | "watch");
        if *whose == token && !reads && event.request_received_timestamp >= since {
            writes.push(event);
        }
    }
    Ok(writes)
}
