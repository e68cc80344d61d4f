//! Which custom resource waits in a write queue for a resource in Azure, so that it is reconciled when its write is
//! next.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use kube::ResourceExt;

use crate::api::ClusterRef;
use crate::azure::arm::id::ResourceId;
use crate::azure::plan::{Outcome, Step};
use crate::engine::cloud::ResourceKind;
use crate::hypershift::claims::reference;

/// A custom resource and its UID.
type Waiting = (String, ClusterRef);

/// The waiting custom resources of one process, by the resource that they are to write.
#[derive(Debug, Default)]
pub struct Awaiting(Mutex<HashMap<ResourceId, Waiting>>);

impl Awaiting {
    fn all(&self) -> MutexGuard<'_, HashMap<ResourceId, Waiting>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records which of these writes were not sent, because others into the same parent come before.
    pub fn note(&self, cr: &impl ResourceExt, steps: &[Step], outcomes: &[Outcome]) {
        for (step, outcome) in steps.iter().zip(outcomes) {
            let is_queued = step.kind.rules().queued_in_parent.is_some();
            if is_queued && step.writes() && *outcome == Outcome::Nothing {
                let waiting = (cr.uid().unwrap_or_default(), reference(cr));
                self.all().insert(step.key.clone(), waiting);
            }
        }
    }

    /// Removes and returns the custom resource that waits to write this resource, if there is one.
    pub fn take(&self, id: &ResourceId) -> Option<Waiting> {
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
    use crate::azure::plan::Why;
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
