//! HO: the conditions of custom resources, summed up on their HostedCluster. Runs only where HyperShift does not do it.

pub mod aggregate;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use kube::api::{DynamicObject, Patch};
use kube::core::ApiResource;
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use tokio::time::Instant;
use tracing::Instrument;

use super::context::Context;
use super::driver::{ReconcileError, changing, within};
use crate::api::{ClusterRef, HostedCluster};
use crate::metrics::{Controller, KubeResource, KubeVerb, ReconcileResult};
use crate::names;

/// The namespace and name of a HostedCluster.
pub fn reference(cluster: &HostedCluster) -> ClusterRef {
    ClusterRef {
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
    }
}

/// Reconciles a HostedCluster if its control plane is in a namespace that is not excluded and, with `only`, in that
/// one.
pub async fn reconcile(
    cached: Arc<HostedCluster>,
    cx: Arc<Context>,
    only: Option<&str>,
) -> Result<Action, ReconcileError> {
    let cluster = reference(&cached);
    let namespace = names::control_plane_namespace(&cluster);
    if only.is_some_and(|only| only != namespace) || cx.excluded.contains(&namespace) {
        return Ok(Action::await_change());
    }
    let label = Controller::HostedCluster;
    let span = tracing::info_span!(
        "reconcile",
        controller = label.label(),
        namespace = cluster.namespace,
        name = cluster.name
    );
    let counted = cx.metrics.reconcile(label);
    let reconciled = publish_summary(&cx, &cached, &cluster, &namespace);
    let uid = cached.uid().unwrap_or_default();
    // A panic that got through would end the whole controller.
    let outcome = AssertUnwindSafe(reconciled)
        .catch_unwind()
        .instrument(span.clone())
        .await;
    let (result, wait) = span.in_scope(|| match outcome {
        Err(_) => {
            cx.metrics.panicked(label);
            (ReconcileResult::Panicked, cx.failures.panicked(&uid))
        }
        Ok(Err(error)) => cx.failures.failed(&uid, &error),
        Ok(Ok(wait)) => {
            cx.failures.over(&uid);
            (ReconcileResult::Ready, wait)
        }
    });
    counted.end(result);
    Ok(Action::requeue(wait))
}

/// Publishes the summary; returns when to reconcile again.
async fn publish_summary(
    cx: &Context,
    cached: &HostedCluster,
    cluster: &ClusterRef,
    namespace: &str,
) -> Result<Duration, ReconcileError> {
    if !aggregate::concerns(&cached.spec) {
        return Ok(cx.resync);
    }
    let uid = cached.uid().unwrap_or_default();
    let resource = ApiResource::erase::<HostedCluster>(&());
    let api: Api<DynamicObject> = Api::namespaced_with(cx.kube.clone(), &cluster.namespace, &resource);
    let Some(hosted) = within(api.get_opt(&cluster.name)).await? else {
        return Ok(cx.resync);
    };
    let hosted = serde_json::to_value(&hosted).unwrap_or_default();
    if !cx.resources.listed() {
        // Each custom resource of the list causes a reconcile of its HostedCluster.
        return Ok(cx.resync);
    }
    let found = cx.resources.of_namespace(namespace);
    let Some(desired) = aggregate::desired_conditions(&hosted, cluster, &found, Timestamp::now()) else {
        return Ok(cx.resync);
    };
    let (shown, now) = (aggregate::shown_conditions(&hosted), Instant::now().into_std());
    let mut published = cx.published.of(&uid);
    if aggregate::to_be_written(&shown, &desired, &published, now) {
        let params = cx.patch_params();
        let carried = published.to_write(&shown, &desired, now);
        let patch = Patch::Merge(aggregate::patch(&hosted, &carried));
        changing(api.patch_status(&cluster.name, &params, &patch)).await?;
        cx.metrics
            .kube_write(KubeResource::HostedClusterStatus, KubeVerb::Patch);
        published.written(&shown, &desired, now);
    } else {
        published.unchanged(&shown, &desired, now);
    }
    let answer = published.next_answer(&shown, now);
    cx.published.keep(&uid, published);
    Ok(answer.map_or(cx.resync, |answer| answer.min(cx.resync)))
}
