//! The fresh world that a recording is played in: what is sent, when operations end, what is remembered.
//!
//! Operations end when the recording needs it: each exchange is first asked with all of them running, then with those
//! ended that could matter, and the first answer as recorded is the one that counts.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use http::{HeaderMap, Method, Request};
use jiff::{SignedDuration, Timestamp};
use regex::Regex;
use serde_json::{Value, json};

use crate::engine::id::ResourceId;
use crate::engine::poll;
use crate::engine::route::{Target, route};
use crate::{Caller, Preset, Seed, World};

use super::cassette::{Exchange, path};
use super::compare::{Bodies, Difference, DifferenceKind};
use super::ground::{Ground, Place};
use super::headers;
use super::names::Names;
use super::report::{Finding, Line, Verdict};
use super::shape::Shapes;
use super::skip::{self, Skip, Strange};

const NOBODY: &str = "00000000-0000-0000-0000-000000000000";
/// Pauses of clients that are not recorded.
const PAUSE: SignedDuration = SignedDuration::from_secs(1);
/// What a client may have waited beyond that.
const LATER: SignedDuration = SignedDuration::from_secs(10);
/// Sent on as they are recorded.
const SENT_ON: [&str; 3] = [
    "x-ms-client-request-id",
    "x-ms-return-client-request-id",
    "x-ms-correlation-request-id",
];

/// The world in play.
pub(super) struct Stage {
    world: World,
    names: Names,
    ground: Ground,
    shapes: Shapes,
    shown: BTreeSet<String>,
    strange: Strange,
    now: Timestamp,
    /// The recorder's clock less ours.
    started: Option<SignedDuration>,
    /// When a polling URL may be asked again, by its path in lower case.
    again: BTreeMap<String, Timestamp>,
    /// Ids in lower case that were there and went.
    gone: BTreeSet<String>,
    /// Keys whose content other services decide.
    foreign: BTreeSet<&'static str>,
}

/// One way in which an exchange may have gone.
struct Take {
    world: World,
    names: Names,
    status: u16,
    differences: Vec<Difference>,
}

impl Take {
    fn misses(&self) -> usize {
        let real = self
            .differences
            .iter()
            .filter(|found| found.kind != DifferenceKind::Text);
        real.count()
    }
}

impl Stage {
    pub(super) fn new(exchanges: &[Exchange]) -> Self {
        let now = Timestamp::UNIX_EPOCH + SignedDuration::from_hours(24 * 365 * 55);
        let mut shapes = Shapes::default();
        for exchange in exchanges {
            shapes.learn(&shape(exchange), &exchange.got.json());
        }
        Self {
            world: world(now, exchanges),
            names: Names::default(),
            ground: Ground::survey(exchanges),
            shapes,
            shown: headers::shown(exchanges),
            strange: Strange::default(),
            now,
            started: None,
            again: BTreeMap::new(),
            gone: BTreeSet::new(),
            foreign: foreign(exchanges),
        }
    }

    /// Plays exchange number `number`, counted from 0; the verdict is `Same` unless it was skipped.
    pub(super) fn play(&mut self, number: usize, exchange: &Exchange) -> Line {
        let mut line = Line {
            exchange: number + 1,
            verdict: Verdict::Same,
            method: exchange.method.clone(),
            path: short_path(exchange.path()),
            recorded: exchange.status,
            ours: None,
            reason: None,
            seeded: vec![],
            differences: vec![],
        };
        if let Some(skip) = self.skips(exchange) {
            self.strange.learn(exchange);
            self.ground.touch(&self.names, exchange);
            line.verdict = Verdict::Skipped;
            line.reason = Some(skip.reason());
            return line;
        }
        self.tick(exchange);
        self.names.sent(&exchange.url);
        self.names.sent(&exchange.sent.body);
        line.seeded = self.prepare(number, exchange);
        let (take, again) = self.best(number, exchange);
        line.seeded.extend(again);
        line.ours = Some(take.status);
        line.differences = take
            .differences
            .into_iter()
            .map(|difference| Finding {
                difference,
                explained: None,
            })
            .collect();
        let went = self
            .world
            .state
            .store
            .all()
            .filter(|found| take.world.state.store.get(&found.id).is_none());
        self.gone.extend(went.map(|found| found.id.key()));
        self.world = take.world;
        self.names = take.names;
        self.world.clear_journal();
        self.hold();
        line
    }

