//! Whether the workers make progress, on which `/livez` depends: not a metric, but observed where reconciles and calls
//! are counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::{Controller, Metrics, locked};

/// How long due work may make no progress until `/livez` fails. It is longer than any call or read may take.
///
/// Rule: `docs/decisions/0013-leading.md`.
const STALLED_AFTER: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct WorkProgress(Mutex<BTreeMap<&'static str, Worker>>);

struct Worker {
    /// How much work is under way or waits.
    due: usize,
    /// When something began or ended last, or first became due.
    moved: Instant,
}

/// The controllers whose work consists of calls to a cloud.
const CALLERS: [Controller; 5] = [
    Controller::PrivateLinkService,
    Controller::PrivateEndpoint,
    Controller::EndpointService,
    Controller::VpcEndpoint,
    Controller::AzureCluster,
];

impl WorkProgress {
    /// Records that a call to a cloud has ended, so that its caller continues.
    pub(super) fn called(&self) {
        let mut workers = self.workers();
        for caller in CALLERS.map(Controller::label) {
            if let Some(worker) = workers.get_mut(caller) {
                worker.moved = Instant::now();
            }
        }
    }

    fn workers(&self) -> MutexGuard<'_, BTreeMap<&'static str, Worker>> {
        locked(&self.0)
    }
}

impl Metrics {
    /// Records that work is due for a worker of this name, until the returned guard is dropped.
    pub fn due(&self, worker: &'static str) -> Due<'_> {
        let mut workers = self.progress.workers();
        let now = Instant::now();
        let all = workers.entry(worker).or_insert(Worker { due: 0, moved: now });
        if all.due == 0 {
            all.moved = now;
        }
        all.due += 1;
        Due {
            progress: &self.progress,
            worker,
        }
    }

    /// The worker whose due work has made no progress for longest, if that is at least five minutes, and for how long.
    pub fn stalled(&self) -> Option<(&'static str, Duration)> {
        let workers = self.progress.workers();
        let due = workers.iter().filter(|(_, worker)| worker.due > 0);
        let still = due.map(|(name, worker)| (*name, worker.moved.elapsed()));
        still
            .filter(|(_, still)| *still >= STALLED_AFTER)
            .max_by_key(|(_, still)| *still)
    }
}

/// Work that is due.
#[must_use = "dropping it says that it is done"]
pub struct Due<'a> {
    progress: &'a WorkProgress,
    worker: &'static str,
}

impl Due<'_> {
    /// Records that the work has made progress.
    pub fn moved(&self) {
        self.change(|_| {});
    }

    fn change(&self, change: impl FnOnce(&mut Worker)) {
        if let Some(worker) = self.progress.workers().get_mut(self.worker) {
            worker.moved = Instant::now();
            change(worker);
        }
    }
}

impl Drop for Due<'_> {
    fn drop(&mut self) {
        self.change(|worker| worker.due -= 1);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn worker_without_work_is_not_stalled_however_long() {
        let metrics = Metrics::new("1", "c").unwrap();
        drop(metrics.due("idle"));
        tokio::time::advance(STALLED_AFTER * 2).await;
        assert_eq!(metrics.stalled(), None);
        let _due = metrics.due("idle");
        assert_eq!(metrics.stalled(), None, "it has only become due");
    }

    #[tokio::test(start_paused = true)]
    async fn worker_that_waits_for_slow_calls_is_not_stalled() {
        let metrics = Metrics::new("1", "c").unwrap();
        let (caller, other) = (metrics.due(Controller::PrivateEndpoint.label()), metrics.due("other"));
        for _ in 0..4 {
            tokio::time::advance(STALLED_AFTER / 2).await;
            metrics.progress.called();
            other.moved();
            assert_eq!(metrics.stalled(), None);
        }
        tokio::time::advance(STALLED_AFTER / 2).await;
        other.moved();
        tokio::time::advance(STALLED_AFTER / 2).await;
        assert_eq!(metrics.stalled(), Some(("private_endpoint", STALLED_AFTER)));
        drop(caller);
        assert_eq!(metrics.stalled(), None);
    }
}
