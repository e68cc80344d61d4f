//! What a role makes or has adopted, recorded on the custom resource before the first write. Pure.
//!
//! A deletion needs nothing else: objects from which it was derived may be gone.

use kube::ResourceExt;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, json};

use crate::api::{Role, held_by};
use crate::engine::cloud::Cloud;
use crate::engine::plan::{Step, Why};

/// Reads an intent from its annotation; a damaged one counts as none.
pub fn read<T: for<'a> Deserialize<'a>>(annotation: Option<&String>) -> Option<T> {
    serde_json::from_str(annotation?).ok()
}

/// Writes an intent for its annotation.
pub fn write<T: Serialize>(intent: &T) -> String {
    serde_json::to_string(intent).unwrap_or_default()
}

/// Whether an intent is to be recorded now: before a write, and once an owned resource is there, whoever made it,
/// because deletion and the other role rely on it. A refusal removes what was recorded of the resource. `held` is
/// whether the role's finalizer is there.
pub fn due<C: Cloud>(cr: &impl ResourceExt, role: Role, held: bool, steps: &[Step<C>]) -> bool {
    let recorded = cr.annotations().contains_key(role.intent_annotation());
    let is_new = !(recorded && held);
    steps
        .iter()
        .any(|step| step.writes() || (is_new && step.ready().is_some()) || (recorded && step.why == Why::NotOurs))
}

/// What a role keeps on the custom resource itself beside its intent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct OwnFields {
    /// Annotations.
    pub annotations: Map<String, Value>,
    /// Fields of the spec.
    pub spec: Map<String, Value>,
}

impl OwnFields {
    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.annotations.is_empty() && self.spec.is_empty()
    }
}

/// The guarded merge patch that writes `fields` and records an intent together with the role's `finalizer`; none if
/// both of these are there already, and there are no fields to write.
pub fn patch(
    cr: &impl ResourceExt,
    role: Role,
    finalizer: Option<&str>,
    intent: Option<&str>,
    fields: &OwnFields,
) -> Option<Value> {
    let recorded = intent.and_then(|intent| record_patch(cr, role, finalizer, intent));
    if recorded.is_none() && fields.is_empty() {
        return None;
    }
    let mut patch = recorded.unwrap_or_else(|| json!({"metadata": {"resourceVersion": cr.meta().resource_version}}));
    for (name, value) in &fields.annotations {
        patch["metadata"]["annotations"][name] = value.clone();
    }
    if !fields.spec.is_empty() {
        patch["spec"] = Value::Object(fields.spec.clone());
    }
    Some(patch)
}

fn record_patch(cr: &impl ResourceExt, role: Role, finalizer: Option<&str>, intent: &str) -> Option<Value> {
    let annotation = role.intent_annotation();
    let held = finalizer.is_none_or(|finalizer| held_by(cr, finalizer));
    let recorded = cr.annotations().get(annotation);
    if held && recorded.is_some_and(|recorded| recorded == intent) {
        return None;
    }
    let mut finalizers = cr.finalizers().to_vec();
    if !held && cr.meta().deletion_timestamp.is_none() {
        finalizers.extend(finalizer.map(str::to_owned));
    }
    Some(
        json!({"metadata": {"resourceVersion": cr.meta().resource_version, "finalizers": finalizers,
        "annotations": {annotation: intent}}}),
    )
}

