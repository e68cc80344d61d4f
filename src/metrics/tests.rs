//! What is exported, and what the reference says of it.

use std::collections::{BTreeMap, BTreeSet};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use super::*;
use crate::api::condition::{ConditionType, Reason, Status};
use crate::api::role::Role;
use crate::azure::auth::TokenState;
use crate::azure::error::Class;
use crate::azure::id::ResourceId;
use crate::azure::memory::UnderWay;
use crate::azure::plan::Change;
use crate::azure::ports::{CallSeen, CallVerb, Counters};
use crate::azure::resource::Kind;
use crate::conditions::Since;

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
    metrics.call(CallSeen {
        kind: Kind::Subnet,
        verb: CallVerb::Put,
        status: 429,
        class: Some(Class::Throttled),
        took,
    });
    metrics.call(CallSeen {
        kind: Kind::Zone,
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
        let under_way = BTreeMap::from([(Kind::Endpoint, UnderWay { count: 2, oldest })]);
        metrics.look_at_operations_with(move || match ends.load(Ordering::SeqCst) {
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
fn each_end_of_a_pass_is_counted_once() {
    let metrics = metrics();
    metrics.pass(Controller::Endpoint).end(PassResult::Settled);
    drop(metrics.pass(Controller::Endpoint));
    let unwound = catch_unwind(AssertUnwindSafe(|| {
        let _pass = metrics.pass(Controller::Endpoint);
        panic!("in a pass");
    }));
    assert!(unwound.is_err());
    metrics.panicked(Controller::Endpoint);
    for result in ["settled", "aborted", "panicked"] {
        assert_sample(
            &metrics,
            &format!(r#"hyperlink_passes_total{{controller="endpoint",result="{result}"}} 1"#),
        );
    }
    assert_sample(&metrics, r#"hyperlink_panics_total{controller="endpoint"} 1"#);
    assert_sample(&metrics, r#"hyperlink_panics_total{controller="observer"} 0"#);
    assert_sample(&metrics, r#"hyperlink_passes_running{controller="endpoint"} 0"#);
    assert_sample(
        &metrics,
        r#"hyperlink_pass_duration_seconds_count{controller="endpoint"} 3"#,
    );
}

#[test]
fn a_running_pass_is_seen() {
    let metrics = metrics();
    let pass = metrics.pass(Controller::Observer);
    assert_sample(&metrics, r#"hyperlink_passes_running{controller="observer"} 1"#);
    pass.end(PassResult::Waiting);
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
    metrics.look_at_token_with(move || tokens.lock().unwrap().pop().unwrap());
    assert!(!metrics.render().unwrap().contains("hyperlink_token_age_seconds "));
    let text = metrics.render().unwrap();
    assert!(text.contains("\nhyperlink_token_age_seconds 100\n"), "{text}");
    assert!(text.contains("\nhyperlink_token_expires_in_seconds 3500\n"), "{text}");
}

#[test]
fn gauges_of_the_process_and_the_leader() {
    let metrics = metrics();
    metrics.leader(Role::Ho, true);
    metrics.leader(Role::Cpo, false);
    metrics.budget("subscription-reads", 249);
    metrics.kube_write(KubeResource::LinkServiceStatus, KubeVerb::Patch);
    assert_sample(&metrics, r#"hyperlink_leader{role="ho"} 1"#);
    assert_sample(&metrics, r#"hyperlink_leader{role="cpo"} 0"#);
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

/// A custom resource whose conditions all have this status, for so many seconds.
fn object(name: &str, status: Option<Status>, reason: Option<Reason>, age: u64) -> ObjectSeen {
    let seen = |kind| ConditionSeen {
        kind,
        status,
        reason,
        age: Duration::from_secs(age),
    };
    ObjectSeen {
        namespace: "clusters-one".into(),
        name: name.into(),
        leaving: None,
        conditions: ConditionType::ALL.map(seen).into(),
        load_balancer: None,
        zones: Vec::new(),
    }
}

fn sees(objects: Vec<ObjectSeen>) -> Metrics {
    let metrics = metrics();
    metrics.look_at_objects_with(move || objects.clone());
    metrics
}

const NOT_OURS: (Option<Status>, Option<Reason>) = (Some(Status::False), Some(Reason::NotOurs));

#[test]
fn process_that_knows_no_custom_resources_says_nothing_of_them() {
    let text = metrics().render().unwrap();
    for name in [
        "hyperlink_objects",
        "hyperlink_conditions",
        "hyperlink_deletion",
        "hyperlink_quota",
    ] {
        assert!(!text.contains(name), "{text}");
    }
}

#[test]
fn custom_resources_are_counted_by_state_and_condition() {
    let going = ObjectSeen {
        leaving: Some(Duration::from_secs(70)),
        ..object("going", NOT_OURS.0, NOT_OURS.1, 500)
    };
    let metrics = sees(vec![
        object("well", Some(Status::True), Some(Reason::AzureSuccess), 10),
        object("ill", NOT_OURS.0, NOT_OURS.1, 100),
        object("worse", NOT_OURS.0, NOT_OURS.1, 300),
        object("new", None, None, 5),
        going,
    ]);
    for sample in [
        r#"hyperlink_objects{state="available"} 1"#,
        r#"hyperlink_objects{state="unavailable"} 3"#,
        r#"hyperlink_objects{state="leaving"} 1"#,
        r#"hyperlink_conditions{status="True",type="AzurePLSCreated"} 1"#,
        r#"hyperlink_conditions{status="False",type="AzurePLSCreated"} 3"#,
        r#"hyperlink_conditions{status="Unknown",type="AzurePLSCreated"} 1"#,
        // What goes is no longer wanted to hold.
        r#"hyperlink_conditions_not_true{reason="NotOurs",type="AzurePLSCreated"} 2"#,
        r#"hyperlink_conditions_not_true{reason="other",type="AzurePLSCreated"} 1"#,
        r#"hyperlink_condition_not_true_oldest_age_seconds{reason="NotOurs",type="AzurePLSCreated"} 300"#,
        r#"hyperlink_condition_not_true_oldest_age_seconds{reason="other",type="AzurePLSCreated"} 5"#,
        r#"hyperlink_object_available{control_plane="clusters-one",name="well"} 1"#,
        r#"hyperlink_object_available{control_plane="clusters-one",name="ill"} 0"#,
        r#"hyperlink_object_deletion_age_seconds{control_plane="clusters-one",name="going"} 70"#,
        r#"hyperlink_object_not_true_age_seconds{control_plane="clusters-one",name="ill",reason="NotOurs",type="AzurePLSCreated"} 100"#,
    ] {
        assert_sample(&metrics, sample);
    }
}

/// Each of them is told of once, and only the oldest of what is not available once more for each condition.
#[test]
fn page_grows_by_one_line_for_each_custom_resource_and_no_more() {
    let lines = |count: usize| {
        let name = |number: usize| format!("object{number}");
        let all = (0..count).map(|number| object(&name(number), NOT_OURS.0, NOT_OURS.1, 100));
        sees(all.collect()).render().unwrap().lines().count()
    };
    let many = lines(1_000);
    assert_eq!(lines(10_000) - many, 9_000);
    assert!(many < 2_500, "{many}");
}

#[test]
fn when_nothing_goes_and_nothing_fails_there_are_no_ages() {
    let metrics = sees(vec![object("well", Some(Status::True), None, 10)]);
    let text = metrics.render().unwrap();
    for age in ["not_true", "deletion_age"] {
        assert!(!text.contains(age), "{text}");
    }
}

#[test]
fn series_of_what_is_not_true_are_few_those_of_unavailable_custom_resources_and_the_oldest() {
    let mut all: Vec<_> = (0..500)
        .map(|n| object(&format!("n{n}"), NOT_OURS.0, NOT_OURS.1, n))
        .collect();
    for waits_for_ever in &mut all[100..] {
        for condition in &mut waits_for_ever.conditions {
            if condition.kind == ConditionType::AzurePrivateLinkServiceAvailable {
                condition.status = Some(Status::True);
            }
        }
    }
    let text = sees(all).render().unwrap();
    let named: Vec<_> = text
        .lines()
        .filter(|line| line.starts_with("hyperlink_object_not_true_age_seconds{"))
        .collect();
    assert_eq!(named.len(), 200);
    assert!(
        named.iter().any(|line| line.contains("\"n499\"")),
        "the oldest is not told"
    );
    let youngest: Vec<_> = named.iter().filter(|line| line.contains("\"n0\"")).collect();
    assert_eq!(youngest.len(), 1, "{youngest:?}");
    assert!(
        youngest[0].contains("AzurePrivateLinkServiceAvailable"),
        "what is alerted on goes first"
    );
}

#[test]
fn quotas_are_told_where_most_of_them_is_used() {
    let id = |subscription: &str, kind: &str, name: &str| {
        let id = format!("/subscriptions/{subscription}/resourceGroups/g/providers/Microsoft.Network/{kind}/{name}");
        ResourceId::parse(&id).unwrap()
    };
    let on = |balancer: &str, zones: &[(&str, &str)]| ObjectSeen {
        load_balancer: Some(id("s", "loadBalancers", balancer)),
        zones: zones.iter().map(|(of, name)| id(of, "privateDnsZones", name)).collect(),
        ..object("o", Some(Status::True), None, 1)
    };
    let metrics = sees(vec![
        on("full", &[("a", "one.local"), ("a", "example.com")]),
        // Ids are the same in any case, and clusters may share a zone.
        on("FULL", &[("a", "two.local"), ("a", "EXAMPLE.com")]),
        on("empty", &[("b", "three.local")]),
        object("without", Some(Status::False), None, 1),
    ]);
    for sample in [
        r#"hyperlink_quota_used{quota="link_services_per_load_balancer"} 2"#,
        r#"hyperlink_quota_limit{quota="link_services_per_load_balancer"} 8"#,
        r#"hyperlink_quota_used{quota="zones_per_subscription"} 3"#,
        r#"hyperlink_quota_limit{quota="zones_per_subscription"} 1000"#,
    ] {
        assert_sample(&metrics, sample);
    }
}

#[tokio::test(start_paused = true)]
async fn changes_of_one_resource_within_an_hour_are_told_from_those_of_many() {
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
        metrics.changed(Kind::Record, &record(name), &Change::Created);
    }
    most(1);
    tokio::time::advance(Duration::from_secs(3_000)).await;
    metrics.changed(Kind::Record, &record("API"), &repaired);
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
        metrics.changed(Kind::Record, &record("api"), &repaired);
    }
    most(100);
}

#[test]
fn time_to_available_is_told_by_what_it_is_counted_from() {
    let metrics = metrics();
    metrics.available_after(Since::Creation, Duration::from_secs(40));
    metrics.available_after(Since::Outage, Duration::from_secs(4));
    for sample in [
        r#"hyperlink_time_to_available_seconds_bucket{since="creation",le="30"} 0"#,
        r#"hyperlink_time_to_available_seconds_bucket{since="creation",le="45"} 1"#,
        r#"hyperlink_time_to_available_seconds_bucket{since="outage",le="5"} 1"#,
    ] {
        assert_sample(&metrics, sample);
    }
}

/// Everything is used once, so that everything is exported.
fn everything() -> Metrics {
    let going = ObjectSeen {
        leaving: Some(Duration::ZERO),
        ..object("going", NOT_OURS.0, NOT_OURS.1, 1)
    };
    let metrics = sees(vec![object("ill", NOT_OURS.0, NOT_OURS.1, 1), going]);
    metrics.pass(Controller::Endpoint).end(PassResult::Settled);
    drop(metrics.queued(Controller::Endpoint));
    metrics.panicked(Controller::Endpoint);
    metrics.call(CallSeen {
        kind: Kind::Zone,
        verb: CallVerb::Get,
        status: 200,
        class: None,
        took: Duration::ZERO,
    });
    metrics.budget("subscription-reads", 1);
    metrics.look_at_operations_with(|| BTreeMap::from([(Kind::Zone, UnderWay::default())]));
    metrics.look_at_token_with(|| TokenState {
        age: Some(Duration::ZERO),
        left: Some(Duration::ZERO),
        failure: None,
    });
    metrics.leader(Role::Ho, true);
    metrics.namespaces_left_alone(Role::Ho, 1);
    metrics.allowed_scopes_stale(false);
    metrics.kube_write(KubeResource::Event, KubeVerb::Create);
    let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateDnsZones/z";
    metrics.changed(Kind::Zone, &ResourceId::parse(id).unwrap(), &Change::Created);
    metrics.available_after(Since::Creation, Duration::ZERO);
    metrics
}

#[test]
fn reference_has_every_metric_that_is_exported_with_its_labels() {
    let metrics = everything();
    let text = metrics.render().unwrap();
    let exported: BTreeSet<(&str, &str)> = text
        .lines()
        .filter_map(|line| line.strip_prefix("# TYPE ")?.split_once(' '))
        .collect();
    let described: BTreeSet<_> = metrics
        .described()
        .iter()
        .map(|one| (one.name.as_str(), one.kind))
        .collect();
    assert_eq!(described, exported);
    for one in metrics.described() {
        let sample = text.lines().find(|line| {
            line.strip_prefix(&one.name)
                .is_some_and(|rest| !rest.starts_with('_') || one.kind == "histogram")
                && !line.starts_with('#')
        });
        let sample = sample.unwrap_or_else(|| panic!("{} has no sample", one.name));
        for label in &one.labels {
            assert!(
                sample.contains(&format!("{}=\"", label.name)),
                "{sample} lacks {}",
                label.name
            );
        }
    }
}

#[test]
fn labels_are_bounded_and_meet_none_of_prometheus_own() {
    let of_targets = [
        "namespace",
        "pod",
        "container",
        "service",
        "endpoint",
        "job",
        "instance",
        "node",
    ];
    for one in metrics().described() {
        for label in &one.labels {
            assert!(!of_targets.contains(&label.name), "{} has {}", one.name, label.name);
            if let Values::These(values) = &label.values {
                let different: BTreeSet<_> = values.iter().collect();
                assert_eq!(different.len(), values.len(), "{} {}", one.name, label.name);
            }
            let names = ["control_plane", "name"].contains(&label.name);
            let may = [
                "hyperlink_object_available",
                "hyperlink_object_deletion_age_seconds",
                "hyperlink_object_not_true_age_seconds",
            ];
            assert!(!names || may.contains(&one.name.as_str()), "{} has names", one.name);
        }
    }
}

#[test]
fn reference_tells_type_unit_and_label_values() {
    let text = metrics().reference();
    for line in [
        "| `hyperlink_token_expires_in_seconds` | gauge | seconds | How long the Azure token in use is still good; 0 when it has expired, absent before the first one. |",
        "| `process_resident_memory_bytes` | gauge | bytes | Resident memory; absent where the system does not tell. |",
        "| `hyperlink_leader` | `role` | `ho`, `cpo` |",
        "| `hyperlink_arm_calls_total` | `status` | the HTTP status; 0: no answer |",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} not in\n{text}");
    }
}
