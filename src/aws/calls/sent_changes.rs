//! Which changes to endpoints were sent lately: one that describe calls do not show yet is not sent again, and a subnet
//! that AWS has refused is left out for a while.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::ec2::EndpointChanges;
use crate::slot::Slot;

/// How long describe calls may not show a change yet.
///
/// Source: <https://docs.aws.amazon.com/ec2/latest/devguide/eventual-consistency.html>
const SHOWS_LATE: Duration = Duration::from_secs(60);

/// How long a subnet is left out that AWS has refused: the load balancer may come to its zone.
const REFUSED_FOR: Duration = Duration::from_secs(900);

/// How long it is left out at first where it is needed for an endpoint at all, twice as long each time: the code that
/// AWS refuses it with has other causes too.
const FIRST_REFUSED_FOR: Duration = Duration::from_secs(60);

/// The most subnets of one endpoint that are remembered: more than a custom resource names at a time.
const MOST_REFUSED: usize = 40;

/// That AWS has refused a subnet.
#[derive(Debug)]
struct Refusal {
    at: Instant,
    holds_for: Duration,
    code: String,
}

impl Refusal {
    fn holds(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < self.holds_for
    }
}

/// What was sent for one endpoint.
#[derive(Debug, Default)]
struct Sent {
    last: Option<(EndpointChanges, Instant)>,
    /// Subnets that AWS refused.
    refused: HashMap<String, Refusal>,
    /// When AWS refused to swap the only subnet in one call.
    refused_swap: Option<Instant>,
}

impl Sent {
    fn forget_old(&mut self, now: Instant) {
        self.last
            .take_if(|(_, at)| now.saturating_duration_since(*at) >= SHOWS_LATE);
        self.refused
            .retain(|_, refusal| now.saturating_duration_since(refusal.at) < 2 * REFUSED_FOR);
        self.refused_swap
            .take_if(|at| now.saturating_duration_since(*at) >= REFUSED_FOR);
    }
}

/// The changes that were sent, by slot.
#[derive(Debug, Default)]
pub(super) struct SentChanges(Mutex<HashMap<Slot, Sent>>);

impl SentChanges {
    fn all(&self, now: Instant) -> MutexGuard<'_, HashMap<Slot, Sent>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, sent| {
            sent.forget_old(now);
            sent.last.is_some() || !sent.refused.is_empty() || sent.refused_swap.is_some()
        });
        all
    }

    /// Whether AWS took these very changes just now.
    pub(super) fn is_taken(&self, slot: &Slot, changes: &EndpointChanges, now: Instant) -> bool {
        let all = self.all(now);
        let last = all.get(slot).and_then(|sent| sent.last.as_ref());
        last.is_some_and(|(last, _)| last == changes)
    }

    /// Notes that AWS took these changes.
    pub(super) fn note_taken(&self, slot: &Slot, changes: EndpointChanges, now: Instant) {
        self.all(now).entry(slot.clone()).or_default().last = Some((changes, now));
    }

    /// Notes with which code AWS refused to add a subnet, or to take the only one away; an empty id is for several
    /// together. `is_needed`: there is no endpoint without it.
    pub(super) fn note_refused(&self, slot: &Slot, subnet: &str, code: &str, is_needed: bool, now: Instant) {
        let mut all = self.all(now);
        let refused = &mut all.entry(slot.clone()).or_default().refused;
        if refused.len() >= MOST_REFUSED && !refused.contains_key(subnet) {
            return;
        }
        let before = refused.get(subnet).map(|refusal| refusal.holds_for * 2);
        let holds_for = match is_needed {
            true => before.unwrap_or(FIRST_REFUSED_FOR).min(REFUSED_FOR),
            false => REFUSED_FOR,
        };
        let refusal = Refusal {
            at: now,
            holds_for,
            code: code.to_owned(),
        };
        refused.insert(subnet.to_owned(), refusal);
    }

    /// Notes that AWS refused to swap the only subnet in one call.
    pub(super) fn note_refused_swap(&self, slot: &Slot, now: Instant) {
        self.all(now).entry(slot.clone()).or_default().refused_swap = Some(now);
    }

    /// Whether AWS refused to swap the only subnet in one call.
    pub(super) fn refuses_swaps(&self, slot: &Slot, now: Instant) -> bool {
        self.all(now).get(slot).is_some_and(|sent| sent.refused_swap.is_some())
    }

    /// The subnets that AWS has refused lately, each with AWS's code, and an empty id if it has refused several
    /// together.
    pub(super) fn refused(&self, slot: &Slot, now: Instant) -> BTreeMap<String, String> {
        let all = self.all(now);
        let refused = all.get(slot).into_iter().flat_map(|sent| &sent.refused);
        let holding = refused.filter(|(_, refusal)| refusal.holds(now));
        holding
            .map(|(id, refusal)| (id.clone(), refusal.code.clone()))
            .collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::slot::Scope;

    fn slot() -> Slot {
        Slot::vpc_endpoint(&Scope::own("444455556666", "us-east-1"), "vpc-1", "service")
    }

    fn adding(subnet: &str) -> EndpointChanges {
        EndpointChanges {
            add_subnets: vec![subnet.to_owned()],
            ..EndpointChanges::default()
        }
    }

    #[tokio::test(start_paused = true)]
    async fn change_that_shows_late_is_not_sent_again_for_a_minute() {
        let (sent, now) = (SentChanges::default(), Instant::now());
        assert!(!sent.is_taken(&slot(), &adding("a"), now));
        sent.note_taken(&slot(), adding("a"), now);
        let at = |changes: &EndpointChanges, second| sent.is_taken(&slot(), changes, now + Duration::from_secs(second));
        assert!(at(&adding("a"), 59) && !at(&adding("b"), 59) && !at(&adding("a"), 60));
    }

    #[tokio::test(start_paused = true)]
    async fn refused_subnet_is_left_out_for_a_while() {
        let (sent, now) = (SentChanges::default(), Instant::now());
        for number in 0..1_000 {
            sent.note_refused(&slot(), &number.to_string(), "X", false, now);
        }
        assert_eq!(
            sent.refused(&slot(), now + Duration::from_secs(899)).len(),
            MOST_REFUSED
        );
        assert_eq!(sent.refused(&slot(), now + REFUSED_FOR).len(), 0);
        assert!(sent.all(now + 2 * REFUSED_FOR).is_empty());
    }

    #[tokio::test(start_paused = true)]
    async fn subnet_without_which_there_is_no_endpoint_is_tried_sooner() {
        let (sent, mut now, mut waits) = (SentChanges::default(), Instant::now(), Vec::new());
        for _ in 0..6 {
            sent.note_refused(&slot(), "a", "InvalidParameter", true, now);
            let holds = |second: &u64| sent.refused(&slot(), now + Duration::from_secs(*second)).is_empty();
            let wait = (0..1_000).step_by(60).find(holds).unwrap();
            waits.push(wait);
            now += Duration::from_secs(wait);
        }
        assert_eq!(waits, [60, 120, 240, 480, 900, 900]);
    }
}
