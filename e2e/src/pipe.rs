//! A TCP proxy to the API server that can be cut. It then accepts connections and never answers, like a network that
//! drops packets.

use std::net::SocketAddr;
use std::path::Path;

use anyhow::{Context, Result};
use tokio::io::copy_bidirectional;
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};
use tokio_util::sync::CancellationToken;

/// The running proxy. Dropping this value refuses new clients.
#[derive(Debug)]
pub struct Pipe {
    upstream: String,
    address: SocketAddr,
    cut: CancellationToken,
    accepting: JoinHandle<()>,
}

impl Pipe {
    /// Starts a proxy to the API server of `config`.
    ///
    /// # Errors
    ///
    /// There is no free port.
    pub async fn to(config: &kube::Config) -> Result<Self> {
        let upstream = config
            .cluster_url
            .authority()
            .context("a URL with an authority")?
            .to_string();
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, cut) = (listener.local_addr()?, CancellationToken::new());
        let accepting = tokio::spawn(accept(listener, upstream.clone(), cut.clone()));
        Ok(Self {
            upstream,
            address,
            cut,
            accepting,
        })
    }

    /// Returns `config` with this proxy's address.
    ///
    /// # Errors
    ///
    /// The address is no valid URL, which is not known to happen.
    pub fn through(&self, mut config: kube::Config) -> Result<kube::Config> {
        config.cluster_url = format!("https://{}", self.address).parse()?;
        Ok(config)
    }

    /// Rewrites a kubeconfig so that its clients use this proxy.
    ///
    /// # Errors
    ///
    /// The file cannot be read or written.
    pub fn redirect(&self, kubeconfig: &Path) -> Result<()> {
        let text = std::fs::read_to_string(kubeconfig)?;
        Ok(std::fs::write(
            kubeconfig,
            text.replace(&self.upstream, &self.address.to_string()),
        )?)
    }

    /// From now on forwards no data in either direction; connections stay open.
    pub fn cut(&self) {
        self.cut.cancel();
    }
}

impl Drop for Pipe {
    fn drop(&mut self) {
        self.accepting.abort();
    }
}

async fn accept(listener: TcpListener, upstream: String, cut: CancellationToken) {
    let mut connections = JoinSet::new();
    while let Ok((client, _)) = listener.accept().await {
        connections.spawn(carry(client, upstream.clone(), cut.clone()));
    }
}

async fn carry(mut client: TcpStream, upstream: String, cut: CancellationToken) {
    let both_ways = async {
        if let Ok(mut server) = TcpStream::connect(upstream).await {
            let _ = copy_bidirectional(&mut client, &mut server).await;
        }
    };
    tokio::select! {
        biased;
        () = cut.cancelled() => {}
        () = both_ways => return,
    }
    // Keeps the client's side open and silent.
    std::future::pending::<()>().await;
    drop(client);
}
