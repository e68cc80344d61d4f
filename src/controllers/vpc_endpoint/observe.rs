//! Reads the inputs of the CPO role on AWS from Kubernetes.

use jiff::Timestamp;
use kube::ResourceExt;

use super::VpcEndpointController;
use super::inputs::{Guest, VpcEndpointInputs};
use crate::api::AWSEndpointService;
use crate::api::hypershift::{AwsPlatform, EndpointAccess};
use crate::api::markers::CPO_INTENT;
use crate::aws::slot::Slot;
use crate::controllers::aws::access::Context;
use crate::hypershift::aws::ids::is_id;
use crate::hypershift::aws::intent::CpoIntent;
use crate::hypershift::aws::scopes::Access;
use crate::hypershift::{identity, intent, owner};
use crate::runtime::call::ReconcileError;

/// What Kubernetes shows around a custom resource.
pub(super) async fn read_inputs(
    cx: &Context,
    cr: &AWSEndpointService,
    controller: &VpcEndpointController,
) -> Result<VpcEndpointInputs, ReconcileError> {
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::only_control_plane(&cx.runtime.kube, &namespace).await?;
    let found = control_plane.as_ref().ok();
    let recorded: Option<CpoIntent> = intent::read(cr.annotations().get(CPO_INTENT));
    let access = match &controller.allowed {
        Some(allowed) => {
            let of_record = recorded.as_ref().map(|recorded| recorded.cluster.clone());
            let cluster = found.map(ResourceExt::name_any).or(of_record);
            allowed.borrow().on_aws(&namespace, cluster.as_deref())
        }
        None => Access::AsNamed(cx.cloud.client.own().to_owned()),
    };
    let guest = match &control_plane {
        Ok(found) => Guest::of(found, &access, &controller.region),
        Err(problem) => Err(problem.clone()),
    };
    if let Ok(guest) = &guest {
        note_recorded(cx, cr, guest, recorded.as_ref());
    }
    let is_deleting = found.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
    let endpoint_access = found.and_then(|found| found.spec.aws()).map(AwsPlatform::access);
    Ok(VpcEndpointInputs {
        access,
        guest,
        is_unwanted: is_deleting || endpoint_access.is_some_and(EndpointAccess::is_public_only),
        paused: found.and_then(|found| identity::paused(&found.spec, Timestamp::now())),
        paused_until: found.and_then(|found| found.spec.paused_until.clone()),
    })
}

/// Notes which endpoint the status or the intent names: AWS is asked about it by this id, too.
fn note_recorded(cx: &Context, cr: &AWSEndpointService, guest: &Guest, recorded: Option<&CpoIntent>) {
    let status = cr.status.as_ref();
    let shown = status.and_then(|status| status.endpoint_id.as_deref());
    let endpoint = recorded
        .and_then(CpoIntent::endpoint_id)
        .or(shown.filter(|id| is_id("vpce", id)));
    let service = status.and_then(|status| status.endpoint_service_name.as_deref());
    if let Some((service, id)) = service.zip(endpoint) {
        let slot = Slot::vpc_endpoint(&guest.account, &guest.vpc, service);
        cx.cloud.client.note_recorded(&slot, id);
    }
}

/// The inputs whose change needs a reconcile, as one text. Each field counts, except what is taken out here.
pub(super) fn fingerprint(inputs: &VpcEndpointInputs) -> String {
    let mut compared = inputs.clone();
    // The time until the pause ends; `paused_until` says when that is.
    if let Some(paused) = &mut compared.paused {
        paused.requeue_after = None;
    }
    format!("{compared:?}")
}
