//! The journal: every ARM call that was made, in order.

use bytes::Bytes;
use http::{Request, Response};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

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

impl JournalEntry {
    /// What is known of a call before it is answered.
    pub(crate) fn of(now: Timestamp, request: &Request<Bytes>, client_id: &str, correlation_id: &str) -> Self {
        let query = request.uri().query().unwrap_or_default();
        let mut parameters = url::form_urlencoded::parse(query.as_bytes());
        let version = parameters.find(|(key, _)| key.eq_ignore_ascii_case("api-version"));
        Self {
            seq: 0,
            time: now.to_string(),
            method: request.method().to_string(),
            path: request.uri().path().to_owned(),
            query: query.to_owned(),
            api_version: version.map(|(_, version)| version.into_owned()).unwrap_or_default(),
            principal: client_id.to_owned(),
            status: 0,
            code: None,
            correlation_id: correlation_id.to_owned(),
            changed: false,
            resource_kind: String::new(),
        }
    }

    /// About what it takes in memory.
    fn bytes(&self) -> usize {
        /// What the allocator adds to each text.
        const OVERHEAD: usize = 16;
        let texts = [
            &self.time,
            &self.method,
            &self.path,
            &self.query,
            &self.api_version,
            &self.principal,
            &self.correlation_id,
            &self.resource_kind,
        ];
        size_of::<Self>() + texts.map(|text| text.len() + OVERHEAD).iter().sum::<usize>()
    }

    /// Adds status and, of an error, its code, wrapped or not.
    pub(crate) fn answered(&mut self, response: &Response<Bytes>) {
        self.status = response.status().as_u16();
        if self.status < 400 {
            return;
        }
        let body: Value = serde_json::from_slice(response.body()).unwrap_or_default();
        let code = body["error"]["code"].as_str().or(body["code"].as_str());
        self.code = code.map(str::to_owned);
    }
}

/// The most memory that the calls may take, in bytes: some 50,000 calls.
const MOST_BYTES: usize = 32 << 20;

/// The calls since the journal was cleared; of very many, the last ones.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Journal {
    entries: Vec<JournalEntry>,
    last: u64,
    bytes: usize,
}

impl Journal {
    /// Adds a call and numbers it.
    pub(crate) fn add(&mut self, mut entry: JournalEntry) {
        self.last += 1;
        entry.seq = self.last;
        self.bytes += entry.bytes();
        self.entries.push(entry);
        if self.bytes > MOST_BYTES {
            // A quarter at once, so that the rest is seldom moved.
            let gone = self.entries.drain(..self.entries.len().div_ceil(4));
            self.bytes -= gone.map(|entry| entry.bytes()).sum::<usize>();
        }
    }

    /// The calls after `since`.
    pub(crate) fn since(&self, since: u64) -> &[JournalEntry] {
        let start = self.entries.partition_point(|entry| entry.seq <= since);
        &self.entries[start..]
    }

    /// Forgets the calls; numbers go on.
    pub(crate) fn clear(&mut self) {
        self.entries = Vec::new();
        self.bytes = 0;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn journal_forgets_the_oldest_calls_and_no_more_than_it_must() {
        let request = Request::get(format!("/{}", "x".repeat(10_000)))
            .body(Bytes::new())
            .unwrap();
        let entry = JournalEntry::of(Timestamp::UNIX_EPOCH, &request, "c", "i");
        let mut journal = Journal::default();
        for _ in 0..10_000 {
            journal.add(entry.clone());
            assert!(journal.bytes <= MOST_BYTES);
        }
        let kept = journal.since(0);
        assert_eq!(kept.last().map(|entry| entry.seq), Some(10_000));
        assert!(
            kept.len() >= 2_400 && kept[0].seq == 10_001 - kept.len() as u64,
            "{}",
            kept.len()
        );
        journal.clear();
        assert_eq!(journal.bytes, 0);
    }
}
