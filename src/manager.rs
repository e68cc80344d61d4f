//! Builds clients and runs the controllers of the chosen roles.

use std::sync::Arc;

use anyhow::Context;
use hyperlink::config::Config;
use hyperlink::http::{self, Pages, Readiness};
use hyperlink::metrics::Metrics;
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;

use crate::cli;

/// Runs until `stop`.
pub(crate) async fn run(config: Config, stop: CancellationToken) -> anyhow::Result<()> {
    let listener = TcpListener::bind(config.metrics_bind)
        .await
        .with_context(|| format!("cannot listen on {}", config.metrics_bind))?;
    let address = listener.local_addr()?;
    tracing::info!(version = cli::VERSION, commit = cli::COMMIT, %address, "started");
    let pages = Pages {
        readiness: Readiness::default(),
        metrics: Arc::new(Metrics::new(cli::VERSION, cli::COMMIT)?),
    };
    http::serve(listener, pages, stop).await?;
    Ok(())
}
