//! Holds one request and its answer against an operation of the specs.

use bytes::Bytes;
use http::{HeaderMap, Method, Request, Response};
use serde_json::Value;

use super::operation::{LongRunning, Operation, Parameter, Segment};
use super::schema::{Schema, SchemaId, Schemas};
use super::value::{Finding, ValueCheck, refused};
use super::violation::{Part, Rule};
use crate::engine::route::decode;

/// Headers of a request that only mean something where an operation declares them.
const CONDITIONS: [&str; 2] = ["if-match", "if-none-match"];
const ASYNC_OPERATION: &str = "azure-asyncoperation";
const LOCATION: &str = "location";
/// What the query of a link to the next page has, beyond what is declared.
const PAGING: [&str; 2] = ["$skiptoken", "$top"];

/// One exchange of an operation.
pub(super) struct Exchange<'a> {
    schemas: &'a Schemas,
    operation: &'a Operation,
    newer: bool,
    findings: Vec<Finding>,
}

impl<'a> Exchange<'a> {
    /// All that the spec does not allow in it. A refused request is not checked: the service did not accept it.
    pub(super) fn findings(
        schemas: &'a Schemas,
        operation: &'a Operation,
        request: &Request<Bytes>,
        response: &Response<Bytes>,
    ) -> Vec<Finding> {
        let query = query(request);
        let version = query.iter().find(|(name, _)| name.eq_ignore_ascii_case("api-version"));
        let mut exchange = Self {
            schemas,
            operation,
            newer: version.is_some_and(|(_, version)| version.as_str() > operation.version.as_str()),
            findings: vec![],
        };
        if response.status().is_success() {
            exchange.parameters(request, &query);
            exchange.sent(request);
            exchange.answered(response);
        } else {
            exchange.refused(response);
        }
        exchange.findings
    }

    fn parameters(&mut self, request: &Request<Bytes>, query: &[(String, String)]) {
        let parts = request.uri().path().split('/').filter(|part| !part.is_empty());
        for (segment, part) in self.operation.path.iter().zip(parts) {
            let Segment::Any { name, text } = segment else { continue };
            let part = decode(part).unwrap_or_default();
            if let Some(expected) = refused(text, &part, Part::Request, self.newer) {
                self.note(Part::Request, Rule::Value, name, &expected, &part);
            }
        }
        for parameter in &self.operation.query {
            let given = query
                .iter()
                .find(|(name, _)| name.eq_ignore_ascii_case(&parameter.name));
            match given {
                Some((_, value)) => self.parameter(parameter, value),
                None if parameter.required => {
                    self.note(
                        Part::Request,
                        Rule::Missing,
                        &parameter.name,
                        "a query parameter",
                        "nothing",
                    );
                }
                None => {}
            }
        }
        for (name, value) in query {
            let mut declared = self.operation.query.iter();
            let declared = declared.any(|parameter| parameter.name.eq_ignore_ascii_case(name));
            let of_a_link = self.operation.pages && PAGING.iter().any(|known| known.eq_ignore_ascii_case(name));
            if !declared && !of_a_link && !self.newer {
                self.note(Part::Request, Rule::Unknown, name, "no such parameter", value);
            }
        }
        for name in CONDITIONS {
            let value = header(request.headers(), name).filter(|value| !value.is_empty());
            if let Some(value) = value.filter(|_| !self.operation.headers.iter().any(|known| known == name)) {
                self.note(Part::Request, Rule::Unknown, name, "no such header", value);
            }
        }
    }

    fn parameter(&mut self, parameter: &Parameter, value: &str) {
        let fits = match parameter.kind.as_str() {
            "integer" => value.parse::<i64>().is_ok(),
            "boolean" => value.parse::<bool>().is_ok(),
            _ => true,
        };
        if !fits {
            self.note(Part::Request, Rule::Type, &parameter.name, &parameter.kind, value);
        }
        if let Some(expected) = refused(&parameter.text, value, Part::Request, self.newer) {
            self.note(Part::Request, Rule::Value, &parameter.name, &expected, value);
        }
    }

    fn sent(&mut self, request: &Request<Bytes>) {
        match (&self.operation.body, request.body().is_empty()) {
            (Some(body), true) if body.required => self.note(Part::Request, Rule::Body, "", "a body", "nothing"),
            (Some(body), false) => drop(self.body(Part::Request, Some(body.schema), request.body())),
            (None, false) => self.note(Part::Request, Rule::Body, "", "no body", &text(request.body())),
            (_, true) => {}
        }
    }

