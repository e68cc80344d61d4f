//! A run: executes steps one by one on a simulated Azure, keeps a readable list of calls, tries the laws after each.

use std::sync::Arc;

use armsim::{Part, Preset, SimulatedAzure, Specs, parse_faults};
use bytes::Bytes;
use http::{Request, Response};
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::body::{self, View};
use super::call::{Got, Sent};
use super::cloud::{self, Mode, caller};
use super::operations::Operations;
use super::step::{Act, Step, What};
use super::written::{Written, settable};
use super::{spec_support, structure, view};

pub const VERSION: &str = "2024-05-01";
/// The versions of the types that have none of that date.
pub const DNS_VERSION: &str = "2024-06-01";

/// A law that does not hold, with the calls that led there.
pub type Outcome = Result<(), String>;

/// A simulated Azure in the middle of a run.
#[derive(Clone)]
pub struct Run {
    pub azure: SimulatedAzure,
    pub now: Timestamp,
    pub mode: Mode,
    /// As it was after the last step.
    pub view: View,
    /// Whether the last step was a write that changed something.
    pub wrote: bool,
    specs: Option<Arc<Specs>>,
    operations: Operations,
    written: Written,
    calls: Vec<String>,
    /// Every answer in full, for runs that are compared.
    pub answers: Vec<String>,
}

impl Run {
    pub fn new(preset: Preset, mode: Mode) -> Self {
        let mut azure = cloud::seeded_azure(preset, mode, 7);
        let now = cloud::start();
        let view = view::of(&mut azure, now);
        Self {
            azure,
            now,
            mode,
            view,
            wrote: false,
            specs: spec_support::at_hand(),
            operations: Operations::default(),
            written: Written::default(),
            calls: vec![],
            answers: vec![],
        }
    }

    /// Carries out a step and tries all laws.
    pub fn step(&mut self, step: &Step) -> Outcome {
        self.wrote = false;
        let tried = self.carry_out(step).and_then(|()| self.laws());
        tried.map_err(|law| self.story(&law))
    }

    /// Lets everything that began end, and tries what must hold then.
    pub fn end(&mut self) -> Outcome {
        self.azure.clear_faults();
        self.now += SignedDuration::from_hours(30);
        let tried = self.laws().and_then(|()| self.finally());
        tried.map_err(|law| self.story(&law))
    }

    fn finally(&mut self) -> Outcome {
        let mut operations = std::mem::take(&mut self.operations);
        let polled = (0..operations.len()).try_for_each(|number| {
            // Longer than any budget's window.
            self.now += SignedDuration::from_secs(301);
            operations.poll(self, number)
        });
        let tried = polled.and_then(|()| operations.all_ended());
        self.operations = operations;
        tried?;
        let running = self.azure.operations_in_flight(self.now);
        if let Some(left) = running.iter().find(|left| left.ends.is_some()) {
            return Err(format!("{} {} never ends", left.name, left.resource));
        }
        if self.mode.is_orderly() {
            self.zones_and_links()?;
        }
        view::lists_agree(self)
    }

    /// Each zone and link shows the last write that took effect, unless its zone or group was deleted.
    fn zones_and_links(&self) -> Outcome {
        let left = self.operations.zones_and_links();
        for (id, expected) in &left {
            let link = id.contains("/virtualnetworklinks/");
            let what = if link { What::Link } else { What::Zone };
            match (self.view.get(id).map(|shown| settable(what, shown)), expected) {
                (Some(shown), Some(expected)) if shown == *expected => {}
                (None, None) => {}
                (None, Some(_)) if link || self.written.is_doomed(id) => {}
                (shown, expected) => return Err(format!("{id} shows {shown:?}, its last operation left {expected:?}")),
            }
        }
        Ok(())
    }

    fn story(&self, law: &str) -> String {
        format!("{law}\nafter\n{}", self.calls.join("\n"))
    }

    /// Tries the laws about what is there.
    pub fn laws(&mut self) -> Outcome {
        let before = std::mem::replace(&mut self.view, view::of(&mut self.azure, self.now));
        structure::check(self, &before)?;
        self.written.check(&self.view, self.mode)
    }

