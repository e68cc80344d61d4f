//! The entries of the management cluster for all workload clusters: one decision, one guarded patch.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::Resource;
use kube::runtime::reflector::ObjectRef;
use tokio::time::{Instant, timeout};

use super::{BETWEEN_WRITES, Context, MOST_TRIES, changed, event, shown};
use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterSpec};
use crate::api::markers::capz::DROPPED_ENDPOINTS;
use crate::capz::assignments::{Assignments, assign};
use crate::capz::cluster::uid;
use crate::capz::dropped::DroppedEndpoints;
use crate::capz::ledger::{Holder, Ledger};
use crate::capz::patch::{Annotation, patch};
use crate::metrics::{ManagementWrite, ReconcileResult};
use crate::runtime::call::ReconcileError;
use crate::runtime::event::Event;
use crate::runtime::requeue::Requeue;

/// How long the Events of one write may hold up the next.
const LONGEST_REPORT: Duration = Duration::from_secs(5);

/// How many clusters that only the ledger names are read in one reconcile.
const MOST_UNKNOWN: usize = 20;

/// Brings the entries of the management cluster in order.
///
/// # Errors
/// The API server refuses, or others write without end.
pub(super) async fn reconcile(
    cx: &Context,
    management: &AzureCluster,
) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
    // All else of this decision is dropped at once: it may be large.
    let unknown = cx.with_snapshot(management, assign).unknown;
    confirm_gone(cx, &unknown).await;
    let assigned = cx.with_snapshot(management, assign);
    let writes = assigned.writes(management);
    // Whatever comes of the write: the other side of each cluster does not wait for it.
    publish(cx, management, assigned);
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    if !writes {
        return Ok((ReconcileResult::Ready, Some(resync)));
    }
    if let Some(wait) = cx.decided(|decided| wait(decided.written)) {
        return Ok((ReconcileResult::Waiting, Some(Requeue::new(wait, Requeue::POLL))));
    }
    if cx.reference.leads() {
        return Ok((ReconcileResult::Waiting, Some(resync)));
    }
    publish(cx, management, write(cx).await?);
    Ok((ReconcileResult::Ready, Some(resync)))
}

/// How long the next write has to wait for the last one.
fn wait(written: Option<Instant>) -> Option<Duration> {
    let left = (written? + BETWEEN_WRITES).saturating_duration_since(Instant::now());
    (!left.is_zero()).then_some(left)
}

