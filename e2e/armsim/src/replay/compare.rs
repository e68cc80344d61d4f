//! A recorded and a simulated answer: every way in which they differ, and what is learned where they only name things
//! otherwise.

use std::collections::BTreeSet;
use std::fmt;
use std::net::IpAddr;
use std::sync::LazyLock;

use jiff::Timestamp;
use regex::Regex;
use serde::Serialize;
use serde_json::{Map, Value};

use super::names::Names;
use super::shape::{Shapes, step};

/// What kind of difference it is, and so how much it counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum DifferenceKind {
    /// The HTTP status.
    Status,
    /// Presence, form or value of a header.
    Header,
    /// A key that is missing, a JSON type, a value.
    Body,
    /// A key of the simulator's that no recorded answer of that type and api-version has.
    Extra,
    /// Words for people, and the case of letters in names, types and regions. Does not make a verdict.
    Text,
}

/// One difference.
#[derive(Clone, Debug, Serialize)]
pub struct Difference {
    /// What sort of difference.
    pub kind: DifferenceKind,
    /// The header's name, or the path in the body.
    pub at: String,
    /// The recorded side; empty where there is none.
    pub recorded: String,
    /// The simulated side; empty where there is none.
    #[serde(rename = "ours")]
    pub simulated: String,
}

impl Difference {
    pub(super) fn new(
        kind: DifferenceKind,
        at: &str,
        recorded: impl fmt::Display,
        simulated: impl fmt::Display,
    ) -> Self {
        Self {
            kind,
            at: at.to_owned(),
            recorded: recorded.to_string(),
            simulated: simulated.to_string(),
        }
    }
}

impl fmt::Display for Difference {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            kind,
            at,
            recorded,
            simulated,
        } = self;
        let (recorded, simulated) = (short(recorded), short(simulated));
        match kind {
            DifferenceKind::Extra => write!(out, "{at}: only ours has it: {simulated}"),
            _ if simulated.is_empty() => write!(out, "{at}: missing, recorded {recorded}"),
            _ if recorded.is_empty() => write!(out, "{at}: not recorded, ours {simulated}"),
            DifferenceKind::Text => write!(out, "{at}: text: recorded {recorded}, ours {simulated}"),
            _ => write!(out, "{at}: recorded {recorded}, ours {simulated}"),
        }
    }
}

/// Long values end in an ellipsis.
fn short(value: &str) -> String {
    let cut = value.char_indices().nth(300).map(|(at, _)| at);
    match cut.and_then(|cut| value.get(..cut)) {
        Some(start) => format!("{start}…"),
        None => value.to_owned(),
    }
}

/// Forms of values that a server makes up and that hold no GUID.
static MADE_UP: LazyLock<Vec<Regex>> = LazyLock::new(|| {
    [
        r"^[0-9a-z]{20,32}(\.\w+\.internal\.(cloudapp\.net|chinacloudapp\.cn))?$",
        r"^([0-9A-F]{2}-){5}[0-9A-F]{2}$",
        r"^SW1tdXRhYmxlWm9uZUlkZW50aXR5O[\w+/]+={0,2}$",
    ]
    .iter()
    .filter_map(|form| Regex::new(form).ok())
    .collect()
});

/// Keys whose values are words for people.
const WORDS: [&str; 1] = ["message"];
/// Keys whose values are numbers in a string that the server draws.
const DRAWN: [&str; 1] = ["linkIdentifier"];

/// Compares two bodies of one kind of answer.
pub(super) struct Bodies<'a> {
    pub(super) names: &'a mut Names,
    pub(super) shapes: &'a Shapes,
    /// The key of the answer's shape.
    pub(super) shape: &'a str,
    /// What the client sent, for telling its values from the server's.
    pub(super) sent: &'a str,
    /// Keys whose content is another service's.
    pub(super) foreign: &'a BTreeSet<&'static str>,
    /// Ids in lower case of what others had: compared by presence only.
    pub(super) background: &'a BTreeSet<String>,
    /// Whether the answer is a page that the simulator does not have: its answer is the whole list.
    pub(super) part: bool,
    /// Inside a connection towards another service, which words its state itself.
    pub(super) elsewhere: bool,
    pub(super) differences: Vec<Difference>,
}

