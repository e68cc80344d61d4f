//! Recorded traffic of Azure, played against the simulator: every answer as recorded, or explained.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

use std::path::PathBuf;

use armsim::replay::{Counts, Explained, Verdict, replay};

/// Exchanges that are played in all recordings together; fewer means that something went missing.
const COMPARED_AT_LEAST: usize = 300;

/// The recordings beside the project, by name.
fn recordings() -> Option<Vec<PathBuf>> {
    let beside = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared");
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(beside, PathBuf::from);
    let mut files = Vec::new();
    for folder in std::fs::read_dir(root.join("azure-rest/recordings")).ok()? {
        let found = std::fs::read_dir(folder.unwrap().path()).unwrap();
        files.extend(found.map(|file| file.unwrap().path()));
    }
    files.sort();
    Some(files)
}

#[test]
fn recorded_traffic_is_answered_alike() {
    let Some(files) = recordings() else {
        println!("SKIPPED: no recordings beside the project, and HYPERLINK_REFERENCE_DATA is not set");
        return;
    };
    let mut explained = Explained::parse(include_str!("recordings/explained.yaml")).unwrap();
    let mut counts = Counts::default();
    let mut differing = Vec::new();
    for file in &files {
        let name = file.file_name().unwrap().to_str().unwrap();
        for line in replay(name, &std::fs::read_to_string(file).unwrap(), &mut explained).unwrap() {
            counts.add(&line);
            if line.verdict == Verdict::Differs {
                differing.push(format!("{name}\n{line}"));
            }
        }
    }
    println!("{} recordings, {} reasons; {counts}", files.len(), explained.given());
    assert!(differing.is_empty(), "{}", differing.join("\n"));
    assert!(
        counts.compared() >= COMPARED_AT_LEAST,
        "only {} exchanges compared",
        counts.compared()
    );
    assert!(explained.given() <= 10, "{} reasons", explained.given());
    assert_eq!(explained.unused(), [""; 0]);
}
