//! The fresh simulated Azure that a recording is played in: what is sent, when operations end, what is remembered.
//!
//! Operations end when the recording needs it: each exchange is first asked with all of them running, then with those
//! ended that could matter, and the first answer as recorded is the one that counts.

use std::collections::{BTreeMap, BTreeSet};

use jiff::{SignedDuration, Timestamp};

use crate::SimulatedAzure;
use crate::engine::id::ResourceId;

use super::cassette::{Exchange, path};
use super::compare::{Difference, DifferenceKind};
use super::headers;
use super::names::Names;
use super::recorded::{RecordedState, Setup};
use super::report::{Finding, Line, Verdict};
use super::scene;
use super::shape::Shapes;
use super::skip::{self, Skip, Strange};
use super::take::Take;

/// Pauses of clients that are not recorded.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);

/// Why a resource has more than its own writes put there.
const ADDED: &str = "a call that is not played has changed the resource";

/// The simulated Azure in which a recording is played, and what was learned so far.
pub(super) struct Stage {
    pub(super) azure: SimulatedAzure,
    pub(super) names: Names,
    recorded: RecordedState,
    pub(super) shapes: Shapes,
    pub(super) shown: BTreeSet<String>,
    strange: Strange,
    pub(super) now: Timestamp,
    /// The recorder's clock less the simulated one.
    started: Option<SignedDuration>,
    /// When a polling URL may be asked again, by its path in lower case.
    again: BTreeMap<String, Timestamp>,
    /// Ids in lower case of what others had in the same subscription: only lists show it.
    pub(super) background: BTreeSet<String>,
    /// Ids in lower case of resources that were deleted while the recording was played.
    gone: BTreeSet<String>,
    /// Keys whose content other services decide.
    pub(super) foreign: BTreeSet<&'static str>,
}

