//! Reads the inputs of the CPO role on AWS from Kubernetes.

use jiff::Timestamp;
use kube::ResourceExt;

use super::VpcEndpointController;
use super::inputs::{Guest, VpcEndpointInputs};
use crate::api::markers::CPO_INTENT;
use crate::api::{AWSEndpointService, HostedControlPlane};
use crate::aws::region::Region;
use crate::aws::slot::Slot;
use crate::controllers::aws::access::Context;
use crate::hypershift::aws::ids::{is_id, service_id};
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
        note_recorded(cx, cr, (guest, &controller.region), recorded.as_ref());
    }
    let paused = found.and_then(|found| identity::paused(&found.spec, Timestamp::now()));
    Ok(VpcEndpointInputs {
        access,
        guest,
        is_unwanted: found.is_some_and(|found| is_unwanted(found, paused.is_some())),
        paused,
        paused_until: found.and_then(|found| found.spec.paused_until.clone()),
    })
}

/// Whether the path is not desired any more. A pause holds up everything but a deletion.
fn is_unwanted(found: &HostedControlPlane, is_paused: bool) -> bool {
    let is_public = || found.spec.aws().is_some_and(|aws| aws.access().is_public_only());
    found.metadata.deletion_timestamp.is_some() || (!is_paused && is_public())
}

/// Notes which endpoint the status or the intent names: AWS is asked about it by this id, too.
fn note_recorded(
    cx: &Context,
    cr: &AWSEndpointService,
    (guest, region): (&Guest, &Region),
    recorded: Option<&CpoIntent>,
) {
    let status = cr.status.as_ref();
    let shown = status.and_then(|status| status.endpoint_id.as_deref());
    let endpoint = recorded
        .and_then(CpoIntent::endpoint_id)
        .or(shown.filter(|id| is_id("vpce", id)));
    let service = status.and_then(|status| status.endpoint_service_name.as_deref());
    let service = service.filter(|name| service_id(name, region).is_some());
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

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    #[rstest]
    #[case::private("Private", false, false, false)]
    #[case::public("Public", false, false, true)]
    #[case::unknown("Moon", false, false, false)]
    #[case::public_and_paused("Public", false, true, false)]
    #[case::deleted_and_paused("Private", true, true, true)]
    fn path_is_desired_until_it_is_public_or_deleted(
        #[case] access: &str,
        #[case] is_deleting: bool,
        #[case] is_paused: bool,
        #[case] expected: bool,
    ) {
        let deleted = is_deleting.then_some("2026-01-01T00:00:00Z");
        let found = serde_json::from_value(json!({
            "metadata": {"name": "example", "deletionTimestamp": deleted},
            "spec": {"platform": {"type": "AWS", "aws": {"endpointAccess": access}}}}));
        assert_eq!(is_unwanted(&found.unwrap(), is_paused), expected);
    }
}