    fn answered(&mut self, response: &Response<Bytes>) {
        let status = response.status().as_u16();
        let Some(schema) = self.operation.answers.get(&status) else {
            let declared: Vec<String> = self.operation.answers.keys().map(u16::to_string).collect();
            self.note(
                Part::Answer,
                Rule::Status,
                "",
                &declared.join(", "),
                &status.to_string(),
            );
            return;
        };
        let body = self.body(Part::Answer, *schema, response.body()).unwrap_or_default();
        let ended = ["Succeeded", "Failed", "Canceled"];
        let state = body["properties"]["provisioningState"].as_str();
        let runs = status == 202 || state.is_some_and(|state| !ended.contains(&state));
        let writes = self.operation.method != Method::GET && self.operation.method != Method::HEAD;
        self.leads_to_end(response.headers(), runs && writes);
    }

    /// The headers by which a client learns the end of an operation.
    fn leads_to_end(&mut self, headers: &HeaderMap, runs: bool) {
        let (location, status) = (headers.contains_key(LOCATION), headers.contains_key(ASYNC_OPERATION));
        let (expected, there) = match self.operation.long_running {
            Some(LongRunning::Location) => (LOCATION, location),
            Some(LongRunning::AsyncOperation) => (ASYNC_OPERATION, status),
            Some(LongRunning::Either) => ("azure-asyncoperation or location", location || status),
            None => {
                if location || status {
                    let name = if status { ASYNC_OPERATION } else { LOCATION };
                    self.note(Part::Answer, Rule::Header, name, "no long-running operation", "one");
                }
                return;
            }
        };
        if runs && !there {
            self.note(Part::Answer, Rule::Header, expected, "the header", "nothing");
        }
    }

    fn refused(&mut self, response: &Response<Bytes>) {
        let status = response.status().as_u16();
        if self.operation.method == Method::HEAD {
            return self.none(response.body());
        }
        if let Some(schema) = self.operation.answers.get(&status) {
            self.body(Part::Answer, *schema, response.body());
            return;
        }
        let Some(schema) = self.operation.refusal else {
            self.note(Part::Answer, Rule::Status, "", "no refusal", &status.to_string());
            return;
        };
        let Some(body) = self.json(Part::Answer, response.body()) else {
            return;
        };
        let within = match self.schemas.get(schema) {
            Schema::Object(object) => object.properties.get("error").map(|error| error.schema),
            _ => None,
        };
        match (within, body.get("error")) {
            (Some(within), None) => {
                self.note(
                    Part::Answer,
                    Rule::Wrapping,
                    "",
                    "an error within `error`",
                    &body.to_string(),
                );
                self.check(Part::Answer, within, &body, String::new());
            }
            (None, Some(error)) => {
                self.note(
                    Part::Answer,
                    Rule::Wrapping,
                    "/error",
                    "an error without `error`",
                    &body.to_string(),
                );
                self.check(Part::Answer, schema, error, "/error".to_owned());
            }
            _ => self.check(Part::Answer, schema, &body, String::new()),
        }
    }

    fn body(&mut self, part: Part, schema: Option<SchemaId>, bytes: &Bytes) -> Option<Value> {
        let Some(schema) = schema else {
            self.none(bytes);
            return None;
        };
        let body = self.json(part, bytes)?;
        self.check(part, schema, &body, String::new());
        Some(body)
    }

    /// An answer's body that must not be there.
    fn none(&mut self, bytes: &Bytes) {
        let rule = match bytes.as_ref() {
            b"" => return,
            b"{}" => Rule::Empty,
            _ => Rule::Body,
        };
        self.note(Part::Answer, rule, "", "no body", &text(bytes));
    }

    fn json(&mut self, part: Part, bytes: &Bytes) -> Option<Value> {
        let parsed = serde_json::from_slice(bytes).ok();
        if parsed.is_none() {
            self.note(part, Rule::Body, "", "JSON", &text(bytes));
        }
        parsed
    }

    fn check(&mut self, part: Part, schema: SchemaId, value: &Value, mut place: String) {
        let mut check = ValueCheck {
            schemas: self.schemas,
            part,
            newer: self.newer,
            findings: &mut self.findings,
        };
        check.at(schema, value, &mut place);
    }

    fn note(&mut self, part: Part, rule: Rule, place: &str, expected: &str, found: &str) {
        self.findings.push(Finding {
            part,
            rule,
            place: place.to_owned(),
            definition: String::new(),
            expected: expected.to_owned(),
            found: found.to_owned(),
        });
    }
}

fn header<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

fn text(bytes: &Bytes) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

fn query(request: &Request<Bytes>) -> Vec<(String, String)> {
    let text = request.uri().query().unwrap_or_default();
    url::form_urlencoded::parse(text.as_bytes())
        .map(|(key, value)| (key.into_owned(), value.into_owned()))
        .collect()
}
