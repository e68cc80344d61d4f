//! Whether the workers get on, which is what `/livez` goes by: not a metric, but seen from where passes and calls are counted.

use std::collections::BTreeMap;
use std::sync::{Mutex, MutexGuard};
use std::time::Duration;

use tokio::time::Instant;

use super::{Controller, Metrics, locked};

/// How long work may be due without anything coming of it. Longer than any call or look may take.
const PATIENCE: Duration = Duration::from_secs(300);

#[derive(Default)]
pub(super) struct Progress(Mutex<BTreeMap<&'static str, Worker>>);

struct Worker {
    /// What is under way or waits for its turn.
    due: usize,
    /// When something began or ended last, or first became due.
    moved: Instant,
}

/// Whose work is made of calls to Azure.
const CALLERS: [Controller; 2] = [Controller::PrivateLinkService, Controller::PrivateEndpoint];

impl Progress {
    /// A call to Azure has ended: whoever waited for it goes on.
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
    /// Something is due for a worker of this name, until what is returned is dropped.
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

    /// A worker for which something has been due for five minutes, and none of it has moved; and for how long.
    pub fn stalled(&self) -> Option<(&'static str, Duration)> {
        let workers = self.progress.workers();
        let due = workers.iter().filter(|(_, worker)| worker.due > 0);
        let still = due.map(|(name, worker)| (*name, worker.moved.elapsed()));
        still
            .filter(|(_, still)| *still >= PATIENCE)
            .max_by_key(|(_, still)| *still)
    }
}

/// Something that is due.
#[must_use = "dropping it says that it is done"]
pub struct Due<'a> {
    progress: &'a Progress,
    worker: &'static str,
}

impl Due<'_> {
    /// It has come further.
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
        tokio::time::advance(PATIENCE * 2).await;
        assert_eq!(metrics.stalled(), None);
        let _due = metrics.due("idle");
        assert_eq!(metrics.stalled(), None, "it has only become due");
    }

    #[tokio::test(start_paused = true)]
    async fn worker_that_waits_for_slow_calls_is_not_stalled() {
        let metrics = Metrics::new("1", "c").unwrap();
        let (caller, other) = (metrics.due(Controller::PrivateEndpoint.label()), metrics.due("other"));
        for _ in 0..4 {
            tokio::time::advance(PATIENCE / 2).await;
            metrics.progress.called();
            other.moved();
            assert_eq!(metrics.stalled(), None);
        }
        tokio::time::advance(PATIENCE / 2).await;
        other.moved();
        tokio::time::advance(PATIENCE / 2).await;
        assert_eq!(metrics.stalled(), Some(("private_endpoint", PATIENCE)));
        drop(caller);
        assert_eq!(metrics.stalled(), None);
    }
}
