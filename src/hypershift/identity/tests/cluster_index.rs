//! Clusters that name what others have.

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::hypershift::azure::identity::{foreign_nat_subnet, of_status};

const OWN_ID: &str = "11111111-1111-4111-8111-111111111111";
const THEIRS: &str = "22222222-2222-4222-8222-222222222222";

fn cluster(name: &str, day: u8, cluster_id: &str, infra_id: &str, host: &str) -> HostedCluster {
    serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "clusters", "creationTimestamp": format!("2026-01-0{day}T00:00:00Z")},
        "spec": {"clusterID": cluster_id, "infraID": infra_id, "services": [{"service": "APIServer",
            "servicePublishingStrategy": {"type": "Route", "route": {"hostname": host}}}]}}))
    .unwrap()
}

fn plane_of(hosted: &HostedCluster, host: &str) -> HostedControlPlane {
    let mut plane = HostedControlPlane {
        spec: hosted.spec.clone(),
        ..HostedControlPlane::default()
    };
    plane.metadata.name = hosted.metadata.name.clone();
    plane.metadata.namespace = Some(format!("clusters-{}", hosted.name_any()));
    plane.spec.services[0].service_publishing_strategy.route.hostname = Some(host.to_owned());
    plane
}

fn known(clusters: &[&HostedCluster]) -> Claims {
    let mut all = Claims::default();
    for cluster in clusters {
        all.set(Holder::of(*cluster), Claim::of_cluster(cluster));
    }
    all
}

#[rstest]
#[case::cluster_id(
    cluster("new", 2, "OURS", "new", "api.new"),
    Reason::DuplicateIdentity,
    "an older HostedCluster has this cluster id"
)]
#[case::infra_id(
    cluster("new", 2, "new", "OLD", "api.new"),
    Reason::DuplicateIdentity,
    "an older HostedCluster has this infra id"
)]
#[case::host_name(
    cluster("new", 2, "new", "new", "API.Old."),
    Reason::HostNameClaimed,
    "an older HostedCluster has the host name api.old"
)]
fn newer_cluster_is_refused_and_the_older_one_notices_nothing(
    #[case] newer: HostedCluster,
    #[case] reason: Reason,
    #[case] message: &str,
) {
    let older = cluster("old", 1, "ours", "old", "api.old");
    let all = known(&[&older, &newer]);
    assert_eq!(contested(&older, &plane_of(&older, "api.old"), &all), None);
    let host = newer.spec.services[0]
        .service_publishing_strategy
        .route
        .hostname
        .clone();
    let problem = contested(&newer, &plane_of(&newer, &host.unwrap()), &all).unwrap();
    assert_eq!((problem.reason, problem.message.as_str()), (reason, message));
    assert_eq!(
        problem.requeue_after,
        Some(IDENTITY_RETRY),
        "nobody may tell of its end"
    );
    assert_eq!(
        contested(&newer, &plane_of(&newer, "api.new"), &known(&[&newer])),
        None,
        "it heals"
    );
}

#[test]
fn host_name_of_the_control_plane_alone_yields_to_any_cluster() {
    let (older, newer) = (
        cluster("old", 1, "a", "a", "api.old"),
        cluster("new", 2, "b", "b", "api.new"),
    );
    let all = known(&[&older, &newer]);
    let forged = contested(&older, &plane_of(&older, "api.new"), &all).unwrap();
    assert_eq!(forged.message, "another HostedCluster has the host name api.new");
    assert_eq!(contested(&newer, &plane_of(&newer, "api.new"), &all), None);
}

const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets";

fn giving(subnet: Option<String>) -> HostedCluster {
    let link = json!({"natSubnetID": subnet});
    let mut giving = cluster("new", 2, "b", "b", "api.new");
    giving.spec.platform = serde_json::from_value(
        json!({"type": "Azure", "azure": {"private": {"type": "PrivateLink", "privateLink": link}}}),
    )
    .unwrap();
    giving
}

