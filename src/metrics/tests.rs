//! What `/metrics` exports.

mod capz;
mod objects;
mod reference;

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::api::{LedRole, Platform, Role};
use crate::aws::credentials::SessionState;
use crate::azure::arm::auth::TokenState;
use crate::azure::arm::id::ResourceId;
use crate::azure::arm::ports::{CallVerb, Counters, ObservedCall};
use crate::azure::kinds::Kind;
use crate::engine::failure::Class;
use crate::engine::observation_cache::UnderWay;
use crate::engine::plan::Change;
use crate::hypershift::conditions::Since;

fn metrics() -> Metrics {
    Metrics::new("1.2.3", "abc").unwrap()
}

#[track_caller]
fn assert_sample(metrics: &Metrics, sample: &str) {
    let text = metrics.render().unwrap();
    assert!(text.lines().any(|line| line == sample), "{sample} not in\n{text}");
}

fn value(metrics: &Metrics, name: &str) -> Option<f64> {
    let text = metrics.render().unwrap();
    let line = text.lines().find(|line| line.starts_with(name))?;
    line.rsplit_once(' ')?.1.parse().ok()
}

#[test]
fn a_call_is_counted_by_kind_verb_class_and_status() {
    let metrics = metrics();
    let took = Duration::from_millis(30);
    metrics.call(ObservedCall {
        kind: Kind::Subnet,
        verb: CallVerb::Put,
        status: 429,
        class: Some(Class::Throttled),
        took,
    });
    metrics.call(ObservedCall {
        kind: Kind::PrivateDnsZone,
        verb: CallVerb::Get,
        status: 200,
        class: None,
        took,
    });
    assert_sample(
        &metrics,
        r#"hyperlink_arm_calls_total{class="throttled",kind="subnet",status="429",verb="PUT"} 1"#,
    );
    assert_sample(
        &metrics,
        r#"hyperlink_arm_calls_total{class="ok",kind="private_dns_zone",status="200",verb="GET"} 1"#,
    );
    assert_sample(
        &metrics,
        r#"hyperlink_arm_call_duration_seconds_bucket{kind="subnet",verb="PUT",le="0.05"} 1"#,
    );
}

#[test]
fn operations_of_all_roles_are_added_up_and_gone_with_the_last() {
    let metrics = metrics();
    let age = r#"hyperlink_arm_operation_oldest_age_seconds{kind="private_endpoint"}"#;
    assert_eq!(value(&metrics, age), None, "no role has begun");
    let ends = Arc::new(AtomicBool::new(false));
    for seconds in [40, 50] {
        let ends = Arc::clone(&ends);
        let oldest = Duration::from_secs(seconds);
        let under_way = BTreeMap::from([(Kind::PrivateEndpoint, UnderWay { count: 2, oldest })]);
        metrics.read_operations_with(move || match ends.load(Ordering::SeqCst) {
            true => BTreeMap::new(),
            false => under_way.clone(),
        });
    }
    let count = r#"hyperlink_arm_operations_in_flight{kind="private_endpoint"}"#;
    assert_eq!([count, age].map(|name| value(&metrics, name)), [Some(4.0), Some(50.0)]);
    ends.store(true, Ordering::SeqCst);
    assert_eq!([count, age].map(|name| value(&metrics, name)), [Some(0.0), Some(0.0)]);
}

