//! Reads the inputs of the HO role on AWS from Kubernetes.

use std::collections::BTreeSet;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::{ConfigMap, Service};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ObjectMeta, OwnerReference};
use kube::{Api, Resource, ResourceExt};

use super::EndpointServiceController;
use super::inputs::EndpointServiceInputs;
use super::teardown::named_load_balancers;
use crate::api::hypershift::ClusterSpec;
use crate::api::markers::aws::{KARPENTER_SUBNETS, SERVICES, obsolete_router};
use crate::api::markers::{CLUSTER_ANNOTATION, HO_INTENT, PRIVATE_ROUTER};
use crate::api::{AWSEndpointService, ClusterRef, HostedCluster, HostedControlPlane, NodePool, Role};
use crate::aws::region::Region;
use crate::controllers::aws::access::Context;
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::aws::identity::on_aws;
use crate::hypershift::aws::intent::HoIntent;
use crate::hypershift::aws::load_balancer_name::{NlbMatch, ServiceFacts, of_host_name, vouched};
use crate::hypershift::aws::principals::{self, DesiredPrincipals};
use crate::hypershift::aws::subnet_ids::KarpenterList;
use crate::hypershift::claims::{Claim, Claims, Holder};
use crate::hypershift::identity::{self, DeletedCluster, Identity, Traces};
use crate::hypershift::names::load_balancer;
use crate::hypershift::problem::Problem;
use crate::hypershift::{intent, owner};
use crate::runtime::call::{ReconcileError, within};
use crate::runtime::prune::Prune;

/// What Kubernetes shows around a custom resource.
pub(super) async fn read_inputs(
    cx: &Context,
    cr: &AWSEndpointService,
    controller: &EndpointServiceController,
) -> Result<EndpointServiceInputs, ReconcileError> {
    let cluster_index = &controller.cluster_index;
    cluster_index.known().await?;
    let kube = &cx.runtime.kube;
    let namespace = cr.namespace().unwrap_or_default();
    let control_plane = owner::only_control_plane(kube, &namespace).await?;
    let hosted = owner::hosted_cluster(kube, cr, cluster_index).await?;
    let (plane, hosted) = (control_plane.as_ref().ok(), hosted.as_ref());
    let identity = match &control_plane {
        Ok(plane) => agreed(cr, hosted, plane, &cluster_index.clusters()),
        Err(problem) => Err(problem.clone()),
    };
    let deleted_cluster = match &identity {
        Ok(identity) => DeletedCluster::Of(identity.clone()),
        Err(_) => deleted_cluster(cr, hosted, plane, &cluster_index.clusters()),
    };
    let (service, deleting) = read_service(kube, cr, plane).await?.unzip();
    let obsolete = is_obsolete(kube, cr).await?;
    let (node_pools, karpenter) = match hosted.filter(|_| identity.is_ok()) {
        Some(hosted) => subnet_sources(kube, cr, controller, hosted).await?,
        None => Default::default(),
    };
    let by_host_name = controller.settings.nlb_match == NlbMatch::Hostname;
    Ok(EndpointServiceInputs {
        cluster: identity
            .as_ref()
            .ok()
            .and(hosted)
            .map(|hosted| Holder::of(hosted).object.to_string()),
        hosted_cluster: hosted.map(|hosted| hosted.object_ref(&())),
        paused: hosted.and_then(|hosted| identity::paused(&hosted.spec, Timestamp::now())),
        paused_until: hosted.and_then(|hosted| hosted.spec.paused_until.clone()),
        unwanted: unwanted(cr, hosted.zip(plane).filter(|_| identity.is_ok()), deleting, obsolete),
        principals: allowed_principals(hosted),
        load_balancer_claimed: by_host_name && is_claimed(cx, cr, controller).await?,
        named_by_others: named_by_others(kube, cr, &controller.settings.region).await?,
        deleted_cluster,
        identity,
        service,
        node_pools,
        karpenter,
    })
}

/// The cluster's identity, by its two objects.
fn agreed(
    cr: &AWSEndpointService,
    hosted: Option<&HostedCluster>,
    control_plane: &HostedControlPlane,
    clusters: &Claims,
) -> Result<Identity, Problem> {
    let named = control_plane.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let cluster = identity::cluster_ref(named)?;
    let namespace = cr.namespace().unwrap_or_default();
    identity::vouched_for(&cluster, &namespace, hosted, Some(control_plane), clusters, on_aws)
}

/// Whose resources are left behind, by what is recorded and there of the cluster's two objects.
fn deleted_cluster(
    cr: &AWSEndpointService,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
    clusters: &Claims,
) -> DeletedCluster {
    let recorded: Option<HoIntent> = intent::read(cr.annotations().get(HO_INTENT));
    let recorded = recorded.as_ref().map(HoIntent::identity);
    let traces = Traces {
        recorded: recorded.as_ref(),
        shown: None,
        hosted,
        control_plane,
    };
    identity::deleted_cluster(cr, traces, clusters)
}

