//! What the dry run prints of Kubernetes.

use super::inputs::EndpointServiceInputs;
use crate::controllers::preview::Fact;

/// What Kubernetes shows around the custom resource.
pub(super) fn known(inputs: &EndpointServiceInputs) -> Vec<Fact> {
    let service = inputs.service.as_ref().map(|service| Fact {
        kind: "Service",
        id: service.uid.clone(),
        state: match service.host_names.as_slice() {
            [] => "no host name".to_owned(),
            some => some.join(", "),
        },
    });
    let unwanted = inputs.unwanted.map(|why| Fact {
        kind: "AWSEndpointService",
        id: String::new(),
        state: format!("it would be deleted: {why}"),
    });
    let cluster = cluster(inputs);
    std::iter::once(cluster).chain(service).chain(unwanted).collect()
}

fn cluster(inputs: &EndpointServiceInputs) -> Fact {
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
