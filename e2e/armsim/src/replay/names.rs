//! What the server made up, recorded and simulated: GUIDs, whole values (aliases, addresses, tokens), polling URLs,
//! etags.
//!
//! Learned from pairs of answers, used on later requests. A recorded name keeps its meaning: once learned, another
//! partner for it is a difference, but for names that the recorder masked.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::LazyLock;

use regex::{Captures, Regex};
use serde_json::Value;

use super::cassette::path;

/// Literals of this file, so a pattern that does not compile is a defect of the build.
#[expect(clippy::unwrap_used, reason = "literals, compiled by every test")]
pub(super) fn pattern(text: &str) -> Regex {
    Regex::new(text).unwrap()
}

pub(super) static GUID: LazyLock<Regex> =
    LazyLock::new(|| pattern("(?i)[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}"));

/// The length of a GUID.
const BARE_GUID: usize = 36;

/// Names learned so far.
#[derive(Clone, Default)]
pub(super) struct Names {
    guids: BTreeMap<String, String>,
    /// Recorded values as a whole.
    values: BTreeMap<String, String>,
    /// Recorded polling and paging URLs by path and what distinguishes pages, to the simulator's.
    urls: BTreeMap<String, String>,
    /// The etags of a resource, by its id in lower case: the last recorded one and the simulator's.
    etags: BTreeMap<String, (String, String)>,
    /// GUIDs that the client chose.
    sent: BTreeSet<String>,
}

/// Whether a GUID identifies nothing: the recorder zeroed it.
fn masked(guid: &str) -> bool {
    let mut digits = guid.bytes().filter(|byte| *byte != b'-');
    let first = digits.next();
    digits.all(|digit| Some(digit) == first)
}

impl Names {
    /// Remembers what the client made up.
    pub(super) fn sent(&mut self, text: &str) {
        for found in GUID.find_iter(text) {
            let guid = found.as_str().to_ascii_lowercase();
            if !self.guids.contains_key(&guid) {
                self.sent.insert(guid);
            }
        }
    }

    /// A recorded text with the simulator's names.
    pub(super) fn our_text(&self, recorded: &str) -> String {
        if let Some(known) = self.values.get(recorded) {
            return known.clone();
        }
        let swapped = GUID.replace_all(recorded, |found: &Captures<'_>| {
            let guid = found.get(0).map_or("", |found| found.as_str());
            self.guids
                .get(&guid.to_ascii_lowercase())
                .cloned()
                .unwrap_or_else(|| guid.to_owned())
        });
        swapped.into_owned()
    }

    /// A recorded path with the simulator's names.
    pub(super) fn our_path(&self, recorded: &str) -> String {
        let parts = recorded.split('/').map(|part| self.our_text(part));
        parts.collect::<Vec<_>>().join("/")
    }

    /// A recorded body with the simulator's names.
    pub(super) fn our_body(&self, recorded: &Value) -> Value {
        match recorded {
            Value::String(text) => Value::String(self.our_text(text)),
            Value::Array(items) => items.iter().map(|item| self.our_body(item)).collect(),
            Value::Object(fields) => {
                let fields = fields.iter().map(|(key, value)| (key.clone(), self.our_body(value)));
                Value::Object(fields.collect())
            }
            other => other.clone(),
        }
    }

    /// Learns a pair of texts that differ in GUIDs only; false where they differ otherwise or against what is known.
    pub(super) fn learn_guids(&mut self, recorded: &str, simulated: &str) -> bool {
        if GUID.replace_all(recorded, "*") != GUID.replace_all(simulated, "*") {
            return false;
        }
        let lower = |found: regex::Match<'_>| found.as_str().to_ascii_lowercase();
        let pairs: Vec<(String, String)> = GUID
            .find_iter(recorded)
            .map(lower)
            .zip(GUID.find_iter(simulated).map(lower))
            .collect();
        for (recorded, simulated) in pairs.iter().filter(|(recorded, simulated)| recorded != simulated) {
            let known = self.guids.get(recorded).is_some_and(|known| known != simulated);
            if !masked(recorded) && (known || self.sent.contains(recorded)) {
                return false;
            }
        }
        // A masked GUID alone is everything and nothing; inside an alias or a quoted etag it can be distinguished.
        if recorded.len() > BARE_GUID && pairs.iter().any(|(recorded, _)| masked(recorded)) {
            self.learn(recorded, simulated);
        }
        let plain = pairs.into_iter().filter(|(recorded, _)| !masked(recorded));
        self.guids.extend(plain);
        true
    }

    /// Learns a value that the server made as a whole.
    pub(super) fn learn(&mut self, recorded: &str, simulated: &str) {
        self.values.insert(recorded.to_owned(), simulated.to_owned());
    }

    /// What a recorded value is as a whole, if that was learned.
    pub(super) fn known(&self, recorded: &str) -> Option<&str> {
        self.values.get(recorded).map(String::as_str)
    }

    /// Learns a polling or paging URL.
    pub(super) fn learn_url(&mut self, recorded: &str, simulated: &str) {
        self.urls.insert(url_key(recorded), simulated.to_owned());
    }

    /// The simulator's URL for a recorded polling or paging one.
    pub(super) fn our_url(&self, recorded: &str) -> Option<&str> {
        self.urls.get(&url_key(recorded)).map(String::as_str)
    }

    pub(super) fn learn_etag(&mut self, id: &str, recorded: &str, simulated: &str) {
        let pair = (recorded.to_owned(), simulated.to_owned());
        self.etags.insert(id.to_ascii_lowercase(), pair);
    }

    /// A recorded precondition with the simulator's names: the etag that `id` had, or one learned elsewhere.
    pub(super) fn our_etag(&self, id: &str, recorded: &str) -> String {
        match self.etags.get(&id.to_ascii_lowercase()) {
            Some((known, simulated)) if known.trim_matches('"') == recorded.trim_matches('"') => simulated.clone(),
            _ => self.our_text(recorded),
        }
    }
}

/// Polling URLs differ by their path, pages by their token too.
fn url_key(url: &str) -> String {
    let query = url.split_once('?').map_or("", |(_, query)| query);
    let token = url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key.eq_ignore_ascii_case("$skiptoken"))
        .map(|(_, value)| value.into_owned());
    format!("{}?{}", path(url).to_ascii_lowercase(), token.unwrap_or_default())
}
