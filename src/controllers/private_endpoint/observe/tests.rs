use std::time::Duration;

use serde_json::{Value, json};

use super::super::samples::{azure, intent, served_state};
use super::*;
use crate::api::hypershift::PUBLIC_CLOUD;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::controllers::samples::{cr, identity};

const MONDAY: &str = "2026-01-05T00:00:00Z";
const TUESDAY: &str = "2026-01-06T00:00:00Z";

fn plane(name: &str, namespace: &str, created: &str) -> HostedControlPlane {
    let mut plane: HostedControlPlane = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": namespace, "creationTimestamp": created},
        "spec": {"clusterID": "id", "infraID": "infra"}}))
    .unwrap();
    plane.spec.platform.azure = Some(azure());
    plane
}

fn cluster(name: &str, created: &str) -> HostedCluster {
    let mut hosted: HostedCluster = serde_json::from_value(json!({
        "metadata": {"name": name, "namespace": "clusters", "creationTimestamp": created},
        "spec": {"clusterID": "id", "infraID": "infra"}}))
    .unwrap();
    hosted.spec.platform.azure = Some(azure());
    hosted
}

fn known(clusters: &[&HostedCluster]) -> Claims {
    let mut all = Claims::default();
    for hosted in clusters {
        all.set(Holder::of(*hosted), Claim::of_cluster(hosted));
    }
    all
}

/// The custom resource of `clusters/example`, made on Tuesday.
fn resource(annotations: Value) -> AzurePrivateLinkService {
    let mut made = cr(Value::Null, annotations);
    made.annotations_mut()
        .insert(CLUSTER_ANNOTATION.into(), "clusters/example".into());
    made.metadata.creation_timestamp = serde_json::from_value(json!(TUESDAY)).unwrap();
    made
}

fn named(mut plane: HostedControlPlane) -> HostedControlPlane {
    plane
        .annotations_mut()
        .insert(CLUSTER_ANNOTATION.into(), "clusters/example".into());
    plane
}

fn refusal(vouched: &Vouched) -> Option<Reason> {
    vouched.refusal.as_ref().map(|problem| problem.reason)
}

#[test]
fn control_plane_with_the_name_of_another_cluster_is_refused() {
    let refusal = |plane: &HostedControlPlane| control_plane(Some(plane)).err().map(|problem| problem.reason);
    let own = named(plane("example", "clusters-example", MONDAY));
    assert_eq!(refusal(&own), None);
    let forged = named(plane("victim", "clusters-example", MONDAY));
    assert_eq!(refusal(&forged), Some(Reason::IdentityMismatch));
}

#[test]
fn control_plane_without_the_name_of_its_cluster_is_refused() {
    let of = |annotation: Value| {
        let mut found = plane("light", "clusters-first-light", MONDAY);
        found.metadata.annotations = serde_json::from_value(annotation).unwrap();
        control_plane(Some(&found)).err().map(|problem| problem.reason)
    };
    assert_eq!(of(json!({CLUSTER_ANNOTATION: "clusters-first/light"})), None);
    for wrong in ["clusters/first-light", "clusters/light"] {
        let refused = of(json!({CLUSTER_ANNOTATION: wrong}));
        assert_eq!(refused, Some(Reason::IdentityMismatch), "{wrong}");
    }
    assert_eq!(of(json!(null)), Some(Reason::InvalidSpec));
}

#[test]
fn control_plane_that_its_cluster_confirms_is_vouched_for() {
    let (hosted, plane) = (
        cluster("example", MONDAY),
        named(plane("example", "clusters-example", MONDAY)),
    );
    let all = known(&[&hosted]);
    let observed = vouched(&resource(json!({})), Some(&hosted), Some(&plane), &all, PUBLIC_CLOUD);
    assert_eq!((refusal(&observed), observed.claimed_elsewhere), (None, false));
    assert_eq!(
        (observed.identity.unwrap().cluster_id.as_str(), observed.azure),
        ("id", Some(azure()))
    );
}

#[test]
fn control_plane_without_a_hosted_cluster_is_refused() {
    let plane = named(plane("example", "clusters-example", MONDAY));
    let observed = vouched(&resource(json!({})), None, Some(&plane), &known(&[]), PUBLIC_CLOUD);
    assert_eq!(refusal(&observed), Some(Reason::HostedClusterNotFound));
    assert_eq!((observed.identity, observed.azure), (None, None));
}

