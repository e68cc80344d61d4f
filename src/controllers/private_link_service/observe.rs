//! Reads the inputs of the HO role from Kubernetes.

use std::collections::BTreeSet;
use std::net::IpAddr;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::{Api, Resource, ResourceExt};

use super::connecting::Connecting;
use super::frontend::{FrontendMatch, ServiceFacts};
use super::plan::PrivateLinkServiceInputs;
use super::settings::ScopedSettings;
use crate::api::markers::{ADOPT_FROM, HO_FINALIZER, HO_INTENT, SERVICES};
use crate::api::{AzurePrivateLinkService, ClusterRef, HostedCluster, HostedControlPlane, held_by};
use crate::azure::arm::id::lower;
use crate::controllers::azure::access::Context;
use crate::controllers::custom_resource::read_siblings;
use crate::engine::text::is_uuid;
use crate::hypershift::azure;
use crate::hypershift::azure::intent::HoIntent;
use crate::hypershift::azure::names;
use crate::hypershift::claims::{self, Claim, Claims, Holder};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::identity::{self, DeletedCluster, Identity, Traces};
use crate::hypershift::intent;
use crate::hypershift::owner;
use crate::hypershift::problem::Problem;
use crate::runtime::call::{ReconcileError, within};

/// The cluster, its pause, the Service and the siblings of a custom resource.
pub(super) async fn read_inputs(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    cluster_index: &ClusterIndex,
    settings: &ScopedSettings,
) -> Result<PrivateLinkServiceInputs, ReconcileError> {
    let common = settings.common();
    cluster_index.known().await?;
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::control_plane(&cx.runtime.kube, cr).await?;
    let control_plane = control_plane.as_ref();
    let hosted = owner::hosted_cluster(&cx.runtime.kube, cr, cluster_index).await?;
    let hosted = hosted.as_ref();
    let scope = hosted.map(|hosted| settings.scope_of(hosted)).transpose();
    let agreed = agreed(cr, hosted, control_plane, &cluster_index.clusters(), common.cloud);
    let identity = agreed.and_then(|identity| scope.as_ref().map(|_| identity).map_err(Clone::clone));
    let service = read_service(cx, cr, &namespace, control_plane).await?;
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let deleting = cr.metadata.deletion_timestamp.is_some();
    let made = recorded.as_ref().is_some_and(|recorded| recorded.nat_subnet_made);
    let siblings = if deleting || (!made && cr.spec.nat_subnet_id.is_none()) {
        read_siblings::siblings(cx, cr, deleting).await?
    } else {
        Vec::new()
    };
    let deleted_cluster = match &identity {
        Ok(identity) => DeletedCluster::Of(identity.clone()),
        Err(_) => deleted_cluster(
            cr,
            recorded.as_ref(),
            (hosted, control_plane),
            &cluster_index.clusters(),
        ),
    };
    let address_claimed =
        common.frontend_match == FrontendMatch::Address && is_address_claimed(cx, cr, cluster_index).await?;
    let own = hosted.and_then(|hosted| own_identity(hosted, &cluster_index.clusters()));
    let subnets_of_older = subnets_given_by_older(identity.as_ref().ok(), hosted, &cluster_index.clusters());
    Ok(PrivateLinkServiceInputs {
        paused: hosted.and_then(|hosted| identity::paused(&hosted.spec, Timestamp::now())),
        paused_until: hosted.and_then(|hosted| hosted.spec.paused_until.clone()),
        address_claimed,
        sibling_stays: siblings.iter().any(|other| stays(other, cr)),
        sibling_deleting: siblings
            .iter()
            .any(|other| waits_for_deletion(other) && !stays(other, cr)),
        sibling_made_subnet: siblings.iter().any(|other| made_subnet(other)),
        shown_subnet: None,
        given_subnets: given_subnets(&deleted_cluster, control_plane, cluster_index),
        subnets_of_older,
        deleted_cluster,
        identity,
        own,
        management_scope: scope.ok().flatten(),
        hosted_cluster: hosted.map(|hosted| hosted.object_ref(&())),
        adopt_from: hosted.and_then(adopt_from),
        connecting: hosted.map(Connecting::of).unwrap_or_default(),
        service,
    })
}

