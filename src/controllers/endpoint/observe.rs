//! What a HostedControlPlane means for its custom resource on the guest's side.

use jiff::Timestamp;
use kube::ResourceExt;

use super::plan::{ControlPlane, Surroundings};
use crate::api::markers::HCP_FINALIZER;
use crate::api::{HostedControlPlane, Reason};
use crate::controllers::decision::Problem;
use crate::controllers::identity;

/// The surroundings that a HostedControlPlane makes.
pub(super) fn surroundings(found: Option<&HostedControlPlane>) -> Surroundings {
    let gone = || {
        Problem::new(
            Reason::HostedControlPlaneNotFound,
            "the HostedControlPlane does not exist",
        )
    };
    let Some(found) = found else {
        return Surroundings {
            control_plane: Err(gone()),
            paused: None,
            refused: None,
        };
    };
    let azure = found.spec.platform.azure.clone();
    let no_azure = || Problem::new(Reason::InvalidSpec, "the HostedControlPlane is not on Azure");
    let control_plane = identity::of_spec(&found.name_any(), &found.spec).and_then(|identity| {
        Ok(ControlPlane {
            identity,
            azure: azure.ok_or_else(no_azure)?,
            deleting: found.metadata.deletion_timestamp.is_some(),
            held: found.finalizers().iter().any(|f| f == HCP_FINALIZER),
        })
    });
    Surroundings {
        control_plane,
        paused: identity::paused(&found.spec, Timestamp::now()),
        refused: None,
    }
}

/// What of the surroundings can wake a pass, as one text.
pub(super) fn fingerprint(around: &Surroundings) -> String {
    let control_plane = around.control_plane.as_ref();
    let seen = control_plane
        .map(|c| (&c.identity, &c.azure, c.deleting))
        .map_err(|p| (p.reason, &p.message));
    let refused = around.refused.as_ref().map(|p| &p.message);
    format!("{seen:?} {} {refused:?}", around.paused.is_some())
}