#[test]
fn control_plane_with_the_id_of_another_harms_only_itself() {
    let (own, theirs) = (cluster("example", MONDAY), cluster("victim", MONDAY));
    let mut forged = named(plane("example", "clusters-example", MONDAY));
    forged.spec.cluster_id = Some("other".into());
    let observed = vouched(
        &resource(json!({})),
        Some(&own),
        Some(&forged),
        &known(&[&own]),
        PUBLIC_CLOUD,
    );
    assert_eq!(refusal(&observed), Some(Reason::IdentityMismatch));
    let mut plane = named(plane("victim", "clusters-victim", MONDAY));
    plane
        .annotations_mut()
        .insert(CLUSTER_ANNOTATION.into(), "clusters/victim".into());
    let mut cr = resource(json!({CLUSTER_ANNOTATION: "clusters/victim"}));
    cr.metadata.namespace = Some("clusters-victim".into());
    cr.annotations_mut()
        .insert(CLUSTER_ANNOTATION.into(), "clusters/victim".into());
    let observed = vouched(&cr, Some(&theirs), Some(&plane), &known(&[&theirs]), PUBLIC_CLOUD);
    assert_eq!(refusal(&observed), None, "the neighbour notices nothing");
}

#[test]
fn cluster_that_came_second_has_not_its_id() {
    let (older, own) = (cluster("victim", MONDAY), cluster("example", TUESDAY));
    let plane = named(plane("example", "clusters-example", TUESDAY));
    let observed = |all: &[&HostedCluster]| {
        vouched(
            &resource(json!({})),
            Some(&own),
            Some(&plane),
            &known(all),
            PUBLIC_CLOUD,
        )
    };
    let both = observed(&[&older, &own]);
    assert_eq!(
        (refusal(&both), both.claimed_elsewhere),
        (Some(Reason::DuplicateIdentity), true)
    );
    assert!(!observed(&[&own]).claimed_elsewhere);
}

#[test]
fn recorded_id_gives_way_to_every_cluster_that_has_it() {
    let recorded = resource(intent());
    let observed = |all: &[&HostedCluster]| vouched(&recorded, None, None, &known(all), PUBLIC_CLOUD).claimed_elsewhere;
    assert!(!observed(&[]));
    assert!(observed(&[&cluster("victim", TUESDAY)]));
}

#[test]
fn cluster_that_came_after_the_custom_resource_is_another_one() {
    let mut later = cluster("example", "2026-01-07T00:00:00Z");
    later.spec.cluster_id = Some("new".into());
    let observed = vouched(&resource(intent()), Some(&later), None, &known(&[&later]), PUBLIC_CLOUD);
    assert_eq!((observed.identity, observed.claimed_elsewhere), (None, false));
}

#[test]
fn cluster_restored_after_the_custom_resource_is_its_own() {
    let restored = cluster("example", "2026-01-07T00:00:00Z");
    let plane = named(plane("example", "clusters-example", MONDAY));
    for found in [Some(&plane), None] {
        let all = known(&[&restored]);
        let observed = vouched(&resource(intent()), Some(&restored), found, &all, PUBLIC_CLOUD);
        assert!(
            observed.identity.is_some() && !observed.claimed_elsewhere,
            "{observed:?}"
        );
    }
}

/// A control plane that does not name its cluster counts for nothing at a deletion, so the recorded id counts: also for
/// the question whether another cluster has it.
#[test]
fn recorded_id_behind_a_control_plane_that_counts_for_nothing() {
    let victim = cluster("victim", MONDAY);
    let mut blank = plane("example", "clusters-example", MONDAY);
    blank.spec.cluster_id = Some("free".into());
    assert!(control_plane(Some(&blank)).is_err());
    let all = known(&[&victim]);
    let observed = vouched(&resource(intent()), None, Some(&blank), &all, PUBLIC_CLOUD);
    assert!(observed.claimed_elsewhere, "the recorded id is the victim's");
}

/// The inputs of a cluster that a HostedCluster vouches for, with a sibling.
fn state() -> ControlPlaneState {
    let sibling = Sibling {
        name: "sibling".into(),
        base_domain: Some("example.com".into()),
        stays: true,
        held: true,
    };
    ControlPlaneState {
        siblings: vec![sibling],
        voucher: Voucher::HostedCluster(Box::default()),
        ..served_state()
    }
}

fn fingerprint_of(state: ControlPlaneState) -> String {
    fingerprint(&PrivateEndpointInputs { found: None, state })
}

fn change_control_plane(state: &mut ControlPlaneState, change: impl FnOnce(&mut ControlPlane)) {
    change(state.control_plane.as_mut().unwrap());
}