impl Stage {
    pub(super) fn new(exchanges: &[Exchange]) -> Self {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 55);
        let mut shapes = Shapes::default();
        for exchange in exchanges {
            shapes.learn(&scene::shape(exchange), &exchange.got.json());
        }
        Self {
            azure: scene::azure(now, exchanges),
            names: Names::default(),
            recorded: RecordedState::of(exchanges),
            shapes,
            shown: headers::shown(exchanges),
            strange: Strange::default(),
            now,
            started: None,
            again: BTreeMap::new(),
            background: BTreeSet::new(),
            gone: BTreeSet::new(),
            foreign: scene::foreign(exchanges),
        }
    }

    /// Plays exchange number `number`, counted from 0; the verdict is `Same` unless it was skipped.
    pub(super) fn play(&mut self, number: usize, exchange: &Exchange) -> Line {
        let mut line = Line {
            exchange: number + 1,
            verdict: Verdict::Same,
            method: exchange.method.clone(),
            path: scene::short_path(exchange.path()),
            recorded: exchange.status,
            simulated: None,
            reason: None,
            seeded: vec![],
            differences: vec![],
        };
        if let Some(skip) = self.skips(exchange) {
            return self.skipped(line, exchange, &skip);
        }
        self.tick(exchange);
        self.names.sent(&exchange.url);
        self.names.sent(&exchange.sent.body);
        line.seeded = self.prepare(number, exchange);
        let (take, again) = self.best(number, exchange);
        if exchange.method == "POST" && take.status == 405 {
            return self.skipped(line, exchange, &Skip::Type(scene::shape(exchange)));
        }
        line.seeded.extend(again);
        line.simulated = Some(take.status);
        line.differences = take
            .differences
            .into_iter()
            .map(|difference| Finding {
                explained: self.not_played(exchange, &difference),
                difference,
            })
            .collect();
        let deleted = self
            .azure
            .state
            .store
            .all()
            .filter(|found| take.azure.state.store.get(&found.id).is_none());
        self.gone.extend(deleted.map(|found| found.id.key()));
        if exchange.method != "GET" {
            self.background
                .remove(&self.names.our_path(exchange.path()).to_ascii_lowercase());
        }
        self.azure = take.azure;
        self.names = take.names;
        self.azure.clear_journal();
        self.hold();
        line
    }

    /// What a call that is not played has added to a resource, and that it thereby has another etag.
    fn not_played(&self, exchange: &Exchange, difference: &Difference) -> Option<String> {
        let both = !difference.recorded.is_empty() && !difference.simulated.is_empty();
        let etag = both && difference.at.rsplit('.').next() == Some("etag");
        let added = difference.kind == DifferenceKind::Body && difference.simulated.is_empty();
        let id = ResourceId::parse(&self.names.our_path(exchange.path())).ok()?;
        ((added || etag) && !exchange.sent.body.contains("properties") && self.recorded.is_touched(&id))
            .then(|| ADDED.to_owned())
    }

    /// Remembers what a call that is not played may have begun and changed.
    fn skipped(&mut self, mut line: Line, exchange: &Exchange, skip: &Skip) -> Line {
        self.strange.learn(exchange);
        self.recorded.touch(&self.names, exchange);
        line.verdict = Verdict::Skipped;
        line.reason = Some(skip.reason());
        line
    }

    fn skips(&self, exchange: &Exchange) -> Option<Skip> {
        if let Some(skip) = skip::skip(exchange) {
            return Some(skip);
        }
        let strange = self.strange.has(exchange) || self.names.our_url(&exchange.url).is_none();
        (skip::polls(&exchange.url) && strange).then_some(Skip::Operation)
    }

    /// Follows the recorder's clock, if it is recorded; else the pauses that `Retry-After` asked clients to make.
    fn tick(&mut self, exchange: &Exchange) {
        let date = exchange.date();
        if let (Some(date), None) = (date, self.started) {
            self.started = Some(date.duration_since(self.now));
        }
        let due = match (date, self.started) {
            (Some(date), Some(ahead)) => Some(date - ahead),
            _ => self.again.get(&exchange.path().to_ascii_lowercase()).copied(),
        };
        let least = if date.is_some() { SignedDuration::ZERO } else { PAUSE };
        self.now = (self.now + least).max(due.unwrap_or(self.now));
        let wait: i64 = exchange.got.header("retry-after").parse().unwrap_or(0);
        for name in ["azure-asyncoperation", "location"] {
            let url = path(exchange.got.header(name)).to_ascii_lowercase();
            self.again.insert(url, self.now + SignedDuration::from_secs(wait));
        }
        let polled = exchange.path().to_ascii_lowercase();
        self.again.insert(polled, self.now + SignedDuration::from_secs(wait));
    }

    fn setup(&mut self, number: usize, exchange: &Exchange) -> (Setup<'_>, &RecordedState) {
        let location = exchange.sent.json()["location"].as_str().map(str::to_owned);
        let setup = Setup {
            azure: &mut self.azure,
            names: &self.names,
            now: self.now,
            number,
            location: location.filter(|location| location != "global"),
            gone: &self.gone,
            seeded: vec![],
        };
        (setup, &self.recorded)
    }

    fn prepare(&mut self, number: usize, exchange: &Exchange) -> Vec<String> {
        // What a list shows and no recorded call has made belonged to others.
        if let Some(items) = exchange.got.json()["value"].as_array() {
            let listed = items
                .iter()
                .filter_map(|item| item["id"].as_str())
                .map(|id| self.names.our_text(id));
            let others = listed.filter(|id| self.azure.state.store.find(id).is_none());
            self.background.extend(others.map(|id| id.to_ascii_lowercase()));
        }
        let (mut setup, recorded) = self.setup(number, exchange);
        recorded.prepare(&mut setup, exchange);
        setup.seeded
    }

    /// The answer that is most like the recorded one; a resource that was changed by calls which are not played is put as
    /// the recording shows it, if nothing else helps.
    fn best(&mut self, number: usize, exchange: &Exchange) -> (Take, Vec<String>) {
        let best = self.try_all(exchange);
        let id = ResourceId::parse(&self.names.our_path(exchange.path()));
        let Some(id) = id.ok().filter(|id| self.recorded.is_touched(id)) else {
            return (best, vec![]);
        };
        if best.misses() == 0 || exchange.method != "GET" || exchange.status != 200 {
            return (best, vec![]);
        }
        let before = self.azure.clone();
        let (mut setup, recorded) = self.setup(number, exchange);
        recorded.again(&mut setup, &id);
        let seeded = setup.seeded;
        let again = self.try_all(exchange);
        if again.misses() < best.misses() {
            return (again, seeded);
        }
        self.azure = before;
        (best, vec![])
    }

    /// No operation ends before the recording needs it.
    fn hold(&mut self) {
        let running = self.azure.state.operations.running();
        let running: Vec<String> = running.into_iter().map(|operation| operation.id.clone()).collect();
        for id in running {
            self.azure.state.operations.reschedule(&id, None);
        }
    }
}
