//! The ids that AWS gave, by slot. They spare a search; what a read by id shows decides, so a wrong one does no harm.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::slot::Slot;

/// The ids of resources, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct GivenIds(Mutex<HashMap<Slot, String>>);

impl GivenIds {
    fn all(&self) -> MutexGuard<'_, HashMap<Slot, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the resource in a slot.
    pub(super) fn of(&self, slot: &Slot) -> Option<String> {
        self.all().get(slot).cloned()
    }

    /// Notes an id that AWS showed; empty for a resource without.
    pub(super) fn note_shown(&self, slot: &Slot, id: &str) {
        if !id.is_empty() {
            self.all().insert(slot.clone(), id.to_owned());
        }
    }

    /// Notes an id that was recorded, unless AWS has shown one.
    pub(super) fn note_recorded(&self, slot: &Slot, id: &str) {
        if !id.is_empty() {
            self.all().entry(slot.clone()).or_insert_with(|| id.to_owned());
        }
    }

    /// Forgets the id of a resource that is gone.
    pub(super) fn forget(&self, slot: &Slot) {
        self.all().remove(slot);
    }
}
