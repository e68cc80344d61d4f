//! A leader that cannot reach the API server.

use std::time::{Duration, Instant};

use anyhow::{Context, Result, anyhow, ensure};
use e2e::pipe::Pipe;
use e2e::{ControlPlane, eventually, patient, scenario};
use futures::{FutureExt, StreamExt};
use hyperlink::runtime::leader::{GateShut, LeaderGate, gated_client};
use k8s_openapi::api::core::v1::ConfigMap;
use kube::api::{Api, DeleteParams, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use serde_json::json;
use tokio::sync::watch;

use crate::test_env::{RENEW_DEADLINE, RETRY, SOON, Standby, blank, lead, leases, settings};
use crate::witness::Witness;

#[test]
fn cut_off_leader_stops_writing_before_the_standby_begins() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        let name = "cut-off";
        blank(plane, name).await?;
        let pipe = Pipe::to(&plane.admin().config()).await?;
        let (mut leadership, gate) = lead(pipe.through(plane.admin().config())?, settings(name, "leader")).await?;
        let mut standby = Standby::start(plane.admin().config(), settings(name, "standby"))?;
        standby.yields_to("leader").await?;
        let witness = Witness::of(vec![gate.clone(), standby.gate.clone()]);
        let journal = journal(plane, name).await?;
        // Only the lease's connection is cut: what stops the writes is the gate.
        let old = write_while_allowed(plane, name, "leader", gate.clone());
        let new = write_while_allowed(plane, name, "standby", standby.gate.clone());

        pipe.cut();
        let cut = Instant::now();
        tokio::time::timeout(patient(SOON), leadership.lost())
            .await
            .context("loses")?;
        ensure!(
            !gate.open() && gate.deadline().is_none(),
            "the gate is shut when the loss is told"
        );
        ensure!(
            cut.elapsed() < RENEW_DEADLINE + RETRY,
            "lost {:?} after the cut",
            cut.elapsed()
        );
        let (leadership, _) = standby.leads().await?;

        let refusal = tokio::time::timeout(patient(SOON), old)
            .await
            .context("stops writing")??;
        ensure!(refusal.is::<GateShut>(), "stopped by {refusal}");
        eventually("the standby writes", SOON, || async {
            has_written(&journal, "standby")
        })
        .await?;
        drop(leadership);
        tokio::time::timeout(patient(SOON), new)
            .await
            .context("stops writing")??;
        let writers = journal.borrow().clone();
        ensure!(
            writers.first().is_some_and(|writer| writer == "leader"),
            "the leader has written"
        );
        let handover = writers
            .iter()
            .position(|writer| writer == "standby")
            .context("the standby has written")?;
        ensure!(
            writers[handover..].iter().all(|writer| writer == "standby"),
            "the old leader wrote after the new one"
        );
        witness.verdict()
    });
}

fn has_written(journal: &watch::Receiver<Vec<String>>, writer: &str) -> Result<()> {
    ensure!(
        journal.borrow().iter().any(|name| name == writer),
        "{writer} has not written"
    );
    Ok(())
}

/// Writes an object again and again, once the gate is open and until it refuses; returns the refusal.
fn write_while_allowed(
    plane: &ControlPlane,
    name: &str,
    writer: &'static str,
    gate: LeaderGate,
) -> tokio::task::JoinHandle<Box<dyn std::error::Error + Send + Sync>> {
    let (config, name) = (plane.admin().config(), name.to_owned());
    tokio::spawn(async move {
        let client = match gated_client(config, {
            let gate = gate.clone();
            move || gate.open()
        }) {
            Ok(client) => client,
            Err(error) => return error.into(),
        };
        let objects: Api<ConfigMap> = Api::default_namespaced(client);
        while !gate.open() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
        for n in 0_u64.. {
            let body = json!({"data": {"writer": writer, "n": n.to_string()}});
            match objects.patch(&name, &PatchParams::default(), &Patch::Merge(body)).await {
                Ok(_) => {}
                Err(kube::Error::Service(refusal)) => return refusal,
                Err(error) => return error.into(),
            }
        }
        unreachable!("the loop has no end")
    })
}

/// Makes an object and keeps the list of who wrote it, in order.
async fn journal(plane: &ControlPlane, name: &str) -> Result<watch::Receiver<Vec<String>>> {
    let objects: Api<ConfigMap> = Api::default_namespaced(plane.client()?);
    let empty = serde_json::from_value(json!({"metadata": {"name": name}}))?;
    let version = objects
        .create(&PostParams::default(), &empty)
        .await?
        .metadata
        .resource_version;
    let only = WatchParams::default().fields(&format!("metadata.name={name}"));
    let events = objects.watch(&only, &version.context("a version")?).await?;
    let (sender, receiver) = watch::channel(Vec::new());
    tokio::spawn(events.for_each(move |event| {
        if let Ok(WatchEvent::Modified(ConfigMap { data: Some(data), .. })) = event {
            sender.send_modify(|writers| writers.extend(data.get("writer").cloned()));
        }
        std::future::ready(())
    }));
    Ok(receiver)
}

#[test]
fn lease_deleted_while_leader_is_cut_off_makes_no_second_one() {
    scenario(async {
        let plane = ControlPlane::shared().await?;
        blank(plane, "deleted-cut-off").await?;
        let pipe = Pipe::to(&plane.admin().config()).await?;
        let through = pipe.through(plane.admin().config())?;
        let (mut leadership, gate) = lead(through, settings("deleted-cut-off", "leader")).await?;
        pipe.cut();
        leases(plane)?
            .delete("deleted-cut-off", &DeleteParams::default())
            .await?;
        let fresh = Standby::start(plane.admin().config(), settings("deleted-cut-off", "fresh"))?;
        let witness = Witness::of(vec![gate, fresh.gate.clone()]);
        let (_leadership, _) = fresh.leads().await?;
        leadership
            .lost()
            .now_or_never()
            .ok_or_else(|| anyhow!("the old leader knows by then"))?;
        witness.verdict()
    });
}
