//! The reference, compared with the metrics that are exported.

use std::collections::BTreeSet;

use super::objects::{NOT_OURS, object, with_objects};
use super::*;

/// Metrics in which everything is used once, so that everything is exported.
fn everything() -> Metrics {
    let deleting = ObservedObject {
        deleting_for: Some(Duration::ZERO),
        ..object("going", NOT_OURS.0, NOT_OURS.1, 1)
    };
    let metrics = with_objects(vec![object("ill", NOT_OURS.0, NOT_OURS.1, 1), deleting]);
    metrics
        .reconcile(Controller::PrivateEndpoint)
        .end(ReconcileResult::Ready);
    drop(metrics.queued(Controller::PrivateEndpoint));
    metrics.panicked(Controller::PrivateEndpoint);
    metrics.call(ObservedCall {
        kind: Kind::Zone,
        verb: CallVerb::Get,
        status: 200,
        class: None,
        took: Duration::ZERO,
    });
    metrics.budget("subscription-reads", 1);
    metrics.read_operations_with(|| BTreeMap::from([(Kind::Zone, UnderWay::default())]));
    metrics.read_token_with(|| TokenState {
        age: Some(Duration::ZERO),
        left: Some(Duration::ZERO),
        failure: None,
    });
    metrics.leader(Role::Ho, true);
    metrics.allowed_scopes_stale(false);
    metrics.watches_failing(Watched::PrivateLinkService, 1);
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
