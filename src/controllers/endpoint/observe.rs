//! What Kubernetes says around a custom resource on the guest's side. Reads only.

use jiff::Timestamp;
use kube::api::ListParams;
use kube::{Api, ResourceExt};

use super::plan::{ControlPlane, Surroundings};
use super::shadow::PublicNames;
use super::siblings::Sibling;
use super::teardown;
use crate::api::markers::HCP_FINALIZER;
use crate::api::{AzurePrivateLinkService, HostedControlPlane, Reason, held_by, other_writer};
use crate::controllers::claims::{Claim, Claims, Holder};
use crate::controllers::context::Context;
use crate::controllers::decision::Problem;
use crate::controllers::frame::{PassError, within};
use crate::controllers::identity;
use crate::controllers::neighbours::ControlPlanes;
use crate::names;

/// The control plane and the siblings of a custom resource.
pub(super) async fn surroundings(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    found: Option<&HostedControlPlane>,
    control_planes: &ControlPlanes,
) -> Result<Surroundings, PassError> {
    let control_plane_goes = found.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
    let api: Api<AzurePrivateLinkService> = Api::namespaced(cx.kube.clone(), &cr.namespace().unwrap_or_default());
    let mut all = within(api.list(&ListParams::default())).await?.items;
    all.retain(|other| other.metadata.uid != cr.metadata.uid);
    control_planes.known().await?;
    let control_plane = control_plane(found);
    let own = found.zip(control_plane.as_ref().ok());
    Ok(Surroundings {
        claimed_elsewhere: claimed_elsewhere(cr, own, &control_planes.claims()),
        control_plane,
        paused: found.and_then(|found| identity::paused(&found.spec, Timestamp::now())),
        refused: None,
        control_plane_goes,
        siblings: all.iter().map(|other| Sibling::of(other, control_plane_goes)).collect(),
        other_controller: other_writer(cr, cx.role, Timestamp::now(), cx.resync).map(str::to_owned),
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
    // Another name would be that of another cluster, whose zone is named after it.
    if !names::fits_namespace(&found.name_any(), &found.namespace().unwrap_or_default()) {
        let text = "the namespace is not that of a HostedControlPlane of this name";
        return Err(problem(Reason::IdentityMismatch, text));
    }
    let azure = found.spec.platform.azure.clone();
    Ok(ControlPlane {
        identity: identity::of_spec(&found.name_any(), &found.spec)?,
        azure: azure.ok_or_else(|| problem(Reason::InvalidSpec, "the HostedControlPlane is not on Azure"))?,
        held: held_by(found, HCP_FINALIZER),
        public: PublicNames::of(&found.name_any(), &found.spec),
    })
}

/// Whether a control plane elsewhere has the cluster id by which what is made for the custom resource is known. Who may change
/// the own control plane may give it any id, so of two with one id the older has it; what is recorded on the custom resource
/// is as easily forged, and gives way to all. Who watches one namespace only acts as that cluster, and is not told.
fn claimed_elsewhere(
    cr: &AzurePrivateLinkService,
    own: Option<(&HostedControlPlane, &ControlPlane)>,
    all: &Claims,
) -> bool {
    if let Some((found, meaning)) = own {
        return all.older(&Holder::of(found), &Claim::cluster_id(&meaning.identity.cluster_id));
    }
    let namespace = cr.namespace().unwrap_or_default();
    teardown::recorded(cr).is_some_and(|recorded| {
        let claim = Claim::cluster_id(&recorded.cluster_id);
        all.holders(&claim).any(|holder| holder.object.namespace != namespace)
    })
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
        "{seen:?} {} {} {} {} {refused:?} {siblings:?}",
        around.paused.is_some(),
        around.control_plane_goes,
        around.claimed_elsewhere,
        around.other_controller.is_some()
    )
}

#[cfg(test)]
mod tests;