#[rstest]
#[case::as_the_cluster_has_it(Some("nat"), "NAT", None)]
#[case::that_the_cluster_does_not_have(None, "nat", Some("natSubnetID is not that of the HostedCluster"))]
#[case::other_than_the_clusters(Some("nat"), "x", Some("natSubnetID is not that of the HostedCluster"))]
#[case::of_another_cluster(Some("a-pls-nat"), "a-pls-nat", Some("natSubnetID is the subnet of another cluster"))]
#[case::of_its_own_name(Some("b-pls-nat"), "b-pls-nat", None)]
fn given_subnet_has_to_be_the_clusters_to_use(
    #[case] named: Option<&str>,
    #[case] given: &str,
    #[case] refused: Option<&str>,
) {
    let older = cluster("old", 1, "a", "a", "api.old");
    let hosted = giving(named.map(|name| format!("{NET}/{name}")));
    let mut cr = crate::controllers::samples::cr(Value::Null, json!({}));
    cr.spec.nat_subnet_id = Some(format!("{NET}/{given}"));
    let problem = foreign_nat_subnet(&cr, &hosted, &known(&[&older, &hosted]));
    assert_eq!(problem.as_ref().map(|p| p.message.as_str()), refused);
    assert!(problem.is_none_or(|p| p.reason == Reason::ScopeNotAllowed && p.requeue_after == Some(IDENTITY_RETRY)));
}

#[test]
fn newer_cluster_with_a_subnets_infra_id_takes_it_from_nobody() {
    let hosted = giving(Some(format!("{NET}/team-pls-nat")));
    let newer = cluster("newer", 9, "c", "team", "api.c");
    let mut cr = crate::controllers::samples::cr(Value::Null, json!({}));
    cr.spec.nat_subnet_id = Some(format!("{NET}/team-pls-nat"));
    assert_eq!(foreign_nat_subnet(&cr, &hosted, &known(&[&hosted, &newer])), None);
}

fn recorded(cluster_id: &str, infra_id: &str) -> Identity {
    Identity {
        name: String::new(),
        cluster_id: cluster_id.into(),
        infra_id: infra_id.into(),
    }
}

fn cr_showing(service: &str) -> AzurePrivateLinkService {
    let id = format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/{service}");
    crate::controllers::samples::cr(json!({"privateLinkServiceID": id}), json!({}))
}

/// The cluster id of the resources left behind; the error is whether they are another cluster's.
fn left(cr: &AzurePrivateLinkService, traces: Traces<'_>, all: &Claims) -> Result<String, bool> {
    let shown = of_status(cr);
    let shown = shown.as_ref();
    match deleted_cluster(cr, Traces { shown, ..traces }, all) {
        DeletedCluster::Of(identity) => Ok(identity.cluster_id),
        DeletedCluster::OfAnother => Err(true),
        DeletedCluster::Unknown => Err(false),
    }
}

#[test]
fn what_was_recorded_is_enough_when_all_else_is_gone() {
    let (recorded, cr) = (
        recorded(OWN_ID, "ours"),
        crate::controllers::samples::cr(Value::Null, json!({})),
    );
    let traces = Traces {
        recorded: Some(&recorded),
        ..Traces::default()
    };
    assert_eq!(left(&cr, traces, &Claims::default()), Ok(OWN_ID.to_owned()));
}

#[rstest]
#[case::cluster_id(recorded(THEIRS, "ours"))]
#[case::cluster_id_in_capitals(recorded(&THEIRS.to_uppercase(), "ours"))]
#[case::infra_id(recorded(OWN_ID, "theirs"))]
fn recorded_ids_of_another_living_cluster_do_not_count(#[case] forged: Identity) {
    let theirs = cluster("theirs", 2, THEIRS, "theirs", "api.theirs");
    let traces = Traces {
        recorded: Some(&forged),
        ..Traces::default()
    };
    let cr = crate::controllers::samples::cr(Value::Null, json!({}));
    assert_eq!(left(&cr, traces, &known(&[&theirs])), Err(true));
    let hosted = cluster("ours", 1, OWN_ID, "ours", "api.ours");
    let traces = Traces {
        hosted: Some(&hosted),
        ..traces
    };
    assert_eq!(
        left(&cr, traces, &known(&[&theirs, &hosted])),
        Ok(OWN_ID.to_owned()),
        "its own is cleaned"
    );
}

