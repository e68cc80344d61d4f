//! The specs of the reference data, once per test program, and recorded or made-up exchanges to hold against them.
#![allow(
    dead_code,
    unreachable_pub,
    missing_docs,
    clippy::unwrap_used,
    clippy::panic,
    reason = "each test binary uses a part of it, and a test that cannot go on fails"
)]

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, Once, PoisonError};

use armsim::{Part, Rule, SimulatedAzure, Specs};
use bytes::Bytes;
use http::{HeaderMap, Request, Response};
use serde_json::{Value, json};

/// Where test programs leave their tallies, by their names. The fuzz targets are no test programs and leave none.
pub fn tallies() -> PathBuf {
    let of_tests = option_env!("CARGO_TARGET_TMPDIR").map_or_else(std::env::temp_dir, PathBuf::from);
    of_tests.join("spec-tallies")
}

/// The directory of the OpenAPI files, if the reference data is there.
pub fn reference() -> Option<PathBuf> {
    // Packages at different depths of the repository use this.
    let above = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    let repository = above.filter(|dir| dir.join("Cargo.lock").is_file()).last().unwrap();
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(repository.join("../shared"), PathBuf::from);
    Some(root.join("azure-rest")).filter(|path| path.is_dir())
}

/// The specs; reports that the running test is skipped if there are none.
pub fn specs() -> Option<Arc<Specs>> {
    let found = reference().map(|dir| Specs::shared(&dir).unwrap());
    if found.is_none() {
        skipped("no specs of Azure at hand");
    }
    found
}

/// Written past the test harness, which swallows the output of tests that pass.
fn skipped(reason: &str) {
    let _ = writeln!(std::io::stderr(), "\nSKIPPED: {reason}");
}

/// From now on checks every call to this simulated Azure against the specs, if they are at hand.
pub fn check(azure: &mut SimulatedAzure) {
    if let Some(specs) = at_hand() {
        azure.check_against(specs);
    }
}

/// The specs for tests that are about something else; reports once if there are none.
pub fn at_hand() -> Option<Arc<Specs>> {
    static REPORTED: Once = Once::new();
    let found = reference().map(|dir| Specs::shared(&dir).unwrap());
    if found.is_none() {
        REPORTED.call_once(|| skipped("no specs of Azure at hand, so no call is held against them"));
    }
    found
}

/// Called at the end of a simulated Azure: writes what this test program has checked so far for the test that shows it
/// all, and fails the test if anything broke the specs.
pub fn kept(azure: &SimulatedAzure) {
    if let Some(tally) = azure.spec_tally() {
        let program = std::env::current_exe().unwrap();
        let name = program.file_stem().unwrap().to_str().unwrap();
        let name = name.rsplit_once('-').map_or(name, |(name, _)| name);
        std::fs::create_dir_all(tallies()).unwrap();
        // Other threads write this file at the same time.
        static WRITING: Mutex<()> = Mutex::new(());
        let _writing = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        std::fs::write(tallies().join(format!("{name}.json")), json!(tally).to_string()).unwrap();
    }
    let lines: Vec<String> = azure.violations().iter().map(ToString::to_string).collect();
    assert!(lines.is_empty() || std::thread::panicking(), "{}", lines.join("\n"));
}

/// A made-up exchange; a null body is none.
pub struct Exchange {
    pub method: &'static str,
    pub path: String,
    pub query: String,
    pub sent: Value,
    pub headers: HeaderMap,
    pub status: u16,
    pub answered: Value,
    pub answer_headers: HeaderMap,
}

impl Exchange {
    pub fn new(method: &'static str, path: String, version: &str, sent: Value, status: u16, answered: Value) -> Self {
        Self {
            method,
            path,
            query: format!("api-version={version}"),
            sent,
            headers: HeaderMap::new(),
            status,
            answered,
            answer_headers: HeaderMap::new(),
        }
    }

    /// An answer that has this header.
    pub fn with(mut self, name: &'static str) -> Self {
        self.answer_headers
            .insert(name, "https://arm.test/poll".parse().unwrap());
        self
    }

    /// What the specs do not allow: part, rule and place.
    pub fn check(&self, specs: &Specs) -> Vec<(Part, Rule, String)> {
        let body = |json: &Value| {
            Bytes::from(if json.is_null() {
                String::new()
            } else {
                json.to_string()
            })
        };
        let request = Request::builder()
            .method(self.method)
            .uri(format!("https://arm.test{}?{}", self.path, self.query));
        let mut request = request.body(body(&self.sent)).unwrap();
        request.headers_mut().clone_from(&self.headers);
        let mut response = Response::builder()
            .status(self.status)
            .body(body(&self.answered))
            .unwrap();
        response.headers_mut().clone_from(&self.answer_headers);
        let found = specs.check(&request, &response);
        found
            .into_iter()
            .map(|found| (found.part, found.rule, found.place))
            .collect()
    }
}

/// A request and its answer.
pub type Recorded = (Request<Bytes>, Response<Bytes>);

/// All exchanges of a go-vcr cassette.
pub fn cassette(path: &std::path::Path) -> Vec<Recorded> {
    let json: Value = serde_saphyr::from_str(&std::fs::read_to_string(path).unwrap()).unwrap();
    let interactions = json["interactions"].as_array().unwrap();
    interactions.iter().map(recorded).collect()
}

fn recorded(interaction: &Value) -> Recorded {
    let (sent, got) = (&interaction["request"], &interaction["response"]);
    let body = |half: &Value| Bytes::from(half["body"].as_str().unwrap_or_default().to_owned());
    let headers = |half: &Value| -> Vec<(String, String)> {
        let named = half["headers"].as_object().cloned().unwrap_or_default();
        let first = |value: &Value| value[0].as_str().unwrap_or_default().to_owned();
        named.into_iter().map(|(name, value)| (name, first(&value))).collect()
    };
    let mut request = Request::builder()
        .method(sent["method"].as_str().unwrap())
        .uri(sent["url"].as_str().unwrap());
    for (name, value) in headers(sent) {
        request = request.header(name, value);
    }
    let code = u16::try_from(got["code"].as_u64().unwrap()).unwrap();
    let mut response = Response::builder().status(code);
    for (name, value) in headers(got) {
        response = response.header(name, value);
    }
    (request.body(body(sent)).unwrap(), response.body(body(got)).unwrap())
}