    fn carry_out(&mut self, step: &Step) -> Outcome {
        match step.act() {
            Act::Wait => {
                self.now += SignedDuration::from_millis(step.wait() * 100);
                self.calls.push(format!("  wait {} s", step.wait() as f64 / 10.0));
                Ok(())
            }
            Act::Poll => {
                let mut operations = std::mem::take(&mut self.operations);
                let polled = match operations.len() {
                    0 => Ok(()),
                    count => operations.poll(self, usize::from(step.refers) % count),
                };
                self.operations = operations;
                polled
            }
            Act::Faults => {
                if self.mode.faults {
                    self.set_faults(step);
                }
                Ok(())
            }
            Act::Drift => {
                if self.mode.drift {
                    self.drift(step);
                }
                Ok(())
            }
            Act::Put(what) => self.write("PUT", what, step),
            Act::Patch(what) => self.write("PATCH", what, step),
            Act::Delete(what) => self.write("DELETE", what, step),
            Act::Get(what) => self.write("GET", what, step),
            Act::List(_) => view::lists_agree(self),
        }
    }

    /// Forgets what was written: what comes next changes it in ways that are not followed.
    pub fn forget(&mut self) {
        self.written = Written::default();
    }

    fn set_faults(&mut self, step: &Step) {
        let action = match step.body % 8 {
            0 => json!({"operation": "fail"}),
            1 => json!({"operation": "cancel"}),
            2 => json!({"operation": "hang"}),
            3 => json!({"operation": "lost"}),
            4 => json!({"status": 503, "code": "ServerUnavailable"}),
            5 => json!({"drop": "after"}),
            6 => json!({"status": 504, "drop": "after"}),
            _ => json!({"drop": "before"}),
        };
        let method = ["PUT", "DELETE", "GET", "PATCH"][usize::from(step.refers) % 4];
        let rules = json!([{"match": {"method": method, "from": 1 + step.refers / 100}, "do": action}]);
        self.calls.push(format!("  faults {rules}"));
        self.azure
            .set_faults(parse_faults(rules.to_string().as_bytes()).unwrap());
    }

    fn drift(&mut self, step: &Step) {
        // An interface that is gone would come back with the next write of its owner.
        let number = (usize::from(step.refers) * 256 + usize::from(step.body)) % self.view.len().max(1);
        let Some((id, shown)) = self.view.iter().nth(number) else {
            return;
        };
        if id.contains("/networkinterfaces/") {
            return;
        }
        if step.form.is_multiple_of(2) {
            self.calls.push(format!("  gone behind the back: {id}"));
            self.azure.delete_resource(self.now, id).unwrap();
        } else {
            let mut body = shown.clone();
            body["tags"] = json!({"drift": step.form.to_string()});
            let put = self
                .azure
                .put_resource(self.now, id, body.clone())
                .map(|_| ())
                .map_err(|error| error.to_string());
            self.calls.push(format!("  put behind the back: {id} {body} → {put:?}"));
        }
        self.written.forget(id);
    }

    /// What a step addresses. A connection's name is the service's to choose.
    pub fn path(&self, what: What, step: &Step) -> String {
        let path = step.path_parts().path(what);
        if what != What::Connection {
            return path;
        }
        let prefix = format!("{}/privateendpointconnections/", path.to_ascii_lowercase());
        let first = self.view.range(prefix.clone()..).next();
        let first = first.filter(|(key, _)| key.starts_with(&prefix));
        first.map_or(format!("{prefix}none"), |(_, shown)| {
            shown["id"].as_str().unwrap().to_owned()
        })
    }

    fn write(&mut self, method: &'static str, what: What, step: &Step) -> Outcome {
        let mut path = step.path_parts().path(what);
        if what == What::Connection {
            // Its name is the service's to choose.
            let prefix = format!("{}/privateendpointconnections/", path.to_ascii_lowercase());
            let first = self
                .view
                .range(prefix.clone()..)
                .next()
                .filter(|(key, _)| key.starts_with(&prefix));
            path = first.map_or(format!("{prefix}none"), |(_, shown)| {
                shown["id"].as_str().unwrap().to_owned()
            });
        }
        let body = match method {
            "PUT" => body::put(what, step, &self.view),
            "PATCH" => body::patch(what, step),
            _ => Value::Null,
        };
        let etag = self
            .view
            .get(&path.to_ascii_lowercase())
            .and_then(|shown| shown["etag"].as_str());
        let headers = match (step.form, etag) {
            (200..=214, Some(etag)) => vec![("if-match", etag.to_owned())],
            (215..=229, _) => vec![("if-match", "\"another\"".to_owned())],
            (230..=239, _) => vec![("if-none-match", "*".to_owned())],
            (240..=247, _) => {
                path = path.to_ascii_uppercase();
                vec![]
            }
            _ => vec![],
        };
        let query = if what == What::Endpoint && method == "GET" {
            "&$expand=networkInterfaces"
        } else {
            ""
        };
        let sent = Sent {
            method,
            path,
            query,
            headers,
            body,
            who: step.who(),
        };
        let got = self.call(&sent)?;
        let mut operations = std::mem::take(&mut self.operations);
        let accepted = operations.accepted(self, &sent, &got);
        self.operations = operations;
        accepted?;
        if !self.mode.faults {
            self.written.answered(what, &sent, &got);
        }
        view::read_agrees(self, &sent, &got)
    }

