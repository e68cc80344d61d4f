//! The HostedControlPlane that owns a custom resource, and its HostedCluster. Reads only.

use kube::{Api, ResourceExt};

use super::context::Context;
use super::frame::{PassError, within};
use super::identity;
use super::neighbours::Neighbours;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane};

/// The owner, if it is still the one that the owner reference means.
pub async fn control_plane(
    cx: &Context,
    cr: &AzurePrivateLinkService,
) -> Result<Option<HostedControlPlane>, PassError> {
    let Some(owner) = cr
        .owner_references()
        .iter()
        .find(|owner| owner.kind == "HostedControlPlane")
    else {
        return Ok(None);
    };
    let api: Api<HostedControlPlane> = Api::namespaced(cx.kube.clone(), &cr.namespace().unwrap_or_default());
    Ok(within(api.get_opt(&owner.name))
        .await?
        .filter(|found| found.metadata.uid.as_ref() == Some(&owner.uid)))
}

/// The HostedCluster that the custom resource names, if its control plane is in this namespace; else the one whose is.
pub async fn hosted_cluster(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    neighbours: &Neighbours,
) -> Result<Option<HostedCluster>, PassError> {
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let namespace = cr.namespace().unwrap_or_default();
    let candidates = identity::candidates(annotation, &namespace, &neighbours.clusters());
    for cluster in candidates {
        let api: Api<HostedCluster> = Api::namespaced(cx.kube.clone(), &cluster.namespace);
        if let Some(found) = within(api.get_opt(&cluster.name)).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}
