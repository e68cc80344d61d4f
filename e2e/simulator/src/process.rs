//! The process of a simulator: its log, its runtime, and what ends it.

use std::io::{self, IsTerminal as _, Write as _};

use serde_json::Value;
use tokio::signal::unix::{SignalKind, signal};
use tokio_util::sync::CancellationToken;
use tracing_subscriber::EnvFilter;

/// Runs `main` with the log of the program `name` on stderr. The token is cancelled by SIGTERM and SIGINT.
///
/// # Errors
/// The system gives no threads or no signals.
pub fn run<T>(name: &str, main: impl AsyncFnOnce(CancellationToken) -> T) -> io::Result<T> {
    let filter =
        EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(format!("{name}=info,simulator=info")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(io::stderr)
        .with_ansi(io::stderr().is_terminal())
        .init();
    tokio::runtime::Builder::new_multi_thread()
        .enable_all()
        .build()?
        .block_on(async { Ok(main(stop_on_signal()?).await) })
}

fn stop_on_signal() -> io::Result<CancellationToken> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let stop = CancellationToken::new();
    let token = stop.clone();
    tokio::spawn(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
        token.cancel();
    });
    Ok(stop)
}

/// Prints one line, for whoever waits until the simulator is ready.
///
/// # Errors
/// Nobody reads it.
pub fn print(ready_line: &Value) -> io::Result<()> {
    let mut stdout = io::stdout();
    writeln!(stdout, "{ready_line}")?;
    stdout.flush()
}
