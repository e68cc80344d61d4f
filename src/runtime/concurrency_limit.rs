//! How many reconciles run at once: in all, of one namespace, and with calls to one target.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::{Semaphore, SemaphorePermit};
use tokio_util::sync::CancellationToken;

use crate::metrics::{Controller, Metrics};

/// How many reconciles of one namespace run at once: otherwise one namespace could keep all others waiting.
const PER_NAMESPACE: usize = 4;

/// How many reconciles with calls to one target run at once: otherwise all would wait for one that does not answer. As
/// many as have a request there under way.
///
/// Rule: `docs/sizing.md`.
const PER_TARGET: usize = 16;

/// Whose reconcile it is, and where its calls go.
#[derive(Debug, Clone, Copy)]
pub struct Requester<'a> {
    /// The object's namespace.
    pub namespace: &'a str,
    /// What its calls go to, if that may leave them unanswered.
    pub target: Option<&'a str>,
}

impl<'a> Requester<'a> {
    /// A reconcile that calls only the API server.
    pub fn of(namespace: &'a str) -> Self {
        Self {
            namespace,
            target: None,
        }
    }
}

/// The permits for the reconciles of one controller.
pub struct ConcurrencyLimit {
    controller: Controller,
    permits: Semaphore,
    namespaces: Shares,
    targets: Shares,
}

impl ConcurrencyLimit {
    /// Allows this many reconciles at once.
    pub fn new(controller: Controller, permits: u16) -> Self {
        Self {
            controller,
            permits: Semaphore::new(permits.into()),
            namespaces: Shares::of(PER_NAMESPACE),
            targets: Shares::of(PER_TARGET),
        }
    }

    /// Runs `work` once there is a permit; none if the process stops first. A reconcile that waits is counted as queued.
    pub async fn take<F: Future>(
        &self,
        metrics: &Metrics,
        requester: Requester<'_>,
        work: impl FnOnce() -> F,
    ) -> Option<F::Output> {
        let due = metrics.due(self.controller.label());
        let queued = metrics.queued(self.controller);
        // What others share comes last: a reconcile that waits for its own keeps nobody else waiting.
        let of_namespace = self.namespaces.share(requester.namespace);
        let _of_namespace = of_namespace.take().await?;
        let of_target = requester.target.map(|target| self.targets.share(target));
        let _of_target = match &of_target {
            Some(share) => Some(share.take().await?),
            None => None,
        };
        let _permit = self.permits.acquire().await.ok()?;
        drop(queued);
        due.moved();
        // Thousands may wait: the work takes memory only from now on.
        Some(Box::pin(work()).await)
    }

    /// Ends with `stop`; from then on no reconcile gets a permit.
    pub async fn end_with(&self, stop: CancellationToken) {
        stop.cancelled().await;
        self.permits.close();
        self.namespaces.close();
        self.targets.close();
    }
}

/// The permits of each of some keys, and how many reconciles have or await one.
type ByKey = HashMap<String, (Arc<Semaphore>, usize)>;

/// As many permits for each key. Nothing is kept of a key for which nothing runs or waits.
struct Shares {
    permits: usize,
    by_key: Mutex<ByKey>,
}

impl Shares {
    fn of(permits: usize) -> Self {
        Self {
            permits,
            by_key: Mutex::default(),
        }
    }

    fn by_key(&self) -> MutexGuard<'_, ByKey> {
        self.by_key.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn share<'a>(&'a self, key: &'a str) -> Share<'a> {
        let mut by_key = self.by_key();
        let (permits, users) = by_key
            .entry(key.to_owned())
            .or_insert_with(|| (Arc::new(Semaphore::new(self.permits)), 0));
        *users += 1;
        Share {
            all: self,
            key,
            permits: Arc::clone(permits),
        }
    }

    fn close(&self) {
        self.by_key().values().for_each(|(permits, _)| permits.close());
    }
}

/// The permits of one key, kept as long as a reconcile has or awaits one.
struct Share<'a> {
    all: &'a Shares,
    key: &'a str,
    permits: Arc<Semaphore>,
}