#[test]
fn each_end_of_a_reconcile_is_counted_once() {
    let metrics = metrics();
    metrics
        .reconcile(Controller::PrivateEndpoint)
        .end(ReconcileResult::Ready);
    drop(metrics.reconcile(Controller::PrivateEndpoint));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _reconcile = metrics.reconcile(Controller::PrivateEndpoint);
        panic!("in a reconcile");
    }));
    assert!(unwound.is_err());
    metrics.panicked(Controller::PrivateEndpoint);
    for result in ["ready", "aborted", "panicked"] {
        assert_sample(
            &metrics,
            &format!(r#"hyperlink_reconcile_total{{controller="private_endpoint",result="{result}"}} 1"#),
        );
    }
    assert_sample(
        &metrics,
        r#"hyperlink_reconcile_panics_total{controller="private_endpoint"} 1"#,
    );
    assert_sample(&metrics, r#"hyperlink_reconcile_panics_total{controller="observer"} 0"#);
    assert_sample(&metrics, r#"hyperlink_active_workers{controller="private_endpoint"} 0"#);
    assert_sample(
        &metrics,
        r#"hyperlink_reconcile_time_seconds_count{controller="private_endpoint"} 3"#,
    );
}

#[test]
fn running_reconcile_is_counted() {
    let metrics = metrics();
    let reconcile = metrics.reconcile(Controller::Observer);
    assert_sample(&metrics, r#"hyperlink_active_workers{controller="observer"} 1"#);
    reconcile.end(ReconcileResult::Waiting);
}

#[test]
fn token_age_and_rest_are_there_only_with_a_token() {
    let metrics = metrics();
    let tokens = Mutex::new(vec![
        TokenState {
            age: Some(Duration::from_secs(100)),
            left: Some(Duration::from_secs(3500)),
            failure: None,
        },
        TokenState::default(),
    ]);
    metrics.read_token_with(move || tokens.lock().unwrap().pop().unwrap());
    assert!(!metrics.render().unwrap().contains("hyperlink_token_age_seconds "));
    let text = metrics.render().unwrap();
    assert!(text.contains("\nhyperlink_token_age_seconds 100\n"), "{text}");
    assert!(text.contains("\nhyperlink_token_expires_in_seconds 3500\n"), "{text}");
}

#[test]
fn session_without_an_end_is_not_shown_and_a_missing_one_is_over() {
    let name = "\nhyperlink_aws_session_expires_in_seconds ";
    let shown = |state: SessionState| {
        let metrics = metrics();
        metrics.read_session_with(move || state.clone());
        let text = metrics.render().unwrap();
        let (_, rest) = text.split_once(name)?;
        rest.lines().next().map(str::to_owned)
    };
    let obtained = SessionState {
        age: Some(Duration::from_secs(100)),
        ..SessionState::default()
    };
    assert_eq!(shown(obtained.clone()), None, "keys");
    let left = Some(Duration::from_secs(3500));
    assert_eq!(shown(SessionState { left, ..obtained }).as_deref(), Some("3500"));
    assert_eq!(shown(SessionState::default()).as_deref(), Some("0"));
    assert!(!metrics().render().unwrap().contains(name), "there is no AWS");
}

#[test]
fn gauges_of_the_process_and_the_leader() {
    let metrics = metrics();
    metrics.leader(LedRole::on(Role::Ho, Platform::Azure), true);
    metrics.leader(LedRole::on(Role::Cpo, Platform::Azure), false);
    metrics.shards(LedRole::on(Role::Cpo, Platform::Azure), 3);
    metrics.budget("subscription-reads", 249);
    metrics.kube_write(KubeResource::LinkServiceStatus, KubeVerb::Patch);
    assert_sample(&metrics, r#"hyperlink_leader{role="ho"} 1"#);
    assert_sample(&metrics, r#"hyperlink_leader{role="cpo"} 0"#);
    assert_sample(&metrics, r#"hyperlink_shards{role="cpo"} 3"#);
    assert_sample(
        &metrics,
        r#"hyperlink_arm_budget_remaining{budget="subscription-reads"} 249"#,
    );
    assert_sample(
        &metrics,
        r#"hyperlink_kube_writes_total{resource="azureprivatelinkservices/status",verb="patch"} 1"#,
    );
    assert_sample(&metrics, r#"hyperlink_build_info{commit="abc",version="1.2.3"} 1"#);
    assert!(value(&metrics, "process_start_time_seconds").unwrap() > 1.7e9);
    if cfg!(target_os = "linux") {
        assert!(value(&metrics, "process_resident_memory_bytes").unwrap() > 1e6);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_one_resource_differ_from_those_of_many() {
    let metrics = metrics();
    let record = |name: &str| {
        let id = format!("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z/A/{name}");
        ResourceId::parse(&id).unwrap()
    };
    let repaired = Change::Repaired(vec!["aRecords"]);
    let most = |count: usize| {
        assert_sample(
            &metrics,
            &format!(r#"hyperlink_changes_of_one_resource{{kind="record_set"}} {count}"#),
        );
    };
    most(0);
    assert_sample(
        &metrics,
        r#"hyperlink_changes_total{change="repaired",kind="record_set"} 0"#,
    );
    for name in ["api", "apps", "other"] {
        metrics.changed(Kind::RecordSet.label(), &record(name).to_string(), &Change::Created);
    }
    most(1);
    tokio::time::advance(Duration::from_secs(3_000)).await;
    metrics.changed(Kind::RecordSet.label(), &record("API").to_string(), &repaired);
    most(2);
    tokio::time::advance(Duration::from_secs(1_000)).await;
    most(1);
    tokio::time::advance(Duration::from_secs(3_000)).await;
    most(0);
    assert_sample(
        &metrics,
        r#"hyperlink_changes_total{change="created",kind="record_set"} 3"#,
    );
    assert_sample(
        &metrics,
        r#"hyperlink_changes_total{change="repaired",kind="record_set"} 1"#,
    );
    for _ in 0..1_000 {
        metrics.changed(Kind::RecordSet.label(), &record("api").to_string(), &repaired);
    }
    most(100);
}

#[test]
fn repeated_changes_of_one_resource_in_aws_show() {
    let metrics = metrics();
    let most = |count: usize| format!(r#"hyperlink_changes_of_one_resource{{kind="records"}} {count}"#);
    assert_sample(&metrics, &most(0));
    let created = r#"hyperlink_changes_total{change="created",kind="records"} 0"#;
    assert_sample(&metrics, created);
    for _ in 0..3 {
        metrics.changed("records", "records of Z1", &Change::Repaired(vec!["values"]));
    }
    assert_sample(&metrics, &most(3));
}

#[test]
fn service_and_its_principals_change_by_themselves() {
    let metrics = metrics();
    for kind in ["endpoint_service", "allowed_principals", "allowed_principals"] {
        metrics.changed(kind, "a1b2 (111122223333, us-east-1)", &Change::Repaired(vec!["x"]));
    }
    assert_sample(
        &metrics,
        r#"hyperlink_changes_of_one_resource{kind="endpoint_service"} 1"#,
    );
    assert_sample(
        &metrics,
        r#"hyperlink_changes_of_one_resource{kind="allowed_principals"} 2"#,
    );
}

#[test]
fn time_to_available_is_labeled_by_platform_and_start() {
    let metrics = metrics();
    metrics.available_after(Platform::Azure, Since::Creation, Duration::from_secs(40));
    metrics.available_after(Platform::Aws, Since::Outage, Duration::from_secs(4));
    for sample in [
        r#"hyperlink_time_to_available_seconds_bucket{platform="azure",since="creation",le="30"} 0"#,
        r#"hyperlink_time_to_available_seconds_bucket{platform="azure",since="creation",le="45"} 1"#,
        r#"hyperlink_time_to_available_seconds_bucket{platform="aws",since="outage",le="5"} 1"#,
    ] {
        assert_sample(&metrics, sample);
    }
}
