//! The journal: every call that was made, in order.

use serde::{Deserialize, Serialize};

/// One call.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct JournalEntry {
    /// Counts from 1.
    pub seq: u64,
    /// Simulated time, RFC 3339.
    pub time: String,
    /// HTTP method.
    pub method: String,
    /// `/ec2/CreateVpcEndpoint`: service and action.
    pub path: String,
    /// The request's own path, which only Route 53 uses.
    pub uri: String,
    /// Parameters or query, without secrets.
    pub query: String,
    /// `2016-11-15`.
    pub api_version: String,
    /// Region of the signature.
    pub region: String,
    /// ARN of the caller; empty if it is not known.
    pub principal: String,
    /// HTTP status of the answer (also of one that was not delivered).
    pub status: u16,
    /// AWS's error code.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub code: Option<String>,
    /// The request's id, as answered.
    pub correlation_id: String,
    /// Whether the call changed anything.
    pub changed: bool,
}

/// The most calls that are kept.
const MOST: usize = 50_000;

/// The calls since the journal was cleared; of very many, the last ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    entries: Vec<JournalEntry>,
    last: u64,
}

impl Journal {
    pub(crate) fn add(&mut self, mut entry: JournalEntry) {
        self.last += 1;
        entry.seq = self.last;
        self.entries.push(entry);
        if self.entries.len() > MOST {
            self.entries.drain(..MOST / 4);
        }
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