/// The Service of the same name, and whether it is being deleted.
async fn read_service(
    kube: &kube::Client,
    cr: &AWSEndpointService,
    control_plane: Option<&HostedControlPlane>,
) -> Result<Option<(ServiceFacts, bool)>, ReconcileError> {
    let name = cr.name_any();
    // This role has no right to read another Service, and no other one gets a custom resource.
    if !SERVICES.contains(&name.as_str()) {
        return Ok(None);
    }
    let api: Api<Service> = Api::namespaced(kube.clone(), &cr.namespace().unwrap_or_default());
    let service = within(api.get_opt(&name)).await?;
    let owner = control_plane.and_then(|found| found.metadata.uid.as_ref());
    // HyperShift deletes the control plane before the custom resources.
    let is_owner = |reference: &OwnerReference| match owner {
        Some(uid) => &reference.uid == uid,
        None => reference.kind == HostedControlPlane::kind(&()),
    };
    Ok(service.map(|service| {
        let owners = service.owner_references();
        let deleting = service.metadata.deletion_timestamp.is_some();
        let facts = ServiceFacts {
            uid: service.uid().unwrap_or_default(),
            owned: owners.iter().any(is_owner),
            host_names: host_names(service),
        };
        (facts, deleting)
    }))
}

/// The most host names that are taken from a Service: a load balancer has one, and each may be read in AWS.
const MOST_HOST_NAMES: usize = 4;

/// The host names that a Service reports.
fn host_names(service: Service) -> Vec<String> {
    let balancer = service.status.and_then(|status| status.load_balancer);
    let ingress = balancer.and_then(|balancer| balancer.ingress).unwrap_or_default();
    let named = ingress.into_iter().filter_map(|point| point.hostname);
    named.take(MOST_HOST_NAMES).collect()
}

/// Whether it has the name of an earlier version of HyperShift, and its successor is there.
async fn is_obsolete(kube: &kube::Client, cr: &AWSEndpointService) -> Result<bool, ReconcileError> {
    let namespace = cr.namespace().unwrap_or_default();
    if cr.name_any() != obsolete_router(&namespace) {
        return Ok(false);
    }
    let api: Api<AWSEndpointService> = Api::namespaced(kube.clone(), &namespace);
    Ok(within(api.get_opt(PRIVATE_ROUTER)).await?.is_some())
}

/// Why the path is not wanted any more, if it is not.
///
/// The observer goes by the control plane, which follows its HostedCluster later: as long as it is private, a custom
/// resource that is deleted comes again.
fn unwanted(
    cr: &AWSEndpointService,
    cluster: Option<(&HostedCluster, &HostedControlPlane)>,
    service_deleting: Option<bool>,
    obsolete: bool,
) -> Option<&'static str> {
    let is_public = |spec: &ClusterSpec| spec.aws().is_none_or(|aws| aws.access().is_public_only());
    let public = cluster.map(|(hosted, plane)| is_public(&hosted.spec) && is_public(&plane.spec));
    let served = SERVICES.contains(&cr.name_any().as_str()) && cr.is_held_by(Role::Ho);
    if public == Some(true) {
        Some("the cluster is not private")
    } else if obsolete {
        Some("private-router has replaced it")
    } else if service_deleting == Some(true) {
        Some("the Service is being deleted")
    } else if served && service_deleting.is_none() && public.is_some() {
        Some("the Service is gone")
    } else {
        None
    }
}

fn allowed_principals(hosted: Option<&HostedCluster>) -> Result<DesiredPrincipals, Problem> {
    let aws = hosted.and_then(|hosted| hosted.spec.aws()).cloned().unwrap_or_default();
    principals::desired(&aws)
}

/// What names the subnets of the cluster's workers: its NodePools, and Karpenter's ConfigMap.
async fn subnet_sources(
    kube: &kube::Client,
    cr: &AWSEndpointService,
    controller: &EndpointServiceController,
    hosted: &HostedCluster,
) -> Result<(Vec<NodePool>, KarpenterList), ReconcileError> {
    let cluster: ClusterRef = Holder::of(hosted).object;
    let pools = controller.node_pools.of(&cluster).await?;
    let api: Api<ConfigMap> = Api::namespaced(kube.clone(), &cr.namespace().unwrap_or_default());
    let karpenter = match within(api.get_opt(KARPENTER_SUBNETS)).await {
        Ok(found) => karpenter_list(found),
        // Its owner can write what does not parse.
        Err(ReconcileError::Kube(kube::Error::SerdeError(_))) => KarpenterList::Unreadable,
        Err(error) => return Err(error),
    };
    Ok((pools, karpenter))
}

