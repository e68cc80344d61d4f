use futures::{FutureExt, StreamExt};
use serde_json::{Value, json};

use super::*;
use crate::api::markers::{CPO_FINALIZER, CPO_INTENT};
use crate::api::{AWSEndpointService, AzurePrivateLinkService};
use crate::controllers::samples;

/// One that was made in this minute.
fn made(name: &str, minute: usize) -> AzurePrivateLinkService {
    let mut cr = samples::cr(Value::Null, json!({}));
    cr.metadata.name = Some(name.to_owned());
    cr.metadata.uid = Some(name.to_owned());
    let time = json!(format!("2026-01-01T00:{minute:02}:00Z"));
    cr.metadata.creation_timestamp = serde_json::from_value(time).unwrap();
    cr
}

fn deleting(mut cr: AzurePrivateLinkService, finalizers: &[&str]) -> AzurePrivateLinkService {
    cr.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-02T00:00:00Z")).unwrap();
    cr.metadata.finalizers = Some(finalizers.iter().map(ToString::to_string).collect());
    cr
}

/// The custom resources `c0`, the oldest, to `c<number - 1>` of one namespace.
fn crowd(number: usize) -> CustomResourceStore<AzurePrivateLinkService> {
    let all = CustomResourceStore::new(Role::Cpo);
    all.heard(&Event::Init);
    for minute in 0..number {
        all.heard(&Event::InitApply(made(&format!("c{minute}"), minute)));
    }
    all.heard(&Event::InitDone);
    all
}

fn names(all: &CustomResourceStore<AzurePrivateLinkService>) -> Vec<String> {
    all.of_namespace("clusters-example")
        .iter()
        .map(|cr| cr.name_any())
        .collect()
}

#[test]
fn of_ten_in_one_namespace_the_eight_oldest_are_served() {
    let all = crowd(10);
    let served = (0..10).filter(|n| all.serves(&made(&format!("c{n}"), *n)));
    assert_eq!(served.collect::<Vec<_>>(), (0..8).collect::<Vec<_>>());
    assert_eq!((names(&all).len(), all.shown().len()), (8, 8));
    let mut elsewhere = made("c9", 9);
    elsewhere.metadata.namespace = Some("clusters-other".into());
    assert!(all.serves(&elsewhere), "a neighbour does not count");
}

#[test]
fn custom_resource_of_another_process_is_not_shown() {
    let all = crowd(2);
    let other = made("c0", 0);
    all.note_elsewhere(&other, true);
    let shown = |all: &CustomResourceStore<AzurePrivateLinkService>| {
        let shown = all.shown();
        shown.iter().map(|cr| cr.name_any()).collect::<Vec<_>>()
    };
    assert_eq!(shown(&all), ["c1"]);
    all.heard(&Event::Init);
    all.heard(&Event::InitApply(other.clone()));
    all.heard(&Event::InitDone);
    assert_eq!(
        shown(&all),
        Vec::<String>::new(),
        "a relist shows it no more than before"
    );
    all.heard(&Event::Delete(other.clone()));
    all.heard(&Event::Apply(other));
    assert_eq!(shown(&all), ["c0"], "a new one may be this process's");
}

#[test]
fn of_the_same_second_the_lower_name_is_served() {
    let all = crowd(7);
    for name in ["y", "x"] {
        all.heard(&Event::Apply(made(name, 30)));
    }
    assert!(all.serves(&made("x", 30)) && !all.serves(&made("y", 30)));
}

#[test]
fn one_that_moves_up_into_the_eight_is_woken() {
    let all = crowd(10);
    let mut promoted = all.promoted();
    let mut next = || promoted.next().now_or_never().flatten().map(|reference| reference.name);
    all.heard(&Event::Delete(made("c9", 9)));
    assert_eq!(next(), None, "it was not served");
    all.heard(&Event::Apply(deleting(made("c3", 3), &[CPO_FINALIZER])));
    assert_eq!((next().as_deref(), next()), (Some("c8"), None));
    all.heard(&Event::Delete(deleting(made("c3", 3), &[])));
    assert_eq!(next(), None);
    assert!(all.serves(&made("c8", 8)));
}

#[test]
fn what_is_being_deleted_with_our_finalizer_is_served() {
    let all = crowd(10);
    let held = deleting(made("c9", 9), &[CPO_FINALIZER]);
    all.heard(&Event::Apply(held.clone()));
    assert!(all.serves(&held) && names(&all).contains(&"c9".to_owned()));
    assert!(all.any_held("clusters-example", CPO_FINALIZER));
    let theirs = deleting(made("c9", 9), &["example.com/theirs"]);
    all.heard(&Event::Apply(theirs.clone()));
    assert!(!all.serves(&theirs) && !names(&all).contains(&"c9".to_owned()));
    assert!(!all.any_held("clusters-example", CPO_FINALIZER));
}

