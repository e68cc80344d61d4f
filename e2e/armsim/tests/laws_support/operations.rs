//! Every accepted operation ends exactly once, not before its time, and from then on both of its URLs report that end.

use std::collections::BTreeMap;

use jiff::Timestamp;
use serde_json::Value;

use super::call::{Got, Sent};
use super::run::{Outcome, Run};
use super::step::What;
use super::view::text;
use super::written::settable;

#[derive(Clone)]
struct Operation {
    method: &'static str,
    /// Id in lower case.
    target: String,
    body: Value,
    who: usize,
    status_url: Option<String>,
    location: Option<String>,
    /// Nothing for one that is over or never ends.
    ends: Option<Timestamp>,
    hangs: bool,
    /// The final status body, once it was answered.
    end: Option<Value>,
    lost: bool,
}

/// All that were accepted, in that order.
#[derive(Clone, Default)]
pub struct Operations {
    all: Vec<Operation>,
}

impl Operations {
    pub fn len(&self) -> usize {
        self.all.len()
    }

    /// Takes note of an answer with polling URLs.
    pub fn accepted(&mut self, run: &mut Run, sent: &Sent, got: &Got) -> Outcome {
        let url = |name: &str| got.header(name).map(str::to_owned);
        let (status_url, location) = (url("azure-asyncoperation"), url("location"));
        if !got.is_accepted() || (status_url.is_none() && location.is_none()) {
            return Ok(());
        }
        let id = got.header("x-ms-request-id").unwrap_or_default();
        let running = run.azure.operations_in_flight(run.now);
        let running = running.iter().find(|running| running.id == id);
        let ends = running
            .and_then(|running| running.ends.as_ref())
            .map(|ends| ends.parse().unwrap());
        let state = got.body["properties"]["provisioningState"].as_str();
        let lags = run.mode.switches & 64 != 0 && sent.path.to_ascii_lowercase().contains("/subnets/");
        if running.is_some() == (state == Some("Succeeded")) && state.is_some() && !lags {
            return Err(format!(
                "{} is answered {state:?}, running: {}",
                sent.path,
                running.is_some()
            ));
        }
        self.all.push(Operation {
            method: sent.method,
            target: sent.path.to_ascii_lowercase(),
            body: sent.body.clone(),
            who: sent.who,
            status_url,
            location,
            ends,
            hangs: running.is_some() && ends.is_none(),
            end: None,
            lost: false,
        });
        Ok(())
    }

    /// Asks both URLs of one.
    pub fn poll(&mut self, run: &mut Run, number: usize) -> Outcome {
        let operation = &mut self.all[number];
        if let Some(url) = operation.status_url.clone() {
            let got = run.call(&operation.get(url))?;
            operation.check_status(run, &got)?;
        }
        if let Some(url) = operation.location.clone() {
            let got = run.call(&operation.get(url))?;
            operation.check_location(run, &got)?;
        }
        Ok(())
    }

    /// At the end of a run: each has ended, and zones and links show the last of those that succeeded.
    pub fn all_ended(&self) -> Outcome {
        let open = self.all.iter().find(|operation| {
            operation.status_url.is_some() && operation.end.is_none() && !operation.hangs && !operation.lost
        });
        open.map_or(Ok(()), |open| {
            Err(format!("{} {} has not ended", open.method, open.target))
        })
    }

    /// What the last of those that succeeded has left of each zone and link; nothing for one that is deleted.
    pub fn zones_and_links(&self) -> BTreeMap<String, Option<Value>> {
        let mut left = BTreeMap::new();
        for operation in &self.all {
            let what = match operation.target.split('/').count() {
                9 => What::Zone,
                11 => What::Link,
                _ => continue,
            };
            let succeeded = operation.end.as_ref().is_some_and(|end| end["status"] == "Succeeded");
            if !succeeded || !operation.target.contains("/privatednszones/") {
                continue;
            }
            match operation.method {
                "PUT" => left.insert(operation.target.clone(), Some(settable(what, &operation.body))),
                "DELETE" => left.insert(operation.target.clone(), None),
                _ => {
                    if let Some(Some(known)) = left.get_mut(&operation.target)
                        && !operation.body["tags"].is_null()
                    {
                        known["tags"] = operation.body["tags"].clone();
                    }
                    None
                }
            };
        }
        left
    }
}

impl Operation {
    fn get(&self, url: String) -> Sent {
        Sent {
            method: "GET",
            path: url,
            query: "",
            headers: vec![],
            body: Value::Null,
            who: self.who,
        }
    }

    /// Checks what the status URL answered.
    fn check_status(&mut self, run: &Run, got: &Got) -> Outcome {
        let name = format!("the operation of {} {}", self.method, self.target);
        if got.status == 429 && run.mode.throttle || got.status >= 400 && run.mode.faults {
            self.lost |= got.status == 404;
            return Ok(());
        }
        let (word, old) = (text(&got.body["status"]), self.end.as_ref());
        match word.as_str() {
            "inprogress" if old.is_none() => Ok(()),
            "succeeded" | "failed" | "canceled" if old.is_some_and(|old| *old != got.body) => {
                Err(format!("{name} ended {old:?} and then {}", got.body))
            }
            "succeeded" if self.ends.is_some_and(|ends| run.now < ends) => {
                Err(format!("{name} succeeded before its time"))
            }
            "failed" | "canceled" if got.body["error"]["code"].is_null() => {
                Err(format!("{name} failed without an error"))
            }
            "succeeded" | "failed" | "canceled" => {
                self.end = Some(got.body.clone());
                Ok(())
            }
            _ => Err(format!("{name} answers {} {} after {old:?}", got.status, got.body)),
        }
    }

    /// Checks what the `Location` URL answered, just after the status URL.
    fn check_location(&mut self, run: &Run, got: &Got) -> Outcome {
        if got.status == 429 && run.mode.throttle || run.mode.faults {
            return Ok(());
        }
        let word = self.end.as_ref().map(|end| text(&end["status"]));
        let right = match (word.as_deref(), self.method) {
            (None, _) if self.status_url.is_none() => true,
            (None, _) => got.status == 202,
            (Some("succeeded"), "DELETE") => matches!(got.status, 200 | 204),
            // What was put may be gone by now.
            (Some("succeeded"), _) => matches!(got.status, 200 | 404),
            _ => got.status >= 400,
        };
        if right {
            Ok(())
        } else {
            Err(format!(
                "Location of {} {} answers {} after {word:?}",
                self.method, self.target, got.status
            ))
        }
    }
}
