//! The principals that may connect to an endpoint service: all of them, as one resource in it.
//!
//! Body: `AllowedPrincipals`, ARNs.

use std::collections::BTreeSet;

use hyperlink_engine::kind_rules::Resync;
use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::{Value, json};

use super::{Kind, Rules};
use crate::body::{list, texts};
use crate::cloud::Aws;
use crate::slot::Slot;

/// What the engine has to know of allowed principals.
pub const RULES: Rules = Rules {
    // Each needs a call of its own: no list shows them.
    resync: Resync::Record,
    create_if_new: true,
    written_at_once: true,
    ..Rules::DEFAULT
};

/// The desired principals of an endpoint service. All others are removed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AllowedPrincipals {
    /// The slot in the endpoint service's.
    pub slot: Slot,
    /// Their ARNs.
    pub arns: BTreeSet<String>,
}

/// What has to be sent to come from one set of principals to another.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PrincipalChange {
    /// Those to add.
    pub added: BTreeSet<String>,
    /// Those to remove.
    pub removed: BTreeSet<String>,
}

impl PrincipalChange {
    /// The change from what was read to the body of a put.
    pub fn between(found: Option<&Value>, body: &Value) -> Self {
        let current = found.map(|found| texts(found, "AllowedPrincipals")).unwrap_or_default();
        let desired = texts(body, "AllowedPrincipals");
        Self {
            added: desired.difference(&current).cloned().collect(),
            removed: current.difference(&desired).cloned().collect(),
        }
    }

    /// What of the change it is of use to send, where AWS has `refused` some principals lately, and `taken` others. Those
    /// that it took and does not show are there by unique ids, if it shows as many. Such ids stay then: they would come
    /// again, and nobody can connect as one.
    #[must_use]
    pub fn useful(mut self, refused: &BTreeSet<String>, taken: &BTreeSet<String>) -> Self {
        self.added.retain(|arn| !refused.contains(arn));
        let unique_ids = self.removed.iter().filter(|principal| is_unique_id(principal)).count();
        if self.added.is_subset(taken) && (1..=unique_ids).contains(&self.added.len()) {
            self.added.clear();
            self.removed.retain(|principal| !is_unique_id(principal));
        }
        self
    }

    /// Whether there is nothing to send.
    pub fn is_empty(&self) -> bool {
        self.added.is_empty() && self.removed.is_empty()
    }
}

/// Whether this is how AWS shows a principal that exists no more.
///
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_identifiers.html#identifiers-unique-ids>
pub fn is_unique_id(principal: &str) -> bool {
    let mut letters = principal.bytes();
    principal.starts_with('A') && letters.all(|letter| letter.is_ascii_uppercase() || letter.is_ascii_digit())
}

impl Owned<Aws> for AllowedPrincipals {
    fn kind(&self) -> Kind {
        Kind::AllowedPrincipals
    }

    fn key(&self) -> &Slot {
        &self.slot
    }

    /// They are in an endpoint service that is proven to be owned.
    fn is_owned(&self, _: &Value) -> bool {
        true
    }
}

impl Resource<Aws> for AllowedPrincipals {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let differs = texts(current, "AllowedPrincipals") != self.arns;
        differs
            .then_some(Difference::of("AllowedPrincipals"))
            .into_iter()
            .collect()
    }

    fn body(&self, _: Option<&Value>) -> Value {
        json!({"AllowedPrincipals": list(&self.arns)})
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::role_alone_is_added(&[], &["r"], &["r"], &[])]
    #[case::role_and_two_others_are_added(&[], &["r", "a", "b"], &["a", "b", "r"], &[])]
    #[case::two_foreign_ones_are_removed(&["r", "x", "y"], &["r"], &[], &["x", "y"])]
    #[case::nothing_changes(&["r"], &["r"], &[], &[])]
    fn only_the_difference_is_sent(
        #[case] current: &[&str],
        #[case] desired: &[&str],
        #[case] added: &[&str],
        #[case] removed: &[&str],
    ) {
        let set = |arns: &[&str]| arns.iter().map(|arn| (*arn).to_owned()).collect::<BTreeSet<_>>();
        let change = PrincipalChange::between(
            Some(&json!({"AllowedPrincipals": current})),
            &json!({"AllowedPrincipals": desired}),
        );
        let expected = PrincipalChange {
            added: set(added),
            removed: set(removed),
        };
        assert_eq!(change, expected);
    }
}
