//! What the dry run prints of Kubernetes.

use super::frontend::ServiceFacts;
use super::plan::PrivateLinkServiceInputs;
use crate::controllers::preview::Fact;

/// What Kubernetes shows around the custom resource.
pub(super) fn known(inputs: &PrivateLinkServiceInputs) -> Vec<Fact> {
    std::iter::once(cluster(inputs))
        .chain(inputs.service.as_ref().map(service))
        .collect()
}

fn cluster(inputs: &PrivateLinkServiceInputs) -> Fact {
    let kind = "HostedCluster";
    match &inputs.identity {
        Ok(identity) => Fact {
            kind,
            id: identity.name.clone(),
            state: format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id),
        },
        Err(problem) => Fact {
            kind,
            id: String::new(),
            state: problem.message.clone(),
        },
    }
}

fn service(service: &ServiceFacts) -> Fact {
    let addresses: Vec<_> = service.addresses.iter().map(ToString::to_string).collect();
    Fact {
        kind: "Service",
        id: service.uid.clone(),
        state: match addresses.as_slice() {
            [] => "no address".to_owned(),
            some => some.join(", "),
        },
    }
}

#[cfg(test)]
mod tests;
