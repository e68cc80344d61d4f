//! Limits how many connections one address has at once. Beyond that the one is closed that has waited longest without an
//! answer, or if all are being answered, the new one. So strangers take neither the memory and file descriptors of the
//! process nor the connections of clients that get answers.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::CancellationToken;

/// The most connections at once. Kubelets and scrapers have one each, for a moment.
pub(super) const MOST: usize = 64;

/// The connection slots of one address.
#[derive(Clone)]
pub(super) struct ConnectionLimit {
    free: Arc<Semaphore>,
    unanswered: Unanswered,
}

/// The connections that have no answer yet, the oldest first.
type Unanswered = Arc<Mutex<VecDeque<Weak<ConnectionSlot>>>>;

impl Default for ConnectionLimit {
    fn default() -> Self {
        Self {
            free: Arc::new(Semaphore::new(MOST)),
            unanswered: Arc::default(),
        }
    }
}

/// The slot of one connection, which is free again when the connection ends.
pub(super) struct ConnectionSlot {
    /// Cancelled when the connection has to make room for another one.
    pub(super) evicted: CancellationToken,
    unanswered: Unanswered,
    _permit: OwnedSemaphorePermit,
}

impl ConnectionLimit {
    /// A slot; none if all are taken by connections that are being answered.
    pub(super) async fn acquire(&self) -> Option<Arc<ConnectionSlot>> {
        let free = Arc::clone(&self.free);
        let permit = match Arc::clone(&free).try_acquire_owned() {
            Ok(permit) => permit,
            Err(_) if self.evict() => free.acquire_owned().await.ok()?,
            Err(_) => {
                tracing::debug!("a connection too many");
                return None;
            }
        };
        let slot = Arc::new(ConnectionSlot {
            evicted: CancellationToken::new(),
            unanswered: Arc::clone(&self.unanswered),
            _permit: permit,
        });
        lock(&self.unanswered).push_back(Arc::downgrade(&slot));
        Some(slot)
    }

    /// Closes the connection that has waited longest without an answer. False if there is none.
    fn evict(&self) -> bool {
        let oldest = lock(&self.unanswered).pop_front();
        let Some(slot) = oldest.and_then(|slot| slot.upgrade()) else {
            return false;
        };
        slot.evicted.cancel();
        true
    }
}

impl ConnectionSlot {
    /// There is an answer: from now on the connection is not evicted.
    pub(super) fn mark_answered(self: &Arc<Self>) {
        lock(&self.unanswered).retain(|other| other.as_ptr() != Arc::as_ptr(self));
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        lock(&self.unanswered).retain(|other| other.strong_count() > 0);
    }
}

fn lock(unanswered: &Unanswered) -> MutexGuard<'_, VecDeque<Weak<ConnectionSlot>>> {
    unanswered.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use futures::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn connection_that_is_being_answered_is_not_evicted() {
        let limit = ConnectionLimit::default();
        let mut asking = Vec::new();
        for _ in 1..MOST {
            let slot = limit.acquire().await.unwrap();
            slot.mark_answered();
            asking.push(slot);
        }
        let silent = limit.acquire().await.unwrap();
        let evicted = async {
            silent.evicted.cancelled().await;
            drop(silent);
        };
        let (newcomer, ()) = tokio::join!(limit.acquire(), evicted);
        let newcomer = newcomer.unwrap();
        newcomer.mark_answered();
        asking.push(newcomer);

        assert!(limit.acquire().now_or_never().expect("it is told at once").is_none());
        assert!(asking.iter().all(|slot| !slot.evicted.is_cancelled()));
        asking.pop();
        assert!(limit.acquire().now_or_never().expect("there is a place").is_some());
    }
}
