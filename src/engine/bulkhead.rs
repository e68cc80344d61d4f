//! How many requests to one target are under way, such as a subscription: a target that does not answer must not occupy
//! what all others need.

use std::collections::{BTreeMap, HashMap};
use std::hash::Hash;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::Instant;

use super::failure::Class;
use super::urgency::Urgency;

/// How many requests to one target are under way at once.
const MOST: usize = 16;

/// How many of them may be requests for which nobody waits.
const ROUTINE: usize = 12;

/// How long a request to a target waits while so many others to it are under way. If none has come back for longer, the
/// target does not answer, and none waits.
///
/// Rule: `docs/sizing.md`.
const PATIENCE: Duration = Duration::from_secs(2);

/// The requests under way, by target.
#[derive(Debug)]
pub struct Bulkhead<K>(Mutex<HashMap<K, Arc<Lane>>>);

impl<K> Default for Bulkhead<K> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// The requests to one target.
#[derive(Debug)]
struct Lane {
    permits: Arc<Semaphore>,
    /// How many of them requests may take for which nobody waits.
    routine: Arc<Semaphore>,
    under_way: Mutex<UnderWay>,
}

#[derive(Debug, Default)]
struct UnderWay {
    last: u64,
    /// When each was sent, in that order.
    sent: BTreeMap<u64, Instant>,
    /// When one last came back.
    answered: Option<Instant>,
}

impl Lane {
    fn under_way(&self) -> MutexGuard<'_, UnderWay> {
        self.under_way.lock().unwrap_or_else(PoisonError::into_inner)
    }

    async fn take(&self, permits: &Arc<Semaphore>) -> Result<OwnedSemaphorePermit, Class> {
        if let Ok(permit) = Arc::clone(permits).try_acquire_owned() {
            return Ok(permit);
        }
        if self.answers(Instant::now()) {
            let permit = tokio::time::timeout(PATIENCE, Arc::clone(permits).acquire_owned());
            if let Ok(Ok(permit)) = permit.await {
                return Ok(permit);
            }
        }
        // Where others come back it is only a crowd.
        Err(match self.answers(Instant::now()) {
            true => Class::Busy,
            false => Class::Down,
        })
    }

    /// Whether requests come back.
    fn answers(&self, now: Instant) -> bool {
        let under_way = self.under_way();
        let recent = |at: &Instant| now.saturating_duration_since(*at) < PATIENCE;
        under_way.answered.as_ref().is_some_and(recent) || under_way.sent.values().next().is_none_or(recent)
    }
}

/// A permit for one request.
#[derive(Debug)]
pub struct Permit {
    lane: Arc<Lane>,
    number: u64,
    _permits: (OwnedSemaphorePermit, Option<OwnedSemaphorePermit>),
}

impl Drop for Permit {
    fn drop(&mut self) {
        let mut under_way = self.lane.under_way();
        under_way.sent.remove(&self.number);
        under_way.answered = Some(Instant::now());
    }
}

impl<K: Clone + Eq + Hash> Bulkhead<K> {
    /// A permit for one request.
    ///
    /// # Errors
    /// Too many are under way. `Down` if they do not come back.
    pub async fn enter(&self, target: &K, urgency: Urgency) -> Result<Permit, Class> {
        let lane = self.lane(target);
        // A verification is a call of a reconcile that waits: without an answer it would know nothing.
        let of_routine = match urgency {
            Urgency::Routine { .. } => Some(lane.take(&lane.routine).await?),
            Urgency::Awaited | Urgency::New | Urgency::Verification => None,
        };
        let permit = lane.take(&lane.permits).await?;
        let number = {
            let mut under_way = lane.under_way();
            under_way.last += 1;
            let number = under_way.last;
            under_way.sent.insert(number, Instant::now());
            number
        };
        Ok(Permit {
            lane,
            number,
            _permits: (permit, of_routine),
        })
    }

