//! Start and stop: addresses, files in the directory, the state file. Usable in process, without any file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
    time::Duration,
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use simulator::clock::{Clock, ClockReading};
use simulator::connections::{self, Serving};
use simulator::tls::{Tls, TlsError, write_private};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Shared, Simulation, aws, control};
use crate::{Preset, SimulatedAws};

/// What a client may take from one request's end to the end of the next one's head.
const HEAD: Duration = Duration::from_secs(240);

/// How to start.
#[derive(Debug, Clone)]
pub struct Options {
    /// Where `ca.pem`, `env` and the CA's key go; nothing is written without it.
    pub dir: Option<PathBuf>,
    /// The HTTPS address; port 0 takes a free one.
    pub listen: SocketAddr,
    /// The control address, plain HTTP; port 0 takes a free one.
    pub control: SocketAddr,
    /// Names and addresses in the server's certificate beside those of loopback and of `listen`.
    pub tls_names: Vec<String>,
    /// How long things take.
    pub preset: Preset,
    /// Makes what is drawn by chance repeatable.
    pub random_seed: Option<u64>,
    /// Where the whole state is read from at the start, if it is there, and written at a clean stop.
    pub state: Option<PathBuf>,
}

impl Default for Options {
    fn default() -> Self {
        let loopback = SocketAddr::from(([127, 0, 0, 1], 0));
        Self {
            dir: None,
            listen: loopback,
            control: loopback,
            tls_names: Vec::new(),
            preset: Preset::Fast,
            random_seed: None,
            state: None,
        }
    }
}

/// Why the simulator does not start, or does not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or a socket.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// No certificate; remove `ca.pem` and `ca-key.pem` to have a new one.
    #[error("{0}")]
    Tls(#[from] TlsError),
    /// The control address is for tests on this machine only.
    #[error("--control {0}: must be a loopback address, because whoever reaches it may do anything")]
    NotLoopback(SocketAddr),
    /// The state file cannot be used; remove it to start with an empty AWS.
    #[error("state file {path}: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// A running simulator. Dropping it ends it without saving; [`Server::stop`] is the clean way.
pub struct Server {
    /// The base address of all services, `https://…`, no slash at the end.
    pub aws: String,
    /// The control address, `http://…`.
    pub control: String,
    /// The CA that clients must trust, PEM.
    pub ca_pem: String,
    shared: Arc<Shared>,
    state: Option<PathBuf>,
    stop: CancellationToken,
    tasks: Vec<JoinHandle<()>>,
    _stop_on_drop: DropGuard,
}

/// The content of the state file.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Saved {
    clock: ClockReading,
    aws: SimulatedAws,
}

impl Server {
    /// Binds both addresses and serves until stopped or dropped.
    ///
    /// # Errors
    /// Addresses that are taken, a directory that cannot be written, a state file that cannot be read.
    pub async fn start(options: Options) -> Result<Self, StartError> {
        if !options.control.ip().is_loopback() {
            return Err(StartError::NotLoopback(options.control));
        }
        if let Some(dir) = &options.dir {
            std::fs::create_dir_all(dir)?;
        }
        let tls = Tls::new(
            "awssim",
            options.dir.as_deref(),
            options.listen.ip(),
            &options.tls_names,
        )?;
        let (simulated, clock) = initial(&options)?;
        let listener = TcpListener::bind(options.listen).await?;
        let control_listener = TcpListener::bind(options.control).await?;
        let (listen, control) = (listener.local_addr()?, control_listener.local_addr()?);
        let shared = Arc::new(Shared {
            simulation: Mutex::new(Simulation { aws: simulated, clock }),
        });
        let stop = CancellationToken::new();
        let tasks = serve_both(
            &shared,
            (listener, TlsAcceptor::from(tls.server)),
            control_listener,
            &stop,
        );
        let server = Self {
            aws: format!("https://{listen}"),
            control: format!("http://{control}"),
            ca_pem: tls.ca_pem,
            shared,
            state: options.state,
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
            tasks,
        };
        if let Some(dir) = &options.dir {
            std::fs::write(dir.join("env"), server.exports(dir))?;
        }
        Ok(server)
    }

    /// The line that `awssim serve` prints when it is ready.
    #[must_use]
    pub fn ready_line(&self, dir: &Path) -> Value {
        json!({"aws": self.aws, "control": self.control, "ca": dir.join("ca.pem")})
    }

    fn exports(&self, dir: &Path) -> String {
        let ca = dir.join("ca.pem").display().to_string().replace('\'', r"'\''");
        let (aws, control) = (&self.aws, &self.control);
        format!("export AWSSIM_AWS='{aws}'\nexport AWSSIM_CONTROL='{control}'\nexport AWSSIM_CA='{ca}'\n")
    }

    /// Reads or changes the simulated AWS directly, at its own time.
    pub fn with_aws<T>(&self, act: impl FnOnce(&mut SimulatedAws, Timestamp) -> T) -> T {
        let mut simulation = self.shared.lock();
        let now = simulation.clock.now();
        act(&mut simulation.aws, now)
    }

    /// Ends: running calls get a moment, then the state is saved.
    ///
    /// # Errors
    /// The state file could not be written.
    pub async fn stop(mut self) -> Result<(), StartError> {
        self.stop.cancel();
        for task in std::mem::take(&mut self.tasks) {
            let _ = task.await;
        }
        match &self.state {
            Some(path) => self.save(path),
            None => Ok(()),
        }
    }

    fn save(&self, path: &Path) -> Result<(), StartError> {
        let content = {
            let simulation = self.shared.lock();
            let saved = Saved {
                clock: simulation.clock.read(),
                aws: simulation.aws.clone(),
            };
            serde_json::to_vec(&saved).map_err(|error| bad_state(path, error))?
        };
        // Never a half-written file under the name that the next start reads.
        let mut partial = path.as_os_str().to_owned();
        partial.push(".partial");
        write_private(Path::new(&partial), &content)?;
        std::fs::rename(&partial, path)?;
        Ok(())
    }
}

/// Serves both addresses until `stop` is cancelled.
fn serve_both(
    shared: &Arc<Shared>,
    (listener, tls): (TcpListener, TlsAcceptor),
    control_listener: TcpListener,
    stop: &CancellationToken,
) -> Vec<JoinHandle<()>> {
    let serving = |tls| Serving {
        tls,
        head: HEAD,
        stop: stop.clone(),
    };
    let services = Arc::clone(shared);
    let services = move |request| aws::answer(Arc::clone(&services), request);
    let router = control::router(Arc::clone(shared));
    let control = move |request| control::answer(router.clone(), request);
    vec![
        tokio::spawn(connections::serve(listener, serving(Some(tls)), services)),
        tokio::spawn(connections::serve(control_listener, serving(None), control)),
    ]
}

fn bad_state(path: &Path, reason: impl ToString) -> StartError {
    StartError::State {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// The simulated AWS and its clock: from the state file if there is one, else new.
fn initial(options: &Options) -> Result<(SimulatedAws, Clock), StartError> {
    let Some(path) = options.state.as_deref().filter(|path| path.exists()) else {
        let drawn = || uuid::Uuid::new_v4().as_u64_pair().0;
        let random_seed = options.random_seed.unwrap_or_else(drawn);
        return Ok((SimulatedAws::new(options.preset, random_seed), Clock::default()));
    };
    let saved: Saved = serde_json::from_slice(&std::fs::read(path)?).map_err(|error| bad_state(path, error))?;
    let mut aws = saved.aws;
    aws.state.preset = options.preset;
    Ok((aws, Clock::resume(&saved.clock)))
}
