//! The reference, compared with the metrics that are exported.

use std::collections::BTreeSet;

use prometheus::proto::MetricFamily;

use super::objects::{NOT_OURS, full_load_balancer, object, with_objects};
use super::*;
use crate::api::{LedRole, Platform, Role};
use crate::aws::api::action::Action;
use crate::aws::api::ports as aws_ports;

/// Metrics in which everything is used once, so that everything is exported.
fn everything() -> Metrics {
    let deleting = ObservedObject {
        deleting_for: Some(Duration::ZERO),
        ..object("going", NOT_OURS.0, NOT_OURS.1, 1)
    };
    let mut objects = full_load_balancer();
    objects.extend([object("ill", NOT_OURS.0, NOT_OURS.1, 1), deleting]);
    let metrics = with_objects(objects);
    metrics
        .reconcile(Controller::PrivateEndpoint)
        .end(ReconcileResult::Ready);
    drop(metrics.queued(Controller::PrivateEndpoint));
    metrics.requeued(Controller::PrivateEndpoint, "resync");
    metrics.call(ObservedCall {
        kind: Kind::PrivateDnsZone,
        verb: CallVerb::Get,
        status: 200,
        class: None,
        took: Duration::ZERO,
    });
    aws_ports::Counters::call(
        &metrics,
        aws_ports::ObservedCall {
            action: Action::DescribeVpcEndpoints,
            status: 200,
            class: None,
            took: Duration::ZERO,
        },
    );
    aws_ports::Counters::held_back(&metrics, Action::CreateVpcEndpoint);
    metrics.budget("subscription-reads", 1);
    metrics.read_operations_with(BTreeMap::new);
    metrics.read_token_with(|| TokenState {
        age: Some(Duration::ZERO),
        left: Some(Duration::ZERO),
        failure: None,
    });
    metrics.read_session_with(SessionState::default);
    metrics.observe_fleet_with(super::capz::fleet);
    metrics.leader(LedRole::on(Role::Ho, Platform::Azure), true);
    metrics.shards(LedRole::on(Role::Ho, Platform::Azure), 1);
    metrics.allowed_scopes_stale(false);
    metrics.watches_failing(Watched::PrivateLinkService, 1);
    metrics.kube_write(KubeResource::Event, KubeVerb::Create);
    metrics
}

#[test]
fn what_is_exported_is_described_with_its_type_and_labels() {
    let metrics = everything();
    let exported: BTreeSet<_> = metrics.registered.registry.gather().iter().map(exported).collect();
    let described = metrics.registered.described.iter().map(|(desc, kind)| {
        let labels: BTreeSet<_> = desc.variable_labels.iter().cloned().collect();
        (desc.fq_name.clone(), format!("{kind:?}"), labels)
    });
    assert_eq!(described.collect::<BTreeSet<_>>(), exported);
}

fn exported(family: &MetricFamily) -> (String, String, BTreeSet<String>) {
    let labels = family.get_metric()[0].get_label().iter();
    let names = labels.map(|label| label.name().to_owned()).collect();
    (family.name().into(), format!("{:?}", family.get_field_type()), names)
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
    let with_names = [
        "hyperlink_object_available",
        "hyperlink_object_deletion_age_seconds",
        "hyperlink_object_not_true_age_seconds",
        "hyperlink_object_without_quota",
        "hyperlink_capz_cluster_not_ready_age_seconds",
    ];
    for (desc, _) in &metrics().registered.described {
        let name = desc.fq_name.as_str();
        for label in desc.variable_labels.iter().map(String::as_str) {
            assert!(!of_targets.contains(&label), "{name} has {label}");
            let names = ["control_plane", "cluster_namespace", "name"].contains(&label);
            assert!(!names || with_names.contains(&name), "{name} has names");
        }
    }
}

#[test]
fn reference_tells_type_labels_and_their_values() {
    let text = metrics().reference();
    assert!(!text.contains("` |  | `"), "a label without values in\n{text}");
    for line in [
        "| `process_resident_memory_bytes` | gauge |  | Resident memory; absent where the system does not show it. |",
        "| `hyperlink_leader` | gauge | `role` | 1 while this process leads the role. |",
        "| `role` | `ho`, `cpo`, `ho-aws`, `cpo-aws`, `capz`; on AWS with the platform | `hyperlink_leader`, `hyperlink_shards` |",
        "| `status` | the HTTP status; 0: no answer | `hyperlink_arm_calls_total`, `hyperlink_aws_calls_total` |",
        "| `verb` | `create`, `patch`, `delete` | `hyperlink_kube_writes_total` |",
    ] {
        assert!(text.lines().any(|one| one == line), "{line} not in\n{text}");
    }
}
