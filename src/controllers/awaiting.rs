//! Which custom resource waits in a write queue for a resource in the cloud, so that it is reconciled when its write is
//! next.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;

use crate::api::ClusterRef;
use crate::engine::cloud::{Cloud, Key, ResourceKind};
use crate::engine::plan::{Outcome, Step};
use crate::hypershift::claims::reference;

/// A custom resource and its UID.
type Waiting = (String, ClusterRef);

/// The waiting custom resources of one process, by the resource that they are to write.
#[derive(Debug)]
pub struct Awaiting<K>(Mutex<HashMap<K, Waiting>>);

impl<K> Default for Awaiting<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

impl<K: Key> Awaiting<K> {
    fn all(&self) -> MutexGuard<'_, HashMap<K, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records which of these writes were not sent, because others into the same parent come before.
    pub fn note<C: Cloud<Key = K>>(&self, cr: &impl ResourceExt, steps: &[Step<C>], outcomes: &[Outcome<C>]) {
        for (step, outcome) in steps.iter().zip(outcomes) {
            let is_queued = step.kind.rules().queued_in_parent.is_some();
            if is_queued && step.writes() && *outcome == Outcome::Nothing {
                let waiting = (cr.uid().unwrap_or_default(), reference(cr));
                self.all().insert(step.key.clone(), waiting);
            }
        }
    }

    /// Removes and returns the custom resource that waits to write this resource, if there is one.
    pub fn take(&self, id: &K) -> Option<Waiting> {
        self.all().remove(id)
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.all().retain(|_, (waiting, _)| waiting != uid);
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::azure::kinds::Kind;
    use crate::azure::plan::{Step, Why};
    use crate::controllers::samples::{cr, id, management};
    use crate::engine::plan::Verb;

    fn step(verb: Verb) -> Step {
        Step {
            kind: Kind::Subnet,
            key: id(&management("virtualNetworks/v/subnets/s")),
            verb,
            why: Why::Absent,
            found: None,
        }
    }

    #[test]
    fn waiting_custom_resource_is_returned_once() {
        let (all, mut waiting) = (Awaiting::default(), cr(Value::Null, json!({})));
        waiting.metadata.uid = Some("u".to_owned());
        let put = || [step(Verb::Put(json!({})))];
        all.note(&waiting, &put(), &[Outcome::Accepted]);
        all.note(&waiting, &[step(Verb::Wait)], &[Outcome::Nothing]);
        assert_eq!(all.take(&put()[0].key), None);
        all.note(&waiting, &put(), &[Outcome::Nothing]);
        assert_eq!(all.take(&put()[0].key), Some(("u".to_owned(), reference(&waiting))));
        assert_eq!(all.take(&put()[0].key), None);
        all.note(&waiting, &put(), &[Outcome::Nothing]);
        all.forget("u");
        assert_eq!(all.take(&put()[0].key), None);
    }
}