    fn lane(&self, target: &K) -> Arc<Lane> {
        let mut lanes = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = lanes.get(target) {
            return Arc::clone(lane);
        }
        // Anybody may name any target.
        lanes.retain(|_, lane| Arc::strong_count(lane) > 1);
        let lane = Arc::new(Lane {
            permits: Arc::new(Semaphore::new(MOST)),
            routine: Arc::new(Semaphore::new(ROUTINE)),
            under_way: Mutex::default(),
        });
        lanes.insert(target.clone(), Arc::clone(&lane));
        lane
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test(start_paused = true)]
    async fn target_that_does_not_answer_takes_no_more_requests() {
        let (bulkhead, stuck) = (Bulkhead::default(), "a");
        let mut permits = Vec::new();
        for _ in 0..MOST {
            permits.push(bulkhead.enter(&stuck, Urgency::Awaited).await.unwrap());
        }
        let began = Instant::now();
        assert_eq!(refusal(&bulkhead, &stuck).await, Some(Class::Down));
        assert_eq!(began.elapsed(), PATIENCE, "the first one waits");
        assert_eq!(refusal(&bulkhead, &stuck).await, Some(Class::Down));
        assert_eq!(began.elapsed(), PATIENCE, "the next one knows");
        assert!(bulkhead.enter(&"b", Urgency::Awaited).await.is_ok(), "others answer");
        permits.pop();
        assert!(bulkhead.enter(&stuck, Urgency::Awaited).await.is_ok());
    }

    async fn refusal(bulkhead: &Bulkhead<&'static str>, target: &&'static str) -> Option<Class> {
        bulkhead.enter(target, Urgency::Awaited).await.err()
    }

    #[tokio::test(start_paused = true)]
    async fn too_large_a_crowd_is_no_outage() {
        let bulkhead = Arc::new(Bulkhead::default());
        let requests = (0..4 * MOST).map(async |_| {
            let permit = bulkhead.enter(&"a", Urgency::Awaited).await;
            tokio::time::sleep(Duration::from_millis(1_500)).await;
            permit.err()
        });
        let refused: Vec<_> = futures::future::join_all(requests)
            .await
            .into_iter()
            .flatten()
            .collect();
        assert_eq!(refused, vec![Class::Busy; 2 * MOST]);
    }

    #[tokio::test(start_paused = true)]
    async fn one_slow_request_refuses_none_while_others_come_back() {
        let bulkhead = Arc::new(Bulkhead::default());
        let _slow = bulkhead.enter(&"a", Urgency::Awaited).await;
        tokio::time::sleep(2 * PATIENCE).await;
        drop(bulkhead.enter(&"a", Urgency::Awaited).await);
        let requests = (0..60).map(async |_| {
            let permit = bulkhead.enter(&"a", Urgency::Awaited).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            permit.is_ok()
        });
        assert!(
            futures::future::join_all(requests)
                .await
                .into_iter()
                .all(|served| served)
        );
    }

    #[tokio::test(start_paused = true)]
    async fn verification_leaves_permits_to_what_somebody_waits_for() {
        let bulkhead = Bulkhead::default();
        let mut permits = Vec::new();
        for _ in 0..ROUTINE {
            let urgency = Urgency::Routine { served: 500 };
            permits.push(bulkhead.enter(&"a", urgency).await.unwrap());
        }
        let began = Instant::now();
        for urgency in [Urgency::Awaited, Urgency::New, Urgency::Verification] {
            permits.push(bulkhead.enter(&"a", urgency).await.unwrap());
        }
        assert_eq!(began.elapsed(), Duration::ZERO);
    }

    #[tokio::test(start_paused = true)]
    async fn crowd_at_a_target_that_answers_is_served_in_turn() {
        let bulkhead = Arc::new(Bulkhead::default());
        let began = Instant::now();
        let requests = (0..10 * MOST).map(async |_| {
            let permit = bulkhead.enter(&"a", Urgency::Awaited).await;
            tokio::time::sleep(Duration::from_millis(100)).await;
            permit.is_ok()
        });
        let served = futures::future::join_all(requests).await;
        assert!(served.into_iter().all(|served| served));
        assert_eq!(began.elapsed().as_millis(), 1_000);
    }

    #[tokio::test]
    async fn targets_without_requests_are_forgotten() {
        let bulkhead = Bulkhead::default();
        for number in 0..100 {
            drop(bulkhead.enter(&number, Urgency::Awaited).await);
        }
        assert_eq!(bulkhead.0.lock().unwrap().len(), 1);
    }
}