impl Bodies<'_> {
    pub(super) fn compare(&mut self, at: &str, recorded: &Value, simulated: &Value) {
        let key = at.rsplit('.').next().unwrap_or_default();
        if self.foreign.contains(key) {
            return;
        }
        match (recorded, simulated) {
            (Value::Object(recorded), Value::Object(simulated)) => self.objects(at, recorded, simulated),
            (Value::Array(recorded), Value::Array(simulated)) => self.arrays(at, recorded, simulated),
            (Value::String(recorded), Value::String(simulated)) => self.texts(at, key, recorded, simulated),
            (Value::Number(a), Value::Number(b)) if a.as_f64() == b.as_f64() => {}
            _ if recorded == simulated => {}
            _ => self.differ(DifferenceKind::Body, at, recorded, simulated),
        }
    }

    fn differ(&mut self, kind: DifferenceKind, at: &str, recorded: impl fmt::Display, simulated: impl fmt::Display) {
        self.differences.push(Difference::new(kind, at, recorded, simulated));
    }

    fn objects(&mut self, at: &str, recorded: &Map<String, Value>, simulated: &Map<String, Value>) {
        let outside = self.elsewhere;
        self.elsewhere |= recorded.get("privateLinkServiceId").is_some_and(other_service);
        for (key, value) in recorded {
            let at = step(at, key);
            match simulated.get(key) {
                Some(found) => self.compare(&at, value, found),
                None if self.foreign.contains(key.as_str()) => {}
                None if self.part && key == "nextLink" => self.differ(DifferenceKind::Text, &at, value, ""),
                None => self.differ(DifferenceKind::Body, &at, value, ""),
            }
        }
        for (key, value) in simulated.iter().filter(|(key, _)| !recorded.contains_key(*key)) {
            let at = step(at, key);
            if !self.shapes.has(self.shape, &at) && !self.foreign.contains(key.as_str()) {
                self.differ(DifferenceKind::Extra, &at, "", value);
            }
        }
        self.elsewhere = outside;
    }

    /// Items that name themselves are paired by name, others by place.
    fn arrays(&mut self, at: &str, recorded: &[Value], simulated: &[Value]) {
        let inner = format!("{at}[]");
        let named = recorded.iter().all(|item| self.label(item).is_some());
        if !named {
            if recorded.len() != simulated.len() {
                let kind = DifferenceKind::Body;
                self.differ(kind, at, count(recorded.len()), count(simulated.len()));
            }
            for (recorded, simulated) in recorded.iter().zip(simulated) {
                self.compare(&inner, recorded, simulated);
            }
            return;
        }
        let mut left: Vec<&Value> = simulated.iter().collect();
        for item in recorded {
            let expected = self.label(item);
            let found = left.iter().position(|simulated| label(simulated) == expected);
            // A name that the server made up can only be paired by place.
            let found = found.or_else(|| {
                left.iter()
                    .position(|simulated| label(simulated).is_some_and(|l| l.contains('*')))
            });
            let found =
                found.or_else(|| (!self.part && recorded.len() == simulated.len() && !left.is_empty()).then_some(0));
            let others = expected
                .as_ref()
                .is_some_and(|expected| self.background.contains(expected));
            match found {
                Some(found) if others => {
                    left.remove(found);
                }
                Some(found) => self.compare(&inner, item, left.remove(found)),
                None if others => {}
                None => self.differ(DifferenceKind::Body, &inner, item, ""),
            }
        }
        let whole = self.part && at == "value";
        for item in left.into_iter().filter(|_| !whole) {
            self.differ(DifferenceKind::Body, &inner, "", item);
        }
    }

    fn label(&self, recorded: &Value) -> Option<String> {
        let found = ["id", "name", "resourceType"]
            .iter()
            .find_map(|key| recorded[key].as_str())?;
        Some(self.names.our_text(found).to_ascii_lowercase())
    }

    fn texts(&mut self, at: &str, key: &str, recorded: &str, simulated: &str) {
        let expected = self.names.our_text(recorded);
        let worded_elsewhere = self.elsewhere && key == "description";
        if expected == simulated || worded_elsewhere || self.made_up(key, recorded, simulated) {
            return;
        }
        let loose = matches!(key, "location" | "name" | "type");
        let same_but_for_case = expected.eq_ignore_ascii_case(simulated);
        let words = WORDS.contains(&key);
        let kind = if words || (loose && same_but_for_case) {
            DifferenceKind::Text
        } else {
            DifferenceKind::Body
        };
        self.differ(kind, at, expected, simulated);
    }

    /// Whether both are of one form that servers make up, and the pair agrees with what is known.
    fn made_up(&mut self, key: &str, recorded: &str, simulated: &str) -> bool {
        if self.names.learn_guids(recorded, simulated) {
            return true;
        }
        if matches!(key, "nextLink" | "@odata.nextLink") {
            self.names.learn_url(recorded, simulated);
            return super::headers::url_form(recorded) == super::headers::url_form(simulated);
        }
        if self.sent.contains(recorded) || self.names.known(recorded).is_some() {
            return false;
        }
        let address = |text: &str| text.parse::<IpAddr>().is_ok();
        let number = |text: &str| text.parse::<u64>().is_ok();
        let time = |text: &str| text.parse::<Timestamp>().is_ok();
        let same_form = MADE_UP
            .iter()
            .any(|form| form.is_match(recorded) && form.is_match(simulated))
            || (address(recorded) && address(simulated))
            || (time(recorded) && time(simulated))
            || (DRAWN.contains(&key) && number(recorded) && number(simulated));
        if same_form {
            self.names.learn(recorded, simulated);
        }
        same_form
    }
}

fn label(simulated: &Value) -> Option<String> {
    let found = ["id", "name", "resourceType"]
        .iter()
        .find_map(|key| simulated[key].as_str())?;
    Some(found.to_ascii_lowercase())
}

/// An id of a provider other than Microsoft.Network; an alias is a private link service's.
fn other_service(id: &Value) -> bool {
    let provider = id.as_str().and_then(|id| id.split("/providers/").nth(1));
    provider.is_some_and(|provider| !provider.to_ascii_lowercase().starts_with("microsoft.network/"))
}

fn count(items: usize) -> String {
    format!("{items} items")
}
