//! Start and stop: addresses, files in the directory, the state file. Usable in process, without any file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock, Mutex},
};

use base64::{Engine as _, prelude::BASE64_STANDARD};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use simulator::{
    clock::{Clock, ClockReading},
    control::answer,
    random::seed,
    server::{self, Bound, Running, bad_state, load, save},
};

use super::{Shared, Simulation, arm, control, jwt::SigningKey, token::TokenIssuer, token_requests::TokenRequests};
use crate::{Preset, SimulatedAzure, SpecError, Specs};

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
    /// An address, a certificate or a file.
    #[error(transparent)]
    Server(#[from] server::StartError),
    /// No key to sign tokens with.
    #[error("cannot make a key to sign tokens with")]
    TokenKey,
    /// The OpenAPI files cannot be used.
    #[error("specs: {0}")]
    Specs(#[from] SpecError),
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
    running: Running,
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
        let dir = options.dir.as_deref();
        let addresses = (options.listen, options.control);
        let bound = Bound::new("armsim", dir, addresses, &options.tls_names).await?;
        let (mut azure, clock, key) = initial(&options)?;
        if let Some(dir) = &options.specs {
            azure.check_against(Specs::shared(dir)?);
        }
        let (arm, control) = (bound.https.clone(), bound.control.clone());
        let identity = format!("{control}/msi/token");
        let shared = Arc::new(Shared {
            audiences: audiences(&arm, bound.port),
            arm: arm.clone(),
            issuer: TokenIssuer::new(key),
            simulation: Mutex::new(Simulation {
                azure,
                clock,
                token_requests: TokenRequests::default(),
            }),
        });
        if let Some(dir) = dir {
            let values = [
                ("ARM", arm.as_str()),
                ("AUTHORITY", &arm),
                ("CONTROL", &control),
                ("IDENTITY", &identity),
            ];
            bound.write_env(dir, "ARMSIM", &values)?;
        }
        let answering = Arc::clone(&shared);
        let router = control::router(Arc::clone(&shared));
        Ok(Self {
            authority: arm.clone(),
            arm,
            control,
            identity,
            ca_pem: bound.ca_pem.clone(),
            shared,
            state: options.state,
            running: bound.serve(
                move |request| arm::answer(Arc::clone(&answering), request),
                move |request| answer(router.clone(), request),
            ),
        })
    }

    /// The line that `armsim serve` prints when it is ready.
    #[must_use]
    pub fn ready_line(&self, dir: &Path) -> Value {
        json!({"arm": self.arm, "authority": self.authority, "control": self.control, "identity": self.identity, "ca": dir.join("ca.pem")})
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
    pub async fn stop(self) -> Result<(), StartError> {
        self.running.stop().await;
        let Some(path) = &self.state else {
            return Ok(());
        };
        let simulation = self.shared.lock();
        let key = self.shared.issuer.key().to_pkcs8().ok_or(StartError::TokenKey)?;
        let saved = Saved {
            clock: simulation.clock.read(),
            token_key: BASE64_STANDARD.encode(key),
            azure: simulation.azure.clone(),
        };
        drop(simulation);
        Ok(save(path, &saved)?)
    }
}

/// The simulated Azure, its clock and the token key: from the state file if there is one, else new.
fn initial(options: &Options) -> Result<(SimulatedAzure, Clock, Arc<SigningKey>), StartError> {
    let path = options.state.as_deref();
    let Some((saved, path)) = load::<Saved>(path)?.zip(path) else {
        return Ok((
            SimulatedAzure::new(options.preset, seed(options.random_seed)),
            Clock::default(),
            new_key().ok_or(StartError::TokenKey)?,
        ));
    };
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