/// The cluster's identity, if the custom resource may also use the guest and the NAT subnet that it names.
fn agreed(
    cr: &AzurePrivateLinkService,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
    clusters: &Claims,
    cloud: &str,
) -> Result<Identity, Problem> {
    let identity = identity::vouched(cr, hosted, control_plane, clusters, |spec| {
        azure::identity::in_cloud(spec, cloud)
    })?;
    let Some(hosted) = hosted else {
        return Ok(identity);
    };
    let foreign_guest = Connecting::of(hosted).foreign_guest(cr);
    let problem = foreign_guest.or_else(|| azure::identity::foreign_nat_subnet(cr, hosted, clusters));
    problem.map_or(Ok(identity), Err)
}

/// Whose resources are left behind, by what is recorded, shown, and there of the cluster's two objects.
fn deleted_cluster(
    cr: &AzurePrivateLinkService,
    recorded: Option<&HoIntent>,
    (hosted, control_plane): (Option<&HostedCluster>, Option<&HostedControlPlane>),
    clusters: &Claims,
) -> DeletedCluster {
    let (recorded, shown) = (recorded.map(HoIntent::identity), azure::identity::of_status(cr));
    let traces = Traces {
        recorded: recorded.as_ref(),
        shown: shown.as_ref(),
        hosted,
        control_plane,
    };
    identity::deleted_cluster(cr, traces, clusters)
}

/// The identity by a HostedCluster alone, if no older one has the cluster id.
fn own_identity(hosted: &HostedCluster, clusters: &Claims) -> Option<Identity> {
    let own = identity::of_spec(&hosted.name_any(), &hosted.spec).ok()?;
    let claimed = clusters.older(&Holder::of(hosted), &Claim::cluster_id(&own.cluster_id));
    (!claimed).then_some(own)
}

/// The management cluster that a cluster came from.
fn adopt_from(hosted: &HostedCluster) -> Option<String> {
    let uid = hosted.annotations().get(ADOPT_FROM);
    uid.filter(|uid| is_uuid(uid)).cloned()
}

async fn read_service(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    namespace: &str,
    control_plane: Option<&HostedControlPlane>,
) -> Result<Option<ServiceFacts>, ReconcileError> {
    let name = cr.name_any();
    // This role has no right to read another Service, and no other one gets a custom resource.
    if !SERVICES.contains(&name.as_str()) {
        return Ok(None);
    }
    let api: Api<Service> = Api::namespaced(cx.runtime.kube.clone(), namespace);
    let Some(service) = within(api.get_opt(&name)).await? else {
        return Ok(None);
    };
    let owner = control_plane.and_then(|found| found.metadata.uid.as_ref());
    let owned = owner.is_some_and(|uid| service.owner_references().iter().any(|reference| &reference.uid == uid));
    Ok(Some(ServiceFacts {
        uid: service.uid().unwrap_or_default(),
        owned,
        addresses: addresses(service),
    }))
}

/// The addresses that a Service reports.
fn addresses(service: Service) -> Vec<IpAddr> {
    let balancer = service.status.and_then(|status| status.load_balancer);
    let ingress = balancer.and_then(|balancer| balancer.ingress).unwrap_or_default();
    ingress.into_iter().filter_map(|point| point.ip?.parse().ok()).collect()
}

fn waits_for_deletion(sibling: &AzurePrivateLinkService) -> bool {
    sibling.metadata.deletion_timestamp.is_some() && served(sibling)
}

/// Whether our finalizer holds a sibling until its service is gone. One without it uses nothing, and nobody would clean
/// up after it.
fn served(sibling: &AzurePrivateLinkService) -> bool {
    held_by(sibling, HO_FINALIZER)
}

/// Whether a sibling stays longer than `cr`, and with it what both use. Of those that are deleted together the one with
/// the lowest name is the last: it waits for the others.
fn stays(sibling: &AzurePrivateLinkService, cr: &AzurePrivateLinkService) -> bool {
    served(sibling) && (sibling.metadata.deletion_timestamp.is_none() || sibling.name_any() < cr.name_any())
}

fn made_subnet(sibling: &AzurePrivateLinkService) -> bool {
    let recorded: Option<HoIntent> = intent::read(sibling.annotations().get(HO_INTENT));
    recorded.is_some_and(|recorded| recorded.nat_subnet_made)
}

