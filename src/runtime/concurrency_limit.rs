//! How many reconciles run at once, in all and of one namespace. The limit is here and not in kube's work queue,
//! because that does not show its length.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::metrics::{Controller, Metrics};

/// How many reconciles of one namespace run at once: otherwise one namespace could keep all others waiting.
const PER_NAMESPACE: usize = 4;

/// The permits of a namespace, and how many reconciles have or await one.
type Namespaces = HashMap<String, (Arc<Semaphore>, usize)>;

/// The permits for the reconciles of one controller.
pub struct ConcurrencyLimit {
    controller: Controller,
    permits: Semaphore,
    /// The permits of the namespaces for which something runs or waits.
    namespaces: Mutex<Namespaces>,
}

impl ConcurrencyLimit {
    /// Allows this many reconciles at once.
    pub fn new(controller: Controller, permits: u16) -> Self {
        Self {
            controller,
            permits: Semaphore::new(permits.into()),
            namespaces: Mutex::default(),
        }
    }

    fn namespaces(&self) -> MutexGuard<'_, Namespaces> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs `work` for a namespace once there is a permit; none if the process stops first. A reconcile that waits is
    /// counted as queued.
    pub async fn take<F: Future>(
        &self,
        metrics: &Metrics,
        namespace: &str,
        work: impl FnOnce() -> F,
    ) -> Option<F::Output> {
        let due = metrics.due(self.controller.label());
        let queued = metrics.queued(self.controller);
        let own = NamespacePermit::of(self, namespace);
        // The permit of the namespace comes first: a reconcile that waits for it keeps nobody else waiting.
        let _own = own.permits.acquire().await.ok()?;
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
        self.namespaces().values().for_each(|(permits, _)| permits.close());
    }
}

/// The permits of one namespace, kept as long as a reconcile has or awaits one.
struct NamespacePermit<'a> {
    all: &'a ConcurrencyLimit,
    namespace: &'a str,
    permits: Arc<Semaphore>,
}

impl<'a> NamespacePermit<'a> {
    fn of(all: &'a ConcurrencyLimit, namespace: &'a str) -> Self {
        let mut namespaces = all.namespaces();
        let (permits, users) = namespaces
            .entry(namespace.to_owned())
            .or_insert_with(|| (Arc::new(Semaphore::new(PER_NAMESPACE)), 0));
        *users += 1;
        Self {
            all,
            namespace,
            permits: Arc::clone(permits),
        }
    }
}

impl Drop for NamespacePermit<'_> {
    fn drop(&mut self) {
        let mut namespaces = self.all.namespaces();
        let left = namespaces.get_mut(self.namespace).map(|(_, users)| {
            *users -= 1;
            *users
        });
        if left == Some(0) {
            namespaces.remove(self.namespace);
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
                limit.take(&metrics, "n", work).await
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
            .map(|_| Box::pin(limit.take(&metrics, "crowded", stuck)))
            .collect();
        for one in &mut crowd {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(limit.permits.available_permits(), 64 - PER_NAMESPACE);
        assert_eq!(depth(&metrics), (200 - PER_NAMESPACE).to_string());
        assert_eq!(limit.take(&metrics, "neighbour", || async { 1 }).await, Some(1));
        drop(crowd);
        assert!(limit.namespaces().is_empty(), "nothing is kept of who has left");
    }
}
