//! What the dry run prints of Kubernetes.

use super::plan;
use crate::controllers::preview::Fact;

/// What Kubernetes shows around the custom resource.
pub(super) fn known(control_plane_state: &plan::ControlPlaneState) -> Vec<Fact> {
    let (id, state) = match &control_plane_state.control_plane {
        Ok(control_plane) => {
            let identity = &control_plane.identity;
            let state = format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id);
            (identity.name.clone(), state)
        }
        Err(problem) => (String::new(), problem.message.clone()),
    };
    let kind = "HostedControlPlane";
    vec![Fact { kind, id, state }]
}