/// Decides by the management cluster as it is now, and writes; again where others write at the same time.
async fn write(cx: &Context) -> Result<Assignments, ReconcileError> {
    let writing = cx.writing.lock().await;
    let mut tries = 1;
    loop {
        let Some(management) = cx.read(&cx.settings.management).await? else {
            return Ok(Assignments::default());
        };
        let assigned = cx.with_snapshot(&management, assign);
        if !assigned.writes(&management) {
            return Ok(assigned);
        }
        let before = Ledger::read(&management);
        let ledger = (assigned.ledger != before).then_some(&assigned.ledger);
        let dropped = dropped(&management, &before, &assigned);
        let patch = patch(&management, &assigned.changes, ledger, dropped.as_slice());
        let written = cx.patch(&management, patch).await;
        cx.decided(|decided| decided.written = Some(Instant::now()));
        cx.runtime.metrics.management_cluster_written(match &written {
            Ok(_) => ManagementWrite::Written,
            Err(error) if error.conflict() => ManagementWrite::Conflict,
            Err(_) => ManagementWrite::Failed,
        });
        match written {
            Ok(_) => {
                drop(writing);
                report(cx, &management, &assigned).await;
                return Ok(assigned);
            }
            Err(error) if error.conflict() && tries < MOST_TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
}

/// The record of private endpoints whose entries are removed, if these assignments change it.
fn dropped(management: &AzureCluster, before: &Ledger, assigned: &Assignments) -> Option<Annotation> {
    let recorded = DroppedEndpoints::read(management);
    let ledgers = (before, &assigned.ledger);
    let after = recorded.clone().after(ledgers, &assigned.changes, Timestamp::now());
    (after != recorded).then(|| (DROPPED_ENDPOINTS, after.text()))
}

/// Writes Events of the changes on the workload clusters that they are for and on the management cluster, and counts
/// them.
async fn report(cx: &Context, management: &AzureCluster, assigned: &Assignments) {
    let before = Ledger::read(management);
    let of = &cx.settings.management;
    let mut by_holder: BTreeMap<Option<&Holder>, Vec<Event>> = BTreeMap::new();
    for change in &assigned.changes {
        let event = event::changed(change, of);
        tracing::info!("{}", event.note);
        cx.count(change, of, before.holder(change.name()).is_some());
        let holder = assigned.ledger.holder(change.name());
        let holder = holder.or_else(|| before.holder(change.name()));
        by_holder.entry(holder).or_default().push(event);
    }
    let written = async {
        for (holder, events) in by_holder {
            emit(cx, management, holder, &events).await;
        }
    };
    if timeout(LONGEST_REPORT, written).await.is_err() {
        tracing::debug!("not all Events of entries are written");
    }
}

/// Writes Events about the entries of one holder. The number of those on the management cluster is limited for each
/// namespace.
async fn emit(cx: &Context, management: &AzureCluster, holder: Option<&Holder>, events: &[Event]) {
    let on_management = management.object_ref(&());
    let Some(holder) = holder else {
        for event in events {
            cx.runtime
                .events
                .emit_elsewhere(&on_management, &on_management, event)
                .await;
        }
        return;
    };
    let ClusterRef { namespace, name } = &holder.cluster;
    let found = cx.clusters.get(&ObjectRef::new(name).within(namespace));
    if let Some(own) = found.filter(|found| uid(found) == holder.uid) {
        cx.runtime
            .events
            .emit(&[own.object_ref(&()), on_management], events)
            .await;
        return;
    }
    let gone = ObjectReference {
        namespace: Some(namespace.clone()),
        name: Some(name.clone()),
        ..ObjectReference::default()
    };
    for event in events {
        cx.runtime.events.emit_elsewhere(&gone, &on_management, event).await;
    }
}

/// Notes what was decided, and wakes the workload clusters for which that is something new.
fn publish(cx: &Context, management: &AzureCluster, assigned: Assignments) {
    let (common, recorded) = (without_entries(management), Ledger::read(management));
    let (woken, is_all) = cx.decided(|decided| {
        let woken = changed(&decided.of, &assigned.of);
        decided.entries = shown::count(&assigned);
        decided.of = assigned.of;
        decided.gone.retain(|uid| !recorded.is_free_of(uid));
        let before = decided.management.replace(common.clone());
        (woken, before != Some(common))
    });
    let workloads = cx.workloads();
    for cluster in workloads
        .iter()
        .filter(|cluster| is_all || woken.contains(uid(cluster)))
    {
        // Nobody listens any more when the process stops.
        let _ = cx.wake.send(ObjectRef::from_obj(cluster.as_ref()));
    }
}

/// What every workload cluster depends on: the management cluster but for its entries.
fn without_entries(management: &AzureCluster) -> AzureClusterSpec {
    let mut spec = management.spec.clone();
    for subnet in &mut spec.network_spec.subnets {
        subnet.private_endpoints = None;
    }
    spec
}

/// Reads of the clusters that only the ledger names whether they exist. A failed read keeps no other from being sent.
pub(super) async fn confirm_gone(cx: &Context, unknown: &BTreeSet<Holder>) {
    for holder in unknown.iter().take(MOST_UNKNOWN) {
        match cx.read(&holder.cluster).await {
            Ok(found) if found.as_ref().is_none_or(|found| uid(found) != holder.uid) => {
                cx.decided(|decided| decided.gone.insert(holder.uid.clone()));
            }
            Ok(_) => {}
            Err(error) => tracing::debug!(id = %holder.cluster, %error, "not known whether a cluster exists"),
        }
    }
}
