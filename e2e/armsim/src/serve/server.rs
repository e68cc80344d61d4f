//! Start and stop: addresses, files in the directory, the state file. Usable in process, without any file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
    time::Duration,
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use simulator::{
    clock::{Clock, ClockReading},
    connections::{self, Serving},
    tls::{Tls, TlsError, write_private},
};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use super::{Shared, Simulation, arm, control, jwt::SigningKey, token::TokenIssuer};
use crate::{Preset, SimulatedAzure, SpecError, Specs};

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
    /// How long operations take.
    pub preset: Preset,
    /// Makes what is drawn by chance repeatable.
    pub random_seed: Option<u64>,
    /// Where the whole state is read from at the start, if it is there, and written at a clean stop.
    pub state: Option<PathBuf>,
    /// Directory of the OpenAPI files that every exchange is held against.
    pub specs: Option<PathBuf>,
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
            specs: None,
        }
    }
}

/// Why the simulator does not start, or does not stop cleanly.
#[derive(Debug, thiserror::Error)]
pub enum StartError {
    /// A file or a socket.
    #[error("{0}")]
    Io(#[from] std::io::Error),
    /// The test CA could not be made or read; remove `ca.pem` and `ca-key.pem` to have a new one.
    #[error("test CA: {0}")]
    Certificate(#[from] rcgen::Error),
    /// TLS refused the certificate.
    #[error("TLS: {0}")]
    Tls(#[from] rustls::Error),
    /// No key to sign tokens with.
    #[error("cannot make a key to sign tokens with")]
    TokenKey,
    /// The control API is for tests on this machine only.
    #[error("--control {0}: must be a loopback address, because whoever reaches it may do anything")]
    NotLoopback(SocketAddr),
    /// The OpenAPI files cannot be used.
    #[error("specs: {0}")]
    Specs(#[from] SpecError),
    /// The state file cannot be used; remove it to start with an empty Azure.
    #[error("state file {path}: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

impl From<TlsError> for StartError {
    fn from(error: TlsError) -> Self {
        match error {
            TlsError::Io(error) => Self::Io(error),
            TlsError::Certificate(error) => Self::Certificate(error),
            TlsError::Tls(error) => Self::Tls(error),
        }
    }
}

/// A running simulator. Dropping it ends it without saving; [`Server::stop`] is the clean way.
pub struct Server {
    /// ARM's base address, `https://…`, no slash at the end.
    pub arm: String,
    /// The authority host of Entra; the same address.
    pub authority: String,
    /// The control API, `http://…`.
    pub control: String,
    /// `IDENTITY_ENDPOINT` of the managed identity, `http://…/msi/token`.
    pub identity: String,
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
    /// PKCS#8 DER, base64.
    token_key: String,
    #[serde(rename = "world")]
    azure: SimulatedAzure,
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
            "armsim",
            options.dir.as_deref(),
            options.listen.ip(),
            &options.tls_names,
        )?;
        let (mut azure, clock, key) = initial(&options)?;
        if let Some(dir) = &options.specs {
            azure.check_against(Specs::shared(dir)?);
        }
        let listener = TcpListener::bind(options.listen).await?;
        let control_listener = TcpListener::bind(options.control).await?;
        let (listen, control) = (listener.local_addr()?, control_listener.local_addr()?);
        let arm = format!("https://{listen}");
        let shared = Arc::new(Shared {
            audiences: audiences(&arm, listen.port()),
            arm: arm.clone(),
            issuer: TokenIssuer::new(key),
            simulation: Mutex::new(Simulation { azure, clock }),
        });
        let stop = CancellationToken::new();
        let tasks = serve_both(
            &shared,
            (listener, TlsAcceptor::from(tls.server)),
            control_listener,
            &stop,
        );
        let server = Self {
            authority: arm.clone(),
            arm,
            control: format!("http://{control}"),
            identity: format!("http://{control}/msi/token"),
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

    /// The line that `armsim serve` prints when it is ready.
    #[must_use]
    pub fn ready_line(&self, dir: &Path) -> Value {
        json!({"arm": self.arm, "authority": self.authority, "control": self.control, "identity": self.identity, "ca": dir.join("ca.pem")})
    }

    fn exports(&self, dir: &Path) -> String {
        let ca = dir.join("ca.pem").display().to_string().replace('\'', r"'\''");
        format!(
            "export ARMSIM_ARM='{}'\nexport ARMSIM_AUTHORITY='{}'\nexport ARMSIM_CONTROL='{}'\nexport ARMSIM_IDENTITY='{}'\nexport ARMSIM_CA='{ca}'\n",
            self.arm, self.authority, self.control, self.identity
        )
    }

    /// Reads or changes the simulated Azure directly, at its own time.
    pub fn with_azure<T>(&self, act: impl FnOnce(&mut SimulatedAzure, Timestamp) -> T) -> T {
        let mut simulation = self.shared.lock();
        let now = simulation.clock.now();
        act(&mut simulation.azure, now)
    }

    /// Ends: running calls get five seconds, then the state is saved.
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
        let simulation = self.shared.lock();
        let key = self.shared.issuer.key().to_pkcs8().ok_or(StartError::TokenKey)?;
        let saved = Saved {
            clock: simulation.clock.read(),
            token_key: BASE64_STANDARD.encode(key),
            azure: simulation.azure.clone(),
        };
        drop(simulation);
        let content = serde_json::to_vec(&saved).map_err(|error| bad_state(path, error))?;
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
    let arm = Arc::clone(shared);
    let arm = move |request| arm::answer(Arc::clone(&arm), request);
    let router = control::router(Arc::clone(shared));
    let control = move |request| control::answer(router.clone(), request);
    vec![
        tokio::spawn(connections::serve(listener, serving(Some(tls)), arm)),
        tokio::spawn(connections::serve(control_listener, serving(None), control)),
    ]
}

fn bad_state(path: &Path, reason: impl ToString) -> StartError {
    StartError::State {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}

/// The simulated Azure, its clock and the token key: from the state file if there is one, else new.
fn initial(options: &Options) -> Result<(SimulatedAzure, Clock, Arc<SigningKey>), StartError> {
    let Some(path) = options.state.as_deref().filter(|path| path.exists()) else {
        let random_seed = options
            .random_seed
            .unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0);
        return Ok((
            SimulatedAzure::new(options.preset, random_seed),
            Clock::default(),
            new_key().ok_or(StartError::TokenKey)?,
        ));
    };
    let saved: Saved = serde_json::from_slice(&std::fs::read(path)?).map_err(|error| bad_state(path, error))?;
    let key = BASE64_STANDARD
        .decode(&saved.token_key)
        .ok()
        .and_then(|der| SigningKey::from_pkcs8(&der));
    let key = key.ok_or_else(|| bad_state(path, "token_key is not a key"))?;
    let mut azure = saved.azure;
    azure.state.preset = options.preset;
    Ok((azure, Clock::resume(&saved.clock), Arc::new(key)))
}

/// The servers of one process share a key, as the tenants of one Entra do: making one takes a while.
fn new_key() -> Option<Arc<SigningKey>> {
    static KEY: LazyLock<Option<Arc<SigningKey>>> = LazyLock::new(|| SigningKey::generate().map(Arc::new));
    KEY.clone()
}

/// The public cloud's audiences for ARM, and this server's own addresses as one; each with and without a slash at the end.
fn audiences(arm: &str, port: u16) -> Vec<String> {
    let own = [arm.to_owned(), format!("https://localhost:{port}")];
    let public = ["https://management.core.windows.net", "https://management.azure.com"].map(str::to_owned);
    public
        .into_iter()
        .chain(own)
        .flat_map(|audience| [format!("{audience}/"), audience])
        .collect()
}
