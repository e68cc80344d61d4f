//! What Kubernetes says around a custom resource on the guest's side. Reads only.

use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::plan::{ControlPlane, Surroundings};
use super::shadow::PublicNames;
use super::siblings::Sibling;
use super::teardown;
use crate::api::markers::HCP_FINALIZER;
use crate::api::{AzurePrivateLinkService, HostedControlPlane, Reason};
use crate::controllers::context::Context;
use crate::controllers::decision::Problem;
use crate::controllers::frame::{PassError, within};
use crate::controllers::identity;

/// The control plane and the siblings of a custom resource.
pub(super) async fn surroundings(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    found: Option<&HostedControlPlane>,
) -> Result<Surroundings, PassError> {
    let control_plane_goes = found.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
    let api: Api<AzurePrivateLinkService> = Api::namespaced(cx.kube.clone(), &cr.namespace().unwrap_or_default());
    let mut all = within(api.list(&ListParams::default())).await?.items;
    all.retain(|other| other.metadata.uid != cr.metadata.uid);
    let going = cr.metadata.deletion_timestamp.is_some();
    Ok(Surroundings {
        control_plane: control_plane(found),
        paused: found.and_then(|found| identity::paused(&found.spec, Timestamp::now())),
        refused: None,
        control_plane_goes,
        siblings: all.iter().map(|other| Sibling::of(other, control_plane_goes)).collect(),
        claimed_elsewhere: going && found.is_none() && claimed_elsewhere(cx, cr).await?,
    })
}

fn control_plane(found: Option<&HostedControlPlane>) -> Result<ControlPlane, Problem> {
    let problem = |reason, text| Problem::new(reason, text);
    let found = found.ok_or_else(|| {
        problem(
            Reason::HostedControlPlaneNotFound,
            "the HostedControlPlane does not exist",
        )
    })?;
    let azure = found.spec.platform.azure.clone();
    Ok(ControlPlane {
        identity: identity::of_spec(&found.name_any(), &found.spec)?,
        azure: azure.ok_or_else(|| problem(Reason::InvalidSpec, "the HostedControlPlane is not on Azure"))?,
        held: found.finalizers().iter().any(|f| f == HCP_FINALIZER),
        public: PublicNames::of(&found.name_any(), &found.spec),
    })
}

/// Whether a control plane elsewhere has the cluster id that is recorded on the custom resource, which anybody in its
/// namespace may forge. Who may see one namespace only acts as that cluster, and is not told.
async fn claimed_elsewhere(cx: &Context, cr: &AzurePrivateLinkService) -> Result<bool, PassError> {
    let Some(recorded) = teardown::recorded(cr) else {
        return Ok(false);
    };
    let api: Api<HostedControlPlane> = Api::all(cx.kube.clone());
    match within(api.list(&ListParams::default())).await {
        Ok(all) => Ok(all.iter().any(|other| {
            other.spec.cluster_id.as_ref() == Some(&recorded.cluster_id) && other.namespace() != cr.namespace()
        })),
        Err(PassError::Kube(kube::Error::Api(status))) if status.code == 403 => Ok(false),
        Err(error) => Err(error),
    }
}

/// What of the surroundings can wake a pass, as one text.
pub(super) fn fingerprint(around: &Surroundings) -> String {
    let control_plane = around.control_plane.as_ref();
    let seen = control_plane
        .map(|c| (&c.identity, &c.azure, &c.public))
        .map_err(|p| (p.reason, &p.message));
    let mut siblings: Vec<_> = around.siblings.iter().map(Sibling::weight).collect();
    siblings.sort_by_key(|sibling| format!("{sibling:?}"));
    let refused = around.refused.as_ref().map(|p| &p.message);
    format!(
        "{seen:?} {} {} {refused:?} {siblings:?}",
        around.paused.is_some(),
        around.control_plane_goes
    )
}
