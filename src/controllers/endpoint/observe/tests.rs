use serde_json::{Value, json};

use super::super::samples::{azure, intent};
use super::*;
use crate::controllers::samples::cr;

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

fn known(planes: &[&HostedControlPlane]) -> Claims {
    let mut all = Claims::default();
    for plane in planes {
        let id = Claim::cluster_id(plane.spec.cluster_id.as_deref().unwrap());
        all.set(Holder::of(*plane), vec![id]);
    }
    all
}

#[test]
fn control_plane_that_bears_the_name_of_a_neighbour_is_refused() {
    assert!(control_plane(Some(&plane("example", "clusters-example", MONDAY))).is_ok());
    let forged = control_plane(Some(&plane("victim", "clusters-example", MONDAY)));
    assert_eq!(forged.unwrap_err().reason, Reason::IdentityMismatch);
}

#[test]
fn control_plane_with_the_id_of_an_older_one_is_not_believed() {
    let older = plane("victim", "clusters-victim", MONDAY);
    let newer = plane("example", "clusters-example", TUESDAY);
    let all = known(&[&older, &newer]);
    let claimed = |found: &HostedControlPlane| {
        let meaning = control_plane(Some(found)).unwrap();
        claimed_elsewhere(&cr(Value::Null, json!({})), Some((found, &meaning)), &all)
    };
    assert!(claimed(&newer));
    assert!(!claimed(&older), "the older one notices nothing");
}

#[test]
fn recorded_id_gives_way_to_every_control_plane_elsewhere() {
    let recorded = cr(Value::Null, intent());
    let own = plane("example", "clusters-example", MONDAY);
    let theirs = plane("victim", "clusters-victim", TUESDAY);
    assert!(!claimed_elsewhere(&recorded, None, &known(&[&own])));
    assert!(claimed_elsewhere(&recorded, None, &known(&[&own, &theirs])));
}
