//! One operation of the specs: which path and method it is, and what may be asked and answered.

use std::collections::BTreeMap;
use std::path::Path;

use http::Method;
use serde_json::{Map, Value};

use super::SpecError;
use super::document::{Documents, SpecLocation};
use super::schema::{SchemaId, Schemas, Text, text};

/// An operation of the specs.
#[derive(Debug)]
pub(super) struct Operation {
    /// `PrivateEndpoints_Get`.
    pub(super) id: String,
    pub(super) method: Method,
    /// Segments of the path; a parameter has its rules.
    pub(super) path: Vec<Segment>,
    /// Parameters in the query, by their names; `api-version` is one.
    pub(super) query: Vec<Parameter>,
    /// Names of the headers that a request may have beyond ARM's own, in lower case.
    pub(super) headers: Vec<String>,
    pub(super) body: Option<Body>,
    /// The schema of the body for each status; none where there is no body.
    pub(super) answers: BTreeMap<u16, Option<SchemaId>>,
    /// The schema of refusals.
    pub(super) refusal: Option<SchemaId>,
    /// The header that must lead to the end of an operation that still runs.
    pub(super) long_running: Option<LongRunning>,
    /// Its answers come in pages, which are asked for by links that are not the spec's business.
    pub(super) pages: bool,
    /// The api-version of the file.
    pub(super) version: String,
}

/// A part of a path.
#[derive(Debug)]
pub(super) enum Segment {
    /// In lower case.
    Fixed(String),
    Any {
        name: String,
        text: Text,
    },
}

/// A parameter in the query.
#[derive(Debug)]
pub(super) struct Parameter {
    pub(super) name: String,
    pub(super) required: bool,
    pub(super) kind: String,
    pub(super) text: Text,
}

/// The body of a request.
#[derive(Debug)]
pub(super) struct Body {
    pub(super) schema: SchemaId,
    pub(super) required: bool,
}

/// `x-ms-long-running-operation` and where it ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LongRunning {
    Location,
    AsyncOperation,
    /// The spec leaves it open.
    Either,
}

/// Parameters that stand for several segments: these paths fit any resource, and say nothing about it.
const SPANNING: [&str; 3] = ["{resourceId}", "{scope}", "{parentResourcePath}"];

/// Reads all operations of one file.
pub(super) fn read(documents: &mut Documents, schemas: &mut Schemas, file: &Path) -> Result<Vec<Operation>, SpecError> {
    let json = documents.file(file)?;
    let version = json["info"]["version"].as_str().unwrap_or_default().to_owned();
    let paths = json["paths"].as_object().cloned().unwrap_or_default();
    let mut operations = Vec::new();
    for (path, methods) in paths {
        if SPANNING.iter().any(|parameter| path.contains(parameter)) {
            continue;
        }
        for (method, json) in methods.as_object().into_iter().flatten() {
            let mut reader = Reader {
                documents: &mut *documents,
                schemas: &mut *schemas,
                file,
            };
            let operation = reader.operation(&path, method, json, &version);
            operations.push(operation.map_err(|error| error.within(&path))?);
        }
    }
    Ok(operations)
}

struct Reader<'a> {
    documents: &'a mut Documents,
    schemas: &'a mut Schemas,
    file: &'a Path,
}

impl Reader<'_> {
    fn operation(&mut self, path: &str, method: &str, json: &Value, version: &str) -> Result<Operation, SpecError> {
        let mut answers = BTreeMap::new();
        let mut refusal = None;
        for (status, answer) in json["responses"].as_object().unwrap_or(&Map::new()) {
            let schema = match answer.get("schema") {
                Some(schema) => Some(self.schema(schema)?),
                None => None,
            };
            match status.parse() {
                Ok(status) => drop(answers.insert(status, schema)),
                Err(_) => refusal = schema,
            }
        }
        let mut operation = Operation {
            id: json["operationId"].as_str().unwrap_or_default().to_owned(),
            method: method
                .to_ascii_uppercase()
                .parse()
                .map_err(|_| self.bad("not a method"))?,
            path: vec![],
            query: vec![],
            headers: vec![],
            body: None,
            answers,
            refusal,
            long_running: long_running(json),
            pages: json.get("x-ms-pageable").is_some(),
            version: version.to_owned(),
        };
        let mut in_path = Vec::new();
        for parameter in json["parameters"].as_array().into_iter().flatten() {
            let parameter = self.parameter(parameter)?;
            let name = parameter["name"].as_str().unwrap_or_default().to_owned();
            let text = || text(&parameter).map_err(|error| self.bad(&error.to_string()));
            match parameter["in"].as_str() {
                Some("path") => in_path.push((format!("{{{name}}}"), text()?)),
                Some("query") => operation.query.push(Parameter {
                    required: parameter["required"] == true,
                    kind: parameter["type"].as_str().unwrap_or_default().to_owned(),
                    text: text()?,
                    name,
                }),
                Some("header") => operation.headers.push(name.to_ascii_lowercase()),
                Some("body") => {
                    operation.body = Some(Body {
                        schema: self.schema(&parameter["schema"])?,
                        required: parameter["required"] == true,
                    });
                }
                _ => return Err(self.bad(&format!("parameter {name} is nowhere"))),
            }
        }
        operation.path = segments(path, &in_path);
        Ok(operation)
    }

    fn parameter(&mut self, json: &Value) -> Result<Value, SpecError> {
        match json["$ref"].as_str() {
            Some(reference) => {
                let location: SpecLocation = self.documents.refers(self.file, reference);
                self.documents.at(&location)
            }
            None => Ok(json.clone()),
        }
    }

    fn schema(&mut self, json: &Value) -> Result<SchemaId, SpecError> {
        self.schemas.read(self.documents, self.file, json)
    }

    fn bad(&self, why: &str) -> SpecError {
        SpecError {
            place: self.file.display().to_string(),
            why: why.to_owned(),
        }
    }
}

fn segments(path: &str, parameters: &[(String, Text)]) -> Vec<Segment> {
    let parts = path.split('/').filter(|part| !part.is_empty());
    parts
        .map(|part| match part.strip_prefix('{') {
            None => Segment::Fixed(part.to_ascii_lowercase()),
            Some(name) => Segment::Any {
                name: name.trim_end_matches('}').to_owned(),
                text: parameters
                    .iter()
                    .find(|(known, _)| known == part)
                    .map(|(_, text)| text.clone())
                    .unwrap_or_default(),
            },
        })
        .collect()
}

fn long_running(json: &Value) -> Option<LongRunning> {
    if json["x-ms-long-running-operation"] != true {
        return None;
    }
    Some(
        match json["x-ms-long-running-operation-options"]["final-state-via"].as_str() {
            Some("location") => LongRunning::Location,
            Some("azure-async-operation") => LongRunning::AsyncOperation,
            _ => LongRunning::Either,
        },
    )
}

impl Operation {
    /// Whether a path, split at its slashes, is this operation's.
    pub(super) fn fits(&self, parts: &[&str]) -> bool {
        let mut pairs = self.path.iter().zip(parts);
        self.path.len() == parts.len()
            && pairs.all(|(segment, part)| match segment {
                Segment::Fixed(fixed) => fixed.eq_ignore_ascii_case(part),
                Segment::Any { .. } => true,
            })
    }

    /// Orders paths that fit alike: the one with words where others have parameters comes first.
    pub(super) fn looseness(&self) -> Vec<bool> {
        let loose = |segment: &Segment| matches!(segment, Segment::Any { .. });
        self.path.iter().map(loose).collect()
    }
}
