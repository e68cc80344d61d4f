//! Recorded traffic of Azure, played against the simulator: every answer as recorded, or explained.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::path::{Path, PathBuf};

use armsim::replay::{Counts, Explained, Line, Verdict, replay};
use rstest::rstest;

const EXPLAINED: &str = include_str!("recordings/explained.yaml");

/// Exchanges that are played in all recordings together; fewer means that something went missing.
const COMPARED_AT_LEAST: usize = 300;

fn recordings() -> Option<Vec<PathBuf>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(beside, PathBuf::from);
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root.join("azure-rest/recordings")).ok()? {
        for file in std::fs::read_dir(folder.unwrap().path()).unwrap() {
            files.push(file.unwrap().path());
        }
    }
    files.sort();
    Some(files)
}

fn played(file: &Path, explained: &mut Explained) -> Vec<Line> {
    let name = file.file_name().unwrap().to_str().unwrap();
    replay(name, &std::fs::read_to_string(file).unwrap(), explained).unwrap()
}

#[test]
fn recorded_traffic_is_answered_alike() {
    let Some(files) = recordings() else {
        println!("SKIPPED: no recordings beside the project, and HYPERLINK_REFERENCE_DATA is not set");
        return;
    };
    let mut explained = Explained::parse(EXPLAINED).unwrap();
    let mut all = Counts::default();
    let mut differing = Vec::new();
    for file in &files {
        for line in played(file, &mut explained) {
            all.add(&line);
            if line.verdict == Verdict::Differs {
                differing.push(format!("{}\n{line}", file.display()));
            }
        }
    }
    println!("{} recordings, {} reasons; {all}", files.len(), explained.len());
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(all.compared() >= COMPARED_AT_LEAST, "only {} exchanges compared", all.compared());
    assert!(explained.len() <= 10, "{} reasons", explained.len());
}
