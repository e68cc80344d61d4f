//! What a reconcile knows of the cloud, and what it still needs to know. Data only.
//!
//! A decision is run on the facts at hand. Where one is missing, it returns a need, and is run again once that is read.

use std::collections::{HashMap, HashSet};
use std::time::Duration;

use super::cloud::{ListFacts, ServedCloud};
use crate::engine::resource::Observed;

/// Something that a decision needs to know.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Need<C: ServedCloud> {
    /// One resource, from the cache if that is fresh.
    Read(C::Kind, C::Key),
    /// One resource, read just now: something else may have changed it since the last read.
    FreshRead(C::Kind, C::Key),
    /// What a list shows.
    List(C::ListNeed),
}

/// The needs of a decision that could not be made yet.
pub type Needs<C> = Vec<Need<C>>;

/// What is known of the cloud.
#[derive(Debug, Clone)]
pub struct Facts<C: ServedCloud> {
    /// What was observed of single resources.
    pub reads: HashMap<C::Key, Observed<C>>,
    /// Those that this process has proven owned, and has not observed as gone since.
    pub proven: HashSet<C::Key>,
    /// Those that are absent for certain.
    pub surely_gone: HashSet<C::Key>,
    /// The single resources that were read just now.
    pub fresh_reads: HashSet<C::Key>,
    /// How long absent resources have been absent, as far as this process has observed.
    pub gone_for: HashMap<C::Key, Duration>,
    /// How the last write of absent resources failed, if it did.
    pub failing: HashMap<C::Key, C::Error>,
    /// What lists have shown.
    pub lists: C::ListFacts,
}

impl<C: ServedCloud> Default for Facts<C> {
    fn default() -> Self {
        Self {
            reads: HashMap::default(),
            proven: HashSet::default(),
            surely_gone: HashSet::default(),
            fresh_reads: HashSet::default(),
            gone_for: HashMap::default(),
            failing: HashMap::default(),
            lists: C::ListFacts::default(),
        }
    }
}

impl<C: ServedCloud> Facts<C> {
    /// Forgets what could not be read, so that it is tried again.
    pub fn forget_unread(&mut self) {
        self.reads
            .retain(|_, observed| !matches!(observed, Observed::ReadFailed(_)));
        self.lists.forget_unread();
    }

    /// What was observed of a resource.
    pub fn read(&self, kind: C::Kind, id: &C::Key) -> Result<&Observed<C>, Needs<C>> {
        self.reads.get(id).ok_or_else(|| vec![Need::Read(kind, id.clone())])
    }

    /// What was observed of a resource, read just now.
    pub fn fresh_read(&self, kind: C::Kind, id: &C::Key) -> Result<&Observed<C>, Needs<C>> {
        if self.fresh_reads.contains(id) {
            return self.read(kind, id);
        }
        Err(vec![Need::FreshRead(kind, id.clone())])
    }

    /// How long a resource has been absent; zero if it was not observed before.
    pub fn gone_for(&self, id: &C::Key) -> Duration {
        self.gone_for.get(id).copied().unwrap_or_default()
    }

    /// Returns all needs at once for those of several resources that have not been read yet.
    pub fn reads(&self, resources: &[(C::Kind, &C::Key)]) -> Result<(), Needs<C>> {
        let missing = resources.iter().filter(|(_, id)| !self.reads.contains_key(id));
        let needs: Needs<C> = missing.map(|(kind, id)| Need::Read(*kind, (*id).clone())).collect();
        if needs.is_empty() { Ok(()) } else { Err(needs) }
    }
}

/// The results of several independent decisions, or what any of them still need, together.
pub fn together<C: ServedCloud, T>(results: impl IntoIterator<Item = Result<T, Needs<C>>>) -> Result<Vec<T>, Needs<C>> {
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
