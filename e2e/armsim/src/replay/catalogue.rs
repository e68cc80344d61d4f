//! Answers whose content belongs to the recorder's cloud and directory: providers, regions, subscriptions, permissions.
//!
//! Their form is compared, item by typical item; of the values only states and ids.

use serde_json::{Map, Value};

use crate::resources::View;

use super::compare::{Difference, DifferenceKind};
use super::names::Names;
use super::shape::step;

/// Keys whose values are the same in every cloud.
const SAME: [&str; 6] = [
    "id",
    "namespace",
    "registrationState",
    "registrationPolicy",
    "state",
    "type",
];
/// Azure's own applications and a subscription's own words.
const INTERNAL: [&str; 2] = ["authorizations", "tags"];

/// Whether an answer is of that kind.
pub(super) fn lists(view: &View) -> bool {
    !matches!(view, View::ResourceGroups | View::Resources)
}

/// All differences in form.
pub(super) fn compare(at: &str, recorded: &Value, simulated: &Value, names: &Names, differences: &mut Vec<Difference>) {
    let key = at.rsplit('.').next().unwrap_or_default();
    match (recorded, simulated) {
        (Value::Object(recorded), Value::Object(simulated)) => {
            for (key, value) in recorded.iter().filter(|(key, _)| !INTERNAL.contains(&key.as_str())) {
                let found = simulated.get(key).unwrap_or(&Value::Null);
                compare(&step(at, key), value, found, names, differences);
            }
        }
        (Value::Array(recorded), Value::Array(simulated)) => {
            // Only the list itself has to have something.
            let first = simulated.first().or((at == "value").then_some(&Value::Null));
            if let (Some(typical), Some(first)) = (typical(recorded), first) {
                compare(&format!("{at}[]"), &typical, first, names, differences);
            }
        }
        (Value::String(recorded), Value::String(simulated)) => {
            let expected = names.our_text(recorded);
            if SAME.contains(&key) && !at.contains("[]") && !expected.eq_ignore_ascii_case(simulated) {
                differences.push(Difference::new(DifferenceKind::Body, at, expected, simulated));
            }
        }
        _ if std::mem::discriminant(recorded) == std::mem::discriminant(simulated) => {}
        (_, Value::Null) => differences.push(Difference::new(DifferenceKind::Body, at, recorded, "")),
        _ => differences.push(Difference::new(DifferenceKind::Body, at, recorded, simulated)),
    }
}

/// What all items have in common, as the first one has it.
fn typical(items: &[Value]) -> Option<Value> {
    let first = items.first()?;
    let Value::Object(fields) = first else {
        return Some(first.clone());
    };
    let common = fields
        .iter()
        .filter(|(key, _)| items.iter().all(|item| item.get(key.as_str()).is_some()));
    let common: Map<String, Value> = common.map(|(key, value)| (key.clone(), value.clone())).collect();
    Some(Value::Object(common))
}
