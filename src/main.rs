//! The `hyperlink` binary: parses, dispatches, and turns the result into an exit code: 0 success, 1 failure, 2 wrong
//! settings; for `plan` as its help says.

mod cli;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context, anyhow};
use hyperlink::config::{self, Config, Environment, RunSettings};
use hyperlink::metrics::Metrics;
use hyperlink::telemetry::{self, Format};
use hyperlink::{COMMIT, VERSION, manager, preview};
use tokio::runtime::Runtime;
use tokio::signal::unix::{Signal, SignalKind, signal};
use tokio_util::sync::CancellationToken;

use cli::{PlanTask, Task};

const WRONG_SETTINGS: u8 = 2;
const STEPS_PENDING: u8 = 2;

/// Everything waits for the network: more threads would only cost memory.
const WORKER_THREADS: usize = 2;

/// Threads for DNS lookups and files.
const BLOCKING_THREADS: usize = 4;

/// How long the end of the process waits for threads that block, as in a DNS lookup that hangs.
const LAST_WAIT: Duration = Duration::from_secs(1);

fn main() -> ExitCode {
    // First of all: a TLS client that is built without it may pick another provider, or panic.
    if rustls::crypto::aws_lc_rs::default_provider().install_default().is_err() {
        return failed(Format::Text, &anyhow!("a TLS provider is installed already"));
    }
    let environment = Environment::of_process();
    match cli::task(std::env::args_os(), &environment) {
        Ok(Task::Run(settings)) => run(*settings, &environment),
        Ok(Task::Plan(task)) => plan(*task, &environment),
        Ok(Task::Crd) => exit_code(crd()),
        Ok(Task::Metrics) => exit_code(metrics()),
        Ok(Task::Version) => exit_code(print(&format!("hyperlink {}\n", cli::version()))),
        Err(usage) => refused(&usage, &environment),
    }
}

/// Prints help to standard output, and any other usage error to standard error.
fn refused(usage: &clap::Error, environment: &Environment) -> ExitCode {
    let format = config::log_format_in(std::env::args_os(), environment);
    let is_help = usage.exit_code() == 0;
    match format {
        Format::Json if !is_help => complain(format, &usage.render().to_string()),
        // If that is closed, nobody is left to inform.
        _ => drop(usage.print()),
    }
    let running = std::env::args_os().nth(1).is_some_and(|command| command == "run");
    match is_help {
        true => ExitCode::SUCCESS,
        false if running => ExitCode::from(WRONG_SETTINGS),
        // 2 would say that steps are pending.
        false => ExitCode::FAILURE,
    }
}

fn run(settings: RunSettings, environment: &Environment) -> ExitCode {
    let format = settings.shared.log.format;
    match settings.resolve(environment) {
        Ok(config) => start(config).map_or_else(|error| failed(format, &error), |()| ExitCode::SUCCESS),
        Err(problems) => {
            complain(format, &problems.to_string());
            ExitCode::from(WRONG_SETTINGS)
        }
    }
}

fn start(config: Config) -> anyhow::Result<()> {
    with_log(&config.log.clone(), async {
        let stop = stop_signal().context("cannot listen for signals")?;
        manager::run(config, stop).await
    })
}

/// Prints what would be done. Exit codes as `terraform plan -detailed-exitcode`.
fn plan(task: PlanTask, environment: &Environment) -> ExitCode {
    let format = task.settings.log.format;
    let config = match task.settings.resolve(environment) {
        Ok(config) => config,
        Err(problems) => return failed(format, &problems.into()),
    };
    let planned = with_log(&config.log.clone(), async {
        let plan = preview::plan(&config, &task.object).await?;
        print(&match task.output {
            cli::Output::Text => plan.text(),
            cli::Output::Json => plan.json()?,
        })?;
        plan.complete()?;
        Ok(plan.pending())
    });
    match planned {
        Ok(false) => ExitCode::SUCCESS,
        Ok(true) => ExitCode::from(STEPS_PENDING),
        Err(error) => failed(format, &error),
    }
}

/// Runs `work` with logging set up.
fn with_log<T>(log: &config::Log, work: impl Future<Output = anyhow::Result<T>>) -> anyhow::Result<T> {
    let filter = telemetry::filter(&log.filter)?;
    telemetry::init(log.format, filter)?;
    telemetry::log_panics();
    let runtime = runtime().context("cannot start the runtime")?;
    let result = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_WAIT);
    result
}

fn runtime() -> std::io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(WORKER_THREADS)
        .max_blocking_threads(BLOCKING_THREADS)
        .enable_all()
        .build()
}

/// Cancelled by the first SIGTERM or SIGINT. A second one ends the process on the spot.
fn stop_signal() -> std::io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let first = stop.clone();
    tokio::spawn(async move {
        either(&mut terminate, &mut interrupt).await;
        tracing::info!("stopping");
        first.cancel();
        either(&mut terminate, &mut interrupt).await;
        tracing::warn!("stopping at once");
        std::process::exit(1);
    });
    Ok(stop)
}

async fn either(one: &mut Signal, other: &mut Signal) {
    tokio::select! {
        _ = one.recv() => {}
        _ = other.recv() => {}
    }
}

fn crd() -> anyhow::Result<()> {
    print(&hyperlink::api::crd_yaml()?)
}

fn metrics() -> anyhow::Result<()> {
    print(&Metrics::new(VERSION, COMMIT)?.reference())
}

/// Unlike `println!`, does not panic when the reader has gone.
fn print(text: &str) -> anyhow::Result<()> {
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn complain(format: Format, error: &str) {
    let _ = std::io::stderr().write_all(telemetry::last_words(format, error).as_bytes());
}

/// The exit code of a command that has no log.
fn exit_code(result: anyhow::Result<()>) -> ExitCode {
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => failed(Format::Text, &error),
    }
}

fn failed(format: Format, error: &anyhow::Error) -> ExitCode {
    complain(format, &format!("{error:#}"));
    ExitCode::FAILURE
}
