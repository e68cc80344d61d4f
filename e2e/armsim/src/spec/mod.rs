//! The OpenAPI files of the service, and the check of every exchange against them, in both directions.
//!
//! They are read where they lie and are no part of the simulator: a [`crate::SimulatedAzure`] without them answers
//! alike, unchecked.

mod checker;
mod document;
mod exchange;
mod operation;
mod schema;
mod tally;
mod value;
mod violation;
mod wire;

use std::collections::{BTreeMap, HashMap};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Method, Request, Response};

pub(crate) use checker::Checker;
use document::Documents;
use exchange::Exchange;
use operation::Operation;
use schema::Schemas;
pub use tally::{Checked, Tally};
pub use violation::{Part, Rule, Violation};
use wire::DISAGREEMENTS;

/// A file of the specs that cannot be used.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{place}: {why}")]
pub struct SpecError {
    place: String,
    why: String,
}

impl SpecError {
    fn within(self, path: &str) -> Self {
        Self {
            place: format!("{} ({path})", self.place),
            why: self.why,
        }
    }
}

/// The specs of Microsoft.Network, private DNS and Microsoft.Resources, ready to check with.
pub struct Specs {
    schemas: Schemas,
    operations: Vec<Operation>,
    /// Operations by the number of parts of their paths; those with the most words first.
    by_length: HashMap<usize, Vec<usize>>,
    taken: Vec<AtomicU64>,
    refused: Vec<AtomicU64>,
    disagreed: Vec<AtomicU64>,
    unknown: Mutex<BTreeMap<String, u64>>,
}

impl fmt::Debug for Specs {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(to, "Specs of {} operations", self.operations.len())
    }
}

impl Specs {
    /// Reads the specs below `dir`, which holds `network`, `privatedns` and `resources`, each with a directory for
    /// every api-version (the newest is taken), and `common-types`.
    ///
    /// # Errors
    /// A file is missing, is not JSON, or refers to nothing.
    pub fn load(dir: &Path) -> Result<Self, SpecError> {
        let mut documents = Documents::new(dir);
        let mut schemas = Schemas::default();
        let mut operations = Vec::new();
        for service in ["network", "privatedns", "resources"] {
            let newest = entries(&dir.join(service))?.pop();
            for file in entries(&newest.unwrap_or_else(|| dir.join(service)))? {
                if file.extension().is_some_and(|extension| extension == "json") {
                    operations.extend(operation::read(&mut documents, &mut schemas, &file)?);
                }
            }
        }
        operations.sort_by_key(Operation::looseness);
        let mut by_length: HashMap<usize, Vec<usize>> = HashMap::new();
        for (number, operation) in operations.iter().enumerate() {
            by_length.entry(operation.path.len()).or_default().push(number);
        }
        Ok(Self {
            taken: zeros(operations.len()),
            refused: zeros(operations.len()),
            disagreed: zeros(DISAGREEMENTS.len()),
            unknown: Mutex::default(),
            schemas,
            operations,
            by_length,
        })
    }

    /// The specs below `dir`, read once in this process: their counts are the process's.
    ///
    /// # Errors
    /// As [`Specs::load`].
    pub fn shared(dir: &Path) -> Result<Arc<Self>, SpecError> {
        static READ: Mutex<BTreeMap<PathBuf, Arc<Specs>>> = Mutex::new(BTreeMap::new());
        let mut read = READ.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(specs) = read.get(dir) {
            return Ok(Arc::clone(specs));
        }
        let specs = Arc::new(Self::load(dir)?);
        read.insert(dir.to_owned(), Arc::clone(&specs));
        Ok(specs)
    }

