//! Whether a new control plane waits: until the named conditions of its AzureCluster, the gates, are True, it is paused.

use kube::ResourceExt;

use super::cluster::{Access, access};
use crate::api::capi::{AzureCluster, Cluster, KubeadmControlPlane};
use crate::api::markers::capz::{PAUSED, PAUSED_HERE};

/// The kind of the owner of a control plane.
const CLUSTER: &str = "Cluster";
/// The kind of clusters that have gates.
const AZURE_CLUSTER: &str = "AzureCluster";

/// What is decided on, beside the control plane.
#[derive(Debug, Clone, Copy)]
pub struct GateInputs<'a> {
    /// The management cluster.
    pub management: Option<&'a AzureCluster>,
    /// The Cluster that owns the control plane.
    pub cluster: Option<&'a Cluster>,
    /// The AzureCluster of that.
    pub infrastructure: Option<&'a AzureCluster>,
}

/// What is done with a control plane.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pause {
    /// Nothing.
    LeftAlone,
    /// It is paused by this role, for these gates.
    Held(String),
    /// The pause of this role is removed.
    Released,
    /// It is not paused for a gate any more, but somebody else has paused it.
    NotOurs,
}

/// The Cluster that owns a control plane.
pub fn owner(control_plane: &KubeadmControlPlane) -> Option<&str> {
    let owners = control_plane.metadata.owner_references.iter().flatten();
    let mut owners = owners.filter(|owner| owner.controller == Some(true) && owner.kind == CLUSTER);
    owners.next().map(|owner| owner.name.as_str())
}

/// The AzureCluster of a Cluster.
pub fn infrastructure(cluster: &Cluster) -> Option<&str> {
    let named = cluster
        .spec
        .infrastructure_ref
        .as_ref()
        .filter(|named| named.kind == AZURE_CLUSTER)?;
    Some(named.name.as_str()).filter(|name| !name.is_empty())
}

