//! The journal: every ARM call that was made, in order.

use serde::{Deserialize, Serialize};

/// One call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Counts from 1.
    pub seq: u64,
    /// Simulated time, RFC 3339.
    pub time: String,
    /// HTTP method.
    pub method: String,
    /// Path without query.
    pub path: String,
    /// Query, api-version included.
    pub query: String,
    /// Empty if there was none.
    pub api_version: String,
    /// The caller's client id.
    pub principal: String,
    /// HTTP status of the answer (also of one that was not delivered).
    pub status: u16,
    /// ARM's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// As answered.
    pub correlation_id: String,
    /// Whether the call changed anything.
    pub changed: bool,
    /// The type that was addressed, in Azure's spelling.
    pub resource_kind: String,
}

/// All calls since the journal was cleared.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    entries: Vec<JournalEntry>,
    last: u64,
}

impl Journal {
    /// Adds a call and numbers it.
    pub(crate) fn add(&mut self, mut entry: JournalEntry) {
        self.last += 1;
        entry.seq = self.last;
        self.entries.push(entry);
    }

    /// The calls after `since`.
    pub(crate) fn since(&self, since: u64) -> &[JournalEntry] {
        let start = self.entries.partition_point(|entry| entry.seq <= since);
        &self.entries[start..]
    }

    /// Forgets the calls; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.entries.clear();
    }
}
