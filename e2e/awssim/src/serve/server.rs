//! Start and stop: addresses, files in the directory, the state file. Usable in process, without any file.

use std::{
    net::SocketAddr,
    path::{Path, PathBuf},
    sync::{Arc, Mutex},
};

use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use simulator::clock::{Clock, ClockReading};
use simulator::control::answer;
use simulator::random::seed;
pub use simulator::server::StartError;
use simulator::server::{Bound, Running, load, save};

use super::{Shared, Simulation, aws, control};
use crate::{Preset, SimulatedAws};

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
    running: Running,
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
        let dir = options.dir.as_deref();
        let addresses = (options.listen, options.control);
        let bound = Bound::new("awssim", dir, addresses, &options.tls_names).await?;
        let (aws, clock) = initial(&options)?;
        let shared = Arc::new(Shared {
            simulation: Mutex::new(Simulation { aws, clock }),
            aws: bound.https.clone(),
        });
        if let Some(dir) = dir {
            bound.write_env(dir, "AWSSIM", &[("AWS", &bound.https), ("CONTROL", &bound.control)])?;
        }
        let services = Arc::clone(&shared);
        let router = control::router(Arc::clone(&shared));
        Ok(Self {
            aws: bound.https.clone(),
            control: bound.control.clone(),
            ca_pem: bound.ca_pem.clone(),
            shared,
            state: options.state,
            running: bound.serve(
                move |request| aws::answer(Arc::clone(&services), request),
                move |request| answer(router.clone(), request),
            ),
        })
    }

    /// The line that `awssim serve` prints when it is ready.
    #[must_use]
    pub fn ready_line(&self, dir: &Path) -> Value {
        json!({"aws": self.aws, "control": self.control, "ca": dir.join("ca.pem")})
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
    pub async fn stop(self) -> Result<(), StartError> {
        self.running.stop().await;
        let Some(path) = &self.state else {
            return Ok(());
        };
        let saved = {
            let simulation = self.shared.lock();
            Saved {
                clock: simulation.clock.read(),
                aws: simulation.aws.clone(),
            }
        };
        save(path, &saved)
    }
}

/// The simulated AWS and its clock: from the state file if there is one, else new.
fn initial(options: &Options) -> Result<(SimulatedAws, Clock), StartError> {
    let Some(saved) = load::<Saved>(options.state.as_deref())? else {
        let random_seed = seed(options.random_seed);
        return Ok((SimulatedAws::new(options.preset, random_seed), Clock::default()));
    };
    let mut aws = saved.aws;
    aws.state.preset = options.preset;
    Ok((aws, Clock::resume(&saved.clock)))
}
