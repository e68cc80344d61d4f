//! Somebody else writes the status while the object is being reconciled.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{Condition, HostedCluster, ROUTER, conditions};
use e2e::shared_env::{SOON, situation};
use futures::StreamExt;
use kube::api::{Api, DynamicObject, Patch, PatchParams, WatchEvent, WatchParams};
use serde_json::{Value, json};
use tokio::sync::watch;

/// A condition that neither role knows; its message counts up.
const INSPECTED: &str = "Inspected";

#[test]
fn conditions_that_change_during_a_reconcile_are_not_lost() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "inspected");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let api = cluster.api(
            &shared_env.test_env.client()?,
            "AzurePrivateLinkService",
            &cluster.control_plane_namespace(),
        );
        let history = history(&api).await?;
        let reads_of_the_cluster = format!("{}|{}", cluster.infra_id(), cluster.cluster_id());
        let slow = json!([{"match": {"method": "GET", "path": reads_of_the_cluster, "times": 1_000_000}, "do": {"delay_ms": 1000}}]);
        shared_env.faults(slow).await?;

        // Both roles have much to report.
        let before = alias(&api).await?;
        let service = cluster.link_service(&shared_env.test_env);
        shared_env.test_env.oracle().drift_delete(&service).await?;
        let recreated = async {
            eventually("there is another service", SOON, async || {
                ensure!(alias(&api).await?.is_some_and(|now| Some(now) != before), "not yet");
                Ok(())
            })
            .await?;
            shared_env.heals(&cluster).await
        };
        tokio::select! {
            healed = recreated => healed?,
            failed = inspect(&api) => failed?,
        }
        shared_env.faults(json!([])).await?;
        let history = eventually("the watch has told of the trouble and of its end", SOON, async || {
            let history = history.borrow().clone();
            let reports = history
                .windows(2)
                .filter(|pair| without_inspection(&pair[0]) != without_inspection(&pair[1]));
            ensure!(reports.count() > 1, "too little was reported: {history:?}");
            Ok(history)
        })
        .await?;
        history
            .windows(2)
            .try_for_each(|pair| nothing_is_lost(&pair[0], &pair[1]))?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

async fn alias(api: &Api<DynamicObject>) -> Result<Option<String>> {
    let found = api.get(ROUTER).await?;
    let alias = found.data.pointer("/status/privateLinkServiceAlias");
    Ok(alias.and_then(Value::as_str).map(str::to_owned))
}

/// The conditions in each version of the custom resource from now on.
async fn history(api: &Api<DynamicObject>) -> Result<watch::Receiver<Vec<Vec<Condition>>>> {
    let version = api.get(ROUTER).await?.metadata.resource_version;
    let only = WatchParams::default().fields(&format!("metadata.name={ROUTER}"));
    let events = api.watch(&only, &version.context("a version")?).await?;
    let (sender, receiver) = watch::channel(Vec::new());
    tokio::spawn(events.for_each(move |event| {
        if let Ok(WatchEvent::Modified(object)) = event {
            sender.send_modify(|all| all.push(conditions(&object)));
        }
        std::future::ready(())
    }));
    Ok(receiver)
}

/// Writes a condition of its own, again and again.
async fn inspect(api: &Api<DynamicObject>) -> Result<()> {
    for count in 0..10_000 {
        let condition = json!({"type": INSPECTED, "status": "True", "reason": "Counted", "message": format!("{count:05}"),
            "lastTransitionTime": "2026-01-01T00:00:00Z"});
        let status = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "status": {"conditions": [condition]}});
        api.patch_status(ROUTER, &PatchParams::apply("inspector").force(), &Patch::Apply(status))
            .await?;
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    bail!("the cluster does not heal")
}

fn without_inspection(all: &[Condition]) -> Vec<&Condition> {
    all.iter().filter(|one| one.kind != INSPECTED).collect()
}

/// Fails unless each condition still exists and the count has not gone back.
fn nothing_is_lost(before: &[Condition], after: &[Condition]) -> Result<()> {
    for old in before {
        let new = after.iter().find(|one| one.kind == old.kind);
        let new = new.with_context(|| format!("{} is gone: {after:?}", old.kind))?;
        let back = old.kind == INSPECTED && new.message < old.message;
        ensure!(!back, "{} was written over with {}", old.message, new.message);
    }
    Ok(())
}
