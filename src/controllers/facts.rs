//! What a reconcile knows of Azure, and what it still needs to know. Data only.
//!
//! A decision is run on the facts at hand. Where one is missing, it returns a need, and is run again once that is read.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use serde_json::Value;

use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::{ResourceId, SubscriptionId};
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::azure::kinds::load_balancer::FrontendList;

/// The greatest age of a list that is searched for a frontend that must have just appeared, and so how soon it can be
/// read again. Whatever appears, and wherever, the list is not read more often.
///
/// Rule: `docs/sizing.md`.
pub const NEW_LIST_AGE: Duration = Duration::from_secs(1);

/// Something that a decision needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Need {
    /// One resource, from the cache if that is fresh.
    Read(Kind, ResourceId),
    /// One resource, read just now: something else may have changed it since the last read.
    FreshRead(Kind, ResourceId),
    /// The internal frontends of a group's load balancers, or of the whole subscription's.
    Frontends(SubscriptionId, Option<String>),
    /// Frontends, read just now on behalf of a namespace: what is searched for may have appeared since the last list.
    NewFrontends(SubscriptionId, Option<String>, String),
    /// All resources of a kind inside a zone. For records: of all types.
    Inside(Kind, ResourceId),
}

/// The needs of a decision that could not be made yet.
pub type Needs = Vec<Need>;

/// What is known of Azure.
#[derive(Debug, Clone, Default)]
pub struct Facts {
    /// What was observed of single resources.
    pub reads: HashMap<ResourceId, Observed>,
    /// Those that this process has proven owned, and has not observed as gone since.
    pub proven: HashSet<ResourceId>,
    /// Those that are absent for certain.
    pub surely_gone: HashSet<ResourceId>,
    /// The single resources that were read just now.
    pub fresh_reads: HashSet<ResourceId>,
    /// How long absent resources have been absent, as far as this process has observed.
    pub gone_for: HashMap<ResourceId, Duration>,
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

impl Facts {
    /// Forgets what could not be read, so that it is tried again.
    pub fn forget_unread(&mut self) {
        self.reads
            .retain(|_, observed| !matches!(observed, Observed::ReadFailed(_)));
        self.frontends.retain(|_, found| found.is_ok());
        self.inside.retain(|_, found| found.is_ok());
    }

    /// What was observed of a resource.
    pub fn read(&self, kind: Kind, id: &ResourceId) -> Result<&Observed, Needs> {
        self.reads.get(id).ok_or_else(|| vec![Need::Read(kind, id.clone())])
    }

    /// What was observed of a resource, read just now.
    pub fn fresh_read(&self, kind: Kind, id: &ResourceId) -> Result<&Observed, Needs> {
        if self.fresh_reads.contains(id) {
            return self.read(kind, id);
        }
        Err(vec![Need::FreshRead(kind, id.clone())])
    }

    /// How long a resource has been absent; zero if it was not observed before.
    pub fn gone_for(&self, id: &ResourceId) -> Duration {
        self.gone_for.get(id).copied().unwrap_or_default()
    }

    /// Returns all needs at once for those of several resources that have not been read yet.
    pub fn reads(&self, resources: &[(Kind, &ResourceId)]) -> Result<(), Needs> {
        let missing = resources.iter().filter(|(_, id)| !self.reads.contains_key(id));
        let needs: Needs = missing.map(|(kind, id)| Need::Read(*kind, (*id).clone())).collect();
        if needs.is_empty() { Ok(()) } else { Err(needs) }
    }

    /// The internal frontends in a scope.
    pub fn frontends(&self, subscription: &SubscriptionId, group: Option<&str>) -> Result<&FrontendList, Needs> {
        let key = (subscription.clone(), group.map(str::to_owned));
        self.frontends
            .get(&key)
            .ok_or_else(|| vec![Need::Frontends(key.0, key.1)])
    }

    /// The internal frontends in a scope, read just now on behalf of a namespace.
    pub fn new_frontends(
        &self,
        subscription: &SubscriptionId,
        group: Option<&str>,
        namespace: &str,
    ) -> Result<&FrontendList, Needs> {
        let key = (subscription.clone(), group.map(str::to_owned));
        if self.new_frontends.contains(&key) {
            return self.frontends(subscription, group);
        }
        Err(vec![Need::NewFrontends(key.0, key.1, namespace.to_owned())])
    }

    /// What is inside a zone.
    pub fn inside(&self, kind: Kind, zone: &ResourceId) -> Result<&Result<Vec<Value>, ArmError>, Needs> {
        let key = (kind, zone.clone());
        self.inside.get(&key).ok_or_else(|| vec![Need::Inside(key.0, key.1)])
    }
}

/// The results of several independent decisions, or what any of them still need, together.
pub fn together<T>(results: impl IntoIterator<Item = Result<T, Needs>>) -> Result<Vec<T>, Needs> {
    let mut decided = Vec::new();
    let mut needs = Needs::new();
    for result in results {
        match result {
            Ok(one) => decided.push(one),
            Err(more) => needs.extend(more),
        }
    }
    if needs.is_empty() { Ok(decided) } else { Err(needs) }
}