    /// Everything in an exchange that its operation does not allow. Of a refused call only the answer is checked; what
    /// no spec describes is counted.
    pub fn check(&self, request: &Request<Bytes>, response: &Response<Bytes>) -> Vec<Violation> {
        let path = request.uri().path();
        let parts: Vec<&str> = path.split('/').filter(|part| !part.is_empty()).collect();
        let alike = self.by_length.get(&parts.len()).map(Vec::as_slice).unwrap_or_default();
        let mut fitting = alike.iter().filter(|number| self.operations[**number].fits(&parts));
        let Some(first) = fitting.next() else {
            self.count_unknown(request);
            return vec![];
        };
        // Another method of the same path, not of a looser one.
        let loose = self.operations[*first].looseness();
        let same = |number: &&usize| self.operations[**number].looseness() == loose;
        let mut methods = std::iter::once(first).chain(fitting.take_while(same));
        let Some(number) = methods.find(|number| self.operations[**number].method == *request.method()) else {
            // `/{resourceId}` declares these two for every resource; such paths are not read.
            let generic = [Method::HEAD, Method::PATCH].contains(request.method());
            if response.status().is_success() && !generic {
                return vec![undeclared(&self.operations[*first], request)];
            }
            self.count_unknown(request);
            return vec![];
        };
        let operation = &self.operations[*number];
        let counters = if response.status().is_success() {
            &self.taken
        } else {
            &self.refused
        };
        counters[*number].fetch_add(1, Ordering::Relaxed);
        let findings = Exchange::findings(&self.schemas, operation, request, response);
        let bad = findings
            .into_iter()
            .filter(|finding| !self.excused(&operation.id, finding));
        let violation = |finding: value::Finding| Violation {
            operation: operation.id.clone(),
            part: finding.part,
            rule: finding.rule,
            place: finding.place,
            expected: finding.expected,
            found: finding.found,
        };
        bad.map(violation).collect()
    }

    fn excused(&self, operation: &str, finding: &value::Finding) -> bool {
        let known = DISAGREEMENTS.iter().position(|known| known.excuses(operation, finding));
        if let Some(counter) = known.and_then(|number| self.disagreed.get(number)) {
            counter.fetch_add(1, Ordering::Relaxed);
        }
        known.is_some()
    }

    fn count_unknown(&self, request: &Request<Bytes>) {
        let mut unknown = self.unknown.lock().unwrap_or_else(PoisonError::into_inner);
        tally::count_unknown(&mut unknown, request.method().as_str(), request.uri().path());
    }

    /// What was checked so far.
    pub fn tally(&self) -> Tally {
        let mut tally = Tally {
            not_in_specs: self.unknown.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..Tally::default()
        };
        for (number, operation) in self.operations.iter().enumerate() {
            let checked = Checked {
                taken: self.taken[number].load(Ordering::Relaxed),
                refused: self.refused[number].load(Ordering::Relaxed),
            };
            if checked.taken == 0 {
                tally.never_taken.insert(operation.id.clone());
            }
            if checked != Checked::default() {
                tally.checked.insert(operation.id.clone(), checked);
            }
        }
        for (known, times) in DISAGREEMENTS.iter().zip(&self.disagreed) {
            let description = known.to_string();
            *tally.disagreements.entry(description).or_default() += times.load(Ordering::Relaxed);
        }
        tally
    }
}

fn zeros(length: usize) -> Vec<AtomicU64> {
    std::iter::repeat_with(AtomicU64::default).take(length).collect()
}

fn undeclared(operation: &Operation, request: &Request<Bytes>) -> Violation {
    Violation {
        operation: operation.id.clone(),
        part: Part::Request,
        rule: Rule::Method,
        place: request.uri().path().to_owned(),
        expected: operation.method.to_string(),
        found: request.method().to_string(),
    }
}

/// The entries of a directory, sorted.
fn entries(dir: &Path) -> Result<Vec<PathBuf>, SpecError> {
    let bad = |error: std::io::Error| SpecError {
        place: dir.display().to_string(),
        why: error.to_string(),
    };
    let mut entries = Vec::new();
    for entry in std::fs::read_dir(dir).map_err(bad)? {
        entries.push(entry.map_err(bad)?.path());
    }
    entries.sort();
    Ok(entries)
}
