//! Which cluster a custom resource serves, agreed on by HostedCluster and HostedControlPlane. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::hypershift::ClusterSpec;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{ClusterRef, HostedCluster, HostedControlPlane, Paused, Reason};
use crate::engine::text::is_uuid;
use crate::hypershift::claims::{self, Claim, Claims, Holder};
use crate::hypershift::names;
use crate::hypershift::problem::Problem;

/// A cluster's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's name.
    pub name: String,
    /// The cluster id, `spec.clusterID`.
    pub cluster_id: String,
    /// The infra id, `spec.infraID`.
    pub infra_id: String,
}

impl Identity {
    /// Whether nothing that is known here contradicts `own`.
    fn agrees(&self, own: &Self) -> bool {
        self.cluster_id.eq_ignore_ascii_case(&own.cluster_id)
            && (self.infra_id.is_empty() || self.infra_id.eq_ignore_ascii_case(&own.infra_id))
    }
}

/// The time until a refused identity or scope of a cluster is checked again, because not every end of a conflict with
/// another cluster is an event for this one.
pub const IDENTITY_RETRY: Duration = Duration::from_secs(30);

/// The HostedClusters that may be the one of a custom resource in `namespace`: those that have their control plane
/// here, the first of them first, so that no annotation chooses among them; then the one that the annotation names, if
/// it has its control plane here too.
pub fn candidates(annotation: Option<&str>, namespace: &str, all: &Claims) -> Vec<ClusterRef> {
    let named = cluster_ref(annotation).ok();
    let named = named.filter(|cluster| names::control_plane_namespace(cluster) == namespace);
    let claim = Claim::Namespace(namespace.to_owned());
    let mut found: Vec<ClusterRef> = all.holders(&claim).map(|holder| holder.object.clone()).collect();
    let not_indexed = named.filter(|cluster| !found.contains(cluster));
    found.extend(not_indexed);
    found
}

/// The HostedCluster that the annotations name.
pub fn cluster_ref(annotation: Option<&str>) -> Result<ClusterRef, Problem> {
    let text = annotation.ok_or_else(|| invalid(format!("the annotation {CLUSTER_ANNOTATION} is missing")))?;
    text.parse().map_err(|error| invalid(format!("{error}")))
}

/// The identity that both objects agree on, for a custom resource in `namespace`, if this process `serves` their cloud.
fn agree(
    namespace: &str,
    cluster: &ClusterRef,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
    serves: impl Fn(&ClusterSpec) -> Result<(), Problem>,
) -> Result<Identity, Problem> {
    if names::control_plane_namespace(cluster) != namespace {
        return Err(Problem::new(
            Reason::IdentityMismatch,
            format!("HostedCluster {cluster} has its control plane in another namespace"),
        ));
    }
    let hosted = hosted.ok_or_else(|| {
        Problem::new(
            Reason::HostedClusterNotFound,
            format!("HostedCluster {cluster} does not exist"),
        )
    })?;
    let control_plane = control_plane.ok_or_else(|| {
        Problem::new(
            Reason::HostedControlPlaneNotFound,
            "the HostedControlPlane does not exist".to_owned(),
        )
        .requeue_after(IDENTITY_RETRY)
    })?;
    let own = of_spec(&cluster.name, &hosted.spec)?;
    let annotation = control_plane.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let same = of_spec(&cluster.name, &control_plane.spec).as_ref() == Ok(&own)
        && control_plane.name_any() == cluster.name
        && cluster_ref(annotation).as_ref() == Ok(cluster);
    if !same {
        let text = "HostedCluster and HostedControlPlane disagree on the cluster";
        return Err(Problem::new(Reason::IdentityMismatch, text).requeue_after(IDENTITY_RETRY));
    }
    for spec in [&hosted.spec, &control_plane.spec] {
        serves(spec)?;
    }
    Ok(own)
}

/// The identity of the cluster that a custom resource names, if its objects agree on it and nobody else has what they
/// name. `hosted` is the HostedCluster whose control plane is in the namespace, whatever the custom resource names.
pub fn vouched(
    cr: &impl ResourceExt,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
    all: &Claims,
    serves: impl Fn(&ClusterSpec) -> Result<(), Problem>,
) -> Result<Identity, Problem> {
    let annotation = cr.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let namespace = cr.namespace().unwrap_or_default();
    vouched_for(
        &cluster_ref(annotation)?,
        &namespace,
        hosted,
        control_plane,
        all,
        serves,
    )
}

