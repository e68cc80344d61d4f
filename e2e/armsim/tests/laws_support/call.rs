//! A call of a run, and its answer.

use http::HeaderMap;
use serde_json::Value;

/// One answer.
pub struct Got {
    pub status: u16,
    pub headers: HeaderMap,
    pub body: Value,
    /// Whether the call changed something, by the journal.
    pub changed: bool,
    /// How it breaks the specs.
    pub unlike_specs: Option<String>,
}

impl Got {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.get(name).and_then(|value| value.to_str().ok())
    }

    pub fn is_accepted(&self) -> bool {
        self.status < 300
    }
}

/// One call as it is sent.
pub struct Sent {
    pub method: &'static str,
    pub path: String,
    pub query: &'static str,
    pub headers: Vec<(&'static str, String)>,
    pub body: Value,
    pub who: usize,
}