/// The load balancers that the cluster's other custom resource names, as it is now, and those of its Service, whose
/// endpoint service may be new. Only a deletion needs them. Without the role's finalizer nothing was made for it, and
/// nothing would be deleted with it.
async fn named_by_others(
    kube: &kube::Client,
    cr: &AWSEndpointService,
    region: &Region,
) -> Result<BTreeSet<String>, ReconcileError> {
    let mut names = BTreeSet::new();
    if cr.metadata.deletion_timestamp.is_none() {
        return Ok(names);
    }
    let namespace = cr.namespace().unwrap_or_default();
    let api: Api<AWSEndpointService> = Api::namespaced(kube.clone(), &namespace);
    let services: Api<Service> = Api::namespaced(kube.clone(), &namespace);
    for name in SERVICES.iter().filter(|name| **name != cr.name_any()) {
        let other = within(api.get_opt(name)).await?;
        let Some(other) = other.filter(|other| other.is_held_by(Role::Ho)) else {
            continue;
        };
        names.extend(named_load_balancers(&other));
        if let Some(service) = within(services.get_opt(name)).await? {
            names.insert(load_balancer(&service.uid().unwrap_or_default()));
            names.extend(
                host_names(service)
                    .iter()
                    .filter_map(|reported| of_host_name(reported, region)),
            );
        }
    }
    Ok(names)
}

/// What Karpenter's ConfigMap lists, as far as the watch keeps it: whoever writes it may fill it with a megabyte.
fn karpenter_list(mut found: Option<ConfigMap>) -> KarpenterList {
    if let Some(map) = &mut found {
        map.prune();
    }
    KarpenterList::of(found.as_ref())
}

/// Whether an older custom resource names the load balancer, and its own Service does not show otherwise.
async fn is_claimed(
    cx: &Context,
    cr: &AWSEndpointService,
    controller: &EndpointServiceController,
) -> Result<bool, ReconcileError> {
    let name = &cr.spec.network_load_balancer_name;
    let claim = Claim::load_balancer(name);
    let older = controller.cluster_index.resources().olders(&Holder::of(cr), &claim);
    for object in rivals(older) {
        let known = cx.resources.get(&object);
        let is_served = known.as_ref().is_none_or(|known| cx.resources.serves(known));
        if is_served && has_load_balancer(cx, &object, name, controller).await? {
            return Ok(true);
        }
    }
    Ok(false)
}

/// The older custom resources of which each may have an endpoint service. One with another name than a Service of
/// HyperShift has none: whoever makes it takes nothing from anybody.
fn rivals(older: Vec<Holder>) -> impl Iterator<Item = ClusterRef> {
    let objects = older.into_iter().map(|holder| holder.object);
    objects.filter(|object| SERVICES.contains(&object.name.as_str()))
}

/// Whether the Service of another custom resource reports the load balancer, or may not be read.
async fn has_load_balancer(
    cx: &Context,
    other: &ClusterRef,
    name: &str,
    controller: &EndpointServiceController,
) -> Result<bool, ReconcileError> {
    let api: Api<Service> = Api::namespaced(cx.runtime.kube.clone(), &other.namespace);
    let settings = &controller.settings;
    match within(api.get_opt(&other.name)).await {
        Ok(service) => Ok(service.is_some_and(|service| {
            let facts = ServiceFacts {
                owned: true,
                host_names: host_names(service),
                ..ServiceFacts::default()
            };
            vouched(name, Some(&facts), NlbMatch::Hostname, &settings.region).is_ok()
        })),
        Err(ReconcileError::Kube(kube::Error::SerdeError(_))) => Ok(false),
        Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 403 => Ok(true),
        Err(error) => Err(error),
    }
}

/// The inputs whose change needs a reconcile, as one text. Each field counts, except what is taken out here.
pub(super) fn fingerprint(inputs: &EndpointServiceInputs) -> String {
    let mut compared = inputs.clone();
    // It says only who gets Events, and its resource version changes with each write.
    compared.hosted_cluster = None;
    // The time until the pause ends; `paused_until` says when that is.
    if let Some(paused) = &mut compared.paused {
        paused.requeue_after = None;
    }
    // The status of a NodePool changes often, and with it the resource version.
    for pool in &mut compared.node_pools {
        pool.metadata = ObjectMeta {
            name: pool.metadata.name.take(),
            ..ObjectMeta::default()
        };
    }
    // Their order says nothing.
    if let Some(service) = &mut compared.service {
        service.host_names.sort();
    }
    format!("{compared:?}")
}

#[cfg(test)]
mod tests;
