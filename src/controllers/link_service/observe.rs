//! Reads what Kubernetes knows around a custom resource on the management side.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::api::ListParams;
use kube::{Api, Resource, ResourceExt};

use super::frontend::ServiceFacts;
use super::plan::Surroundings;
use crate::api::markers::{CLUSTER_ANNOTATION, HO_FINALIZER, HO_INTENT};
use crate::api::{AzurePrivateLinkService, ClusterRef, HostedCluster, HostedControlPlane, held_by};
use crate::azure::id::lower;
use crate::controllers::claims::{self, Claim, Claims, Holder};
use crate::controllers::context::Context;
use crate::controllers::decision::Problem;
use crate::controllers::frame::{PassError, within};
use crate::controllers::identity::{self, Identity, Leaving, Traces};
use crate::controllers::intent::{self, HoIntent};
use crate::controllers::neighbours::Neighbours;
use crate::controllers::owner;
use crate::names;

/// The cluster, its pause, the Service and the siblings of a custom resource.
pub(super) async fn surroundings(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    neighbours: &Neighbours,
    cloud: &str,
) -> Result<Surroundings, PassError> {
    neighbours.known().await?;
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::control_plane(cx, cr).await?;
    let hosted = hosted_cluster(cx, cr, &namespace, neighbours).await?;
    let (hosted, control_plane) = (hosted.as_ref(), control_plane.as_ref());
    let identity = agreed(cr, &namespace, hosted, control_plane, neighbours, cloud);
    let service = service(cx, cr, &namespace, control_plane).await?;
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let going = cr.metadata.deletion_timestamp.is_some();
    let made = recorded.as_ref().is_some_and(|recorded| recorded.nat_subnet_made);
    let siblings = if going || (!made && cr.spec.nat_subnet_id.is_none()) {
        siblings(cx, cr, &namespace).await?
    } else {
        Vec::new()
    };
    let traces = Traces {
        recorded: recorded.as_ref(),
        hosted,
        control_plane,
    };
    let leaving = match &identity {
        Ok(identity) => Leaving::Of(identity.clone()),
        Err(_) => identity::leaving(cr, traces, &neighbours.clusters()),
    };
    let address_claimed = address_claimed(cr, &neighbours.resources());
    Ok(Surroundings {
        paused: hosted.and_then(|hosted| identity::paused(&hosted.spec, Timestamp::now())),
        paused_until: hosted.and_then(|hosted| hosted.spec.paused_until.clone()),
        address_claimed,
        sibling_stays: siblings.iter().any(|other| stays(other, cr)),
        sibling_goes: siblings.iter().any(|other| goes(other) && !stays(other, cr)),
        sibling_made_subnet: siblings.iter().any(made_subnet),
        given_subnets: given_subnets(&leaving, control_plane, neighbours),
        leaving,
        identity,
        hosted_cluster: hosted.map(|hosted| hosted.object_ref(&())),
        service,
    })
}

/// The HostedCluster that the custom resource names, if its control plane is in this namespace; else the one whose is.
async fn hosted_cluster(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    namespace: &str,
    neighbours: &Neighbours,
) -> Result<Option<HostedCluster>, PassError> {
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let candidates = identity::candidates(annotation, namespace, &neighbours.clusters());
    for cluster in candidates {
        let api: Api<HostedCluster> = Api::namespaced(cx.kube.clone(), &cluster.namespace);
        if let Some(found) = within(api.get_opt(&cluster.name)).await? {
            return Ok(Some(found));
        }
    }
    Ok(None)
}

fn agreed(
    cr: &AzurePrivateLinkService,
    namespace: &str,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
    neighbours: &Neighbours,
    cloud: &str,
) -> Result<Identity, Problem> {
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let cluster = identity::cluster_ref(annotation)?;
    let is_named = |hosted: &&HostedCluster| {
        let named = ClusterRef {
            namespace: hosted.namespace().unwrap_or_default(),
            name: hosted.name_any(),
        };
        named == cluster
    };
    let named = hosted.filter(is_named);
    let identity = identity::agree(namespace, &cluster, named, control_plane, cloud)?;
    let (Some(hosted), Some(control_plane)) = (named, control_plane) else {
        return Ok(identity);
    };
    let clusters = neighbours.clusters();
    let problem = identity::contested(hosted, control_plane, &clusters)
        .or_else(|| identity::foreign_nat_subnet(cr, hosted, &clusters));
    problem.map_or(Ok(identity), Err)
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

/// The other custom resources of the same control plane.
async fn siblings(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    namespace: &str,
) -> Result<Vec<AzurePrivateLinkService>, PassError> {
    let api: Api<AzurePrivateLinkService> = Api::namespaced(cx.kube.clone(), namespace);
    let mut all = within(api.list(&ListParams::default())).await?.items;
    all.retain(|other| other.metadata.uid != cr.metadata.uid);
    Ok(all)
}

fn goes(sibling: &AzurePrivateLinkService) -> bool {
    sibling.metadata.deletion_timestamp.is_some() && served(sibling)
}

/// Whether a sibling is held until its service is gone. One that is not uses nothing, and nobody would take away after it.
fn served(sibling: &AzurePrivateLinkService) -> bool {
    held_by(sibling, HO_FINALIZER)
}

/// Whether a sibling stays longer than `cr`, and with it what both use. Of those that go together the one with the lowest
/// name is the last: it waits for the others.
fn stays(sibling: &AzurePrivateLinkService, cr: &AzurePrivateLinkService) -> bool {
    served(sibling) && (sibling.metadata.deletion_timestamp.is_none() || sibling.name_any() < cr.name_any())
}

fn made_subnet(sibling: &AzurePrivateLinkService) -> bool {
    let recorded: Option<HoIntent> = intent::read(sibling.annotations().get(HO_INTENT));
    recorded.is_some_and(|recorded| recorded.nat_subnet_made)
}

fn address_claimed(cr: &AzurePrivateLinkService, all: &Claims) -> bool {
    let claim = cr.spec.load_balancer_ip.as_deref().and_then(Claim::address);
    claim.is_some_and(|claim| all.older(&Holder::of(cr), &claim))
}

/// The NAT subnets of the cluster's name that any HostedCluster, custom resource or this control plane gives.
fn given_subnets(
    leaving: &Leaving,
    control_plane: Option<&HostedControlPlane>,
    neighbours: &Neighbours,
) -> Vec<String> {
    let Leaving::Of(identity) = leaving else {
        return Vec::new();
    };
    let name = names::nat_subnet(&identity.infra_id);
    let own = control_plane.and_then(|found| claims::nat_subnet(&found.spec));
    let mut all: Vec<String> = own.map(lower).into_iter().collect();
    all.extend(neighbours.clusters().nat_subnets(&name).map(str::to_owned));
    all.extend(neighbours.resources().nat_subnets(&name).map(str::to_owned));
    all
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
    let paused = (around.paused.is_some(), &around.paused_until);
    let others = (around.address_claimed, around.sibling_stays, around.sibling_goes);
    format!("{identity:?} {paused:?} {service:?} {others:?}")
}

#[cfg(test)]
mod tests;
