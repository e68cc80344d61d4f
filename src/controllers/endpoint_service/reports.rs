//! What the HO role does in Kubernetes beside its report: Events, and the deletion of what is not wanted any more.

use kube::api::{DeleteParams, Preconditions};
use kube::{Api, Resource, ResourceExt};
use tokio::time::Instant;

use super::inputs::EndpointServiceInputs;
use super::plan::subnets;
use crate::api::AWSEndpointService;
use crate::aws::cloud::{Aws, Observed};
use crate::aws::kinds::load_balancer::is_impaired;
use crate::aws::slot::Slot;
use crate::controllers::aws::Decision;
use crate::controllers::aws::access::Context;
use crate::controllers::event;
use crate::hypershift::identity::DeletedCluster;
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

/// The Events of a release after which nothing is left, as far as anything was read.
pub(super) fn last_events(inputs: &EndpointServiceInputs, decision: &Decision) -> Vec<Event> {
    match (&inputs.identity, &inputs.deleted_cluster) {
        (Err(_), DeletedCluster::OfAnother) => vec![event::not_read::<Aws>(
            "the ids that are known belong to another HostedCluster",
        )],
        (Err(_), DeletedCluster::Unknown) => vec![event::not_read::<Aws>("nothing tells which cluster it was of")],
        _ if decision.steps.is_empty() => vec![event::not_read::<Aws>("nothing tells which load balancer it had")],
        _ => event::released(decision),
    }
}

/// Emits Events about what is not as somebody may expect: subnets that are left out, and who may connect.
pub(super) async fn left_out(cx: &Context, cr: &AWSEndpointService, inputs: &EndpointServiceInputs) {
    let events = &cx.runtime.events;
    let object = cr.object_ref(&());
    events
        .stands(&object, "subnets", complaint(&subnets(cr, inputs).complaints))
        .await;
    let principals = inputs
        .principals
        .as_ref()
        .map(|principals| principals.complaints.as_slice());
    events
        .stands(&object, "principals", complaint(principals.unwrap_or_default()))
        .await;
}

/// Emits an Event if the load balancer was just read and works in part only: a path is made all the same.
pub(super) async fn impaired(cx: &Context, cr: &AWSEndpointService, load_balancer: &Slot) {
    let observed = cx.cloud.observations.fresh(load_balancer, Instant::now());
    let found = observed.as_ref().and_then(Observed::found);
    let event = found.filter(|body| is_impaired(body)).map(|_| {
        let name = &cr.spec.network_load_balancer_name;
        let note = format!("load balancer {name} is active_impaired: it does not carry all traffic");
        Event::new(What::Impaired, note)
    });
    let events = &cx.runtime.events;
    events.stands(&cr.object_ref(&()), "load balancer", event).await;
}

fn complaint(complaints: &[String]) -> Option<Event> {
    (!complaints.is_empty()).then(|| Event::new(What::Refused, complaints.join("; ")))
}