#[tokio::test(start_paused = true)]
async fn one_event_tells_of_all_that_are_not_served() {
    let all = crowd(8);
    let ask = || all.not_served("clusters-example");
    assert_eq!(ask(), None);
    all.heard(&Event::Apply(made("c8", 8)));
    all.heard(&Event::Apply(made("c9", 9)));
    assert_eq!((ask(), ask()), (Some(2), None));
    all.heard(&Event::Apply(made("d", 40)));
    assert_eq!(ask(), None, "one for all of them");
    for cr in [made("c8", 8), made("c9", 9), made("d", 40)] {
        all.heard(&Event::Delete(cr));
    }
    tokio::time::advance(REPORTED_FOR).await;
    all.heard(&Event::Apply(made("d", 40)));
    assert_eq!(ask(), Some(1), "it begins anew");
}

#[tokio::test(start_paused = true)]
async fn one_too_many_that_is_recreated_is_reported_once() {
    let all = crowd(8);
    let mut reported = 0;
    for _ in 0..100 {
        all.heard(&Event::Apply(made("d", 40)));
        reported += all.not_served("clusters-example").iter().count();
        all.heard(&Event::Delete(made("d", 40)));
        tokio::time::advance(Duration::from_secs(1)).await;
    }
    assert_eq!(reported, 1);
    for round in 0..3 {
        for minute in 0..9 {
            all.heard(&Event::Apply(made(&format!("c{minute}"), minute)));
        }
        assert_eq!(all.not_served("clusters-example"), None, "round {round}");
        for minute in 0..9 {
            all.heard(&Event::Delete(made(&format!("c{minute}"), minute)));
        }
    }
}

#[test]
fn relist_keeps_the_order_and_what_was_reported() {
    let all = crowd(9);
    let mut follows = all.follow();
    assert_eq!(all.not_served("clusters-example"), Some(1));
    all.heard(&Event::Init);
    for minute in 1..10 {
        all.heard(&Event::InitApply(made(&format!("c{minute}"), minute)));
    }
    assert!(all.serves(&made("c0", 0)), "the list is not complete");
    all.heard(&Event::InitDone);
    assert_eq!(all.not_served("clusters-example"), None);
    assert!(all.serves(&made("c8", 8)) && !all.serves(&made("c9", 9)));
    let reported = std::iter::from_fn(|| follows.next().now_or_never().flatten()).count();
    assert_eq!(reported, 9);
}

/// One that was made in this minute, held by the role of [`crowd`], and is being deleted.
fn held(minute: usize) -> AzurePrivateLinkService {
    deleting(made(&format!("c{minute}"), minute), &[CPO_FINALIZER])
}

#[test]
fn of_ten_deleted_in_one_namespace_all_are_served_in_turn() {
    let all = crowd(10);
    let mut promoted = all.promoted();
    for minute in 0..10 {
        all.heard(&Event::Apply(held(minute)));
    }
    let served = || (0..10).filter(|minute| all.serves(&held(*minute))).collect::<Vec<_>>();
    assert_eq!(served(), (0..8).collect::<Vec<_>>());
    assert_eq!((names(&all).len(), all.shown().len()), (8, 8));
    let woken = |promoted: &mut _| -> Vec<String> {
        let next = || StreamExt::next(promoted).now_or_never().flatten();
        std::iter::from_fn(next)
            .map(|reference: ObjectRef<AzurePrivateLinkService>| reference.name)
            .collect()
    };
    woken(&mut promoted);
    all.heard(&Event::Apply(deleting(made("c0", 0), &["example.com/theirs"])));
    assert_eq!(woken(&mut promoted), ["c8"], "the role has released one");
    all.heard(&Event::Delete(held(5)));
    assert_eq!(woken(&mut promoted), ["c9"]);
    assert!(all.serves(&held(9)) && all.shown().len() == 8);
    let mut elsewhere = held(9);
    elsewhere.metadata.namespace = Some("clusters-other".into());
    assert!(all.serves(&elsewhere), "a neighbour does not count");
}

#[test]
fn those_being_deleted_do_not_displace_those_that_stay() {
    let all = crowd(8);
    for minute in 8..20 {
        all.heard(&Event::Apply(held(minute)));
    }
    assert!((0..8).all(|n| all.serves(&made(&format!("c{n}"), n))));
    assert_eq!((names(&all).len(), all.shown().len()), (16, 16));
    assert_eq!(all.not_served("clusters-example"), Some(4));
}

#[test]
fn what_is_recorded_keeps_a_stripped_one_served() {
    let cr = |annotations: Value| -> AWSEndpointService {
        let metadata = json!({"name": "private-router", "namespace": "clusters-example", "uid": "u",
            "creationTimestamp": "2026-01-01T00:00:00Z", "deletionTimestamp": "2026-01-02T00:00:00Z",
            "finalizers": ["x"], "annotations": annotations});
        let object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": metadata, "spec": {"networkLoadBalancerName": "a1"}});
        serde_json::from_value(object).unwrap()
    };
    for (role, annotations, expected) in [
        (Role::Cpo, json!({CPO_INTENT: "{}"}), true),
        (Role::Cpo, json!({}), false),
        (Role::Ho, json!({CPO_INTENT: "{}"}), false),
    ] {
        let all = CustomResourceStore::new(role);
        let cr = cr(annotations);
        all.heard(&Event::Apply(cr.clone()));
        assert_eq!(all.serves(&cr), expected, "{role:?} {:?}", cr.annotations());
    }
}
