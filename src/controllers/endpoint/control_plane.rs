//! Our finalizer on the HostedControlPlane: set before the first write to Azure, removed when no custom resource holds ours.

use std::time::Duration;

use kube::api::{ListParams, Patch};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::api::markers::{CPO_FINALIZER, HCP_FINALIZER};
use crate::api::{AzurePrivateLinkService, HostedControlPlane, held_by};
use crate::controllers::context::Context;
use crate::controllers::frame::{PassError, changing, within};
use crate::metrics::{KubeResource, KubeVerb, PassResult};

/// Sets the finalizer, so that the control plane does not go before what it owns in Azure.
pub(super) async fn hold(cx: &Context, found: &HostedControlPlane) -> Result<(), PassError> {
    let finalizers = found
        .finalizers()
        .iter()
        .cloned()
        .chain([HCP_FINALIZER.to_owned()])
        .collect();
    set_finalizers(cx, found, finalizers).await
}

async fn set_finalizers(cx: &Context, found: &HostedControlPlane, finalizers: Vec<String>) -> Result<(), PassError> {
    let api: Api<HostedControlPlane> = Api::namespaced(cx.kube.clone(), &found.namespace().unwrap_or_default());
    let patch = json!({"metadata": {"resourceVersion": found.metadata.resource_version, "finalizers": finalizers}});
    let params = cx.patch_params();
    changing(api.patch(&found.name_any(), &params, &Patch::Merge(&patch))).await?;
    cx.metrics.kube_write(KubeResource::HostedControlPlane, KubeVerb::Patch);
    Ok(())
}

/// Lets a control plane go that is being deleted, once nothing of ours is left.
pub async fn let_go(cx: &Context, found: &HostedControlPlane) -> Result<(PassResult, Action), PassError> {
    let settled = Ok((PassResult::Settled, Action::await_change()));
    if !held_by(found, HCP_FINALIZER) {
        return settled;
    }
    let custom: Api<AzurePrivateLinkService> = Api::namespaced(cx.kube.clone(), &found.namespace().unwrap_or_default());
    let all = within(custom.list(&ListParams::default())).await?;
    if all.iter().any(|cr| held_by(cr, CPO_FINALIZER)) {
        // Their change wakes this; the delay is for a lost event.
        return Ok((PassResult::Waiting, Action::requeue(Duration::from_secs(30))));
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
    settled
}