/// Whether an older custom resource has the address, and its own Service does not show otherwise.
async fn is_address_claimed(
    cx: &Context,
    cr: &AzurePrivateLinkService,
    cluster_index: &ClusterIndex,
) -> Result<bool, ReconcileError> {
    let claim = cr.spec.load_balancer_ip.as_deref().and_then(Claim::address);
    let older = claim.map(|claim| cluster_index.resources().olders(&Holder::of(cr), &claim));
    for Holder { object, .. } in older.unwrap_or_default() {
        let known = cx.resources.get(&object);
        if known.is_none_or(|known| cx.resources.serves(&known)) && has_address(cx, &object, cr).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Whether the Service of another custom resource has the address of this one, or may not be read.
async fn has_address(cx: &Context, other: &ClusterRef, cr: &AzurePrivateLinkService) -> Result<bool, ReconcileError> {
    let api: Api<Service> = Api::namespaced(cx.runtime.kube.clone(), &other.namespace);
    let address: Option<IpAddr> = cr.spec.load_balancer_ip.as_deref().and_then(|text| text.parse().ok());
    match within(api.get_opt(&other.name)).await {
        Ok(service) => Ok(service.is_some_and(|service| address.is_some_and(|own| addresses(service).contains(&own)))),
        // Its owner can write what does not parse. That proves nothing and must not block this custom resource.
        Err(ReconcileError::Kube(kube::Error::SerdeError(_))) => Ok(false),
        Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 403 => Ok(true),
        Err(error) => Err(error),
    }
}

/// The NAT subnets of the cluster's name that this control plane gives, or a HostedCluster that may. A custom resource
/// does not count: a stranger's would keep the subnet from being deleted with its cluster.
fn given_subnets(
    deleted_cluster: &DeletedCluster,
    control_plane: Option<&HostedControlPlane>,
    cluster_index: &ClusterIndex,
) -> Vec<String> {
    let DeletedCluster::Of(identity) = deleted_cluster else {
        return Vec::new();
    };
    let name = names::nat_subnet(&identity.infra_id);
    let own = control_plane.and_then(|found| claims::nat_subnet(&found.spec));
    let clusters = cluster_index.clusters();
    let infra_id = Claim::infra_id(&identity.infra_id);
    let given = clusters
        .nat_subnets(&name)
        .filter(|(id, giver)| !clusters.older_than(giver, &Claim::nat_subnet(id), &infra_id))
        .map(|(id, _)| id.to_owned());
    own.map(lower).into_iter().chain(given).collect()
}

/// The NAT subnets of the cluster's name that an older HostedCluster gives.
fn subnets_given_by_older(
    identity: Option<&Identity>,
    hosted: Option<&HostedCluster>,
    clusters: &Claims,
) -> Vec<String> {
    let (Some(identity), Some(hosted)) = (identity, hosted) else {
        return Vec::new();
    };
    let own = Holder::of(hosted);
    let name = names::nat_subnet(&identity.infra_id);
    let given = clusters.nat_subnets(&name);
    let ids: BTreeSet<&str> = given.map(|(id, _)| id).collect();
    let infra_id = Claim::infra_id(&identity.infra_id);
    ids.into_iter()
        .filter(|id| clusters.older_than(&own, &infra_id, &Claim::nat_subnet(id)))
        .map(str::to_owned)
        .collect()
}

/// The inputs whose change needs a reconcile, as one text. Each field counts, except what is taken out here.
pub(super) fn fingerprint(inputs: &PrivateLinkServiceInputs) -> String {
    let mut compared = inputs.clone();
    // It says only who gets Events, and its resource version changes with each write.
    compared.hosted_cluster = None;
    // A reconcile notes it itself.
    compared.shown_subnet = None;
    // The time until the pause ends; `paused_until` says when that is.
    if let Some(paused) = &mut compared.paused {
        paused.requeue_after = None;
    }
    // Their order says nothing.
    if let Some(service) = &mut compared.service {
        service.addresses.sort();
    }
    compared.given_subnets.sort();
    format!("{compared:?}")
}

#[cfg(test)]
mod tests;
