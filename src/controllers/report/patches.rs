//! The patches that write a report. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use serde_json::{Map, Value, json};

use super::Report;
use crate::controllers::cloud::ServedCloud;
use crate::controllers::custom_resource::CustomResource;
use crate::hypershift::conditions;

/// Whether a field is as desired. Ids are compared as the cloud does, or two writers that spell one differently would
/// wake each other for ever.
fn field_matches<C: ServedCloud>(name: &str, current: &Value, desired: &Value) -> bool {
    match (current.as_str(), desired.as_str()) {
        (Some(current), Some(desired)) if name.ends_with("ID") => C::is_same(current, desired),
        _ => current == desired,
    }
}

/// The plain fields that differ.
fn due_fields<R: CustomResource>(cr: &R, report: &Report) -> Map<String, Value> {
    let current = cr.status_fields();
    let mut fields = report.fields.clone();
    fields.retain(|name, desired| !field_matches::<R::Cloud>(name, current.get(name).unwrap_or(&Value::Null), desired));
    fields
}

/// The merge patch for the plain fields that differ, if any do.
pub fn fields_patch<R: CustomResource>(cr: &R, report: &Report) -> Option<Value> {
    let fields = due_fields(cr, report);
    (!fields.is_empty()).then(|| json!({"metadata": {"resourceVersion": cr.meta().resource_version}, "status": fields}))
}

/// The JSON patch for plain fields and conditions at once, if both differ: whoever begins to work when a field is
/// published, and then writes the status, meets no second write of ours.
///
/// The type of each condition is tested, because what cannot be read of the list is missing in `cr`.
pub fn status_patch<R: CustomResource>(cr: &R, report: &Report, own: &[Condition]) -> Option<Value> {
    let (fields, stored) = (due_fields(cr, report), cr.conditions());
    if fields.is_empty() || conditions::stands(stored, own) {
        return None;
    }
    let operation = |op: &str, path: &str, value: Value| json!({"op": op, "path": path, "value": value});
    let version = json!(cr.meta().resource_version);
    let mut patch = vec![operation("replace", "/metadata/resourceVersion", version)];
    if cr.status_fields().is_null() {
        patch.push(operation("add", "/status", json!({"conditions": []})));
    }
    for (name, value) in fields {
        let op = if value.is_null() { "remove" } else { "add" };
        patch.push(operation(op, &format!("/status/{name}"), value));
    }
    for new in own {
        let Some(index) = stored.iter().position(|old| old.type_ == new.type_) else {
            patch.push(operation("add", "/status/conditions/-", json!(new)));
            continue;
        };
        let at = format!("/status/conditions/{index}");
        patch.push(operation("test", &format!("{at}/type"), json!(new.type_)));
        patch.push(operation("replace", &at, json!(new)));
    }
    Some(Value::Array(patch))
}

