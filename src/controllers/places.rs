//! How many passes run at once. The limit is kept here and not by kube's work queue, because that does not tell how long it is.

use tokio::sync::Semaphore;
use tokio_util::sync::CancellationToken;

use crate::metrics::{Controller, Metrics};

/// The places for the passes of one controller.
pub struct Places {
    controller: Controller,
    places: Semaphore,
}

impl Places {
    /// `places` passes at once.
    pub fn new(controller: Controller, places: u16) -> Self {
        Self {
            controller,
            places: Semaphore::new(places.into()),
        }
    }

    /// Does `work` when its turn comes; none if the process stops first. Who waits is counted as queued.
    pub async fn take<F: Future>(&self, metrics: &Metrics, work: impl FnOnce() -> F) -> Option<F::Output> {
        let queued = metrics.queued(self.controller);
        let _place = self.places.acquire().await.ok()?;
        drop(queued);
        // Thousands may wait: the work takes memory only from now on.
        Some(Box::pin(work()).await)
    }

    /// Ends with `stop`; from then on nobody gets a turn.
    pub async fn end_with(&self, stop: CancellationToken) {
        stop.cancelled().await;
        self.places.close();
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
        let places = Arc::new(Places::new(Controller::Endpoint, 1));
        let start = || {
            let (end, ended) = oneshot::channel::<()>();
            let (began, beginning) = oneshot::channel::<()>();
            let (places, metrics) = (Arc::clone(&places), Arc::clone(&metrics));
            let task = tokio::spawn(async move {
                let work = || async {
                    began.send(()).unwrap();
                    ended.await.unwrap();
                };
                places.take(&metrics, work).await
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
}