    fn skips(&self, exchange: &Exchange) -> Option<Skip> {
        if let Some(skip) = skip::skip(exchange) {
            return Some(skip);
        }
        let strange = self.strange.has(exchange) || self.names.our_url(&exchange.url).is_none();
        (skip::polls(&exchange.url) && strange).then_some(Skip::Operation)
    }

    /// The recorder's clock, if it is recorded; else the pauses that clients were told to make.
    fn tick(&mut self, exchange: &Exchange) {
        let date = exchange.date();
        if let (Some(date), None) = (date, self.started) {
            self.started = Some(date.duration_since(self.now));
        }
        let told = match (date, self.started) {
            (Some(date), Some(ahead)) => Some(date - ahead),
            _ => self.again.get(&exchange.path().to_ascii_lowercase()).copied(),
        };
        let least = if date.is_some() { SignedDuration::ZERO } else { PAUSE };
        self.now = (self.now + least).max(told.unwrap_or(self.now));
        let wait: i64 = exchange.got.header("retry-after").parse().unwrap_or(0);
        for name in ["azure-asyncoperation", "location"] {
            let url = path(exchange.got.header(name)).to_ascii_lowercase();
            self.again.insert(url, self.now + SignedDuration::from_secs(wait));
        }
        let polled = exchange.path().to_ascii_lowercase();
        self.again.insert(polled, self.now + SignedDuration::from_secs(wait));
    }

    fn place(&mut self, number: usize) -> (Place<'_>, &Ground) {
        let place = Place {
            world: &mut self.world,
            names: &self.names,
            now: self.now,
            number,
            gone: &self.gone,
            seeded: vec![],
        };
        (place, &self.ground)
    }

    fn prepare(&mut self, number: usize, exchange: &Exchange) -> Vec<String> {
        let (mut place, ground) = self.place(number);
        ground.prepare(&mut place, exchange);
        place.seeded
    }

    /// The answer that is most like the recorded one; a resource that was changed by calls which are not played is put as
    /// the recording shows it, if nothing else helps.
    fn best(&mut self, number: usize, exchange: &Exchange) -> (Take, Vec<String>) {
        let mut best = self.try_all(exchange);
        let id = ResourceId::parse(&self.names.our_path(exchange.path()));
        let Some(id) = id.ok().filter(|id| self.ground.is_touched(id)) else {
            return (best, vec![]);
        };
        if best.misses() == 0 || exchange.method != "GET" || exchange.status != 200 {
            return (best, vec![]);
        }
        let (mut place, ground) = self.place(number);
        ground.again(&mut place, &id);
        let seeded = place.seeded;
        best = self.try_all(exchange);
        (best, seeded)
    }

    fn try_all(&self, exchange: &Exchange) -> Take {
        let mut best = self.take(exchange, &[]);
        if exchange.date().is_none() && best.misses() > 0 {
            // How long the client really waited is not known; polls of an older operation may be told to wait longer.
            let later = self.take_at(self.now + LATER, exchange, &[]);
            if later.misses() < best.misses() {
                best = later;
            }
        }
        for ends in self.endings(exchange) {
            if best.misses() == 0 {
                break;
            }
            let take = self.take(exchange, &ends);
            if take.misses() < best.misses() {
                best = take;
            }
        }
        best
    }

    /// Which operations may have ended: the one that is polled, those of the resource and its neighbours, each, all.
    fn endings(&self, exchange: &Exchange) -> Vec<Vec<String>> {
        let running = self.world.state.operations.running();
        let url = self.our_url(exchange);
        let asked = path(&url).to_ascii_lowercase();
        let polled = running.iter().filter(|operation| poll::asks_for(operation, path(&url)));
        let mut endings: Vec<Vec<String>> = vec![polled.map(|operation| operation.id.clone()).collect()];
        let same = running.iter().filter(|operation| operation.target.key() == asked);
        endings.push(same.map(|operation| operation.id.clone()).collect());
        let body = self
            .names
            .our_body(&exchange.sent.json())
            .to_string()
            .to_ascii_lowercase();
        let near = running.iter().filter(|operation| {
            let key = operation.target.key();
            key.starts_with(&asked) || asked.starts_with(&key) || body.contains(&key)
        });
        endings.push(near.map(|operation| operation.id.clone()).collect());
        endings.extend(running.iter().map(|operation| vec![operation.id.clone()]));
        endings.push(running.iter().map(|operation| operation.id.clone()).collect());
        endings.retain(|ending| !ending.is_empty());
        endings
    }

