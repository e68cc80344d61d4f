//! What lists of Azure show to a decision: the frontends of load balancers, and what is inside a zone. Data only.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use super::{Facts, Need, Needs};
use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::{ResourceId, SubscriptionId, same};
use crate::azure::cloud::Arm;
use crate::azure::kinds::Kind;
use crate::azure::kinds::load_balancer::FrontendList;
use crate::controllers::cloud::{ListFacts, ServedCloud, ShownList};

/// The greatest age of a list that is searched for a frontend that must have just appeared, and so how soon it can be
/// read again. Whatever appears, and wherever, the list is not read more often.
///
/// Rule: `docs/sizing.md`.
pub const NEW_LIST_AGE: Duration = Duration::from_secs(1);

/// A list that a decision needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum ListNeed {
    /// The internal frontends of a group's load balancers, or of the whole subscription's.
    Frontends(SubscriptionId, Option<String>),
    /// Frontends, read just now on behalf of a namespace: what is searched for may have appeared since the last list.
    NewFrontends(SubscriptionId, Option<String>, String),
    /// All resources of a kind inside a zone. For records: of all types.
    Inside(Kind, ResourceId),
}

/// What lists have shown.
#[derive(Debug, Clone, Default)]
pub struct Lists {
    /// Frontends by scope.
    pub frontends: HashMap<(SubscriptionId, Option<String>), FrontendList>,
    /// The scopes whose frontends were read just now.
    pub new_frontends: HashSet<(SubscriptionId, Option<String>)>,
    /// Whether one of those was read a moment before this reconcile began, for another one.
    pub older_frontends: bool,
    /// Whether one of those was not read, because the namespace has used its share of lists.
    pub held_frontends: bool,
    /// Contents of zones.
    pub inside: HashMap<(Kind, ResourceId), Result<Vec<Value>, ArmError>>,
}

impl ServedCloud for Arm {
    type ListNeed = ListNeed;
    type ListFacts = Lists;

    fn is_same(id: &str, other: &str) -> bool {
        same(id, other)
    }
}

impl ListFacts<Arm> for Lists {
    fn forget_unread(&mut self) {
        self.frontends.retain(|_, found| found.is_ok());
        self.inside.retain(|_, found| found.is_ok());
    }

    fn forget_changed(&mut self) {
        self.inside.clear();
    }

    fn shown(&self) -> Vec<ShownList<Arm>> {
        let frontends = self.frontends.iter().map(|((subscription, group), found)| {
            let group = group.as_ref().map(|group| format!("/resourceGroups/{group}"));
            ShownList {
                kind: Kind::LoadBalancer,
                scope: format!("/subscriptions/{subscription}{}", group.unwrap_or_default()),
                found: found.as_ref().map(|all| all.len()).map_err(Clone::clone),
                rows: "internal frontends",
            }
        });
        let inside = self.inside.iter().map(|((kind, zone), found)| ShownList {
            kind: *kind,
            scope: zone.to_string(),
            found: found.as_ref().map(Vec::len).map_err(Clone::clone),
            rows: "in it",
        });
        frontends.chain(inside).collect()
    }
}

impl Facts {
    /// The internal frontends in a scope.
    pub fn frontends(&self, subscription: &SubscriptionId, group: Option<&str>) -> Result<&FrontendList, Needs> {
        let key = (subscription.clone(), group.map(str::to_owned));
        let known = self.lists.frontends.get(&key);
        known.ok_or_else(|| needed(ListNeed::Frontends(key.0, key.1)))
    }

    /// The internal frontends in a scope, read just now on behalf of a namespace.
    pub fn new_frontends(
        &self,
        subscription: &SubscriptionId,
        group: Option<&str>,
        namespace: &str,
    ) -> Result<&FrontendList, Needs> {
        let key = (subscription.clone(), group.map(str::to_owned));
        if self.lists.new_frontends.contains(&key) {
            return self.frontends(subscription, group);
        }
        Err(needed(ListNeed::NewFrontends(key.0, key.1, namespace.to_owned())))
    }

    /// What is inside a zone.
    pub fn inside(&self, kind: Kind, zone: &ResourceId) -> Result<&Result<Vec<Value>, ArmError>, Needs> {
        let key = (kind, zone.clone());
        let known = self.lists.inside.get(&key);
        known.ok_or_else(|| needed(ListNeed::Inside(key.0, key.1)))
    }
}

fn needed(list: ListNeed) -> Needs {
    vec![Need::List(list)]
}
