//! The order of writes to zones and links.
//!
//! Operations on one resource may overlap and end out of order. The one accepted last decides what remains: an older one
//! that ends after it has no effect any more. Holds nothing about resources that no operation is changing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::engine::id::ResourceId;
use crate::engine::operation::Operation;

/// What runs, by the id of what it changes.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Ledger(BTreeMap<String, Entry>);

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
struct Entry {
    running: u32,
    /// The number of the newest operation that took effect while others ran.
    newest: Option<u64>,
}

impl Ledger {
    /// An operation on `target` begins.
    pub(crate) fn begun(&mut self, target: &ResourceId) {
        self.0.entry(target.key()).or_default().running += 1;
    }

    /// Whether an operation accepted later has taken effect already.
    pub(crate) fn overtaken(&self, operation: &Operation) -> bool {
        let newest = self.0.get(&operation.target.key()).and_then(|entry| entry.newest);
        newest.is_some_and(|newest| newest > operation.seq)
    }

    /// An operation ends, with effect or without; returns whether others still run on its target.
    pub(crate) fn ended(&mut self, operation: &Operation, effective: bool) -> bool {
        let key = operation.target.key();
        let Some(entry) = self.0.get_mut(&key) else {
            return false;
        };
        entry.running = entry.running.saturating_sub(1);
        if effective {
            entry.newest = entry.newest.max(Some(operation.seq));
        }
        let busy = entry.running > 0;
        if !busy {
            self.0.remove(&key);
        }
        busy
    }
}