/// The guarded merge patch that removes the role's `finalizer` and intent.
pub fn release_patch(cr: &impl ResourceExt, role: Role, finalizer: Option<&str>) -> Value {
    let finalizers: Vec<&String> = cr
        .finalizers()
        .iter()
        .filter(|held| Some(held.as_str()) != finalizer)
        .collect();
    json!({"metadata": {"resourceVersion": cr.meta().resource_version, "finalizers": finalizers,
        "annotations": {role.intent_annotation(): null}}})
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::AzurePrivateLinkService;
    use crate::api::markers::{CPO_FINALIZER, HO_FINALIZER};
    use crate::azure::kinds::Kind;
    use crate::azure::plan::{Step, Why};
    use crate::controllers::samples;
    use crate::engine::plan::Verb;

    fn step(verb: Verb, why: Why) -> Step {
        Step {
            kind: Kind::PrivateEndpoint,
            key: samples::id(&samples::guest("privateEndpoints/pe")),
            found: (verb == Verb::Keep).then(|| json!({})),
            verb,
            why,
        }
    }

    fn made() -> Step {
        step(Verb::Put(json!({})), Why::Absent)
    }

    fn there() -> Step {
        step(Verb::Keep, Why::UpToDate)
    }

    fn foreign() -> Step {
        step(Verb::Refuse, Why::NotOurs)
    }

    #[rstest]
    #[case::before_a_write(made(), false, false, true)]
    #[case::what_somebody_else_made_is_there(there(), false, false, true)]
    #[case::finalizer_was_taken_away(there(), true, false, true)]
    #[case::up_to_date(there(), true, true, false)]
    #[case::nothing_is_owned(foreign(), false, false, false)]
    #[case::what_was_recorded_is_foreign(foreign(), true, true, true)]
    #[case::waiting(Step::needs(Kind::PrivateEndpoint, samples::id(&samples::guest("privateEndpoints/pe")), "x"), false, false, false)]
    fn intent_is_recorded_when_something_is_or_will_be_owned(
        #[case] step: Step,
        #[case] recorded: bool,
        #[case] held: bool,
        #[case] expected: bool,
    ) {
        let annotations = if recorded {
            json!({Role::Cpo.intent_annotation(): "x"})
        } else {
            json!({})
        };
        let cr = samples::cr(Value::Null, annotations);
        assert_eq!(due(&cr, Role::Cpo, held, &[step]), expected);
    }

    /// A custom resource that others hold too.
    fn held_by_others(more: &[&str]) -> AzurePrivateLinkService {
        let mut held = samples::cr(Value::Null, json!({}));
        held.metadata.resource_version = Some("7".into());
        let all = ["theirs"].iter().chain(more);
        held.metadata.finalizers = Some(all.map(ToString::to_string).collect());
        held
    }

    #[test]
    fn intent_and_finalizer_come_in_one_guarded_patch() {
        let (own, at) = (HO_FINALIZER, Role::Ho.intent_annotation());
        let recorded_by =
            |cr: &AzurePrivateLinkService| patch(cr, Role::Ho, Some(HO_FINALIZER), Some("x"), &OwnFields::default());
        let patched = recorded_by(&held_by_others(&[])).unwrap();
        let expected = json!({"resourceVersion": "7", "finalizers": ["theirs", own], "annotations": {at: "x"}});
        assert_eq!(patched["metadata"], expected);
        let mut recorded = held_by_others(&[own]);
        recorded.annotations_mut().insert(at.to_owned(), "x".to_owned());
        assert_eq!(recorded_by(&recorded), None);
    }

    #[test]
    fn deleting_object_gets_no_new_finalizer() {
        let mut deleting = held_by_others(&[]);
        deleting.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
        let patched = record_patch(&deleting, Role::Ho, Some(HO_FINALIZER), "x").unwrap();
        assert_eq!(patched["metadata"]["finalizers"], json!(["theirs"]));
    }

    #[test]
    fn fields_are_written_with_the_intent_or_alone() {
        let fields = OwnFields {
            annotations: Map::from_iter([("a".to_owned(), json!("b"))]),
            spec: Map::from_iter([("s".to_owned(), json!(["t"]))]),
        };
        let mut recorded = held_by_others(&[HO_FINALIZER]);
        let annotation = Role::Ho.intent_annotation();
        let both = patch(&recorded, Role::Ho, Some(HO_FINALIZER), Some("x"), &fields).unwrap();
        assert_eq!(both["metadata"]["annotations"], json!({annotation: "x", "a": "b"}));
        recorded.annotations_mut().insert(annotation.to_owned(), "x".to_owned());
        let alone = json!({"metadata": {"resourceVersion": "7", "annotations": {"a": "b"}}, "spec": {"s": ["t"]}});
        for intent in [None, Some("x")] {
            let patched = patch(&recorded, Role::Ho, Some(HO_FINALIZER), intent, &fields);
            assert_eq!(patched.as_ref(), Some(&alone));
        }
    }

    #[test]
    fn guarded_release_removes_only_our_finalizer_and_intent() {
        let held = held_by_others(&[HO_FINALIZER, CPO_FINALIZER]);
        let expected = json!({"resourceVersion": "7", "finalizers": ["theirs", CPO_FINALIZER],
            "annotations": {Role::Ho.intent_annotation(): null}});
        assert_eq!(release_patch(&held, Role::Ho, Some(HO_FINALIZER))["metadata"], expected);
    }
}
