//! The command line of the simulator: parse, start, wait for a signal, stop.

use std::{net::SocketAddr, path::PathBuf};

use anyhow::Context as _;
use awssim::{Options, Preset, Server, cloud_controller};
use clap::{Args, Parser};
use simulator::process;
use tokio_util::sync::CancellationToken;

/// A simulated AWS: PrivateLink, security groups, load balancers, Route 53 and STS.
#[derive(Parser)]
#[command(name = "awssim", version)]
enum Cli {
    /// Serve the simulated AWS until SIGTERM or SIGINT; prints one line of JSON with all addresses when ready.
    Serve(ServeArgs),
    /// Give Services of a cluster simulated network load balancers, as AWS's cloud provider does, until SIGTERM or
    /// SIGINT.
    CloudController(cloud_controller::Options),
}

#[derive(Args)]
struct ServeArgs {
    /// Directory for ca.pem (to be trusted by clients), env (shell exports) and ca-key.pem; used again at the next
    /// start.
    #[arg(long)]
    dir: PathBuf,
    /// HTTPS address of all services; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// HTTP address of the control calls; loopback only; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    control: SocketAddr,
    /// A further name or address in the server's certificate, by which clients elsewhere reach it.
    #[arg(long, value_name = "NAME")]
    tls_name: Vec<String>,
    /// How long things take: fast (half a second) or recorded (as users of AWS report).
    #[arg(long, default_value = "fast")]
    preset: Preset,
    /// Makes everything that is drawn by chance repeatable [default: another one at every start].
    #[arg(long, value_name = "N")]
    random_seed: Option<u64>,
    /// File that the whole state is read from at the start and written to at a clean stop; it holds the seeded secrets.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
}

fn main() -> anyhow::Result<()> {
    let cli = Cli::parse();
    process::run("awssim", async |stop| match cli {
        Cli::Serve(args) => serve(args, stop).await,
        Cli::CloudController(options) => give_load_balancers(options, stop).await,
    })?
}

async fn give_load_balancers(options: cloud_controller::Options, stop: CancellationToken) -> anyhow::Result<()> {
    // Fails only where a provider is installed already, and then there is one.
    let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
    Ok(cloud_controller::run(options, stop).await?)
}

async fn serve(args: ServeArgs, stop: CancellationToken) -> anyhow::Result<()> {
    let dir = std::path::absolute(&args.dir)?;
    let options = Options {
        dir: Some(dir.clone()),
        listen: args.listen,
        control: args.control,
        tls_names: args.tls_name,
        preset: args.preset,
        random_seed: args.random_seed,
        state: args.state,
    };
    let server = Server::start(options).await.context("cannot start")?;
    process::print(&server.ready_line(&dir))?;
    stop.cancelled().await;
    server.stop().await.context("cannot save the state")
}
