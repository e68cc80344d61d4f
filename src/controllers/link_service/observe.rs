//! Reads what Kubernetes knows around a custom resource on the management side.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};

use super::frontend::ServiceFacts;
use super::plan::Surroundings;
use crate::api::markers::{CLUSTER_ANNOTATION, HO_FINALIZER, HO_INTENT};
use crate::api::{AzurePrivateLinkService, ClusterRef, HostedCluster, HostedControlPlane};
use crate::controllers::context::Context;
use crate::controllers::decision::Problem;
use crate::controllers::frame::{PassError, within};
use crate::controllers::identity;
use crate::controllers::intent::{self, HoIntent};
use crate::controllers::owner;
use crate::names;

/// The cluster, its pause, the Service and the siblings of a custom resource.
pub(super) async fn surroundings(cx: &Context, cr: &AzurePrivateLinkService) -> Result<Surroundings, PassError> {
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::control_plane(cx, cr).await?;
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let (identity, hosted_cluster, paused) = match identity::cluster_ref(annotation) {
        Err(problem) => (Err(problem), None, None),
        Ok(cluster) => {
            let hosted = hosted_cluster(cx, &cluster).await?;
            let paused = hosted
                .as_ref()
                .and_then(|hosted| identity::paused(&hosted.spec, Timestamp::now()));
            (
                identity::agree(&namespace, &cluster, hosted.as_ref(), control_plane.as_ref()),
                hosted
                    .filter(|_| names::control_plane_namespace(&cluster) == namespace)
                    .map(|hosted| hosted.object_ref(&())),
                paused,
            )
        }
    };
    let service = service(cx, cr, &namespace, control_plane.as_ref()).await?;
    let going = cr.metadata.deletion_timestamp.is_some();
    Ok(Surroundings {
        sibling_stays: going && sibling_stays(cx, cr, &namespace).await?,
        claimed_elsewhere: going && identity.is_err() && claimed_elsewhere(cx, cr).await?,
        identity,
        hosted_cluster,
        paused,
        service,
    })
}

async fn hosted_cluster(cx: &Context, cluster: &ClusterRef) -> Result<Option<HostedCluster>, PassError> {
    let api: Api<HostedCluster> = Api::namespaced(cx.kube.clone(), &cluster.namespace);
    within(api.get_opt(&cluster.name)).await
}

async fn service(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    namespace: &str,
    control_plane: Option<&HostedControlPlane>,
) -> Result<Option<ServiceFacts>, PassError> {
    let api: Api<Service> = Api::namespaced(cx.kube.clone(), namespace);
    let Some(service) = within(api.get_opt(&cr.name_any())).await? else {
        return Ok(None);
    };
    let owner = control_plane.and_then(|found| found.metadata.uid.as_ref());
    let owned = owner.is_some_and(|uid| service.owner_references().iter().any(|reference| &reference.uid == uid));
    let ingress = service
        .status
        .and_then(|s| s.load_balancer)
        .and_then(|b| b.ingress)
        .unwrap_or_default();
    let addresses = ingress.into_iter().filter_map(|point| point.ip?.parse().ok()).collect();
    Ok(Some(ServiceFacts {
        uid: service.metadata.uid.unwrap_or_default(),
        owned,
        addresses,
    }))
}

/// Whether another custom resource of the same control plane stays, and with it what both use.
async fn sibling_stays(cx: &Context, cr: &AzurePrivateLinkService, namespace: &str) -> Result<bool, PassError> {
    let api: Api<AzurePrivateLinkService> = Api::namespaced(cx.kube.clone(), namespace);
    let others = within(api.list(&ListParams::default())).await?;
    let stays = |other: &AzurePrivateLinkService| {
        other.metadata.uid != cr.metadata.uid
            && (other.metadata.deletion_timestamp.is_none() || other.finalizers().iter().any(|f| f == HO_FINALIZER))
    };
    Ok(others.iter().any(stays))
}

/// Whether another HostedCluster has the ids that are recorded on the custom resource, which anybody in its namespace may forge.
async fn claimed_elsewhere(cx: &Context, cr: &AzurePrivateLinkService) -> Result<bool, PassError> {
    let Some(recorded) = intent::read::<HoIntent>(cr.annotations().get(HO_INTENT)) else {
        return Ok(false);
    };
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let own = identity::cluster_ref(annotation).ok();
    let api: Api<HostedCluster> = Api::all(cx.kube.clone());
    let all = within(api.list(&ListParams::default())).await?;
    Ok(all.iter().any(|other| {
        let name = ClusterRef {
            namespace: other.namespace().unwrap_or_default(),
            name: other.name_any(),
        };
        let claims = other.spec.cluster_id.as_ref() == Some(&recorded.cluster_id)
            || other.spec.infra_id.as_ref() == Some(&recorded.infra_id);
        claims && own.as_ref() != Some(&name)
    }))
}

/// What of the surroundings can wake a pass, as one text.
pub(super) fn fingerprint(around: &Surroundings) -> String {
    let problem = |p: &Problem| (p.reason.as_str(), p.message.clone());
    let identity = around
        .identity
        .as_ref()
        .map(|i| (&i.name, &i.cluster_id, &i.infra_id))
        .map_err(problem);
    let service = around
        .service
        .as_ref()
        .map(|s| (&s.uid, s.owned, s.addresses.iter().collect::<BTreeSet<_>>()));
    format!(
        "{identity:?} {:?} {service:?} {}",
        around.paused.is_some(),
        around.sibling_stays
    )
}
