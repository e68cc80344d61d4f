//! Start and stop: both addresses, the files in the directory, the state file.

use std::{
    future::Future,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::Duration,
};

use http::{Request, Response};
use hyper::body::Incoming;
use serde::{Serialize, de::DeserializeOwned};
use tokio::{net::TcpListener, task::JoinHandle};
use tokio_rustls::TlsAcceptor;
use tokio_util::sync::{CancellationToken, DropGuard};

use crate::connections::{self, Serving};
use crate::tls::{Tls, TlsError, write_private};
use crate::wire::{Dropped, WireBody};

/// What a client may take from one request's end to the end of the next one's head.
const HEAD: Duration = Duration::from_secs(240);

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
    /// The state file cannot be used; remove it to start with an empty cloud.
    #[error("state file {path}: {reason}")]
    State {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
}

/// Both addresses, bound. Nobody is answered yet.
pub struct Bound {
    /// The base address of the cloud, `https://…`, no slash at the end.
    pub https: String,
    /// The control address, `http://…`.
    pub control: String,
    /// The port of the cloud's address.
    pub port: u16,
    /// The CA that clients must trust, PEM.
    pub ca_pem: String,
    https_listener: TcpListener,
    control_listener: TcpListener,
    tls: TlsAcceptor,
}

/// A running server. Dropping it ends it.
pub struct Running {
    stop: CancellationToken,
    tasks: [JoinHandle<()>; 2],
    _stop_on_drop: DropGuard,
}

impl Bound {
    /// Binds both addresses. With a directory, makes it, and keeps the CA of the simulator `name` there.
    ///
    /// # Errors
    /// Addresses that are taken, a control address that others reach, a directory that cannot be written.
    pub async fn new(
        name: &str,
        dir: Option<&Path>,
        (listen, control): (SocketAddr, SocketAddr),
        tls_names: &[String],
    ) -> Result<Self, StartError> {
        if !control.ip().is_loopback() {
            return Err(StartError::NotLoopback(control));
        }
        if let Some(dir) = dir {
            std::fs::create_dir_all(dir)?;
        }
        let tls = Tls::new(name, dir, listen.ip(), tls_names)?;
        let https_listener = TcpListener::bind(listen).await?;
        let control_listener = TcpListener::bind(control).await?;
        let listen = https_listener.local_addr()?;
        Ok(Self {
            https: format!("https://{listen}"),
            control: format!("http://{}", control_listener.local_addr()?),
            port: listen.port(),
            ca_pem: tls.ca_pem,
            https_listener,
            control_listener,
            tls: TlsAcceptor::from(tls.server),
        })
    }

    /// Writes shell exports into the directory: these values, and the CA's file as the last one.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn write_env(&self, dir: &Path, prefix: &str, values: &[(&str, &str)]) -> Result<(), StartError> {
        let ca = dir.join("ca.pem").display().to_string().replace('\'', r"'\''");
        let values = values.iter().copied().chain([("CA", ca.as_str())]);
        let lines: String = values
            .map(|(name, value)| format!("export {prefix}_{name}='{value}'\n"))
            .collect();
        std::fs::write(dir.join("env"), lines)?;
        Ok(())
    }

    /// Answers on both addresses until stopped or dropped.
    pub fn serve<A, F, C, G>(self, answer: A, control: C) -> Running
    where
        A: Fn(Request<Incoming>) -> F + Clone + Send + 'static,
        F: Future<Output = Result<Response<WireBody>, Dropped>> + Send + 'static,
        C: Fn(Request<Incoming>) -> G + Clone + Send + 'static,
        G: Future<Output = Result<Response<WireBody>, Dropped>> + Send + 'static,
    {
        let stop = CancellationToken::new();
        let serving = |tls| Serving {
            tls,
            head: HEAD,
            stop: stop.clone(),
        };
        Running {
            tasks: [
                tokio::spawn(connections::serve(self.https_listener, serving(Some(self.tls)), answer)),
                tokio::spawn(connections::serve(self.control_listener, serving(None), control)),
            ],
            _stop_on_drop: stop.clone().drop_guard(),
            stop,
        }
    }
}

impl Running {
    /// Ends: running calls get a moment.
    pub async fn stop(self) {
        self.stop.cancel();
        for task in self.tasks {
            let _ = task.await;
        }
    }
}

/// What the state file holds; none without a path or a file.
///
/// # Errors
/// The file cannot be read, or holds something else.
pub fn load<S: DeserializeOwned>(path: Option<&Path>) -> Result<Option<S>, StartError> {
    let Some(path) = path.filter(|path| path.exists()) else {
        return Ok(None);
    };
    let saved = serde_json::from_slice(&std::fs::read(path)?).map_err(|error| bad_state(path, error))?;
    Ok(Some(saved))
}

/// Writes the state file. Never is there a half-written one under the name that the next start reads.
///
/// # Errors
/// The file cannot be written.
pub fn save(path: &Path, state: &impl Serialize) -> Result<(), StartError> {
    let content = serde_json::to_vec(state).map_err(|error| bad_state(path, error))?;
    let mut partial = path.as_os_str().to_owned();
    partial.push(".partial");
    write_private(Path::new(&partial), &content)?;
    std::fs::rename(&partial, path)?;
    Ok(())
}

/// The state file cannot be used.
pub fn bad_state(path: &Path, reason: impl ToString) -> StartError {
    StartError::State {
        path: path.to_owned(),
        reason: reason.to_string(),
    }
}