fn change_vouched(state: &mut ControlPlaneState, change: impl FnOnce(&mut Vouched)) {
    match &mut state.voucher {
        Voucher::HostedCluster(vouched) => change(vouched),
        Voucher::Conditions => panic!("no HostedCluster vouches"),
    }
}

fn problem() -> Problem {
    Problem::new(Reason::InvalidSpec, "x")
}

/// What the inputs are changed to, by the field that differs.
type Change = (&'static str, fn(&mut ControlPlaneState));

const CHANGES: [Change; 18] = [
    ("control plane", |state| state.control_plane = Err(problem())),
    ("identity", |state| {
        change_control_plane(state, |found| found.identity.cluster_id = "other".into());
    }),
    ("azure", |state| {
        change_control_plane(state, |found| found.azure.location = Some("other".into()));
    }),
    ("public names", |state| {
        change_control_plane(state, |found| found.public.names = vec!["other".into()]);
    }),
    ("pause", |state| state.paused = Some(problem())),
    ("refusal by the scopes", |state| state.refused = Some(problem())),
    ("deletion", |state| state.control_plane_deleting = true),
    ("another controller", |state| {
        state.other_controller = Some("other".into());
    }),
    ("siblings", |state| state.siblings.clear()),
    ("sibling's name", |state| state.siblings[0].name = "other".into()),
    ("sibling's base domain", |state| state.siblings[0].base_domain = None),
    ("sibling's deletion", |state| state.siblings[0].stays = false),
    ("sibling's finalizer", |state| state.siblings[0].held = false),
    ("voucher", |state| state.voucher = Voucher::Conditions),
    ("refusal by the HostedCluster", |state| {
        change_vouched(state, |vouched| vouched.refusal = Some(problem()));
    }),
    ("vouched identity", |state| {
        change_vouched(state, |vouched| vouched.identity = Some(identity()));
    }),
    ("vouched azure", |state| {
        change_vouched(state, |vouched| vouched.azure = Some(azure()));
    }),
    ("claim elsewhere", |state| {
        change_vouched(state, |vouched| vouched.claimed_elsewhere = true);
    }),
];

/// The patterns name each field: a new one does not compile here. It needs its own line in [`CHANGES`], unless
/// [`fingerprint`] takes it out.
fn name_every_field(state: &ControlPlaneState) {
    let ControlPlaneState {
        control_plane: _,
        paused: _,
        refused: _,
        control_plane_deleting: _,
        siblings: _,
        voucher: _,
        other_controller: _,
    } = state;
    let ControlPlane {
        identity: _,
        azure: _,
        held: _,
        public: _,
    } = state.control_plane.as_ref().unwrap();
    let Sibling {
        name: _,
        base_domain: _,
        stays: _,
        held: _,
    } = &state.siblings[0];
    let Vouched {
        refusal: _,
        identity: _,
        azure: _,
        claimed_elsewhere: _,
    } = state.vouched().unwrap();
}

#[test]
fn change_of_any_input_needs_a_reconcile() {
    name_every_field(&state());
    let before = fingerprint_of(state());
    assert_eq!(fingerprint_of(state()), before);
    for (field, change) in CHANGES {
        let mut changed = state();
        change(&mut changed);
        assert_ne!(fingerprint_of(changed), before, "{field}");
    }
}

#[test]
fn time_order_and_what_a_reconcile_writes_need_none() {
    let mut younger = state().siblings[0].clone();
    younger.name = "younger".into();
    let mut before = state();
    before.siblings.push(younger);
    before.paused = Some(problem().requeue_after(Duration::from_secs(9)));
    before.other_controller = Some("other".into());
    let mut after = before.clone();
    after.siblings.reverse();
    after.paused = Some(problem().requeue_after(Duration::from_secs(8)));
    after.other_controller = Some("another".into());
    change_control_plane(&mut after, |found| found.held = false);
    let found = Some(plane("example", "clusters-example", MONDAY));
    let after = fingerprint(&PrivateEndpointInputs { found, state: after });
    assert_eq!(fingerprint_of(before), after);
}

#[test]
fn pause_that_gets_another_end_needs_a_reconcile() {
    let paused = |until: &str| {
        let mut found = plane("example", "clusters-example", MONDAY);
        found.spec.paused_until = Some(until.to_owned());
        let found = Some(found);
        fingerprint(&PrivateEndpointInputs { found, state: state() })
    };
    assert_ne!(paused("2099-01-02T00:00:00Z"), paused("2099-01-01T00:00:00Z"));
}
