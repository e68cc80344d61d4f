//! The fuzz targets' checked-in inputs, run once each: the targets must still compile, hold, and reach the code.
#![allow(
    clippy::unwrap_used,
    clippy::indexing_slicing,
    unreachable_pub,
    missing_docs,
    reason = "a test that cannot go on fails"
)]

#[path = "../fuzz/src/lib.rs"]
mod fuzz;

use rstest::rstest;

#[rstest]
#[case("ids", fuzz::ids)]
#[case("answers", fuzz::answers)]
#[case("aws", fuzz::aws)]
#[case("credentials", fuzz::credentials)]
#[case("intents", fuzz::intents)]
#[case("objects", fuzz::objects)]
#[case("scopes", fuzz::scopes)]
fn inputs_that_were_kept_still_hold(#[case] target: &str, #[case] run: fn(&[u8])) {
    let seeds = std::path::Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("fuzz/seeds")
        .join(target);
    let files: Vec<_> = std::fs::read_dir(&seeds)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    assert!(!files.is_empty(), "no inputs for {target}");
    for file in files {
        println!("{}", file.display());
        run(&std::fs::read(&file).unwrap());
    }
}
