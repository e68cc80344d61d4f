//! `make e2e`: runs the scenarios on a given cluster and a given Azure, and deletes what they created, however they
//! ended.
//!
//! `on-cluster` runs the scenarios, `on-cluster --dry-run` prints what a run would create, `on-cluster --clean PREFIX`
//! deletes what a killed run has left. The environment names the cluster and the Azure: docs/e2e.md.

use std::process::ExitCode;

use anyhow::{Context, Result, anyhow};
use e2e::foreign::Foreign;
use e2e::foreign::settings::Settings;
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    e2e::scenario::install_tls_provider();
    let arguments: Vec<_> = std::env::args().skip(1).collect();
    let arguments: Vec<_> = arguments.iter().map(String::as_str).collect();
    let outcome = match arguments.as_slice() {
        [] => run().await,
        ["--dry-run"] => dry_run().await,
        ["--clean", prefix] => clean(prefix).await,
        _ => {
            eprintln!("usage: on-cluster [--dry-run | --clean PREFIX]");
            return ExitCode::from(2);
        }
    };
    match outcome {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn foreign(prefix: Option<&str>) -> Result<(Foreign, String)> {
    let settings = Settings::read(&|name| std::env::var(name).ok(), prefix)?;
    let prefix = settings.prefix.to_string();
    Ok((Foreign::new(settings).await?, prefix))
}

async fn dry_run() -> Result<()> {
    let (foreign, _) = foreign(None).await?;
    foreign.check().await?;
    for line in foreign.would_make() {
        println!("{line}");
    }
    Ok(())
}

async fn clean(prefix: &str) -> Result<()> {
    let (foreign, prefix) = foreign(Some(prefix)).await?;
    foreign.clean().await?;
    println!("nothing is left of {prefix}");
    Ok(())
}

async fn run() -> Result<()> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let (foreign, prefix) = foreign(None).await?;
    foreign.check().await?;
    println!("prefix {prefix}; if this is killed: make e2e CLEAN={prefix}");
    // Dropping a run ends its processes; the cleanup below deletes what it created.
    let ran = tokio::select! {
        ran = foreign.run() => ran,
        _ = interrupt.recv() => Err(anyhow!("interrupted")),
        _ = terminate.recv() => Err(anyhow!("terminated")),
    };
    if ran.is_err() {
        e2e::run_dir::keep_all();
    }
    println!("takes away what bears the prefix");
    let cleaned = tokio::select! {
        cleaned = foreign.clean() => cleaned,
        _ = interrupt.recv() => Err(anyhow!("interrupted while cleaning")),
        _ = terminate.recv() => Err(anyhow!("terminated while cleaning")),
    };
    let cleaned = cleaned.with_context(|| format!("something is left: make e2e CLEAN={prefix}"));
    match (ran, cleaned) {
        (Ok(()), cleaned) => cleaned,
        (ran, Ok(())) => ran,
        (Err(ran), Err(cleaned)) => Err(anyhow!("{ran:#}; {cleaned:#}")),
    }
}
