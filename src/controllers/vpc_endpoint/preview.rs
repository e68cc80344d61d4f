//! What the dry run prints of Kubernetes.

use super::inputs::VpcEndpointInputs;
use crate::controllers::preview::Fact;

/// What Kubernetes shows around the custom resource.
pub(super) fn known(inputs: &VpcEndpointInputs) -> Vec<Fact> {
    let kind = "HostedControlPlane";
    vec![match &inputs.guest {
        Ok(guest) => Fact {
            kind,
            id: guest.identity.name.clone(),
            state: format!("account {}, VPC {}", guest.account.account, guest.vpc),
        },
        Err(problem) => Fact {
            kind,
            id: String::new(),
            state: problem.message.clone(),
        },
    }]
}
