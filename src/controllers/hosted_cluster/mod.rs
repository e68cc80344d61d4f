//! HO: the conditions of custom resources, summed up on their HostedCluster. Runs only where HyperShift does not do it.

pub mod aggregate;
pub mod watch;

use std::sync::Arc;

use jiff::Timestamp;
use kube::api::{DynamicObject, Patch};
use kube::core::ApiResource;
use kube::{Api, ResourceExt};
use tokio::time::Instant;

use super::azure::access::Context;
use crate::api::{ClusterRef, HostedCluster};
use crate::hypershift::names;
use crate::metrics::{Controller, KubeResource, KubeVerb, ReconcileResult};
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::guard;
use crate::runtime::requeue::Requeue;
use crate::runtime::work_queue::Action;

/// The namespace and name of a HostedCluster.
pub fn reference(cluster: &HostedCluster) -> ClusterRef {
    ClusterRef {
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
    }
}

/// Reconciles a HostedCluster of this process's shard if its control plane is in a namespace that is not excluded and,
/// with `only`, in that one.
pub async fn reconcile(cached: Arc<HostedCluster>, cx: Arc<Context>, only: Option<&str>) -> Action {
    let cluster = reference(&cached);
    let namespace = names::control_plane_namespace(&cluster);
    let is_excluded = only.is_some_and(|only| only != namespace) || cx.excluded.contains(&namespace);
    // Any of the processes may sum up; one of them does.
    if is_excluded || !cx.shard.has(&cluster.to_string()) {
        return Action::AwaitChange;
    }
    let summary = publish_summary(&cx, &cached, &cluster, &namespace);
    let reconcile = async { Ok((ReconcileResult::Ready, Some(summary.await?))) };
    guard::counted(&cx.runtime, Controller::HostedCluster, cached.as_ref(), reconcile).await
}

/// Publishes the summary; returns when the next reconcile is due.
async fn publish_summary(
    cx: &Context,
    cached: &HostedCluster,
    cluster: &ClusterRef,
    namespace: &str,
) -> Result<Requeue, ReconcileError> {
    let resync = Requeue::new(cx.runtime.resync, Requeue::RESYNC);
    if !aggregate::concerns(&cached.spec) {
        return Ok(resync);
    }
    let uid = cached.uid().unwrap_or_default();
    let resource = ApiResource::erase::<HostedCluster>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cx.runtime.kube.clone(), &cluster.namespace, &resource);
    let Some(hosted) = within(api.get_opt(&cluster.name)).await? else {
        return Ok(resync);
    };
    let hosted = serde_json::to_value(&hosted).unwrap_or_default();
    if !cx.resources.listed() {
        // Each custom resource of the list causes a reconcile of its HostedCluster.
        return Ok(resync);
    }
    let found = cx.resources.of_namespace(namespace);
    let Some(desired) = aggregate::desired_conditions(&hosted, cluster, &found, Timestamp::now()) else {
        return Ok(resync);
    };
    let shown = aggregate::shown_conditions(&hosted);
    let now = Instant::now().into_std();
    let mut published = cx.published.of(&uid);
    if aggregate::to_be_written(&shown, &desired, &published, now) {
        let params = cx.runtime.patch_params();
        let carried = published.to_write(&shown, &desired, now);
        let patch = Patch::Merge(aggregate::patch(&hosted, &carried));
        changing(api.patch_status(&cluster.name, &params, &patch)).await?;
        cx.runtime
            .metrics
            .kube_write(KubeResource::HostedClusterStatus, KubeVerb::Patch);
        published.written(&shown, &desired, now);
    } else {
        published.unchanged(&shown, &desired, now);
    }
    let answer = published.next_answer(&shown, now);
    cx.published.keep(&uid, published);
    Ok(resync.or_earlier(answer.map(|after| Requeue::new(after, Requeue::OTHER_WRITER))))
}
