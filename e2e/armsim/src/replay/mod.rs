//! Recorded traffic of the real service, played against a fresh simulated one, and every answer compared.
//!
//! The recording decides what is asked and when operations end; the simulator decides what is answered. Names that a
//! server makes up are mapped, times are not compared, what was there before the recording is seeded.

mod cassette;
mod catalogue;
mod compare;
mod explained;
mod headers;
mod names;
mod recorded;
mod report;
mod scene;
mod shape;
mod skip;
mod stage;
mod take;

pub use cassette::CassetteError;
pub use compare::{Difference, DifferenceKind};
pub use explained::{Explained, ExplainedError};
pub use report::{Counts, Finding, Line, Verdict};

use jiff::Timestamp;
use stage::Stage;

/// Plays the recording `text`; `name` is what its reasons call it.
pub fn replay(name: &str, text: &str, explained: &mut Explained) -> Result<Vec<Line>, CassetteError> {
    let exchanges = cassette::parse(text)?;
    let mut stage = Stage::new(&exchanges);
    let mut lines = Vec::with_capacity(exchanges.len());
    let recorded = exchanges.iter().find_map(|exchange| exchange.date());
    for (number, exchange) in exchanges.iter().enumerate() {
        let mut line = stage.play(number, exchange);
        explain((name, recorded), &mut line, explained);
        lines.push(line);
    }
    Ok(lines)
}

/// Gives each difference its reason, and the exchange its verdict.
fn explain(cassette: (&str, Option<Timestamp>), line: &mut Line, explained: &mut Explained) {
    if line.verdict == Verdict::Skipped {
        return;
    }
    let mut findings = std::mem::take(&mut line.differences);
    for finding in &mut findings {
        if finding.difference.kind != DifferenceKind::Text && finding.explained.is_none() {
            finding.explained = explained.reason(cassette, line, &finding.difference);
        }
    }
    let real = || {
        findings
            .iter()
            .filter(|finding| finding.difference.kind != DifferenceKind::Text)
    };
    line.verdict = if real().next().is_none() {
        Verdict::Same
    } else if real().all(|finding| finding.explained.is_some()) {
        Verdict::Explained
    } else {
        Verdict::Differs
    };
    line.differences = findings;
}