#[test]
fn recorded_id_that_is_no_clusters_is_not_believed() {
    let forged = recorded("a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1", "x");
    let traces = Traces {
        recorded: Some(&forged),
        ..Traces::default()
    };
    let cr = crate::controllers::samples::cr(Value::Null, json!({}));
    assert_eq!(left(&cr, traces, &Claims::default()), Err(false));
}

#[test]
fn newer_duplicate_leaves_the_older_ones_things_alone() {
    let older = cluster("old", 1, OWN_ID, "ours", "api.old");
    let newer = cluster("new", 2, OWN_ID, "ours", "api.new");
    let traces = Traces {
        hosted: Some(&newer),
        ..Traces::default()
    };
    let cr = cr_showing(&format!("pls-{OWN_ID}"));
    assert_eq!(left(&cr, traces, &known(&[&older, &newer])), Err(true));
    let traces = Traces {
        hosted: Some(&older),
        ..Traces::default()
    };
    assert_eq!(left(&cr, traces, &known(&[&older, &newer])), Ok(OWN_ID.to_owned()));
}

#[test]
fn control_plane_or_status_tell_when_nothing_was_recorded() {
    let plane = plane_of(&cluster("ours", 1, OWN_ID, "ours", "api.ours"), "api.ours");
    let plain = crate::controllers::samples::cr(Value::Null, json!({}));
    let traces = Traces {
        control_plane: Some(&plane),
        ..Traces::default()
    };
    assert_eq!(left(&plain, traces, &Claims::default()), Ok(OWN_ID.to_owned()));
    let (nothing, all) = (Traces::default(), Claims::default());
    assert_eq!(
        left(&cr_showing(&format!("pls-{OWN_ID}")), nothing, &all),
        Ok(OWN_ID.to_owned())
    );
    assert_eq!(
        left(&cr_showing("pls-a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1"), nothing, &all),
        Err(false)
    );
    let theirs = cluster("theirs", 2, THEIRS, "theirs", "api.theirs");
    assert_eq!(
        left(&cr_showing(&format!("pls-{THEIRS}")), nothing, &known(&[&theirs])),
        Err(true)
    );
    assert_eq!(left(&plain, nothing, &all), Err(false));
}

fn made_on(day: u8, mut cr: AzurePrivateLinkService) -> AzurePrivateLinkService {
    cr.metadata.creation_timestamp = serde_json::from_value(json!(format!("2026-01-0{day}T00:00:00Z"))).unwrap();
    cr
}

#[rstest]
#[case::cluster_id(Some(recorded(THEIRS, "ours")), "pls-x")]
#[case::infra_id(Some(recorded(OWN_ID, "theirs")), "pls-x")]
#[case::status(None, "pls-22222222-2222-4222-8222-222222222222")]
fn forged_unused_ids_do_not_count_beside_the_older_cluster(#[case] forged: Option<Identity>, #[case] shown: &str) {
    let hosted = cluster("ours", 1, OWN_ID, "ours", "api.ours");
    let traces = Traces {
        recorded: forged.as_ref(),
        hosted: Some(&hosted),
        ..Traces::default()
    };
    let cr = made_on(2, cr_showing(shown));
    let shown = of_status(&cr);
    let traces = Traces {
        shown: shown.as_ref(),
        ..traces
    };
    let expected = DeletedCluster::Of(of_spec("ours", &hosted.spec).unwrap());
    assert_eq!(deleted_cluster(&cr, traces, &known(&[&hosted])), expected);
    let older = cluster("old", 1, OWN_ID, "old", "api.old");
    let newer = cluster("ours", 2, OWN_ID, "ours", "api.ours");
    let traces = Traces {
        hosted: Some(&newer),
        ..traces
    };
    assert_eq!(
        deleted_cluster(&made_on(3, cr), traces, &known(&[&older, &newer])),
        DeletedCluster::OfAnother,
        "of a duplicate nothing else counts either"
    );
}

#[test]
fn recorded_ids_count_beside_a_recreated_cluster() {
    let hosted = cluster("again", 3, THEIRS, "again", "api.ours");
    let recorded = recorded(OWN_ID, "ours");
    let traces = Traces {
        recorded: Some(&recorded),
        hosted: Some(&hosted),
        ..Traces::default()
    };
    let cr = made_on(2, crate::controllers::samples::cr(Value::Null, json!({})));
    assert_eq!(left(&cr, traces, &known(&[&hosted])), Ok(OWN_ID.to_owned()));
}

