use std::time::Duration;

use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::{ConditionType, Reason};
use crate::azure::error::Class;
use crate::azure::resource::Kind;
use crate::conditions::NewCondition;
use crate::controllers::samples::{ALIAS, cr, guest, id};
use crate::hypershift::problem::Problem;

const NOW: Timestamp = Timestamp::UNIX_EPOCH;

fn step(verb: Verb, why: Why) -> Step {
    Step {
        kind: Kind::Record,
        id: id(&guest("privateDnsZones/z.example.com/A/api")),
        verb,
        why,
        found: None,
    }
}

fn good() -> Report {
    let holds = |kind| NewCondition::holds(kind, "fine", Some(1));
    Report {
        conditions: ConditionType::owned_by(Role::Cpo).map(holds).collect(),
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

fn dry_run(steps: Vec<Step>) -> DryRun {
    DryRun {
        conclusion: Conclusion::Report,
        lifecycle: Lifecycle::Build,
        inputs: Vec::new(),
        facts: Facts::default(),
        decision: Decision {
            steps,
            intent: Some(r#"{"cluster":"example"}"#.to_owned()),
            ..Decision::default()
        },
        report: Some(good()),
        holds: Vec::new(),
        requeue: Some(Requeue::new(Duration::from_secs(290), Requeue::RESYNC)),
    }
}

fn preview(cr: &AzurePrivateLinkService, dry_run: DryRun) -> Preview {
    Preview::of(Role::Cpo, cr, dry_run, NOW)
}

#[rstest]
#[case::up_to_date(step(Verb::Keep, Why::UpToDate), false)]
#[case::shared_with_others(step(Verb::Refuse, Why::InUse("a sibling")), false)]
#[case::of_others(step(Verb::Refuse, Why::NotOurs), true)]
#[case::to_be_put(step(Verb::Put(json!({"secret": "body"})), Why::Differs(vec!["ttl"])), true)]
#[case::under_way(step(Verb::Wait, Why::InProgress), true)]
fn every_step_that_is_not_idle_is_pending(#[case] step: Step, #[case] pending: bool) {
    assert_eq!(preview(&ready(json!({})), dry_run(vec![step])).pending, pending);
}

#[test]
fn paused_cluster_has_nothing_pending() {
    let problem = Problem::new(Reason::Provisioning, "the cluster is paused");
    let paused = DryRun {
        decision: Decision::paused(problem),
        report: None,
        ..dry_run(Vec::new())
    };
    let preview = preview(&ready(json!({})), paused);
    assert!(preview.paused && !preview.pending);
}

#[test]
fn deleted_object_without_our_finalizer_has_nothing_pending() {
    assert!(!preview(&ready(json!({})), DryRun::nothing(Vec::new())).pending);
}

#[test]
fn differing_status_is_pending_though_azure_is_up_to_date() {
    let preview = preview(
        &cr(Value::Null, json!({})),
        dry_run(vec![step(Verb::Keep, Why::UpToDate)]),
    );
    assert!(preview.pending);
    assert_eq!((preview.fields.len(), preview.conditions.len()), (1, 3));
    assert_eq!(preview.conditions[0].is, None);
}

#[test]
fn problem_is_pending_and_shown() {
    let stuck = DryRun {
        decision: Decision::stuck(Problem::new(Reason::ScopeNotAllowed, "no")),
        ..dry_run(Vec::new())
    };
    let preview = preview(&ready(json!({})), stuck);
    assert!(preview.pending);
    assert_eq!(preview.problem.unwrap().reason, "ScopeNotAllowed");
}

#[test]
fn failed_read_makes_the_plan_incomplete() {
    let mut failed = dry_run(Vec::new());
    let error = ArmError::own(Class::Denied, "AuthorizationFailed");
    failed
        .facts
        .reads
        .insert(id(&guest("privateEndpoints/pe")), Observed::ReadFailed(error));
    assert!(preview(&ready(json!({})), failed).unreadable);
    assert!(!preview(&ready(json!({})), dry_run(Vec::new())).unreadable);
}

#[test]
fn intent_and_finalizer_come_before_the_first_write_only() {
    let put = || dry_run(vec![step(Verb::Put(json!({})), Why::Absent)]);
    let keep = dry_run(vec![step(Verb::Keep, Why::UpToDate)]);
    assert_eq!(preview(&ready(json!({})), keep).intent, None);
    let first = preview(&ready(json!({})), put());
    assert_eq!(first.intent, Some(json!({"cluster": "example"})));
    assert_eq!(first.finalizers[0].verb, "set");

    let recorded = json!({Role::Cpo.intent_annotation(): r#"{"cluster":"example"}"#});
    let mut held = ready(recorded);
    held.metadata.finalizers = Some(vec![Role::Cpo.finalizer().to_owned()]);
    let again = preview(&held, put());
    assert_eq!((again.intent, again.finalizers), (None, Vec::new()));
}

#[test]
fn last_reconcile_of_a_deletion_removes_the_finalizer() {
    let gone = DryRun {
        lifecycle: Lifecycle::Teardown,
        conclusion: Conclusion::Release(Vec::new()),
        report: None,
        ..dry_run(vec![step(Verb::Keep, Why::UpToDate)])
    };
    let preview = preview(&ready(json!({})), gone);
    assert!(preview.pending);
    assert_eq!((preview.lifecycle, preview.finalizers[0].verb), ("teardown", "remove"));
}

#[test]
fn drift_is_shown_with_its_fields_and_without_any_body() {
    let mut drift = dry_run(vec![
        step(Verb::Keep, Why::UpToDate),
        step(
            Verb::Put(json!({"tags": {"owner": "body"}})),
            Why::Differs(vec!["ttl", "aRecords"]),
        ),
    ]);
    let found = json!({"tags": {"owner": "body"}, "properties": {"provisioningState": "Succeeded"}});
    drift
        .facts
        .reads
        .insert(id(&guest("privateEndpoints/pe")), Observed::Found(found));
    drift
        .facts
        .reads
        .insert(id(&guest("privateDnsZones/z.example.com/A/api")), Observed::Absent);
    drift.facts.inside.insert(
        (Kind::ZoneLink, id(&guest("privateDnsZones/z.example.com"))),
        Ok(vec![json!({})]),
    );
    let preview = preview(&ready(json!({})), drift);
    insta::assert_json_snapshot!("drift", preview);
    assert!(!serde_json::to_string(&preview).unwrap().contains("owner"));
}
