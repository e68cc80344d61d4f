//! Which cluster a custom resource serves, agreed on by HostedCluster and HostedControlPlane. Pure.

use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;

use super::decision::Problem;
use crate::api::hypershift::ClusterSpec;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{ClusterRef, HostedCluster, HostedControlPlane, Paused, Reason};
use crate::names;

/// A cluster's identity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Identity {
    /// The cluster's name.
    pub name: String,
    /// `spec.clusterID`
    pub cluster_id: String,
    /// `spec.infraID`
    pub infra_id: String,
}

/// The management side hears of HostedClusters, but not of HostedControlPlanes.
const LOOK_AGAIN: Duration = Duration::from_secs(30);

/// The HostedCluster that the annotations name.
pub fn cluster_ref(annotation: Option<&str>) -> Result<ClusterRef, Problem> {
    let text = annotation.ok_or_else(|| invalid(format!("the annotation {CLUSTER_ANNOTATION} is missing")))?;
    text.parse().map_err(|error| invalid(format!("{error}")))
}

/// The identity that both objects agree on, for a custom resource in `namespace`.
pub fn agree(
    namespace: &str,
    cluster: &ClusterRef,
    hosted: Option<&HostedCluster>,
    control_plane: Option<&HostedControlPlane>,
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
    })?;
    let own = of_spec(&cluster.name, &hosted.spec)?;
    let annotation = control_plane.annotations().get(CLUSTER_ANNOTATION).map(String::as_str);
    let same = of_spec(&cluster.name, &control_plane.spec).as_ref() == Ok(&own)
        && cluster_ref(annotation).as_ref() == Ok(cluster);
    same.then_some(own).ok_or_else(|| {
        Problem::new(
            Reason::IdentityMismatch,
            "HostedCluster and HostedControlPlane disagree on the cluster".to_owned(),
        )
        .again(LOOK_AGAIN)
    })
}

/// The identity that one object claims.
pub fn of_spec(name: &str, spec: &ClusterSpec) -> Result<Identity, Problem> {
    let field = |value: &Option<String>, field: &str| {
        value
            .clone()
            .filter(|v| !v.is_empty())
            .ok_or_else(|| invalid(format!("spec.{field} of cluster {name} is empty")))
    };
    Ok(Identity {
        name: name.to_owned(),
        cluster_id: field(&spec.cluster_id, "clusterID")?,
        infra_id: field(&spec.infra_id, "infraID")?,
    })
}

/// Whether the cluster is paused; a pause that ends says when to look again.
pub fn paused(spec: &ClusterSpec, now: Timestamp) -> Option<Problem> {
    let message = "the cluster is paused";
    match Paused::read(spec.paused_until.as_deref(), now) {
        Paused::No => None,
        Paused::Indefinitely => Some(Problem::new(Reason::Provisioning, message)),
        Paused::Until(end) => {
            let wait = Duration::try_from(end.duration_since(now)).unwrap_or_default();
            Some(Problem::new(Reason::Provisioning, message).again(wait))
        }
    }
}

fn invalid(message: String) -> Problem {
    Problem::new(Reason::InvalidSpec, message)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;

    fn hosted(cluster_id: &str) -> HostedCluster {
        serde_json::from_value(json!({"metadata": {"name": "example", "namespace": "clusters"},
            "spec": {"clusterID": cluster_id, "infraID": "example-x"}}))
        .unwrap()
    }

    fn control_plane(cluster_id: &str, annotation: &str) -> HostedControlPlane {
        serde_json::from_value(json!({"metadata": {"name": "example", "namespace": "clusters-example",
            "annotations": {CLUSTER_ANNOTATION: annotation}}, "spec": {"clusterID": cluster_id, "infraID": "example-x"}}))
        .unwrap()
    }

    #[rstest]
    #[case::no_annotation(None, Err(Reason::InvalidSpec))]
    #[case::annotation_without_a_slash(Some("example"), Err(Reason::InvalidSpec))]
    #[case::good(Some("clusters/example"), Ok(()))]
    fn annotation_names_the_cluster(#[case] annotation: Option<&str>, #[case] expected: Result<(), Reason>) {
        assert_eq!(cluster_ref(annotation).map(|_| ()).map_err(|p| p.reason), expected);
    }

    #[rstest]
    #[case::both_agree(
        "clusters-example",
        Some(hosted("id")),
        Some(control_plane("id", "clusters/example")),
        Ok("id")
    )]
    #[case::cluster_is_gone(
        "clusters-example",
        None,
        Some(control_plane("id", "clusters/example")),
        Err(Reason::HostedClusterNotFound)
    )]
    #[case::control_plane_is_gone(
        "clusters-example",
        Some(hosted("id")),
        None,
        Err(Reason::HostedControlPlaneNotFound)
    )]
    #[case::other_cluster_id(
        "clusters-example",
        Some(hosted("id")),
        Some(control_plane("x", "clusters/example")),
        Err(Reason::IdentityMismatch)
    )]
    #[case::other_annotation(
        "clusters-example",
        Some(hosted("id")),
        Some(control_plane("id", "clusters/other")),
        Err(Reason::IdentityMismatch)
    )]
    #[case::empty_cluster_id(
        "clusters-example",
        Some(hosted("")),
        Some(control_plane("", "clusters/example")),
        Err(Reason::InvalidSpec)
    )]
    #[case::forged_namespace(
        "evil",
        Some(hosted("id")),
        Some(control_plane("id", "clusters/example")),
        Err(Reason::IdentityMismatch)
    )]
    fn identity_needs_agreement(
        #[case] namespace: &str,
        #[case] hosted: Option<HostedCluster>,
        #[case] control_plane: Option<HostedControlPlane>,
        #[case] expected: Result<&str, Reason>,
    ) {
        let cluster = cluster_ref(Some("clusters/example")).unwrap();
        let found = agree(namespace, &cluster, hosted.as_ref(), control_plane.as_ref());
        assert_eq!(
            found.map(|i| i.cluster_id).map_err(|p| p.reason),
            expected.map(str::to_owned)
        );
    }
}
