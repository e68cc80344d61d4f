//! One workload cluster: its finalizer, the entry of the gateway, its addresses and its condition. Its entries in the
//! management cluster are written there.

use std::time::Duration;

use jiff::Timestamp;
use kube::api::Patch;
use kube::{Resource, ResourceExt};
use tokio::time::Instant;

use super::sides::{api_server, gateway_side};
use super::{Context, MOST_TRIES, event};
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::{CONDITION, FINALIZER};
use crate::capz::assignments::{Assignments, undecided};
use crate::capz::cluster::{Access, access, is_deleting, is_held, reference, uid};
use crate::capz::condition;
use crate::capz::entry::Change;
use crate::capz::gateway::{self, Gateway};
use crate::capz::patch::{finalizer, patch};
use crate::capz::reason::{Problem, Reason};
use crate::capz::status::{Published, published};
use crate::metrics::{KubeResource, KubeVerb, ReconcileResult};
use crate::runtime::call::{ReconcileError, changing};
use crate::runtime::requeue::Requeue;

/// The longest wait between two reads whether the management cluster has nothing for a cluster that is deleting.
const LONGEST_RELEASE: Duration = Duration::from_secs(30);

/// The time until it is asked again whether all identities are listed.
const UNTIL_LISTED: Duration = Duration::from_secs(1);

type Reconciled = Result<(ReconcileResult, Option<Requeue>), ReconcileError>;

/// Reconciles one workload cluster.
///
/// # Errors
/// The API server refuses, or others write without end.
pub(super) async fn reconcile(cx: &Context, cluster: &AzureCluster) -> Reconciled {
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    if cx.reference.leads() {
        return Ok((ReconcileResult::Waiting, Some(resync)));
    }
    if is_deleting(cluster) {
        return release(cx, cluster).await;
    }
    let Some(management) = cx.management() else {
        return block(cx, cluster, no_management_cluster(cx)).await;
    };
    if let Err(problem) = undecided(cluster, &management, cx.settings.cloud) {
        return block(cx, cluster, problem).await;
    }
    if !is_held(cluster) {
        // Its event brings the next reconcile.
        hold(cx, cluster).await?;
        return Ok((ReconcileResult::Waiting, Some(resync)));
    }
    let (cluster, gateway) = write_gateway(cx, cluster, &management).await?;
    if !cx.identities.are_listed() {
        // The condition stays as it is: that of a connected cluster is not False after each start.
        return Ok((
            ReconcileResult::Waiting,
            Some(Requeue::new(UNTIL_LISTED, Requeue::POLL)),
        ));
    }
    let mut requeues = vec![resync];
    let api_server = api_server(cx, &cluster, &management, &mut requeues).await;
    let Some(api_server) = api_server else {
        // The reconcile of the management cluster wakes it.
        return Ok((ReconcileResult::Waiting, Some(resync)));
    };
    let gateway = gateway_side(cx, &cluster, gateway, &mut requeues).await;
    let desired = published(&cluster, &api_server, &gateway);
    let result = publish(cx, &cluster, &desired).await?;
    Ok((result, Requeue::earliest(requeues)))
}

/// The problem that there is no management cluster.
pub(super) fn no_management_cluster(cx: &Context) -> Problem {
    let message = format!("AzureCluster {} does not exist", cx.settings.management);
    Problem::new(Reason::ManagementClusterMissing, message)
}

/// Publishes a problem for which nothing else is done.
async fn block(cx: &Context, cluster: &AzureCluster, problem: Problem) -> Reconciled {
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    write_condition(cx, cluster, Some(&problem)).await?;
    Ok((ReconcileResult::Refused, Some(resync)))
}

/// Adds the finalizer, before anything is made for the cluster.
async fn hold(cx: &Context, cluster: &AzureCluster) -> Result<(), ReconcileError> {
    let Some(fresh) = same(cx, cluster)
        .await?
        .filter(|fresh| !is_held(fresh) && !is_deleting(fresh))
    else {
        return Ok(());
    };
    write_finalizer(cx, &fresh, true).await
}

/// Lets a cluster go that is deleting, once the management cluster has nothing for it.
async fn release(cx: &Context, cluster: &AzureCluster) -> Reconciled {
    if !is_held(cluster) {
        return Ok((ReconcileResult::Ready, None));
    }
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    let _writing = cx.writing.lock().await;
    if let Some(management) = cx.read(&cx.settings.management).await? {
        let is_free = cx.with_snapshot(&management, |snapshot| Assignments::is_free_of(snapshot, uid(cluster)));
        if !is_free {
            // The reconcile of the management cluster removes it; its event brings the next one.
            let poll = format!("{}/release", uid(cluster));
            let wait = cx
                .polls
                .wait(&poll, super::BETWEEN_WRITES, Instant::now())
                .min(LONGEST_RELEASE);
            return Ok((ReconcileResult::Waiting, Some(Requeue::new(wait, Requeue::POLL))));
        }
    }
    let Some(fresh) = same(cx, cluster).await?.filter(is_held) else {
        return Ok((ReconcileResult::Ready, None));
    };
    write_finalizer(cx, &fresh, false).await?;
    tracing::info!("released");
    Ok((ReconcileResult::Ready, Some(resync)))
}