    fn take(&self, exchange: &Exchange, ends: &[String]) -> Take {
        self.take_at(self.now, exchange, ends)
    }

    fn take_at(&self, now: Timestamp, exchange: &Exchange, ends: &[String]) -> Take {
        let mut world = self.world.clone();
        let mut names = self.names.clone();
        for id in ends {
            world.state.operations.reschedule(id, Some(now));
        }
        let caller = Caller {
            tenant_id: NOBODY.to_owned(),
            client_id: NOBODY.to_owned(),
            object_id: NOBODY.to_owned(),
        };
        let Some(request) = self.request(exchange) else {
            let difference = Difference::new(DifferenceKind::Status, "URL", &exchange.url, "cannot be sent");
            return Take {
                world,
                names,
                status: 0,
                differences: vec![difference],
            };
        };
        let response = world.handle(now, &caller, &request).response;
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let differences = self.differences(exchange, (status, &headers, response.body()), &mut names);
        Take {
            world,
            names,
            status,
            differences,
        }
    }

    fn our_url(&self, exchange: &Exchange) -> String {
        if let Some(known) = self.names.our_url(&exchange.url) {
            return known.to_owned();
        }
        let query = exchange.url.split_once('?').map_or("", |(_, query)| query);
        let path = self.names.our_path(exchange.path()).replace(' ', "%20");
        format!(
            "https://{}{path}?{}",
            exchange.host(),
            self.names.ours(query).replace(' ', "%20")
        )
    }

    fn request(&self, exchange: &Exchange) -> Option<Request<Bytes>> {
        let mut request = Request::builder()
            .method(exchange.method.as_str())
            .uri(self.our_url(exchange));
        let sent = &exchange.sent;
        for name in SENT_ON.iter().filter(|name| sent.headers.contains_key(**name)) {
            request = request.header(*name, sent.header(name));
        }
        let id = exchange.path();
        for name in ["if-match", "if-none-match"] {
            if let Some(value) = sent.headers.get(name) {
                request = request.header(name, self.names.our_etag(id, value));
            }
        }
        let body = match sent.json() {
            Value::Null => sent.body.clone(),
            json => self.names.our_body(&json).to_string(),
        };
        if !body.is_empty() {
            let kind = Some(sent.header("content-type")).filter(|kind| !kind.is_empty());
            request = request.header("content-type", kind.unwrap_or("application/json"));
        }
        request.body(Bytes::from(body)).ok()
    }

    fn differences(
        &self,
        exchange: &Exchange,
        (status, headers, body): (u16, &HeaderMap, &Bytes),
        names: &mut Names,
    ) -> Vec<Difference> {
        let ours: Value = serde_json::from_slice(body).unwrap_or(Value::Null);
        let recorded = exchange.got.json();
        let mut differences = Vec::new();
        if status != exchange.status {
            let why = ours["error"]
                .as_object()
                .map(|error| format!(" {}", json!(error)))
                .unwrap_or_default();
            let ours = format!("{status}{why}");
            differences.push(Difference::new(DifferenceKind::Status, "status", exchange.status, ours));
            if (status < 300) != exchange.succeeded() {
                return differences;
            }
        }
        differences.extend(headers::compare(&exchange.got, headers, &self.shown, names));
        let mut bodies = Bodies {
            names,
            shapes: &self.shapes,
            shape: &shape(exchange),
            sent: &exchange.sent.body,
            foreign: &self.foreign,
            differences: vec![],
        };
        bodies.compare("", &recorded, &ours);
        differences.extend(bodies.differences);
        for (recorded, ours) in [(&recorded["etag"], &ours["etag"])] {
            if let (Some(recorded), Some(ours)) = (recorded.as_str(), ours.as_str()) {
                names.learn_etag(exchange.path(), recorded, ours);
            }
        }
        differences
    }