/// The same for a custom resource in `namespace` that is said to be of `cluster`.
pub fn vouched_for(
    cluster: &ClusterRef,
    namespace: &str,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
    all: &Claims,
    serves: impl Fn(&ClusterSpec) -> Result<(), Problem>,
) -> Result<Identity, Problem> {
    let named = hosted.filter(|hosted| Holder::of(*hosted).object == *cluster);
    let derives = Claim::Namespace(namespace.to_owned());
    let came_later = all.holders(&derives).any(|holder| holder.object == *cluster);
    if hosted.is_some() && named.is_none() && came_later {
        let text = "an older HostedCluster has its control plane in this namespace";
        return Err(Problem::new(Reason::DuplicateIdentity, text).requeue_after(IDENTITY_RETRY));
    }
    let identity = agree(namespace, cluster, named, control_plane, serves)?;
    let problem = named
        .zip(control_plane)
        .and_then(|(hosted, plane)| contested(hosted, plane, all));
    problem.map_or(Ok(identity), Err)
}

/// Why a cluster whose objects agree may not have what it names: another HostedCluster has it.
///
/// What the HostedCluster names gives way to older claims only. What the control plane alone names was never the
/// cluster's own.
fn contested(hosted: &HostedCluster, control_plane: &HostedControlPlane, all: &Claims) -> Option<Problem> {
    let problem = claimed_by_older(hosted, all).or_else(|| claimed_by_any(hosted, control_plane, all))?;
    // The event that ends the problem may be one that this role does not watch.
    Some(problem.requeue_after(IDENTITY_RETRY))
}

fn claimed_by_older(hosted: &HostedCluster, all: &Claims) -> Option<Problem> {
    let own = Holder::of(hosted);
    let taken = Claim::of_cluster(hosted)
        .into_iter()
        .filter(|claim| all.older(&own, claim));
    taken.filter_map(older_has).next()
}

/// The problem if an older HostedCluster has the same; none for what clusters may share.
fn older_has(claim: Claim) -> Option<Problem> {
    let duplicate = Reason::DuplicateIdentity;
    match claim {
        Claim::ClusterId(_) => Some(Problem::new(duplicate, "an older HostedCluster has this cluster id")),
        Claim::InfraId(_) => Some(Problem::new(duplicate, "an older HostedCluster has this infra id")),
        Claim::HostName(host) => {
            let text = format!("an older HostedCluster has the host name {host}");
            Some(Problem::new(Reason::HostNameClaimed, text))
        }
        // Several may derive one namespace, and share networks and domains.
        Claim::Namespace(_)
        | Claim::NatSubnet(_)
        | Claim::Address(_)
        | Claim::Network(_)
        | Claim::BaseDomain(_)
        | Claim::LoadBalancer(_) => None,
    }
}

/// The problem if any other HostedCluster has a host name that the control plane alone names.
fn claimed_by_any(hosted: &HostedCluster, control_plane: &HostedControlPlane, all: &Claims) -> Option<Problem> {
    let own = Holder::of(hosted).object;
    let named: Vec<String> = claims::host_names(&hosted.spec).collect();
    let mut of_control_plane_alone = claims::host_names(&control_plane.spec).filter(|host| !named.contains(host));
    let host = of_control_plane_alone.find(|host| all.other(Some(&own), &Claim::HostName(host.clone())))?;
    let text = format!("another HostedCluster has the host name {host}");
    Some(Problem::new(Reason::HostNameClaimed, text))
}

/// The HostedCluster, if it is that of a custom resource whose cluster is `known`. A younger one is another cluster of
/// that name, unless it has the same id: a backup may be restored in any order.
pub fn own_cluster<'h>(
    cr: &impl ResourceExt,
    hosted: Option<&'h HostedCluster>,
    known: Option<&Identity>,
) -> Option<&'h HostedCluster> {
    let has_id = |id: &str| known.is_some_and(|known| id.eq_ignore_ascii_case(&known.cluster_id));
    hosted.filter(|hosted| !Holder::of(*hosted).newer_than(cr) || hosted.spec.cluster_id.as_deref().is_some_and(has_id))
}

/// Whose resources a deleted custom resource leaves behind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DeletedCluster {
    /// Those of this cluster.
    Of(Identity),
    /// Those of a cluster whose ids another HostedCluster has.
    OfAnother,
    /// Nobody's: nothing was made, or nothing shows for whom.
    Unknown,
}

/// What shows to which cluster a custom resource belonged, beside the objects that may agree on it.
#[derive(Debug, Clone, Copy, Default)]
pub struct Traces<'a> {
    /// For whom the role recorded an intent. Anybody in the namespace may forge it.
    pub recorded: Option<&'a Identity>,
    /// For whom the status shows resources. Anybody in the namespace may forge it.
    pub shown: Option<&'a Identity>,
    /// The HostedCluster whose control plane is in the namespace.
    pub hosted: Option<&'a HostedCluster>,
    /// The owner of the custom resource.
    pub control_plane: Option<&'a HostedControlPlane>,
}

