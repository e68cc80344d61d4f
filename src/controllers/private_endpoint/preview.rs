//! What the dry run prints of Kubernetes.

use super::plan;
use crate::controllers::preview::Fact;

/// What Kubernetes shows around the custom resource.
pub(super) fn known(control_plane_state: &plan::ControlPlaneState) -> Vec<Fact> {
    let mut fact = Fact {
        kind: "HostedControlPlane",
        id: String::new(),
        state: String::new(),
    };
    match &control_plane_state.control_plane {
        Ok(control_plane) => {
            let identity = &control_plane.identity;
            fact.id.clone_from(&identity.name);
            fact.state = format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id);
        }
        Err(problem) => fact.state.clone_from(&problem.message),
    }
    vec![fact]
}

#[cfg(test)]
mod tests;
