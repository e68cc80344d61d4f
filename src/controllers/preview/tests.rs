use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::api::Reason;
use crate::api::markers::CPO_FINALIZER;
use crate::azure::arm::error::ArmError;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::plan::{Step, Why};
use crate::controllers::azure::lists::Lists;
use crate::controllers::azure::{Decision, Facts, Preview};
use crate::controllers::samples::{ALIAS, cr, guest, id};
use crate::engine::failure::Class;
use crate::hypershift::conditions::NewCondition;
use crate::hypershift::problem::Problem;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn step(verb: Verb, why: Why) -> Step {
    Step {
        kind: Kind::RecordSet,
        key: id(&guest("privateDnsZones/z.example.com/A/api")),
        verb,
        why,
        found: None,
    }
}

fn good() -> Report {
    let holds = |kind| NewCondition::holds(kind, "fine", Some(1));
    Report {
        conditions: AzurePrivateLinkService::conditions_of(Role::Cpo).map(holds).collect(),
        fields: [("privateEndpointIP".to_owned(), json!("10.0.0.5"))]
            .into_iter()
            .collect(),
    }
}

/// The object as it is once `good` is written.
fn ready(annotations: Value) -> AzurePrivateLinkService {
    let first = cr(json!({"privateLinkServiceAlias": ALIAS}), annotations.clone());
    let written = conditions_patch(&first, &good().dated(&first, NOW)).unwrap();
    let conditions = &written["status"]["conditions"];
    cr(
        json!({"privateEndpointIP": "10.0.0.5", "conditions": conditions}),
        annotations,
    )
}

fn decision(steps: Vec<Step>) -> Decision {
    Decision {
        steps,
        intent: Some(r#"{"cluster":"example"}"#.to_owned()),
        ..Decision::default()
    }
}

fn decided(cr: &AzurePrivateLinkService, decision: &Decision) -> Preview {
    let mut preview = Preview::new(Role::Cpo, Lifecycle::Build, Vec::new());
    preview.add_decision(cr, decision, Vec::new());
    preview.add_report(cr, &good());
    preview.add_requeue(Requeue::new(Duration::from_secs(290), Requeue::RESYNC));
    preview
}

fn with_step(cr: &AzurePrivateLinkService, step: Step) -> Preview {
    decided(cr, &decision(vec![step]))
}

#[rstest]
#[case::up_to_date(step(Verb::Keep, Why::UpToDate), false)]
#[case::shared_with_others(step(Verb::Refuse, Why::InUse("a sibling")), false)]
#[case::of_others(step(Verb::Refuse, Why::NotOurs), true)]
#[case::to_be_put(step(Verb::Put(json!({"secret": "body"})), Why::Differs(vec!["ttl"])), true)]
#[case::under_way(step(Verb::Wait, Why::InProgress), true)]
fn every_step_that_is_not_idle_is_pending(#[case] step: Step, #[case] pending: bool) {
    assert_eq!(with_step(&ready(json!({})), step).pending, pending);
}

#[test]
fn paused_cluster_has_nothing_pending() {
    let problem = Problem::new(Reason::Provisioning, "the cluster is paused");
    let preview = decided(&cr(Value::Null, json!({})), &Decision::paused(problem));
    assert!(preview.decision.paused && !preview.pending);
    assert_eq!((preview.fields, preview.conditions), (Vec::new(), Vec::new()));
}

#[test]
fn deleted_object_without_our_finalizer_has_nothing_pending() {
    assert!(!Preview::new(Role::Cpo, Lifecycle::Nothing, Vec::new()).pending);
}

#[test]
fn differing_status_is_pending_though_azure_is_up_to_date() {
    let preview = with_step(&cr(Value::Null, json!({})), step(Verb::Keep, Why::UpToDate));
    assert!(preview.pending);
    assert_eq!((preview.fields.len(), preview.conditions.len()), (1, 3));
    assert_eq!(preview.conditions[0].is, None);
}

#[test]
fn problem_is_pending_and_shown() {
    let stuck = Decision::stuck(Problem::new(Reason::ScopeNotAllowed, "no"));
    let preview = decided(&ready(json!({})), &stuck);
    assert!(preview.pending);
    let problem = &json!(preview)["problem"];
    assert_eq!(*problem, json!({"reason": "ScopeNotAllowed", "message": "no"}));
}

#[test]
fn failed_read_makes_the_plan_incomplete() {
    let mut preview = decided(&ready(json!({})), &decision(Vec::new()));
    preview.add_facts(&Facts::default());
    assert!(!preview.unreadable);
    let error = ArmError::own(Class::Denied, "AuthorizationFailed");
    let endpoint = id(&guest("privateEndpoints/pe"));
    preview.add_facts(&Facts {
        reads: [(endpoint, Observed::ReadFailed(error))].into(),
        ..Facts::default()
    });
    assert!(preview.unreadable);
}

#[test]
fn intent_and_finalizer_come_before_the_first_write_only() {
    let put = || step(Verb::Put(json!({})), Why::Absent);
    let keep = step(Verb::Keep, Why::UpToDate);
    assert_eq!(with_step(&ready(json!({})), keep).intent, None);
    let first = with_step(&ready(json!({})), put());
    assert_eq!(first.intent, Some(json!({"cluster": "example"})));
    assert_eq!(first.finalizers[0].verb, "set");

    let recorded = json!({Role::Cpo.intent_annotation(): r#"{"cluster":"example"}"#});
    let mut held = ready(recorded);
    held.metadata.finalizers = Some(vec![CPO_FINALIZER.to_owned()]);
    let again = with_step(&held, put());
    assert_eq!((again.intent, again.finalizers), (None, Vec::new()));
}

#[test]
fn last_reconcile_of_a_deletion_removes_the_finalizer() {
    let mut preview = Preview::new(Role::Cpo, Lifecycle::Teardown, Vec::new());
    let gone = decision(vec![step(Verb::Keep, Why::UpToDate)]);
    preview.add_decision(&ready(json!({})), &gone, Vec::new());
    assert!(!preview.pending);
    preview.add_release::<AzurePrivateLinkService>();
    assert!(preview.pending);
    assert_eq!(preview.finalizers[0].verb, "remove");
}

#[test]
fn drift_is_shown_with_its_fields_and_without_any_body() {
    let body = json!({"tags": {"owner": "body"}, "properties": {"provisioningState": "Succeeded"}});
    let mut drifted = step(Verb::Put(body.clone()), Why::Differs(vec!["ttl", "aRecords"]));
    drifted.found = Some(body.clone());
    let mut preview = decided(
        &ready(json!({})),
        &decision(vec![step(Verb::Keep, Why::UpToDate), drifted]),
    );
    let zone = id(&guest("privateDnsZones/z.example.com"));
    preview.add_facts(&Facts {
        reads: [
            (id(&guest("privateEndpoints/pe")), Observed::Found(body)),
            (id(&guest("privateDnsZones/z.example.com/A/api")), Observed::Absent),
        ]
        .into(),
        lists: Lists {
            inside: [((Kind::VirtualNetworkLink, zone), Ok(vec![json!({})]))].into(),
            ..Lists::default()
        },
        ..Facts::default()
    });
    insta::assert_json_snapshot!("drift", preview);
    assert!(!serde_json::to_string(&preview).unwrap().contains("owner"));
}