impl Share<'_> {
    async fn take(&self) -> Option<SemaphorePermit<'_>> {
        self.permits.acquire().await.ok()
    }
}

impl Drop for Share<'_> {
    fn drop(&mut self) {
        let mut by_key = self.all.by_key();
        let left = by_key.get_mut(self.key).map(|(_, users)| {
            *users -= 1;
            *users
        });
        if left == Some(0) {
            by_key.remove(self.key);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use tokio::sync::oneshot;

    use super::*;

    fn depth(metrics: &Metrics) -> String {
        let text = metrics.render().unwrap();
        let depth = text
            .lines()
            .find_map(|line| line.strip_prefix("hyperlink_workqueue_depth{controller=\"private_endpoint\"} "));
        depth.unwrap_or("absent").to_owned()
    }

    #[tokio::test]
    async fn reconcile_over_the_limit_is_queued_and_dropped_at_the_stop() {
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let limit = Arc::new(ConcurrencyLimit::new(Controller::PrivateEndpoint, 1));
        let start = || {
            let (end, end_signal) = oneshot::channel::<()>();
            let (began, beginning) = oneshot::channel::<()>();
            let (limit, metrics) = (Arc::clone(&limit), Arc::clone(&metrics));
            let task = tokio::spawn(async move {
                let work = || async {
                    began.send(()).unwrap();
                    end_signal.await.unwrap();
                };
                limit.take(&metrics, Requester::of("n"), work).await
            });
            (task, beginning, end)
        };
        let (first, began, end_first) = start();
        began.await.unwrap();
        let (second, began, end_second) = start();
        tokio::task::yield_now().await;
        assert_eq!(depth(&metrics), "1");
        end_first.send(()).unwrap();
        began.await.unwrap();
        assert_eq!((first.await.unwrap(), depth(&metrics)), (Some(()), "0".to_owned()));

        let (third, _, _end) = start();
        let stop = CancellationToken::new();
        stop.cancel();
        limit.end_with(stop).await;
        assert_eq!((third.await.unwrap(), depth(&metrics)), (None, "0".to_owned()));
        end_second.send(()).unwrap();
        assert_eq!(second.await.unwrap(), Some(()), "a running reconcile ends");
    }

    #[tokio::test]
    async fn crowded_namespace_leaves_permits_for_others() {
        let metrics = Metrics::new("1", "c").unwrap();
        let limit = ConcurrencyLimit::new(Controller::PrivateEndpoint, 64);
        let stuck = || std::future::pending::<()>();
        let mut crowd: Vec<_> = (0..200)
            .map(|_| Box::pin(limit.take(&metrics, Requester::of("crowded"), stuck)))
            .collect();
        for one in &mut crowd {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(limit.permits.available_permits(), 64 - PER_NAMESPACE);
        assert_eq!(depth(&metrics), (200 - PER_NAMESPACE).to_string());
        assert_eq!(
            limit.take(&metrics, Requester::of("neighbour"), || async { 1 }).await,
            Some(1)
        );
        drop(crowd);
        assert!(limit.namespaces.by_key().is_empty(), "nothing is kept of who has left");
    }

    #[tokio::test]
    async fn target_that_does_not_answer_leaves_permits_for_others() {
        let metrics = Metrics::new("1", "c").unwrap();
        let limit = ConcurrencyLimit::new(Controller::PrivateEndpoint, 64);
        let namespaces: Vec<String> = (0..200).map(|n| n.to_string()).collect();
        let calls_to = |namespace, target| Requester {
            namespace,
            target: Some(target),
        };
        let stuck = || std::future::pending::<()>();
        let mut crowd: Vec<_> = namespaces
            .iter()
            .map(|namespace| Box::pin(limit.take(&metrics, calls_to(namespace, "silent"), stuck)))
            .collect();
        for one in &mut crowd {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(limit.permits.available_permits(), 64 - PER_TARGET);
        let other = limit.take(&metrics, calls_to("neighbour", "answers"), || async { 1 });
        assert_eq!(other.await, Some(1));
        drop(crowd);
        assert!(
            limit.targets.by_key().is_empty(),
            "nothing is kept of what nobody calls"
        );
    }
}
