//! Who may connect to a Private Link Service that is only to lose subscriptions, not gain any.

use std::collections::BTreeSet;

use hyperlink_engine::resource::{Difference, Owned, Resource};
use serde_json::Value;

use super::{OwnedPrivateLinkService, subscriptions};
use crate::arm::id::{ResourceId, SubscriptionId};
use crate::body::base;
use crate::cloud::Arm;
use crate::kinds::Kind;

/// The lists of the subscriptions that see a service, and of those whose connections it approves at once.
const LISTS: [&str; 2] = ["visibility", "autoApproval"];

/// A Private Link Service whose lists keep only allowed subscriptions. None is added, and everything else stays.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Narrowed {
    /// Its id, and what proves that it is owned.
    pub owned: OwnedPrivateLinkService,
    /// The subscriptions that may stay in the lists.
    pub allowed: BTreeSet<SubscriptionId>,
}

impl Narrowed {
    fn allows(&self, given: &str) -> bool {
        self.allowed.iter().any(|one| one.as_str().eq_ignore_ascii_case(given))
    }
}

impl Owned<Arm> for Narrowed {
    fn kind(&self) -> Kind {
        self.owned.kind()
    }

    fn key(&self) -> &ResourceId {
        self.owned.key()
    }

    fn is_owned(&self, current: &Value) -> bool {
        self.owned.is_owned(current)
    }
}

impl Resource<Arm> for Narrowed {
    fn differs(&self, current: &Value) -> Vec<Difference> {
        let wider = LISTS
            .into_iter()
            .filter(|list| subscriptions(current, list).iter().any(|given| !self.allows(given)));
        wider.map(Difference::of).collect()
    }

    fn body(&self, current: Option<&Value>) -> Value {
        let mut body = base(current);
        for list in LISTS {
            let list = body.pointer_mut(&format!("/properties/{list}/subscriptions"));
            if let Some(given) = list.and_then(Value::as_array_mut) {
                given.retain(|one| one.as_str().is_some_and(|one| self.allows(one)));
            }
        }
        body
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::owner_tags::{OwnerTags, Stamp};

    fn narrowed() -> Narrowed {
        let id = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateLinkServices/pls-x";
        let owned = OwnedPrivateLinkService {
            id: ResourceId::parse(id).unwrap(),
            owner_tags: OwnerTags {
                owner: ("cluster".into(), "x".into()),
                ..OwnerTags::default()
            },
            stamp: Stamp {
                tag: "management".into(),
                own: "m".into(),
                former: None,
            },
            frontend: None,
            proven: false,
        };
        let allowed = ["guest", "other"].map(|one| SubscriptionId::parse(one).unwrap());
        Narrowed {
            owned,
            allowed: allowed.into(),
        }
    }

    fn letting_in(visible_to: Value, approved: Value) -> Value {
        json!({"tags": {"cluster": "x"}, "etag": "e", "properties": {"alias": "a",
            "visibility": {"subscriptions": visible_to}, "autoApproval": {"subscriptions": approved}}})
    }

    #[test]
    fn those_who_may_no_longer_are_taken_off_and_nobody_is_put_on() {
        let current = letting_in(json!(["GUEST", "revoked"]), json!(["revoked"]));
        let differences = narrowed().differs(&current);
        assert_eq!(differences, LISTS.map(Difference::of));
        let put = narrowed().body(Some(&current));
        let mut expected = letting_in(json!(["GUEST"]), json!([]));
        expected.as_object_mut().unwrap().remove("etag");
        assert_eq!(put, expected, "all else stays");
        assert_eq!(narrowed().differs(&put), []);
    }

    #[test]
    fn everybody_is_more_than_may_be_let_in() {
        let current = letting_in(json!(["*"]), json!(["guest"]));
        assert_eq!(narrowed().differs(&current), [Difference::of("visibility")]);
    }

    #[test]
    fn lists_that_are_missing_or_shorter_are_no_difference() {
        assert_eq!(narrowed().differs(&json!({"properties": {}})), []);
        assert_eq!(narrowed().differs(&letting_in(json!([]), json!(["other"]))), []);
    }
}
