//! `make bench`: measures the figures, prints them as a table and writes them to `target/figures.json`. `ONLY=life` (or
//! another part's name) measures that part alone. `PROGRAM=path` measures that executable: the static one of an image
//! needs less memory than one with this machine's C library.
//!
//! Fails when something cannot be measured, not when a goal is missed.

use std::path::PathBuf;

use anyhow::{Context, Result};
use e2e::azure_sim::Preset;
use e2e::bench::{self, Part, figures};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let preset = match std::env::var("PRESET") {
        Ok(name) if !name.is_empty() => name.parse()?,
        _ => Preset::Recorded,
    };
    let parts = match std::env::var("ONLY") {
        Ok(name) if !name.is_empty() => vec![name.parse()?],
        _ => Part::ALL.to_vec(),
    };
    let program = std::env::var_os("PROGRAM").filter(|path| !path.is_empty());
    let report = bench::run(preset, &parts, program.map(PathBuf::from)).await?;
    println!("{}", figures::table(&report.figures));
    for remark in &report.remarks {
        println!("{remark}");
    }
    let path = e2e::repository().join("target/figures.json");
    let json = serde_json::to_string_pretty(&report.figures)?;
    let written = std::fs::create_dir_all(path.with_file_name("")).and_then(|()| std::fs::write(&path, json + "\n"));
    written.with_context(|| format!("write {}", path.display()))
}
