//! What the HO role does in Kubernetes beside its report: Events, and the deletion of what is not wanted any more.

use k8s_openapi::api::core::v1::ObjectReference;
use kube::api::{DeleteParams, Preconditions};
use kube::{Api, ResourceExt};

use super::inputs::EndpointServiceInputs;
use crate::api::AWSEndpointService;
use crate::aws::cloud::Aws;
use crate::controllers::aws::Decision;
use crate::controllers::aws::access::Context;
use crate::controllers::driver::event_targets;
use crate::controllers::event;
use crate::hypershift::identity::DeletedCluster;
use crate::metrics::{KubeResource, KubeVerb};
use crate::runtime::call::{ReconcileError, changing};
use crate::runtime::event::{Event, What};

/// Deletes the custom resource: the finalizers of both roles see to the rest. The reconcile ends, because what it would
/// decide on is not there any more.
pub(super) async fn delete(
    cx: &Context,
    cr: &AWSEndpointService,
    also: Option<&ObjectReference>,
    why: &str,
) -> Result<(), ReconcileError> {
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
    let event = Event::new(What::Deleted, format!("{} is deleted: {why}", cr.name_any()));
    cx.runtime.events.emit(&event_targets(cr, also), &[event]).await;
    Err(ReconcileError::Gone)
}

/// The Events of a release after which nothing is left, as far as anything was read.
pub(super) fn last_events(inputs: &EndpointServiceInputs, decision: &Decision) -> Vec<Event> {
    let unread = match (&inputs.identity, &inputs.deleted_cluster) {
        (Err(_), DeletedCluster::OfAnother) => "the ids that are known belong to another HostedCluster",
        (Err(_), DeletedCluster::Unknown) => "nothing tells which cluster it was of",
        _ if decision.steps.is_empty() => "nothing tells which load balancer it had",
        _ => return event::released(decision),
    };
    let unread = event::not_read::<Aws>(unread);
    std::iter::once(unread).chain(event::left(decision)).collect()
}
