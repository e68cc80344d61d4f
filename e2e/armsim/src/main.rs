//! The command line of the simulator: parse, start, wait for a signal, stop.

use std::{
    io::Write as _,
    net::SocketAddr,
    path::{Path, PathBuf},
    process::ExitCode,
};

use anyhow::Context as _;
use armsim::{
    Options, Preset, Server,
    cloud_controller::{self, CloudControllerError},
    replay::{Counts, Explained, Line},
};
use clap::{Args, Parser};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use simulator::process;
use tokio_util::sync::CancellationToken;

/// A simulated Azure: Resource Manager for Private Link, private DNS and load balancers, and Entra's token endpoint.
#[derive(Parser)]
#[command(name = "armsim", version)]
enum Cli {
    /// Serve the simulated Azure until SIGTERM or SIGINT; prints one line of JSON with all addresses when ready.
    Serve(ServeArgs),
    /// Give internal Services of a cluster a frontend on a simulated load balancer, as Azure's cloud provider does.
    CloudController(CloudControllerArgs),
    /// Play recorded traffic of the real service against a fresh simulated one and compare every answer.
    Replay(ReplayArgs),
}

#[derive(Args)]
struct ReplayArgs {
    /// One JSON object per exchange, and one with the counts per recording.
    #[arg(long)]
    json: bool,
    /// YAML list of differences that are right, with their reasons.
    #[arg(long, value_name = "FILE")]
    explained: Option<PathBuf>,
    /// Recordings of go-vcr, vcrpy, VCR, the SDKs' test proxy, Azure PowerShell or Microsoft's Java libraries.
    #[arg(required = true)]
    cassettes: Vec<PathBuf>,
}

#[derive(Args)]
struct ServeArgs {
    /// Directory for ca.pem (to be trusted by clients), env (shell exports) and ca-key.pem; kept and used again at the next start.
    #[arg(long)]
    dir: PathBuf,
    /// HTTPS address of ARM and Entra; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    listen: SocketAddr,
    /// HTTP address of the control face and of the managed identity; loopback only; port 0 takes a free one.
    #[arg(long, default_value = "127.0.0.1:0", value_name = "ADDRESS")]
    control: SocketAddr,
    /// A further name or address in the server's certificate, by which clients elsewhere reach it.
    #[arg(long, value_name = "NAME")]
    tls_name: Vec<String>,
    /// How long operations take: fast (0.2 to 1 s) or recorded (as Azure was seen to).
    #[arg(long, default_value = "fast")]
    preset: Preset,
    /// Makes everything that is drawn by chance repeatable [default: another one at every start].
    #[arg(long, value_name = "N")]
    random_seed: Option<u64>,
    /// File that the whole state is read from at the start and written to at a clean stop; it holds the seeded secrets.
    #[arg(long, value_name = "FILE")]
    state: Option<PathBuf>,
    /// Hold every call and answer against the service's OpenAPI files: what breaks them is answered by 500 SpecViolation, and listed
    /// by the control call GET /violations.
    #[arg(long)]
    strict: bool,
    /// Directory of the OpenAPI files (network, privatedns, resources, common-types) [default: azure-rest in
    /// $HYPERLINK_REFERENCE_DATA, or in ../shared].
    #[arg(long, value_name = "DIR", requires = "strict")]
    specs: Option<PathBuf>,
}

#[derive(Args)]
struct CloudControllerArgs {
    /// Kubeconfig of the cluster whose Services are served.
    #[arg(long, value_name = "FILE")]
    kubeconfig: PathBuf,
    /// Control address of `armsim serve`, http://127.0.0.1:PORT.
    #[arg(long, value_name = "URL")]
    control: String,
    /// ARM id of the load balancer that gets the frontends.
    #[arg(long, value_name = "ARM-ID")]
    load_balancer: String,
    /// ARM id of the subnet that the frontends get their addresses from.
    #[arg(long, value_name = "ARM-ID")]
    subnet: String,
}

fn main() -> anyhow::Result<ExitCode> {
    let cli = Cli::parse();
    process::run("armsim", async |stop| {
        allow_many_files();
        // Fails only where a provider is installed already, and then there is one.
        let _ = rustls::crypto::aws_lc_rs::default_provider().install_default();
        match cli {
            Cli::Serve(args) => serve(args, stop).await?,
            Cli::CloudController(args) => cloud_controller(args, stop).await?,
            Cli::Replay(args) => return replay(&args),
        }
        Ok(ExitCode::SUCCESS)
    })?
}

/// A thousand clients need more open files than many systems allow at first.
fn allow_many_files() {
    let limit = getrlimit(Resource::Nofile);
    let all = Rlimit {
        current: limit.maximum,
        ..limit
    };
    if let Err(error) = setrlimit(Resource::Nofile, all) {
        tracing::debug!(%error, "limit of open files stays");
    }
}

fn reference_specs() -> PathBuf {
    let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").unwrap_or_else(|| "../shared".into());
    PathBuf::from(root).join("azure-rest")
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
        specs: args.strict.then(|| args.specs.unwrap_or_else(reference_specs)),
    };
    let server = Server::start(options).await.context("cannot start")?;
    process::print(&server.ready_line(&dir))?;
    stop.cancelled().await;
    server.stop().await.context("cannot save the state")
}

async fn cloud_controller(args: CloudControllerArgs, stop: CancellationToken) -> Result<(), CloudControllerError> {
    let CloudControllerArgs {
        kubeconfig,
        control,
        load_balancer,
        subnet,
    } = args;
    cloud_controller::run(
        cloud_controller::Options {
            kubeconfig,
            control,
            load_balancer,
            subnet,
        },
        stop,
    )
    .await
}

/// Plays one recording.
fn play(file: &Path, name: &str, explained: &mut Explained) -> anyhow::Result<Vec<Line>> {
    let text = std::fs::read_to_string(file)?;
    Ok(armsim::replay::replay(name, &text, explained)?)
}

/// Fails when an exchange differs without a reason.
fn replay(args: &ReplayArgs) -> anyhow::Result<ExitCode> {
    let mut explained = match &args.explained {
        Some(file) => Explained::parse(&std::fs::read_to_string(file).with_context(|| file.display().to_string())?)?,
        None => Explained::default(),
    };
    let mut stdout = std::io::stdout().lock();
    let (mut differing, mut unread) = (0, 0);
    for file in &args.cassettes {
        let name = file.display().to_string();
        let lines = match play(file, &name, &mut explained) {
            Ok(lines) => lines,
            Err(error) => {
                unread += 1;
                if args.json {
                    let error = format!("{error:#}");
                    writeln!(stdout, "{}", serde_json::json!({ "cassette": name, "error": error }))?;
                } else {
                    writeln!(stdout, "{name}\n  cannot be read: {error:#}\n")?;
                }
                continue;
            }
        };
        let mut counts = Counts::default();
        if !args.json {
            writeln!(stdout, "{name}")?;
        }
        for line in &lines {
            counts.add(line);
            if args.json {
                let mut json = serde_json::to_value(line)?;
                json["cassette"] = name.as_str().into();
                writeln!(stdout, "{json}")?;
            } else {
                writeln!(stdout, "{line}")?;
            }
        }
        differing += counts.differs;
        if args.json {
            writeln!(stdout, "{}", serde_json::json!({ "cassette": name, "counts": counts }))?;
        } else {
            writeln!(stdout, "{counts}\n")?;
        }
    }
    Ok(if differing == 0 && unread == 0 {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}
