use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::hypershift::azure::identity::in_cloud;

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
    let found = agree(namespace, &cluster, hosted.as_ref(), control_plane.as_ref(), |spec| {
        in_cloud(spec, PUBLIC_CLOUD)
    });
    assert_eq!(
        found.map(|i| i.cluster_id).map_err(|p| p.reason),
        expected.map(str::to_owned)
    );
}

fn agreed(hosted: &Value, control_plane: &Value) -> Result<Identity, Reason> {
    let hosted: HostedCluster = serde_json::from_value(hosted.clone()).unwrap();
    let control_plane: HostedControlPlane = serde_json::from_value(control_plane.clone()).unwrap();
    let namespace = control_plane.namespace().unwrap();
    let cluster = ClusterRef {
        namespace: hosted.namespace().unwrap(),
        name: hosted.name_any(),
    };
    let found = agree(&namespace, &cluster, Some(&hosted), Some(&control_plane), |spec| {
        in_cloud(spec, PUBLIC_CLOUD)
    });
    found.map_err(|problem| problem.reason)
}

fn object(namespace: &str, name: &str, annotation: Option<&str>, cloud: Option<&str>) -> Value {
    let annotations: std::collections::BTreeMap<&str, &str> =
        annotation.map(|text| (CLUSTER_ANNOTATION, text)).into_iter().collect();
    json!({"metadata": {"name": name, "namespace": namespace, "annotations": annotations},
        "spec": {"clusterID": "id", "infraID": "infra", "platform": {"type": "Azure", "azure": {"cloud": cloud}}}})
}

#[test]
fn control_plane_decides_between_clusters_with_one_namespace() {
    let plane = object("a-b-c", "c", Some("a-b/c"), None);
    assert!(agreed(&object("a-b", "c", None, None), &plane).is_ok());
    let other = agreed(&object("a", "b-c", None, None), &plane);
    assert_eq!(other, Err(Reason::IdentityMismatch));
}

#[rstest]
#[case::other_than_the_control_planes(Some("infra"), Some("other"), Reason::IdentityMismatch)]
#[case::empty(Some(""), Some(""), Reason::InvalidSpec)]
#[case::missing(None, None, Reason::InvalidSpec)]
fn infra_id_is_agreed_on_too(
    #[case] of_hosted: Option<&str>,
    #[case] of_control_plane: Option<&str>,
    #[case] refused: Reason,
) {
    let (mut hosted, mut plane) = (object("a", "b", None, None), object("a-b", "b", Some("a/b"), None));
    assert!(agreed(&hosted, &plane).is_ok());
    hosted["spec"]["infraID"] = json!(of_hosted);
    plane["spec"]["infraID"] = json!(of_control_plane);
    assert_eq!(agreed(&hosted, &plane), Err(refused));
}

#[rstest]
#[case::for_good("true", Some(None))]
#[case::for_an_hour("2026-01-01T01:00:00Z", Some(Some(Duration::from_secs(3600))))]
#[case::no_longer("2025-12-31T23:00:00Z", None)]
fn pause_with_an_end_is_requeued_then(#[case] until: &str, #[case] again: Option<Option<Duration>>) {
    let mut spec = hosted("id").spec;
    spec.paused_until = Some(until.to_owned());
    let problem = paused(&spec, "2026-01-01T00:00:00Z".parse().unwrap());
    assert_eq!(problem.map(|problem| problem.requeue_after), again);
}

#[test]
fn control_plane_of_another_name_is_not_the_clusters() {
    let plane = object("a-b", "x", Some("a/b"), None);
    assert_eq!(
        agreed(&object("a", "b", None, None), &plane),
        Err(Reason::IdentityMismatch)
    );
}

#[rstest]
#[case::named(Some("AzurePublicCloud"), Some("AzurePublicCloud"), None)]
#[case::not_named(None, Some(""), None)]
#[case::us_government(
    Some("AzureUSGovernmentCloud"),
    Some("AzureUSGovernmentCloud"),
    Some(Reason::CloudMismatch)
)]
#[case::china(Some("AzureChinaCloud"), Some("AzureChinaCloud"), Some(Reason::CloudMismatch))]
#[case::german(Some("AzureGermanCloud"), Some("AzureGermanCloud"), Some(Reason::CloudMismatch))]
#[case::bleu(Some("AzureBleuCloud"), Some("AzureBleuCloud"), Some(Reason::CloudMismatch))]
#[case::stack(Some("AzureStackCloud"), Some("AzureStackCloud"), Some(Reason::CloudMismatch))]
#[case::only_the_control_plane(Some("AzurePublicCloud"), Some("AzureChinaCloud"), Some(Reason::CloudMismatch))]
fn cluster_of_another_cloud_is_not_served(
    #[case] hosted: Option<&str>,
    #[case] control_plane: Option<&str>,
    #[case] refused: Option<Reason>,
) {
    let plane = object("a-b", "b", Some("a/b"), control_plane);
    assert_eq!(agreed(&object("a", "b", None, hosted), &plane).err(), refused);
}

mod cluster_index;