    /// Sends a call and tries what holds for any call.
    pub fn call(&mut self, sent: &Sent) -> Result<Got, String> {
        let dns = sent.path.to_ascii_lowercase().contains("/privatednszones");
        let version = if dns { DNS_VERSION } else { VERSION };
        let mark = if sent.path.contains('?') { "&" } else { "?" };
        let uri = match sent.path.strip_prefix("https://") {
            // A polling URL is followed as it is.
            Some(_) => sent.path.clone(),
            None => format!("https://arm.test{}{mark}api-version={version}{}", sent.path, sent.query),
        };
        let mut request = Request::builder()
            .method(sent.method)
            .uri(uri)
            .header("content-type", "application/json");
        for (name, value) in &sent.headers {
            request = request.header(*name, value);
        }
        let body = if sent.body.is_null() {
            String::new()
        } else {
            sent.body.to_string()
        };
        self.send(&request.body(Bytes::from(body)).unwrap(), sent.who)
    }

    /// Sends a request as it is and tries what holds for any call.
    pub fn send(&mut self, request: &Request<Bytes>, who: usize) -> Result<Got, String> {
        // Operations whose time is over end now, not in the call.
        self.azure.operations_in_flight(self.now);
        let before = self.azure.clone();
        let earlier = self.azure.journal(0).len();
        let mut got = self.handle(request, who);
        if let Some(violation) = got.unlike_specs.take() {
            return Err(violation);
        }
        let entries = self.azure.journal(0);
        let [entry] = entries.get(earlier..).unwrap_or_default() else {
            return Err(format!("{} calls in the journal for one", entries.len() - earlier));
        };
        got.changed = entry.changed;
        self.wrote |= got.changed;
        let (then, now) = (view::state(&before), view::state(&self.azure));
        if !self.mode.faults && got.status >= 400 && (got.changed || got.status >= 500) {
            return Err(format!(
                "refused with {}: {}, changed: {}",
                got.status, got.body, got.changed
            ));
        }
        if !got.changed && view::but_operations(&then) != view::but_operations(&now) {
            let changed = view::difference(&then, &now);
            return Err(format!("a call that says that nothing changed has changed {changed}"));
        }
        if got.changed && then == now {
            return Err("a call that says that something changed has changed nothing".to_owned());
        }
        Ok(got)
    }

    fn handle(&mut self, request: &Request<Bytes>, who: usize) -> Got {
        let answer = self.azure.handle(self.now, &caller(who), request);
        let unlike_specs = self.unlike_specs(request, &answer.response);
        let (parts, bytes) = answer.response.into_parts();
        self.answers.push(format!("{parts:?} {bytes:?} {:?}", answer.wire));
        let body: Value = serde_json::from_slice(&bytes).unwrap_or_default();
        let status = parts.status.as_u16();
        let conditions: Vec<_> = ["if-match", "if-none-match"]
            .into_iter()
            .filter_map(|name| request.headers().get(name))
            .collect();
        let sent = String::from_utf8_lossy(request.body());
        let uri = request.uri().to_string();
        // Without what signs a polling URL.
        let uri = uri.split("&t=").next().unwrap_or_default();
        let note = if status >= 400 { body.to_string() } else { String::new() };
        let method = request.method();
        self.calls.push(format!(
            "  {method} {uri} {sent} {conditions:?} as {who} → {status} {note}"
        ));
        Got {
            status,
            headers: parts.headers,
            body,
            changed: false,
            unlike_specs,
        }
    }

    /// What in an answer breaks the specs. Requests may: some hold what has to be ignored.
    fn unlike_specs(&self, request: &Request<Bytes>, response: &Response<Bytes>) -> Option<String> {
        let specs = self.specs.as_ref().filter(|_| !self.mode.faults)?;
        let broken = specs.check(request, response);
        let in_answer = broken.into_iter().find(|violation| violation.part == Part::Answer);
        in_answer.map(|violation| violation.to_string())
    }

    /// Saves the simulated Azure and loads it again.
    pub fn reload(&mut self) -> Outcome {
        let saved = serde_json::to_string(&self.azure).unwrap();
        self.azure = serde_json::from_str(&saved).unwrap();
        let again = serde_json::to_string(&self.azure).unwrap();
        if again == saved {
            return Ok(());
        }
        let value = |text: &str| serde_json::from_str::<Value>(text).unwrap();
        let what = view::difference(&value(&saved), &value(&again));
        Err(self.story(&format!("loading a saved world has changed {what}")))
    }
}