/// Whose resources a custom resource leaves behind when its cluster's objects are gone or disagree.
///
/// What can be forged counts only for ids that no other HostedCluster has, and that have the form of a cluster's: names
/// of others' services do not.
pub fn deleted_cluster(cr: &impl ResourceExt, traces: Traces<'_>, all: &Claims) -> DeletedCluster {
    let hosted = traces.hosted.map(Holder::of);
    let of_hosted = traces
        .hosted
        .and_then(|found| of_spec(&found.name_any(), &found.spec).ok());
    let of_control_plane = traces
        .control_plane
        .and_then(|found| of_spec(&found.name_any(), &found.spec).ok());
    let formed = |identity: Option<&Identity>| identity.filter(|found| is_uuid(&found.cluster_id)).cloned();
    // A HostedCluster that came after the custom resource says nothing about it.
    let came_later = hosted.as_ref().is_some_and(|hosted| hosted.newer_than(cr));
    let witness = of_hosted.clone().filter(|_| !came_later);
    let judge = Judge { hosted, witness, all };
    judge
        .forgeable(formed(traces.recorded))
        .or(judge.of_hosted(of_hosted))
        .or(judge.forgeable(of_control_plane))
        .or(judge.forgeable(formed(traces.shown)))
}

/// Decides whose the resources with certain ids are.
struct Judge<'a> {
    /// The HostedCluster whose control plane is in the namespace.
    hosted: Option<Holder>,
    /// The ids of that HostedCluster, where what can be forged must not contradict them.
    witness: Option<Identity>,
    all: &'a Claims,
}

impl Judge<'_> {
    /// Judges ids that anybody in the namespace may have written.
    fn forgeable(&self, identity: Option<Identity>) -> DeletedCluster {
        let own = self.hosted.as_ref().map(|hosted| &hosted.object);
        match identity {
            Some(identity) if self.witness.as_ref().is_none_or(|own| identity.agrees(own)) => {
                let others_have = ids(&identity).iter().any(|id| self.all.other(own, id));
                DeletedCluster::of(identity, !others_have)
            }
            _ => DeletedCluster::Unknown,
        }
    }

    /// Judges the ids of the HostedCluster itself, which only give way to older claims.
    fn of_hosted(&self, identity: Option<Identity>) -> DeletedCluster {
        match (identity, &self.hosted) {
            (Some(identity), Some(own)) => {
                let older_have = ids(&identity).iter().any(|id| self.all.older(own, id));
                DeletedCluster::of(identity, !older_have)
            }
            _ => DeletedCluster::Unknown,
        }
    }
}

fn ids(identity: &Identity) -> [Claim; 2] {
    [
        Claim::cluster_id(&identity.cluster_id),
        Claim::infra_id(&identity.infra_id),
    ]
}

impl DeletedCluster {
    fn of(identity: Identity, is_own: bool) -> Self {
        if is_own { Self::Of(identity) } else { Self::OfAnother }
    }

    /// The first of two that names a cluster; without one, that they are of another cluster if either says so.
    fn or(self, next: Self) -> Self {
        match (self, next) {
            (Self::Of(identity), _) | (_, Self::Of(identity)) => Self::Of(identity),
            (Self::OfAnother, _) | (_, Self::OfAnother) => Self::OfAnother,
            (Self::Unknown, Self::Unknown) => Self::Unknown,
        }
    }
}

/// The identity that one object claims.
pub fn of_spec(name: &str, spec: &ClusterSpec) -> Result<Identity, Problem> {
    Ok(Identity {
        name: name.to_owned(),
        cluster_id: filled(spec.cluster_id.as_deref(), "clusterID", name)?,
        infra_id: filled(spec.infra_id.as_deref(), "infraID", name)?,
    })
}

fn filled(value: Option<&str>, field: &str, cluster: &str) -> Result<String, Problem> {
    let value = value.filter(|value| !value.is_empty());
    let value = value.ok_or_else(|| invalid(format!("spec.{field} of cluster {cluster} is empty")))?;
    Ok(value.to_owned())
}

/// Why nothing is done for a paused cluster; if the pause has an end, the problem says to reconcile again then.
pub fn paused(spec: &ClusterSpec, now: Timestamp) -> Option<Problem> {
    let message = "the cluster is paused";
    match Paused::read(spec.paused_until.as_deref(), now) {
        Paused::No => None,
        Paused::Indefinitely => Some(Problem::new(Reason::Provisioning, message)),
        Paused::Until(end) => {
            let wait = Duration::try_from(end.duration_since(now)).unwrap_or_default();
            Some(Problem::new(Reason::Provisioning, message).requeue_after(wait))
        }
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Reason::InvalidSpec, message)
}

#[cfg(test)]
mod tests;
