//! Our finalizer on the HostedControlPlane: set before any write to Azure, removed once no custom resource has it.

use std::time::Duration;

use kube::api::Patch;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::api::markers::{CPO_FINALIZER, HCP_FINALIZER};
use crate::api::{AzurePrivateLinkService, HostedControlPlane, held_by};
use crate::controllers::azure::access::Context;
use crate::controllers::custom_resource::read_siblings;
use crate::hypershift::owner;
use crate::metrics::{KubeResource, KubeVerb, ReconcileResult};
use crate::runtime::call::{ReconcileError, changing};
use crate::runtime::requeue::Requeue;

/// The time between two reads of a control plane under deletion that custom resources still hold. A change of theirs
/// causes a reconcile; this is for a lost event.
const HELD_POLL: Duration = Duration::from_secs(30);

/// Sets the finalizer, so that the control plane is not deleted before what it owns in Azure.
pub(super) async fn hold(cx: &Context, found: &HostedControlPlane) -> Result<(), ReconcileError> {
    let finalizers = found
        .finalizers()
        .iter()
        .cloned()
        .chain([HCP_FINALIZER.to_owned()])
        .collect();
    set_finalizers(cx, found, finalizers).await
}

/// Checks that the control plane still exists and has our finalizer, after that of the custom resource was set. From
/// then on the control plane is not released before what it owns.
///
/// # Errors
/// It was deleted meanwhile, or could not be read.
pub(super) async fn still_stands(cx: &Context, cr: AzurePrivateLinkService) -> Result<(), ReconcileError> {
    let found = owner::control_plane(&cx.runtime.kube, &cr).await?;
    let stands =
        found.is_some_and(|found| found.metadata.deletion_timestamp.is_none() && held_by(&found, HCP_FINALIZER));
    if stands { Ok(()) } else { Err(ReconcileError::Gone) }
}

async fn set_finalizers(
    cx: &Context,
    found: &HostedControlPlane,
    finalizers: Vec<String>,
) -> Result<(), ReconcileError> {
    let api: Api<HostedControlPlane> = Api::namespaced(cx.runtime.kube.clone(), &found.namespace().unwrap_or_default());
    let patch = json!({"metadata": {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers}});
    let params = cx.runtime.patch_params();
    changing(api.patch(&found.name_any(), &params, &Patch::Merge(&patch))).await?;
    cx.runtime
        .metrics
        .kube_write(KubeResource::HostedControlPlane, KubeVerb::Patch);
    Ok(())
}

/// Whether any custom resource of the namespace has our finalizer. A watch may not show yet one that this process has
/// just set, so the custom resources that it serves are read again.
async fn any_held(cx: &Context, namespace: &str) -> Result<bool, ReconcileError> {
    if !cx.resources.listed() || cx.resources.any_held(namespace, CPO_FINALIZER) {
        return Ok(true);
    }
    let served = cx.resources.of_namespace(namespace);
    let now = read_siblings::read_again(&cx.runtime.kube, namespace, served).await?;
    Ok(now.iter().any(|cr| held_by(cr.as_ref(), CPO_FINALIZER)))
}

/// Removes our finalizer from a control plane that is being deleted, once no custom resource has ours.
pub async fn let_go(
    cx: &Context,
    found: &HostedControlPlane,
) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
    let ready = Ok((ReconcileResult::Ready, None));
    if !held_by(found, HCP_FINALIZER) {
        return ready;
    }
    if any_held(cx, &found.namespace().unwrap_or_default()).await? {
        let poll = Requeue::new(HELD_POLL, Requeue::POLL);
        return Ok((ReconcileResult::Waiting, Some(poll)));
    }
    let others = found
        .finalizers()
        .iter()
        .filter(|f| *f != HCP_FINALIZER)
        .cloned()
        .collect();
    set_finalizers(cx, found, others).await?;
    tracing::info!(
        namespace = found.namespace(),
        name = found.name_any(),
        finalizer = HCP_FINALIZER,
        "released"
    );
    ready
}
