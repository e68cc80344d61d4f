//! Our finalizer on the HostedControlPlane: set before the first write to Azure, removed when no custom resource holds ours.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{ListParams, Patch, PatchParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};
use serde_json::json;

use crate::api::markers::{CPO_FINALIZER, HCP_FINALIZER};
use crate::api::{AzurePrivateLinkService, HostedControlPlane};
use crate::controllers::context::Context;
use crate::controllers::frame::{PassError, within};
use crate::controllers::report::field_manager;
use crate::metrics::{KubeResource, KubeVerb};

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
    let params = PatchParams {
        field_manager: Some(field_manager(cx.role)),
        ..PatchParams::default()
    };
    within(api.patch(&found.name_any(), &params, &Patch::Merge(&patch))).await?;
    cx.metrics.kube_write(KubeResource::HostedControlPlane, KubeVerb::Patch);
    Ok(())
}

/// Lets a control plane go that is being deleted, once nothing of ours is left.
pub async fn reconcile(cached: Arc<HostedControlPlane>, cx: Arc<Context>) -> Result<Action, PassError> {
    let held = |found: &HostedControlPlane| found.finalizers().iter().any(|f| f == HCP_FINALIZER);
    if cached.metadata.deletion_timestamp.is_none() || !held(&cached) {
        return Ok(Action::await_change());
    }
    let namespace = cached.namespace().unwrap_or_default();
    let custom: Api<AzurePrivateLinkService> = Api::namespaced(cx.kube.clone(), &namespace);
    let all = within(custom.list(&ListParams::default())).await?;
    if all.iter().any(|cr| cr.finalizers().iter().any(|f| f == CPO_FINALIZER)) {
        // Their change wakes this; the delay is for a lost event.
        return Ok(Action::requeue(Duration::from_secs(30)));
    }
    let api: Api<HostedControlPlane> = Api::namespaced(cx.kube.clone(), &namespace);
    if let Some(found) = within(api.get_opt(&cached.name_any())).await?.filter(held) {
        let others = found
            .finalizers()
            .iter()
            .filter(|f| *f != HCP_FINALIZER)
            .cloned()
            .collect();
        set_finalizers(&cx, &found, others).await?;
        tracing::info!(
            namespace,
            name = found.name_any(),
            finalizer = HCP_FINALIZER,
            "released"
        );
    }
    Ok(Action::await_change())
}
