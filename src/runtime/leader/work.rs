//! Work that is done only while leading, and the order in which it ends: the work first, the lease last.
//!
//! A lost lease cannot be released: the work is then stopped where it is, and the lease is left alone.

use std::time::Duration;

use tokio_util::sync::CancellationToken;

use super::{LeaderError, Leadership};

/// How work under a lease has ended.
#[derive(Debug)]
pub struct Worked<T> {
    /// Its result; `None` if it did not end in time and was stopped.
    pub outcome: Option<T>,
    /// Whether the lease was released. If not, it expires by itself.
    pub released: Result<(), LeaderError>,
}

impl Leadership {
    /// Runs the future that `work` makes until it ends, or until `stop`: then the token that `work` got is cancelled,
    /// and the future may take `grace` to end. The lease is released when nothing of the work is left.
    ///
    /// # Errors
    /// [`LeaderError::Lost`] if the lease is lost before the work has ended.
    pub async fn work<F: Future>(
        mut self,
        stop: &CancellationToken,
        grace: Duration,
        work: impl FnOnce(CancellationToken) -> F,
    ) -> Result<Worked<F::Output>, LeaderError> {
        let finish = CancellationToken::new();
        let mut working = Box::pin(work(finish.clone()));
        let out_of_time = async {
            stop.cancelled().await;
            finish.cancel();
            tokio::time::sleep(grace).await;
        };
        let outcome = tokio::select! {
            biased;
            () = self.lost() => return Err(LeaderError::Lost),
            outcome = &mut working => Some(outcome),
            () = out_of_time => {
                tracing::warn!(lease = %self.lease(), "what was running did not end in time and is broken off");
                None
            }
        };
        // This also ends a call that waits for its answer: its connection is closed.
        drop(working);
        let released = self.step_down().await;
        Ok(Worked { outcome, released })
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use super::super::model::Model;
    use super::super::tests::{LEASE, expired, leader, released, within};
    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn holder(model: &Model) -> String {
        model.spec(LEASE)["holderIdentity"]
            .as_str()
            .unwrap_or_default()
            .to_owned()
    }

    /// Records who held the lease when the work was dropped.
    struct Dropped(Model, Arc<Mutex<Option<String>>>);

    impl Drop for Dropped {
        fn drop(&mut self) {
            *self.1.lock().unwrap() = Some(holder(&self.0));
        }
    }

    fn stuck(model: &Model) -> (impl Future<Output = ()> + use<>, Arc<Mutex<Option<String>>>) {
        let holder_at_drop = Arc::default();
        let dropped = Dropped(model.clone(), Arc::clone(&holder_at_drop));
        let work = async move {
            let _dropped = dropped;
            std::future::pending().await
        };
        (work, holder_at_drop)
    }

    async fn leading() -> (Model, Leadership, super::super::LeaderGate) {
        let model = Model::default();
        model.put(LEASE, released());
        let (leadership, gate, _) = leader(&model, "me").await;
        (model, leadership, gate)
    }

    #[tokio::test]
    async fn stop_lets_the_work_end_under_the_lease() {
        let (model, leadership, gate) = leading().await;
        let stop = CancellationToken::new();
        let work = |finish: CancellationToken| {
            let (model, gate) = (model.clone(), gate.clone());
            async move {
                finish.cancelled().await;
                (holder(&model), gate.open())
            }
        };
        let working = leadership.work(&stop, LONG, work);
        stop.cancel();
        let worked = within(1, working).await.unwrap();
        assert_eq!(worked.outcome, Some(("me".to_owned(), true)));
        assert!(worked.released.is_ok());
        assert_eq!((holder(&model).as_str(), gate.open()), ("", false));
    }

    #[tokio::test]
    async fn work_that_ends_by_itself_gives_the_lease_back() {
        let (model, leadership, _) = leading().await;
        let stop = CancellationToken::new();
        let working = leadership.work(&stop, LONG, |_| async { "broken" });
        assert_eq!(within(1, working).await.unwrap().outcome, Some("broken"));
        assert_eq!(holder(&model), "");
    }

    #[tokio::test]
    async fn work_that_exceeds_the_grace_is_stopped_before_the_release() {
        let (model, leadership, _) = leading().await;
        let (work, dropped) = stuck(&model);
        let stop = CancellationToken::new();
        stop.cancel();
        let worked = leadership.work(&stop, Duration::from_millis(50), |_| work);
        assert_eq!(within(1, worked).await.unwrap().outcome, None);
        assert_eq!(dropped.lock().unwrap().as_deref(), Some("me"));
        assert_eq!(holder(&model), "");
    }

    #[tokio::test]
    async fn lease_lost_in_the_grace_stops_the_work_and_is_left_alone() {
        let (model, leadership, gate) = leading().await;
        let (work, dropped) = stuck(&model);
        let stop = CancellationToken::new();
        stop.cancel();
        let working = tokio::spawn(async move { leadership.work(&stop, LONG, |_| work).await });
        model.put(LEASE, expired());
        let result = within(2, working).await.unwrap();
        assert!(matches!(result, Err(LeaderError::Lost)));
        assert_eq!(dropped.lock().unwrap().as_deref(), Some("gone"));
        assert_eq!((holder(&model).as_str(), gate.open()), ("gone", false));
    }
}
