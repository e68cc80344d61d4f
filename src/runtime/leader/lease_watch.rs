//! Watches the lease for a standby, so that a release is noticed at once.
//!
//! An event is only a reason to read the lease: its content is not judged, and the regular reads continue without it.

use std::time::{Duration, Instant};

use futures::StreamExt;
use futures::stream::BoxStream;
use k8s_openapi::api::coordination::v1::Lease;
use kube::api::WatchEvent;

use super::lease::{LeaseCalls, WATCH};

/// A watch of the lease that is open for longer than this is on a dead connection: the API server should have ended it.
/// A standby opens it again.
const SILENT: Duration = WATCH.saturating_add(Duration::from_secs(15));
/// How long a standby does not watch the lease after the watch was refused or broke. It goes on reading the lease
/// meanwhile.
const PAUSE: Duration = Duration::from_secs(10);

/// A watch on one lease, opened when it is first needed and again when it ends.
#[derive(Default)]
pub(super) struct LeaseWatch {
    stream: Option<BoxStream<'static, kube::Result<WatchEvent<Lease>>>>,
    opened: Option<Instant>,
    not_before: Option<Instant>,
    /// The version that was last read; `None` if there was no lease.
    version: Option<String>,
}

impl LeaseWatch {
    /// Records the lease that was read, so that it is not reported as a change.
    pub(super) fn observed(&mut self, lease: Option<&Lease>) {
        self.version = lease.and_then(|lease| lease.metadata.resource_version.clone());
    }

    /// Returns once the lease differs from the one that was last read; never, if it cannot be watched. May be dropped
    /// and called again.
    pub(super) async fn change(&mut self, calls: &LeaseCalls) {
        if self.opened.is_some_and(|opened| opened.elapsed() > SILENT) {
            self.stream = None;
        }
        if self.not_before.is_some_and(|not_before| Instant::now() < not_before) {
            return std::future::pending().await;
        }
        if self.stream.is_none() {
            match calls.changes().await {
                Ok(stream) => {
                    self.stream = Some(stream);
                    self.opened = Some(Instant::now());
                }
                Err(error) => self.fail(&error).await,
            }
        }
        while let Some(stream) = &mut self.stream {
            match stream.next().await {
                Some(Ok(WatchEvent::Added(lease) | WatchEvent::Modified(lease))) => {
                    if lease.metadata.resource_version != self.version {
                        return;
                    }
                }
                Some(Ok(WatchEvent::Deleted(_))) => {
                    if self.version.is_some() {
                        return;
                    }
                }
                Some(Ok(WatchEvent::Bookmark(_))) => {}
                Some(Ok(WatchEvent::Error(status))) => self.fail(&status.message).await,
                Some(Err(error)) => self.fail(&error).await,
                None => self.stream = None,
            }
        }
        std::future::pending().await
    }

    async fn fail(&mut self, error: &(dyn std::fmt::Display + Sync)) {
        tracing::debug!(%error, "cannot watch the lease; polling it");
        self.stream = None;
        self.not_before = Some(Instant::now() + PAUSE);
        std::future::pending().await
    }
}