#[rstest]
#[case::it_names_one_of_them(Some("b-c/d"), &["b/c-d", "b-c/d"])]
#[case::of_another_namespace(Some("x/y"), &["b/c-d", "b-c/d"])]
#[case::damaged(Some("x"), &["b/c-d", "b-c/d"])]
#[case::missing(None, &["b/c-d", "b-c/d"])]
fn annotation_chooses_no_cluster_of_those_with_one_namespace(
    #[case] annotation: Option<&str>,
    #[case] expected: &[&str],
) {
    let mut all = Claims::default();
    for (namespace, name) in [("b-c", "d"), ("b", "c-d"), ("x", "y")] {
        let mut cluster = cluster(name, 1, "i", "i", "h");
        cluster.metadata.namespace = Some(namespace.to_owned());
        all.set(Holder::of(&cluster), Claim::of_cluster(&cluster));
    }
    let found = |annotation, all: &Claims| -> Vec<String> {
        let found = candidates(annotation, "b-c-d", all);
        found.iter().map(ToString::to_string).collect()
    };
    assert_eq!(found(annotation, &all), expected);
    assert_eq!(found(Some("b-c/d"), &Claims::default()), ["b-c/d"], "not heard of yet");
}

#[rstest]
#[case::it_came_second(true, Reason::DuplicateIdentity)]
#[case::it_does_not_exist(false, Reason::HostedClusterNotFound)]
fn cluster_whose_namespace_an_older_one_has_is_refused(#[case] exists: bool, #[case] reason: Reason) {
    let placed = |namespace: &str, name: &str, day| {
        let mut cluster = cluster(name, day, "i", "i", "h");
        cluster.metadata.namespace = Some(namespace.to_owned());
        cluster
    };
    let (older, newer) = (placed("b", "c-d", 1), placed("b-c", "d", 2));
    let mut all = Claims::default();
    for cluster in [&older, &newer].into_iter().take(1 + usize::from(exists)) {
        all.set(Holder::of(cluster), Claim::of_cluster(cluster));
    }
    let mut cr = crate::controllers::samples::cr(Value::Null, json!({CLUSTER_ANNOTATION: "b-c/d"}));
    cr.metadata.namespace = Some("b-c-d".to_owned());
    let refused = vouched(&cr, Some(&older), None, &all, |spec| in_cloud(spec, PUBLIC_CLOUD)).unwrap_err();
    assert_eq!(refused.reason, reason);
}

#[test]
fn control_plane_with_ids_of_a_living_cluster_leaves_nothing() {
    let theirs = cluster("theirs", 2, THEIRS, "theirs", "api.theirs");
    let forged = plane_of(&theirs, "api.theirs");
    let traces = Traces {
        control_plane: Some(&forged),
        ..Traces::default()
    };
    let cr = crate::controllers::samples::cr(Value::Null, json!({}));
    assert_eq!(left(&cr, traces, &known(&[&theirs])), Err(true));
}

/// `clusterID` may be set later once, and HyperShift sets none while a HostedCluster is paused.
#[test]
fn older_cluster_that_takes_an_id_later_takes_it_from_nobody() {
    use kube::runtime::watcher::Event;
    let cluster_index = crate::hypershift::cluster_index::ClusterIndex::default();
    let mut older = cluster("older", 1, "", "", "api.older");
    let newer = cluster("newer", 2, OWN_ID, "ours", "api.newer");
    let list = [
        Event::Init,
        Event::InitApply(older.clone()),
        Event::InitApply(newer.clone()),
        Event::InitDone,
    ];
    list.iter().for_each(|event| cluster_index.cluster(event));
    older.spec.cluster_id = Some(OWN_ID.to_owned());
    cluster_index.cluster(&Event::Apply(older.clone()));
    let refused = |cluster: &HostedCluster| {
        let host = format!("api.{}", cluster.name_any());
        contested(cluster, &plane_of(cluster, &host), &cluster_index.clusters()).is_some()
    };
    assert_eq!((refused(&older), refused(&newer)), (true, false));
}