    /// No operation ends before the recording needs it.
    fn hold(&mut self) {
        let running = self.world.state.operations.running();
        let running: Vec<String> = running.into_iter().map(|operation| operation.id.clone()).collect();
        for id in running {
            self.world.state.operations.reschedule(&id, None);
        }
    }
}

/// A world with every subscription that the recording names, in which everything is allowed and nothing is throttled.
fn world(now: Timestamp, exchanges: &[Exchange]) -> World {
    let mut subscriptions = BTreeSet::new();
    if let Ok(form) = Regex::new(r#"(?i)\\?/subscriptions\\?/([^/"?\\]+)"#) {
        for exchange in exchanges {
            for text in [&exchange.url, &exchange.sent.body, &exchange.got.body] {
                let found = form.captures_iter(text).filter_map(|found| found.get(1));
                subscriptions.extend(found.map(|id| id.as_str().to_ascii_lowercase()));
            }
        }
    }
    let subscriptions: Vec<Value> = subscriptions
        .iter()
        .map(|id| json!({ "id": id, "tenant": NOBODY }))
        .collect();
    let seed = json!({
        "tenants": [{ "id": NOBODY }],
        "subscriptions": subscriptions,
        "roles": [{ "object_id": NOBODY, "scope": "/", "actions": ["*"] }],
        "throttle": { "enabled": false },
    });
    let mut world = World::new(Preset::Recorded, 1);
    if let Ok(seed) = Seed::parse(seed.to_string().as_bytes()) {
        // A seed without resources has nothing that can be refused.
        let _ = world.seed(now, seed);
    }
    world
}

/// Keys whose content is decided by services that nobody simulates, where endpoints for such are in the recording.
fn foreign(exchanges: &[Exchange]) -> BTreeSet<&'static str> {
    let form = Regex::new(r#"(?i)"privateLinkServiceId": ?"/subscriptions/[^"]*/providers/([^/"]+)/"#);
    let other = |text: &str| {
        let mut found = form.iter().flat_map(|form| form.captures_iter(text));
        found.any(|found| {
            found
                .get(1)
                .is_some_and(|provider| !provider.as_str().eq_ignore_ascii_case("Microsoft.Network"))
        })
    };
    if exchanges
        .iter()
        .any(|exchange| other(&exchange.sent.body) || other(&exchange.got.body))
    {
        return BTreeSet::from(["customDnsConfigs", "privateLinkConnectionProperties"]);
    }
    BTreeSet::new()
}

/// What kind of answer it is: the type asked for, the api-version, and whether it was refused.
fn shape(exchange: &Exchange) -> String {
    let version = exchange.parameter("api-version").unwrap_or_default();
    let outcome = if exchange.succeeded() { "" } else { "refused " };
    let method = exchange.method.parse().unwrap_or(Method::GET);
    let kind = match route(&method, exchange.path()) {
        Ok(Target::Operation { resource_type, .. }) => format!("the state of {resource_type}"),
        Ok(Target::Action {
            resource_type, action, ..
        }) => format!("{resource_type} {action}"),
        Ok(target) => target.resource_type().to_ascii_lowercase(),
        Err(_) => exchange.path().to_owned(),
    };
    format!("{outcome}{kind} {version}")
}

/// The path without what all have in common; long tokens are cut.
fn short_path(path: &str) -> String {
    let lower = path.to_ascii_lowercase();
    let from = lower.rfind("/providers/").map(|at| at + "/providers/".len());
    let shown = from.and_then(|from| path.get(from..)).unwrap_or(path);
    let shown = shown.strip_prefix("Microsoft.Network/").unwrap_or(shown);
    let parts = shown.split('/').map(|part| match part.char_indices().nth(64) {
        Some((cut, _)) => format!("{}…", part.get(..cut).unwrap_or_default()),
        None => part.to_owned(),
    });
    parts.collect::<Vec<_>>().join("/")
}
