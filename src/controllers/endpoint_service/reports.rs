//! What the HO role does in Kubernetes beside its report: Events, and the deletion of what is not wanted any more.

use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource, ResourceExt};

use super::inputs::EndpointServiceInputs;
use super::plan::subnets;
use crate::api::AWSEndpointService;
use crate::controllers::aws::access::Context;
use crate::metrics::{KubeResource, KubeVerb};
use crate::runtime::call::{ReconcileError, changing};
use crate::runtime::event::{Event, What};

/// Deletes the custom resource: the finalizers of both roles see to the rest. The reconcile ends, because what it would
/// decide on is not there any more.
pub(super) async fn delete(cx: &Context, cr: &AWSEndpointService, why: &str) -> Result<(), ReconcileError> {
    let api: Api<AWSEndpointService> = Api::namespaced(cx.runtime.kube.clone(), &cr.namespace().unwrap_or_default());
    let only_this = DeleteParams {
        preconditions: Some(Preconditions {
            uid: cr.uid(),
            resource_version: cr.resource_version(),
        }),
        ..DeleteParams::default()
    };
    changing(api.delete(&cr.name_any(), &only_this)).await?;
    cx.runtime
        .metrics
        .kube_write(KubeResource::EndpointService, KubeVerb::Delete);
    tracing::info!(
        namespace = cr.namespace(),
        name = cr.name_any(),
        reason = why,
        "deleted"
    );
    Err(ReconcileError::Gone)
}

/// Emits Events about what is not as somebody may expect: subnets that are left out, and who may connect.
pub(super) async fn left_out(cx: &Context, cr: &AWSEndpointService, inputs: &EndpointServiceInputs) {
    let events = &cx.runtime.events;
    let object = cr.object_ref(&());
    events
        .stands(&object, "subnets", event(&subnets(cr, inputs).complaints))
        .await;
    let principals = inputs
        .principals
        .as_ref()
        .map(|principals| principals.complaints.as_slice());
    events
        .stands(&object, "principals", event(principals.unwrap_or_default()))
        .await;
}

fn event(complaints: &[String]) -> Option<Event> {
    (!complaints.is_empty()).then(|| Event::new(What::Refused, complaints.join("; ")))
}
