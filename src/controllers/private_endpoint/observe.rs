//! Reads the inputs of the CPO role from Kubernetes.

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;

use super::PrivateEndpointInputs;
use super::plan::{ControlPlane, ControlPlaneState, Vouched, Voucher};
use super::shadow::PublicNames;
use super::siblings::Sibling;
use super::teardown;
use crate::api::markers::{CLUSTER_ANNOTATION, HCP_FINALIZER};
use crate::api::{AzurePrivateLinkService, HostedCluster, HostedControlPlane, Reason, held_by};
use crate::controllers::azure::access::Context;
use crate::controllers::custom_resource::CustomResource;
use crate::controllers::custom_resource::read_siblings;
use crate::hypershift::azure;
use crate::hypershift::azure::scopes::NetworkPeer;
use crate::hypershift::claims::{Claim, Claims, Holder};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::identity;
use crate::hypershift::names;
use crate::hypershift::owner;
use crate::hypershift::problem::Problem;
use crate::runtime::call::ReconcileError;

/// The HostedClusters, for a process that serves many of them with one identity.
#[derive(Debug, Clone)]
pub struct HostedClusters {
    /// Whose claims are known.
    pub all: Arc<ClusterIndex>,
    /// The Azure cloud that this process serves, as HostedClusters spell it.
    pub cloud: &'static str,
}

impl HostedClusters {
    /// The HostedClusters in the network of a custom resource.
    pub(super) fn in_network_of(&self, cr: &AzurePrivateLinkService) -> Vec<NetworkPeer> {
        let all = self.all.clusters().domains_in(&cr.spec.guest_vnet_id);
        all.into_iter()
            .map(|(cluster, base_domain)| NetworkPeer { cluster, base_domain })
            .collect()
    }
}

/// The control plane and the siblings of a custom resource, and what vouches for its cluster.
pub(super) async fn read_inputs(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    found: Option<&HostedControlPlane>,
    hosted_clusters: Option<&HostedClusters>,
) -> Result<ControlPlaneState, ReconcileError> {
    let control_plane_deleting = found.is_some_and(|found| found.metadata.deletion_timestamp.is_some());
    let is_deleting = cr.metadata.deletion_timestamp.is_some() || control_plane_deleting;
    let siblings = read_siblings::siblings(cx, cr, is_deleting).await?;
    let voucher = match hosted_clusters {
        None => Voucher::Conditions,
        Some(HostedClusters { all, cloud }) => {
            all.clusters_known().await?;
            let hosted = owner::hosted_cluster(&cx.runtime.kube, cr, all).await?;
            let vouched = vouched(cr, hosted.as_ref(), found, &all.clusters(), cloud);
            Voucher::HostedCluster(Box::new(vouched))
        }
    };
    Ok(ControlPlaneState {
        control_plane: control_plane(found),
        voucher,
        paused: found.and_then(|found| identity::paused(&found.spec, Timestamp::now())),
        refused: None,
        control_plane_deleting,
        siblings: siblings
            .iter()
            .map(|other| Sibling::of(other, control_plane_deleting))
            .collect(),
        other_controller: cr
            .other_writer(cx.role, Timestamp::now(), cx.runtime.resync)
            .map(str::to_owned),
    })
}

fn control_plane(found: Option<&HostedControlPlane>) -> Result<ControlPlane, Problem> {
    let Some(found) = found else {
        let text = "the HostedControlPlane does not exist";
        return Err(Problem::new(Reason::HostedControlPlaneNotFound, text));
    };
    // Another name would be that of another cluster, whose zone is named after it.
    let azure = found.spec.platform.azure.clone();
    let annotation = found.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let namespace = found.namespace().unwrap_or_default();
    let cluster = identity::cluster_ref(annotation)?;
    if cluster.name != found.name_any() || names::control_plane_namespace(&cluster) != namespace {
        let text = "the HostedControlPlane is not that of the HostedCluster in its annotation";
        return Err(Problem::new(Reason::IdentityMismatch, text));
    }
    Ok(ControlPlane {
        identity: identity::of_spec(&found.name_any(), &found.spec)?,
        azure: azure.ok_or_else(|| Problem::new(Reason::InvalidSpec, "the HostedControlPlane is not on Azure"))?,
        held: held_by(found, HCP_FINALIZER),
        public: PublicNames::of(&found.name_any(), &found.spec),
    })
}

/// What the HostedCluster of a custom resource shows, among the claims of `all` HostedClusters.
fn vouched(
    cr: &AzurePrivateLinkService,
    hosted: Option<&HostedCluster>,
    found: Option<&HostedControlPlane>,
    all: &Claims,
    cloud: &str,
) -> Vouched {
    // A deletion uses this identity too.
    let of_control_plane = control_plane(found).ok().map(|found| found.identity);
    let known = of_control_plane.or_else(|| teardown::hinted(cr));
    let own = identity::own_cluster(cr, hosted, known.as_ref());
    let identity = own.and_then(|hosted| identity::of_spec(&hosted.name_any(), &hosted.spec).ok());
    let claimed_elsewhere = match (&identity, own) {
        (Some(own), Some(hosted)) => all.older(&Holder::of(hosted), &Claim::cluster_id(&own.cluster_id)),
        _ => known.is_some_and(|known| all.other(None, &Claim::cluster_id(&known.cluster_id))),
    };
    Vouched {
        refusal: identity::vouched(cr, hosted, found, all, |spec| azure::identity::in_cloud(spec, cloud)).err(),
        identity,
        azure: hosted.map(|hosted| hosted.spec.platform.azure.clone().unwrap_or_default()),
        claimed_elsewhere,
    }
}

/// The inputs whose change needs a reconcile, as one text. Each field counts, except what is taken out here.
pub(super) fn fingerprint(inputs: &PrivateEndpointInputs) -> String {
    // What else is used of the object itself is in the state. Its resource version changes with each write.
    let PrivateEndpointInputs { found, state } = inputs;
    let paused_until = found.as_ref().and_then(|found| found.spec.paused_until.as_deref());
    let mut compared = state.clone();
    // A reconcile sets the finalizer itself.
    if let Ok(control_plane) = &mut compared.control_plane {
        control_plane.held = false;
    }
    // The time that is left of the pause.
    if let Some(paused) = &mut compared.paused {
        paused.requeue_after = None;
    }
    // Whether there is another controller matters at once, its name only in the message.
    if let Some(name) = &mut compared.other_controller {
        name.clear();
    }
    // Their order says nothing.
    compared.siblings.sort_by(|a, b| a.name.cmp(&b.name));
    format!("{compared:?} {paused_until:?}")
}

#[cfg(test)]
mod tests;
