//! `make demo`: PRESET=fast|recorded chooses how long Azure takes, VARIANT=router|oauth how the cluster publishes its
//! services, VARIANT=aws a simulated AWS, VARIANT=capz clusters of Cluster API. KEEP=1 leaves everything running.

use std::process::ExitCode;

use anyhow::Result;
use e2e::azure_sim::Preset;
use e2e::demo::aws::AwsStage;
use e2e::demo::azure::AzureStage;
use e2e::demo::capz::CapzStage;
use e2e::demo::stage::Stage;
use e2e::demo::{Demo, Variant};
use tokio::signal::unix::{SignalKind, signal};

#[tokio::main]
async fn main() -> ExitCode {
    e2e::scenario::install_tls_provider();
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("\ndemo failed: {error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run() -> Result<()> {
    let preset = std::env::var("PRESET").unwrap_or_else(|_| "fast".into()).parse()?;
    let variant = std::env::var("VARIANT").unwrap_or_else(|_| "router".into()).parse()?;
    let keep = std::env::var_os("KEEP").is_some_and(|value| value == "1");
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    // Dropping the demo at any point ends everything that it started.
    tokio::select! {
        outcome = play(preset, variant, keep) => outcome,
        _ = interrupt.recv() => Ok(()),
        _ = terminate.recv() => Ok(()),
    }
}

async fn play(preset: Preset, variant: Variant, keep: bool) -> Result<()> {
    match variant {
        Variant::Router | Variant::OAuth => play_on::<AzureStage>(preset, variant, keep).await,
        Variant::Aws => play_on::<AwsStage>(preset, variant, keep).await,
        Variant::Capz => play_on::<CapzStage>(preset, variant, keep).await,
    }
}

async fn play_on<S: Stage>(preset: Preset, variant: Variant, keep: bool) -> Result<()> {
    let mut demo = Demo::<S>::start(preset, variant).await?;
    let mut played = demo.play().await;
    if played.is_ok() && keep {
        played = demo.stay().await;
        if played.is_ok() {
            return std::future::pending().await;
        }
    }
    match played {
        Ok(()) => demo.stop().await,
        Err(error) => {
            e2e::run_dir::keep_all();
            Err(error)
        }
    }
}