/// The server-side apply of all conditions of the role, if more than time differs.
pub fn conditions_patch<R: CustomResource>(cr: &R, own: &[Condition]) -> Option<Value> {
    if own.is_empty() || conditions::stands(cr.conditions(), own) {
        return None;
    }
    let meta = cr.meta();
    Some(json!({
        "apiVersion": R::api_version(&()),
        "kind": R::kind(&()),
        "metadata": {"name": meta.name, "namespace": meta.namespace, "resourceVersion": meta.resource_version},
        "status": {"conditions": own},
    }))
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;
    use rstest::rstest;

    use super::*;
    use crate::api::{AWSEndpointService, ConditionType};
    use crate::controllers::report::tests::{cr, report};
    use crate::hypershift::conditions::NewCondition;

    #[test]
    fn nothing_is_written_when_only_time_differs() {
        let [now, later] = ["2026-01-01T00:00:00Z", "2027-01-01T00:00:00Z"].map(|time| time.parse().unwrap());
        let first = cr(json!({"dnsZoneName": "a.b"}));
        assert_eq!(
            fields_patch(&first, &report()).unwrap()["status"],
            json!({"privateLinkServiceID": "id"})
        );
        let applied = conditions_patch(&first, &report().dated(&first, now)).unwrap();
        let second = cr(json!({"privateLinkServiceID": "id", "conditions": applied["status"]["conditions"]}));
        assert_eq!(fields_patch(&second, &report()), None);
        assert_eq!(conditions_patch(&second, &report().dated(&second, later)), None);
    }

    #[test]
    fn id_that_another_writer_spells_in_other_case_is_left() {
        let fields = |alias: &str| {
            Map::from_iter([
                (
                    "privateEndpointID".to_owned(),
                    json!("/subscriptions/s/resourceGroups/guest"),
                ),
                ("privateLinkServiceAlias".to_owned(), json!(alias)),
            ])
        };
        let report = |alias: &str| Report {
            fields: fields(alias),
            ..Report::default()
        };
        let there =
            cr(json!({"privateEndpointID": "/subscriptions/S/resourceGroups/GUEST", "privateLinkServiceAlias": "a"}));
        assert_eq!(fields_patch(&there, &report("a")), None);
        // What is no id is compared letter by letter.
        let patch = fields_patch(&there, &report("A")).unwrap();
        assert_eq!(patch["status"], json!({"privateLinkServiceAlias": "A"}));
    }

    #[test]
    fn patches_are_guarded_by_the_version_that_was_read() {
        let now = Timestamp::UNIX_EPOCH;
        let cr = cr(json!({"dnsZoneName": "a.b"}));
        assert_eq!(
            fields_patch(&cr, &report()).unwrap()["metadata"]["resourceVersion"],
            "7"
        );
        assert_eq!(
            conditions_patch(&cr, &report().dated(&cr, now)).unwrap()["metadata"]["resourceVersion"],
            "7"
        );
    }

    /// A condition of this type that holds.
    fn holding(kind: &str) -> Value {
        json!({"type": kind, "status": "True", "reason": "AWSSuccess", "message": "",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    }

    /// The status after the patch that publishes a name and its condition; none if the API server refuses it.
    fn published_at_once(status: Value) -> Option<Value> {
        let mut object = json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AWSEndpointService",
            "metadata": {"name": "private-router", "namespace": "n", "resourceVersion": "7"}, "spec": {}});
        if !status.is_null() {
            object["status"] = status;
        }
        let cr: AWSEndpointService = serde_json::from_value(object.clone()).unwrap();
        let report = Report {
            conditions: vec![NewCondition::holds(
                ConditionType::AWSEndpointServiceAvailable,
                "",
                None,
            )],
            fields: Map::from_iter([("endpointServiceName".to_owned(), json!("new"))]),
        };
        let time = "2026-01-01T00:00:00Z".parse().unwrap();
        let patch = status_patch(&cr, &report, &report.dated(&cr, time)).unwrap();
        let guard = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
        assert_eq!(patch[0], guard);
        let patch: json_patch::Patch = serde_json::from_value(patch).unwrap();
        json_patch::patch(&mut object, &patch).ok()?;
        Some(object["status"].take())
    }

    #[rstest]
    #[case::new(Value::Null, &[])]
    #[case::first_of_the_role(json!({"conditions": [holding("Theirs")]}), &["Theirs"])]
    fn name_and_condition_are_published_at_once(#[case] status: Value, #[case] theirs: &[&str]) {
        let kinds = theirs.iter().chain(&["AWSEndpointServiceAvailable"]);
        let expected =
            json!({"endpointServiceName": "new", "conditions": kinds.map(|kind| holding(kind)).collect::<Vec<_>>()});
        assert_eq!(published_at_once(status), Some(expected));
    }

    #[test]
    fn conditions_of_others_stay_where_they_are() {
        let pending = json!({"type": "AWSEndpointServiceAvailable", "status": "False", "reason": "Provisioning",
            "message": "x", "lastTransitionTime": "2025-01-01T00:00:00Z"});
        let status = |own: Value| json!({"endpointID": "e", "conditions": [holding("A"), own, holding("B")]});
        let mut expected = status(holding("AWSEndpointServiceAvailable"));
        expected["endpointServiceName"] = json!("new");
        assert_eq!(published_at_once(status(pending.clone())), Some(expected));
        let unreadable = json!({"conditions": [{"type": "unreadable"}, pending]});
        assert_eq!(published_at_once(unreadable), None, "it is not where it seems to be");
        let unread = json!({"conditions": [{"type": "unreadable"}]});
        let kept = published_at_once(unread).map(|status| status["conditions"][0].clone());
        assert_eq!(
            kept,
            Some(json!({"type": "unreadable"})),
            "a condition that is not read stays"
        );
    }

    #[test]
    fn what_alone_differs_is_not_written_at_once() {
        let time = Timestamp::UNIX_EPOCH;
        let first = cr(json!({}));
        let own = report().dated(&first, time);
        let field_removed = status_patch(&cr(json!({"privateLinkServiceAlias": "a"})), &report(), &own).unwrap();
        let removal = json!({"op": "remove", "path": "/status/privateLinkServiceAlias", "value": null});
        assert!(field_removed.as_array().unwrap().contains(&removal));
        assert_eq!(
            status_patch(&cr(json!({"privateLinkServiceID": "id"})), &report(), &own),
            None
        );
        assert_eq!(status_patch(&cr(json!({"conditions": own})), &report(), &own), None);
    }
}
