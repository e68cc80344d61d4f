//! How often each operation was checked, and what could not be.

use std::collections::{BTreeMap, BTreeSet};

use serde::{Deserialize, Serialize};

/// The checks so far. Counts are of exchanges, but for `disagreements`, whose are of findings.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Tally {
    /// By operation.
    pub checked: BTreeMap<String, Checked>,
    /// Operations of the specs of which no call was taken.
    pub never_taken: BTreeSet<String>,
    /// By method and form of the path: what no spec at hand describes.
    pub not_in_specs: BTreeMap<String, u64>,
    /// By their descriptions: places where spec and service are known to disagree.
    pub disagreements: BTreeMap<String, u64>,
}

/// Exchanges of one operation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Checked {
    /// Answered by success: both halves are checked.
    pub taken: u64,
    /// Refused: only the answer is checked.
    pub refused: u64,
}

/// Forms of paths that are kept apart; the rest is counted as one.
const FORMS: usize = 200;

/// Counts a call that no spec describes.
pub(super) fn count_unknown(unknown: &mut BTreeMap<String, u64>, method: &str, path: &str) {
    let mut form = format!("{method} {}", form(path));
    if unknown.len() >= FORMS && !unknown.contains_key(&form) {
        "other".clone_into(&mut form);
    }
    *unknown.entry(form).or_default() += 1;
}

/// A path without its names: `/subscriptions/*/resourcegroups/*/providers/microsoft.network/virtualnetworks/*`.
fn form(path: &str) -> String {
    let mut form = String::new();
    let mut last = "";
    for (number, part) in path.split('/').filter(|part| !part.is_empty()).enumerate() {
        let name = number % 2 == 1 && !last.eq_ignore_ascii_case("providers");
        form.push('/');
        form.push_str(&if name {
            "*".to_owned()
        } else {
            part.to_ascii_lowercase()
        });
        last = part;
    }
    form
}
