//! The ids that AWS gave, by slot. Those that AWS has shown are kept apart from those that are only recorded: anybody may
//! have written these, so that they are read, and never written.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};

use crate::slot::Slot;

/// The ids of resources, as far as they are known.
#[derive(Debug, Default)]
pub(super) struct GivenIds(Mutex<HashMap<Slot, Ids>>);

/// The ids of the resource in one slot.
#[derive(Debug, Default)]
struct Ids {
    shown: Option<String>,
    recorded: Option<String>,
}

impl GivenIds {
    fn all(&self) -> MutexGuard<'_, HashMap<Slot, Ids>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The id of the resource in a slot, as AWS has shown it.
    pub(super) fn shown(&self, slot: &Slot) -> Option<String> {
        self.all().get(slot)?.shown.clone()
    }

    /// The id to read first: that which AWS has shown, else that which is recorded.
    pub(super) fn known(&self, slot: &Slot) -> Option<String> {
        let all = self.all();
        let ids = all.get(slot)?;
        ids.shown.clone().or_else(|| ids.recorded.clone())
    }

    /// Notes an id that AWS showed; empty for a resource without.
    pub(super) fn note_shown(&self, slot: &Slot, id: &str) {
        if !id.is_empty() {
            self.all().entry(slot.clone()).or_default().shown = Some(id.to_owned());
        }
    }

    /// Notes an id that was recorded.
    pub(super) fn note_recorded(&self, slot: &Slot, id: &str) {
        if !id.is_empty() {
            self.all().entry(slot.clone()).or_default().recorded = Some(id.to_owned());
        }
    }

    /// Forgets the ids of a resource that is gone.
    pub(super) fn forget(&self, slot: &Slot) {
        self.all().remove(slot);
    }
}