async fn write_finalizer(cx: &Context, fresh: &AzureCluster, is_held: bool) -> Result<(), ReconcileError> {
    let api = cx.api(&fresh.namespace().unwrap_or_default());
    let patch = finalizer(fresh, FINALIZER, is_held);
    changing(api.patch(&fresh.name_any(), &cx.runtime.patch_params(), &Patch::Merge(patch))).await?;
    cx.runtime
        .metrics
        .kube_write(KubeResource::AzureCluster, KubeVerb::Patch);
    Ok(())
}

/// The cluster as the API server has it now, if it is still the same.
async fn same(cx: &Context, cluster: &AzureCluster) -> Result<Option<AzureCluster>, ReconcileError> {
    let found = cx.read(&reference(cluster)).await?;
    Ok(found.filter(|found| uid(found) == uid(cluster)))
}

/// Writes the entry of the gateway, if it is not as desired; returns the cluster and what is decided on it.
async fn write_gateway(
    cx: &Context,
    cluster: &AzureCluster,
    management: &AzureCluster,
) -> Result<(AzureCluster, Gateway), ReconcileError> {
    let decide = |cluster: &AzureCluster| {
        let access = access(management).unwrap_or(Access::Public);
        gateway::decide(cluster, management, access)
    };
    let mut tries = 1;
    let (mut cluster, mut decided) = (cluster.clone(), decide(cluster));
    while !decided.changes().is_empty() {
        cluster = same(cx, &cluster).await?.ok_or(ReconcileError::Gone)?;
        decided = decide(&cluster);
        if decided.changes().is_empty() {
            break;
        }
        match cx.patch(&cluster, patch(&cluster, decided.changes(), None, &[])).await {
            Ok(written) => {
                report(cx, &cluster, decided.changes()).await;
                decided = decide(&written);
                cluster = written;
                break;
            }
            Err(error) if error.conflict() && tries < MOST_TRIES => tries += 1,
            Err(error) => return Err(error),
        }
    }
    Ok((cluster, decided))
}

/// Writes Events of the changes of a cluster's own entries, and counts them.
async fn report(cx: &Context, cluster: &AzureCluster, changes: &[Change]) {
    let of = reference(cluster);
    let events: Vec<_> = changes.iter().map(|change| event::changed(change, &of)).collect();
    changes.iter().for_each(|change| cx.count(change, &of, false));
    cx.runtime.events.emit(&[cluster.object_ref(&())], &events).await;
}

/// Writes annotations and condition, if they are not as desired.
async fn publish(cx: &Context, cluster: &AzureCluster, desired: &Published) -> Result<ReconcileResult, ReconcileError> {
    if !desired.annotations.is_empty()
        && let Some(fresh) = same(cx, cluster).await?
    {
        cx.patch(&fresh, patch(&fresh, &[], None, &desired.annotations)).await?;
    }
    if !desired.applies {
        patch_status(cx, cluster, condition::removal).await?;
    } else if !desired.keeps_condition {
        write_condition(cx, cluster, desired.problem.as_ref()).await?;
    }
    Ok(match &desired.problem {
        None => ReconcileResult::Ready,
        Some(_) => ReconcileResult::Waiting,
    })
}

/// Publishes a problem, or none, as the condition, if the cluster does not show that already.
async fn write_condition(
    cx: &Context,
    cluster: &AzureCluster,
    problem: Option<&Problem>,
) -> Result<(), ReconcileError> {
    let now = Timestamp::now();
    let is_written = patch_status(cx, cluster, |cluster| condition::patch(cluster, problem, now)).await?;
    if is_written {
        let event = problem.and_then(event::trouble);
        let object = cluster.object_ref(&());
        cx.runtime.events.stands(&object, CONDITION, event).await;
    }
    Ok(())
}

/// Patches the status, if it is not as desired; decides again by the cluster as it is now. Returns whether it did.
async fn patch_status(
    cx: &Context,
    cluster: &AzureCluster,
    decide: impl Fn(&AzureCluster) -> Option<json_patch::Patch>,
) -> Result<bool, ReconcileError> {
    if decide(cluster).is_none() {
        return Ok(false);
    }
    let fresh = same(cx, cluster).await?;
    let Some((patch, fresh)) = fresh.and_then(|fresh| Some((decide(&fresh)?, fresh))) else {
        return Ok(false);
    };
    let api = cx.api(&fresh.namespace().unwrap_or_default());
    let patch = Patch::<()>::Json(patch);
    let written = changing(api.patch_status(&fresh.name_any(), &cx.runtime.patch_params(), &patch)).await;
    cx.runtime
        .metrics
        .kube_write(KubeResource::AzureClusterStatus, KubeVerb::Patch);
    written.map(|_| true).map_err(ReconcileError::guarded)
}
