//! Whether another controller has the same role for a custom resource, by the API server's record of its writers.
//!
//! Stores drop `managedFields`, so the object has to be read from the API server.

use std::time::Duration;

use jiff::{SignedDuration, Timestamp};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{ManagedFieldsEntry, ObjectMeta};
use serde_json::Value;

use super::Role;
use super::role::RolePart;

/// The manager that wrote the part of the status that is `role`'s, among all `parts`, not longer than `recent` ago and
/// after this process began to serve the object.
///
/// An older write means that the other controller has stopped. HyperShift writes after each zone, which takes a minute.
///
/// HyperShift's operator of the other role does not count, though it writes the whole list of conditions. Nobody counts
/// before this role has recorded its intent.
pub fn other_writer<'a>(
    metadata: &'a ObjectMeta,
    parts: &[RolePart],
    role: Role,
    now: Timestamp,
    recent: Duration,
) -> Option<&'a str> {
    let oldest = SignedDuration::try_from(recent).unwrap_or(SignedDuration::MAX);
    let entries = metadata.managed_fields.iter().flatten();
    let dated = entries.filter_map(|entry| Some((entry.manager.as_deref()?, entry.time.as_ref()?.0, entry)));
    let (of_status, of_object): (Vec<_>, Vec<_>) =
        dated.partition(|(_, _, entry)| entry.subresource.as_deref() == Some("status"));
    let own = of_object
        .iter()
        .filter(|(manager, ..)| *manager == role.field_manager());
    let adopted_at = own.map(|(_, time, _)| *time).max()?;
    let others = of_status.iter().filter(|(manager, time, entry)| {
        let is_own_role = Role::ALL.iter().any(|role| role.field_manager() == *manager);
        let recent = *time > adopted_at && now.duration_since(*time) <= oldest;
        let mut other_roles = parts.iter().map(|part| part.role).filter(|other| *other != role);
        let has_other_role = other_roles.any(|other| other.spec().replaces == Some(*manager));
        let mut own_part = parts.iter().filter(|part| part.role == role);
        recent && !is_own_role && !has_other_role && own_part.any(|part| writes(entry, part))
    });
    others.max_by_key(|(_, time, _)| *time).map(|(manager, ..)| *manager)
}

/// Whether the entry has something of this part that only its role writes. Both of HyperShift's operators write the
/// summary.
fn writes(entry: &ManagedFieldsEntry, part: &RolePart) -> bool {
    let Some(status) = entry.fields_v1.as_ref().and_then(|fields| fields.0.get("f:status")) else {
        return false;
    };
    let own = part.conditions.iter().filter(|kind| part.summary != Some(**kind));
    let mut keys = own.map(|kind| format!("k:{{\"type\":\"{}\"}}", kind.as_str()));
    let conditions = status.get("f:conditions").and_then(Value::as_object);
    let mut fields = part.status_fields.iter();
    keys.any(|key| conditions.is_some_and(|all| all.contains_key(&key)))
        || fields.any(|field| status.get(format!("f:{field}")).is_some())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api::AzurePrivateLinkService;

    const NOW: &str = "2026-01-01T12:00:00Z";

    fn entry(manager: &str, second: u8, status: Value) -> Value {
        json!({"manager": manager, "operation": "Update", "subresource": "status", "apiVersion": "hypershift.openshift.io/v1beta1",
            "time": format!("2026-01-01T11:59:{second:02}Z"), "fieldsType": "FieldsV1", "fieldsV1": {"f:status": status}})
    }

    fn conditions(kinds: &[&str]) -> Value {
        let keys = kinds
            .iter()
            .map(|kind| (format!("k:{{\"type\":\"{kind}\"}}"), json!({"f:status": {}})));
        json!({"f:conditions": Value::Object(keys.collect())})
    }

    /// The managed fields of an intent that this role recorded.
    fn own_intent(second: u8) -> Value {
        json!({"manager": "hyperlink-cpo", "operation": "Update", "time": format!("2026-01-01T11:59:{second:02}Z"),
            "fieldsType": "FieldsV1", "fieldsV1": {"f:metadata": {"f:annotations": {}}}})
    }

    fn found(entries: Value) -> Option<String> {
        let cr: AzurePrivateLinkService = serde_json::from_value(json!({"apiVersion": "hypershift.openshift.io/v1beta1",
            "kind": "AzurePrivateLinkService", "metadata": {"name": "private-router", "managedFields": entries},
            "spec": {"subscriptionID": "s", "resourceGroupName": "g", "location": "l", "guestSubnetID": "x", "guestVNetID": "y"}}))
        .unwrap();
        let minute = Duration::from_secs(60);
        let parts = &AzurePrivateLinkService::PARTS;
        other_writer(&cr.metadata, parts, Role::Cpo, NOW.parse().unwrap(), minute).map(str::to_owned)
    }

    #[rstest]
    #[case::condition(entry("hypershift-controlplane-manager", 58, conditions(&["AzurePrivateEndpointAvailable"])), true)]
    #[case::field(entry("hypershift-controlplane-manager", 58, json!({"f:privateEndpointIP": {}})), true)]
    #[case::somebody_unknown(entry("unknown", 58, json!({"f:dnsZoneName": {}})), true)]
    #[case::before_it_was_adopted(entry("hypershift-controlplane-manager", 54, json!({"f:privateEndpointIP": {}})), false)]
    #[case::management_side_and_summary(entry("hypershift-operator-manager", 58, conditions(&["AzurePLSCreated", "AzurePrivateLinkServiceAvailable"])), false)]
    #[case::management_side_reverts_the_list(entry("hypershift-operator-manager", 58, conditions(&["AzurePrivateDNSAvailable"])), false)]
    #[case::our_own_other_role(entry("hyperlink-ho", 58, conditions(&["AzurePLSCreated"])), false)]
    fn second_controller_of_the_guest_side_is_recognised(#[case] other: Value, #[case] active: bool) {
        let manager = other["manager"].as_str().map(str::to_owned);
        assert_eq!(found(json!([own_intent(55), other])), manager.filter(|_| active));
    }

    #[test]
    fn adopted_cluster_is_not_contested_for_ever() {
        let mut theirs = entry(
            "hypershift-controlplane-manager",
            59,
            json!({"f:privateEndpointIP": {}}),
        );
        assert_eq!(found(json!([theirs.clone()])), None, "nothing of ours is recorded yet");
        assert!(found(json!([own_intent(30), theirs.clone()])).is_some());
        theirs["time"] = json!("2026-01-01T11:58:59Z");
        let mut recorded = own_intent(30);
        recorded["time"] = json!("2026-01-01T11:30:00Z");
        assert_eq!(found(json!([recorded, theirs])), None, "it has stopped");
    }

    #[test]
    fn write_of_the_spec_is_no_write_of_the_status() {
        let mut theirs = entry(
            "hypershift-controlplane-manager",
            58,
            json!({"f:privateEndpointIP": {}}),
        );
        theirs.as_object_mut().unwrap().remove("subresource");
        assert_eq!(found(json!([own_intent(55), theirs])), None);
    }
}
