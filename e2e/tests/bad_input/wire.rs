//! Sockets for tests: one only counts calls, and one leads to a server, to nothing, or into a black hole.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use anyhow::Result;
use tokio::net::{TcpListener, TcpSocket, TcpStream};
use tokio::task::JoinHandle;

/// Counts calls and answers none. Dropping it ends it.
pub(crate) struct Listener {
    address: SocketAddr,
    calls: Arc<AtomicUsize>,
    task: JoinHandle<()>,
}

impl Listener {
    pub(crate) async fn bind() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let (address, calls) = (listener.local_addr()?, Arc::new(AtomicUsize::new(0)));
        let counted = Arc::clone(&calls);
        let task = tokio::spawn(async move {
            while listener.accept().await.is_ok() {
                counted.fetch_add(1, Ordering::SeqCst);
            }
        });
        Ok(Self { address, calls, task })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    pub(crate) fn calls(&self) -> usize {
        self.calls.load(Ordering::SeqCst)
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// A way to a server. While it is a black hole, it accepts connections and never answers.
pub(crate) struct Way {
    task: JoinHandle<()>,
    address: SocketAddr,
    open: Arc<AtomicBool>,
}

impl Way {
    /// A black hole in front of the server at `target`.
    pub(crate) async fn black_hole(target: SocketAddr) -> Result<Self> {
        Self::over(TcpListener::bind("127.0.0.1:0").await?, target, false)
    }

    /// The way to `target` at an address that nobody listened on so far.
    pub(crate) fn open_at(address: Nobody, target: SocketAddr) -> Result<Self> {
        Self::over(address.0.listen(128)?, target, true)
    }

    fn over(listener: TcpListener, target: SocketAddr, open: bool) -> Result<Self> {
        let (address, open) = (listener.local_addr()?, Arc::new(AtomicBool::new(open)));
        let is_open = Arc::clone(&open);
        let task = tokio::spawn(async move {
            let mut held = Vec::new();
            while let Ok((client, _)) = listener.accept().await {
                if is_open.load(Ordering::SeqCst) {
                    tokio::spawn(carry(client, target));
                } else {
                    held.push(client);
                }
            }
        });
        Ok(Self { task, address, open })
    }

    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Lets new connections through from now on.
    pub(crate) fn open(&self) {
        self.open.store(true, Ordering::SeqCst);
    }
}

impl Drop for Way {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn carry(mut client: TcpStream, target: SocketAddr) {
    if let Ok(mut server) = TcpStream::connect(target).await {
        // Either end may close as it likes.
        let _ = tokio::io::copy_bidirectional(&mut client, &mut server).await;
    }
}

/// An address that is taken, so that no other program gets it meanwhile, and on which nobody listens.
pub(crate) struct Nobody(TcpSocket);

impl Nobody {
    pub(crate) fn bind() -> Result<Self> {
        let socket = TcpSocket::new_v4()?;
        socket.bind(SocketAddr::from(([127, 0, 0, 1], 0)))?;
        Ok(Self(socket))
    }

    pub(crate) fn address(&self) -> Result<SocketAddr> {
        Ok(self.0.local_addr()?)
    }
}
