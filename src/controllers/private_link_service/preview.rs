//! What the dry run prints of Kubernetes.

use super::plan;
use crate::controllers::preview::Fact;

/// What Kubernetes shows around the custom resource.
pub(super) fn known(inputs: &plan::PrivateLinkServiceInputs) -> Vec<Fact> {
    let (id, state) = match &inputs.identity {
        Ok(identity) => {
            let state = format!("clusterID {}, infraID {}", identity.cluster_id, identity.infra_id);
            (identity.name.clone(), state)
        }
        Err(problem) => (String::new(), problem.message.clone()),
    };
    let kind = "HostedCluster";
    let cluster = Fact { kind, id, state };
    let service = inputs.service.as_ref().map(|service| {
        let addresses: Vec<_> = service.addresses.iter().map(ToString::to_string).collect();
        Fact {
            kind: "Service",
            id: service.uid.clone(),
            state: match addresses.as_slice() {
                [] => "no address".to_owned(),
                some => some.join(", "),
            },
        }
    });
    std::iter::once(cluster).chain(service).collect()
}
