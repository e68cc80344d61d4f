//! `make bench`: measures the figures, prints them as a table and writes them to `target/figures.json`. `ONLY=hyperlink` or `ONLY=armsim`
//! measures one of the two.
//!
//! Fails when something cannot be measured, not when a goal is missed.

use anyhow::{Context, Result, bail};
use e2e::azure_sim::Preset;
use e2e::bench::{self, Report, figures, load};

#[tokio::main(worker_threads = 2)]
async fn main() -> Result<()> {
    let preset = match std::env::var("PRESET") {
        Ok(name) if !name.is_empty() => name.parse()?,
        _ => Preset::Recorded,
    };
    let only = std::env::var("ONLY").unwrap_or_default();
    let (hyperlink, armsim) = match only.as_str() {
        "" => (true, true),
        "hyperlink" => (true, false),
        "armsim" => (false, true),
        _ => bail!("ONLY={only}: hyperlink or armsim"),
    };
    let mut report = Report::default();
    if hyperlink {
        report = bench::run(preset).await?;
    }
    if armsim {
        report.figures.extend(load::run().await?);
    }
    println!("{}", figures::table(&report.figures));
    for remark in &report.remarks {
        println!("{remark}");
    }
    let path = e2e::repository().join("target/figures.json");
    let json = serde_json::to_string_pretty(&report.figures)?;
    let written = std::fs::create_dir_all(path.with_file_name("")).and_then(|()| std::fs::write(&path, json + "\n"));
    written.with_context(|| format!("write {}", path.display()))
}
