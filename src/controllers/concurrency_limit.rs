//! How many reconciles run at once, in all and of one namespace. The limit is kept here and not by kube's work queue, because
//! that does not tell how long it is.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::metrics::{Controller, Metrics};

/// So many of one namespace run at once, or one namespace could keep all others waiting.
const PER_NAMESPACE: usize = 4;

/// The places of a namespace, and how many have or await one.
type Namespaces = HashMap<String, (Arc<Semaphore>, usize)>;

/// The places for the reconciles of one controller.
pub struct ConcurrencyLimit {
    controller: Controller,
    places: Semaphore,
    /// Those of the namespaces for which something runs or waits.
    namespaces: Mutex<Namespaces>,
}

impl ConcurrencyLimit {
    /// `places` reconciles at once.
    pub fn new(controller: Controller, places: u16) -> Self {
        Self {
            controller,
            places: Semaphore::new(places.into()),
            namespaces: Mutex::default(),
        }
    }

    fn namespaces(&self) -> MutexGuard<'_, Namespaces> {
        self.namespaces.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Does `work` for a namespace when its turn comes; none if the process stops first. Who waits is counted as queued.
    pub async fn take<F: Future>(
        &self,
        metrics: &Metrics,
        namespace: &str,
        work: impl FnOnce() -> F,
    ) -> Option<F::Output> {
        let due = metrics.due(self.controller.label());
        let queued = metrics.queued(self.controller);
        let own = NamespacePermit::of(self, namespace);
        // First that of the namespace: who waits for it keeps nobody else waiting.
        let _own = own.places.acquire().await.ok()?;
        let _place = self.places.acquire().await.ok()?;
        drop(queued);
        due.moved();
        // Thousands may wait: the work takes memory only from now on.
        Some(Box::pin(work()).await)
    }

    /// Ends with `stop`; from then on nobody gets a turn.
    pub async fn end_with(&self, stop: CancellationToken) {
        stop.cancelled().await;
        self.places.close();
        self.namespaces().values().for_each(|(places, _)| places.close());
    }
}

/// The places of one namespace, kept as long as somebody has or awaits one.
struct NamespacePermit<'a> {
    all: &'a ConcurrencyLimit,
    namespace: &'a str,
    places: Arc<Semaphore>,
}

impl<'a> NamespacePermit<'a> {
    fn of(all: &'a ConcurrencyLimit, namespace: &'a str) -> Self {
        let mut namespaces = all.namespaces();
        let (places, users) = namespaces
            .entry(namespace.to_owned())
            .or_insert_with(|| (Arc::new(Semaphore::new(PER_NAMESPACE)), 0));
        *users += 1;
        Self {
            all,
            namespace,
            places: Arc::clone(places),
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
            .find_map(|line| line.strip_prefix("hyperlink_work_queue_depth{controller=\"endpoint\"} "));
        depth.unwrap_or("absent").to_owned()
    }

    #[tokio::test]
    async fn the_second_pass_is_queued_until_the_first_has_ended_and_the_stop_sends_the_third_away() {
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let places = Arc::new(ConcurrencyLimit::new(Controller::PrivateEndpoint, 1));
        let start = || {
            let (end, ended) = oneshot::channel::<()>();
            let (began, beginning) = oneshot::channel::<()>();
            let (places, metrics) = (Arc::clone(&places), Arc::clone(&metrics));
            let task = tokio::spawn(async move {
                let work = || async {
                    began.send(()).unwrap();
                    ended.await.unwrap();
                };
                places.take(&metrics, "n", work).await
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
        places.end_with(stop).await;
        assert_eq!((third.await.unwrap(), depth(&metrics)), (None, "0".to_owned()));
        end_second.send(()).unwrap();
        assert_eq!(second.await.unwrap(), Some(()), "a running pass ends");
    }

    #[tokio::test]
    async fn crowded_namespace_leaves_places_for_its_neighbour() {
        let metrics = Metrics::new("1", "c").unwrap();
        let places = ConcurrencyLimit::new(Controller::PrivateEndpoint, 64);
        let stuck = || std::future::pending::<()>();
        let mut crowd: Vec<_> = (0..200)
            .map(|_| Box::pin(places.take(&metrics, "crowded", stuck)))
            .collect();
        for one in &mut crowd {
            assert!(futures::poll!(one).is_pending());
        }
        assert_eq!(places.places.available_permits(), 64 - PER_NAMESPACE);
        assert_eq!(depth(&metrics), (200 - PER_NAMESPACE).to_string());
        assert_eq!(places.take(&metrics, "neighbour", || async { 1 }).await, Some(1));
        drop(crowd);
        assert!(places.namespaces().is_empty(), "nothing is kept of who has left");
    }
}
