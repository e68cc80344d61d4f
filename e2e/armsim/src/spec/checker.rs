//! What strict mode does: answers a call that breaks the specs with an error, and keeps the violation.

use std::sync::Arc;

use bytes::Bytes;
use http::{Request, Response, StatusCode};

use super::{Specs, Tally, Violation};
use crate::engine::respond::error_body;

/// Violations that are kept, the first ones.
const KEPT: usize = 1000;

/// The specs that every exchange is held against, and what they found.
#[derive(Clone, Debug)]
pub(crate) struct Checker {
    specs: Arc<Specs>,
    violations: Vec<Violation>,
}

impl Checker {
    pub(crate) fn new(specs: Arc<Specs>) -> Self {
        Self {
            specs,
            violations: vec![],
        }
    }

    /// Replaces an answer by a refusal if it or its request is not as the specs describe.
    pub(crate) fn check(&mut self, request: &Request<Bytes>, response: &mut Response<Bytes>) {
        let found = self.specs.check(request, response);
        if found.is_empty() {
            return;
        }
        let lines: Vec<String> = found.iter().map(Violation::to_string).collect();
        *response.status_mut() = StatusCode::INTERNAL_SERVER_ERROR;
        *response.body_mut() = Bytes::from(error_body("SpecViolation", &lines.join("; ")).to_string());
        let room = KEPT.saturating_sub(self.violations.len());
        self.violations.extend(found.into_iter().take(room));
    }

    pub(crate) fn violations(&self) -> &[Violation] {
        &self.violations
    }

    pub(crate) fn tally(&self) -> Tally {
        self.specs.tally()
    }
}