/// Decides on a control plane.
pub fn decide(control_plane: &KubeadmControlPlane, inputs: GateInputs<'_>, gates: &[String]) -> Pause {
    let annotations = control_plane.annotations();
    let held_for = annotations.get(PAUSED_HERE);
    let is_paused = annotations.contains_key(PAUSED);
    let release = || {
        if held_for.is_some() {
            Pause::Released
        } else {
            Pause::LeftAlone
        }
    };
    // Cluster API does not finish the deletion of one that is paused.
    if control_plane.metadata.deletion_timestamp.is_some() {
        return release();
    }
    match inputs.management.map(access) {
        Some(Ok(Access::Internal)) => {}
        Some(Ok(Access::Public)) => return release(),
        Some(Err(_)) | None => return Pause::LeftAlone,
    }
    if control_plane.status.is_initialized() {
        return release();
    }
    let is_served = inputs.cluster.is_some_and(|cluster| !cluster.spec.paused);
    let (true, Some(infrastructure)) = (is_served, inputs.infrastructure) else {
        return Pause::LeftAlone;
    };
    let is_met = |gate: &&String| {
        infrastructure
            .condition(gate)
            .is_some_and(|condition| condition.is_true())
    };
    let unmet: Vec<&str> = gates.iter().filter(|gate| !is_met(gate)).map(String::as_str).collect();
    let unmet = unmet.join(",");
    match held_for {
        None if is_paused && unmet.is_empty() => Pause::NotOurs,
        _ if unmet.is_empty() => release(),
        Some(known) if is_paused && *known == unmet => Pause::LeftAlone,
        // Somebody else has paused it: who takes that pause away decides on it.
        None if is_paused => Pause::LeftAlone,
        _ => Pause::Held(unmet),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::samples::{Sample, management, workload};

    fn control_plane(patch: &Value) -> KubeadmControlPlane {
        let mut object = json!({"metadata": {"name": "wc", "namespace": "org-giantswarm", "ownerReferences": [
            {"apiVersion": "cluster.x-k8s.io/v1beta2", "kind": "Cluster", "name": "wc", "uid": "c", "controller": true}]}});
        json_patch::merge(&mut object, patch);
        serde_json::from_value(object).unwrap()
    }

    fn cluster(spec: &Value) -> Cluster {
        let mut object = json!({"metadata": {"name": "wc"}, "spec": {"infrastructureRef": {"apiGroup":
            "infrastructure.cluster.x-k8s.io", "kind": "AzureCluster", "name": "wc"}}});
        json_patch::merge(&mut object["spec"], spec);
        serde_json::from_value(object).unwrap()
    }

    fn gates() -> Vec<String> {
        ["A", "B"].map(str::to_owned).into()
    }

    /// An AzureCluster with these conditions.
    fn with(conditions: &[(&str, &str)]) -> Sample {
        let conditions = conditions
            .iter()
            .map(|(kind, status)| json!({"type": kind, "status": status}));
        workload("wc").with("/status/conditions", conditions.collect())
    }

    fn decided(control_plane: &KubeadmControlPlane, infrastructure: &Sample) -> Pause {
        let (management, cluster, infrastructure) =
            (management().cluster(), cluster(&json!({})), infrastructure.cluster());
        let inputs = GateInputs {
            management: Some(&management),
            cluster: Some(&cluster),
            infrastructure: Some(&infrastructure),
        };
        decide(control_plane, inputs, &gates())
    }

    fn held(gates: &str) -> Value {
        json!({"metadata": {"annotations": {PAUSED: "true", PAUSED_HERE: gates}}})
    }

    #[rstest]
    #[case::all_true(&[("A", "True"), ("B", "True")], None)]
    #[case::one_false(&[("A", "True"), ("B", "False")], Some("B"))]
    #[case::none_there(&[], Some("A,B"))]
    #[case::one_absent(&[("B", "True"), ("C", "True")], Some("A"))]
    #[case::first_of_two_counts(&[("A", "False"), ("A", "True"), ("B", "True")], Some("A"))]
    fn control_plane_waits_for_each_gate(#[case] conditions: &[(&str, &str)], #[case] unmet: Option<&str>) {
        let found = decided(&control_plane(&json!({})), &with(conditions));
        assert_eq!(
            found,
            unmet.map_or(Pause::LeftAlone, |unmet| Pause::Held(unmet.to_owned()))
        );
        let found = decided(&control_plane(&held("old")), &with(conditions));
        assert_eq!(
            found,
            unmet.map_or(Pause::Released, |unmet| Pause::Held(unmet.to_owned()))
        );
    }

    #[test]
    fn without_gates_nothing_is_waited_for() {
        let (management, cluster, infrastructure) = (management().cluster(), cluster(&json!({})), with(&[]).cluster());
        let inputs = GateInputs {
            management: Some(&management),
            cluster: Some(&cluster),
            infrastructure: Some(&infrastructure),
        };
        assert_eq!(decide(&control_plane(&json!({})), inputs, &[]), Pause::LeftAlone);
    }

    #[test]
    fn pause_of_somebody_else_is_left_alone() {
        let theirs = control_plane(&json!({"metadata": {"annotations": {PAUSED: "true"}}}));
        assert_eq!(decided(&theirs, &with(&[])), Pause::LeftAlone);
        let open = with(&[("A", "True"), ("B", "True")]);
        assert_eq!(decided(&theirs, &open), Pause::NotOurs);
    }

    #[test]
    fn what_is_held_already_is_not_written() {
        assert_eq!(decided(&control_plane(&held("A,B")), &with(&[])), Pause::LeftAlone);
        let resumed = control_plane(&json!({"metadata": {"annotations": {PAUSED_HERE: "A,B"}}}));
        assert_eq!(decided(&resumed, &with(&[])), Pause::Held("A,B".to_owned()));
    }

    #[test]
    fn initialized_control_plane_is_never_held() {
        let older = json!({"status": {"initialized": true}});
        assert_eq!(decided(&control_plane(&older), &with(&[])), Pause::LeftAlone);
        let initialized = json!({"status": {"initialization": {"controlPlaneInitialized": true}}});
        assert_eq!(decided(&control_plane(&initialized), &with(&[])), Pause::LeftAlone);
        let mut own = held("A");
        json_patch::merge(&mut own, &initialized);
        assert_eq!(decided(&control_plane(&own), &with(&[])), Pause::Released);
    }

    #[test]
    fn control_plane_that_is_not_served_is_left_alone() {
        let deleting = json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(decided(&control_plane(&deleting), &with(&[])), Pause::LeftAlone);
        let somebodys = json!({"metadata": {"annotations": {PAUSED: "true"},
            "deletionTimestamp": "2026-01-01T00:00:00Z"}});
        assert_eq!(decided(&control_plane(&somebodys), &with(&[])), Pause::LeftAlone);
        let (plane, infrastructure) = (control_plane(&json!({})), with(&[]).cluster());
        let (private, public) = (management().cluster(), management().public().cluster());
        let (running, paused) = (cluster(&json!({})), cluster(&json!({"paused": true})));
        let inputs = |management, cluster, infrastructure| GateInputs {
            management,
            cluster,
            infrastructure,
        };
        for inputs in [
            inputs(None, Some(&running), Some(&infrastructure)),
            inputs(Some(&public), Some(&running), Some(&infrastructure)),
            inputs(Some(&private), None, Some(&infrastructure)),
            inputs(Some(&private), Some(&paused), Some(&infrastructure)),
            inputs(Some(&private), Some(&running), None),
        ] {
            assert_eq!(decide(&plane, inputs, &gates()), Pause::LeftAlone, "{inputs:?}");
        }
    }

    #[test]
    fn own_pause_ends_with_what_it_is_for() {
        let own = held("A");
        let mut deleting = own.clone();
        json_patch::merge(
            &mut deleting,
            &json!({"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}),
        );
        assert_eq!(decided(&control_plane(&deleting), &with(&[])), Pause::Released);
        let (public, running, infrastructure) = (
            management().public().cluster(),
            cluster(&json!({})),
            with(&[]).cluster(),
        );
        let inputs = GateInputs {
            management: Some(&public),
            cluster: Some(&running),
            infrastructure: Some(&infrastructure),
        };
        assert_eq!(decide(&control_plane(&own), inputs, &gates()), Pause::Released);
        let unknown = GateInputs {
            management: None,
            ..inputs
        };
        assert_eq!(decide(&control_plane(&own), unknown, &gates()), Pause::LeftAlone);
        assert_eq!(decide(&control_plane(&deleting), unknown, &gates()), Pause::Released);
    }

    #[test]
    fn only_a_controller_of_kind_cluster_owns_a_control_plane() {
        assert_eq!(owner(&control_plane(&json!({}))), Some("wc"));
        let other = json!({"metadata": {"ownerReferences": [{"apiVersion": "v1", "kind": "ConfigMap", "name": "x",
            "uid": "x", "controller": true}]}});
        assert_eq!(owner(&control_plane(&other)), None);
        let kind = json!({"infrastructureRef": {"kind": "AzureManagedCluster"}});
        assert_eq!(
            (infrastructure(&cluster(&kind)), infrastructure(&cluster(&json!({})))),
            (None, Some("wc"))
        );
    }
}
