//! Decides from one read of the Lease whether it may be written, and until when nobody else may write it.
//!
//! Pure: the caller passes what was read and when, by the local monotonic clock. Another machine's `renewTime` is never
//! compared with a local clock, only with itself: a holder counts as gone when this process observed no change of its
//! record for a whole lease duration. A Lease that is missing, or was emptied by hand, may still have a leader that has
//! not noticed, so it is given the same time.

use std::time::{Duration, Instant};

use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};

/// What a candidate that does not lead may do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum LeaseVerdict {
    /// The lease names this process: it wrote the lease, but did not get the answer. Renewing proves it.
    Own,
    /// Nobody can be leading.
    Free,
    /// Somebody else leads, or may still lead, until `until` unless the record changes before.
    Held {
        /// The holder that the lease names, if any.
        holder: Option<String>,
        /// When to judge again if nothing changes.
        until: Instant,
    },
}

/// What the lease's record means, without regard to time.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum LeaseRecord {
    Own,
    Held {
        duration: Duration,
    },
    /// Released: no holder, and the duration of one second that a release writes (client-go's, and this program's).
    Released,
    /// No holder and never renewed: created before its first use.
    Blank,
    /// No holder, but it had one that did not release it.
    Cleared,
    Absent,
}

/// Keeps the record that was observed last, and until when its leader may lead.
#[derive(Debug)]
pub(super) struct Guard {
    identity: String,
    duration: Duration,
    observed: Option<ObservedLease>,
}

#[derive(Debug)]
struct ObservedLease {
    spec: Option<LeaseSpec>,
    /// By then, whoever led under the observed record leads no more.
    busy_until: Instant,
}

impl Guard {
    /// `duration` is this process's own lease duration, used where a record has none.
    pub(super) fn new(identity: &str, duration: Duration) -> Self {
        Self {
            identity: identity.to_owned(),
            duration,
            observed: None,
        }
    }

    /// Judges the result of a read that ended at `now`; `None` means that there is no such Lease.
    pub(super) fn judge(&mut self, lease: Option<&Lease>, now: Instant) -> LeaseVerdict {
        let spec = lease.map(|lease| lease.spec.clone().unwrap_or_default());
        let record = self.classify(spec.as_ref());
        let holder = spec.as_ref().and_then(holder);
        let busy_until = match &self.observed {
            Some(observed) if observed.spec == spec => observed.busy_until,
            observed => self.busy_until(record, observed.as_ref(), now),
        };
        self.observed = Some(ObservedLease { spec, busy_until });
        match record {
            LeaseRecord::Own => LeaseVerdict::Own,
            _ if now >= busy_until => LeaseVerdict::Free,
            _ => LeaseVerdict::Held {
                holder,
                until: busy_until,
            },
        }
    }

    fn busy_until(&self, record: LeaseRecord, before: Option<&ObservedLease>, now: Instant) -> Instant {
        match (record, before) {
            (LeaseRecord::Own | LeaseRecord::Released, _) | (LeaseRecord::Blank, None) => now,
            (LeaseRecord::Held { duration }, _) => now + duration,
            (LeaseRecord::Blank | LeaseRecord::Cleared | LeaseRecord::Absent, before) => {
                let own = now + self.duration;
                before.map_or(own, |observed| own.max(observed.busy_until))
            }
        }
    }

    fn classify(&self, spec: Option<&LeaseSpec>) -> LeaseRecord {
        let Some(spec) = spec else {
            return LeaseRecord::Absent;
        };
        let lease_duration = spec
            .lease_duration_seconds
            .and_then(|seconds| u64::try_from(seconds).ok());
        match holder(spec) {
            Some(holder) if holder == self.identity => LeaseRecord::Own,
            Some(_) => LeaseRecord::Held {
                duration: lease_duration.map_or(self.duration, Duration::from_secs),
            },
            None if lease_duration == Some(1) => LeaseRecord::Released,
            None if spec.renew_time.is_none() => LeaseRecord::Blank,
            None => LeaseRecord::Cleared,
        }
    }
}

/// The holder that the lease names; an empty name counts as none.
pub(super) fn holder(spec: &LeaseSpec) -> Option<String> {
    spec.holder_identity.clone().filter(|holder| !holder.is_empty())
}

/// When leadership that was last proven by a call begun at `begun` ends.
pub(super) fn deadline(begun: Instant, renew_deadline: Duration) -> Instant {
    begun + renew_deadline
}

#[cfg(test)]
mod tests {
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
    use k8s_openapi::jiff::Timestamp;
    use rstest::rstest;

    use super::*;

    const SECOND: Duration = Duration::from_secs(1);
    const OWN: Duration = Duration::from_secs(15);

    fn lease(holder: Option<&str>, renewed: Option<i64>, duration: Option<i32>) -> Lease {
        let spec = LeaseSpec {
            holder_identity: holder.map(str::to_owned),
            renew_time: renewed.map(|at| MicroTime(Timestamp::from_second(at).unwrap())),
            lease_duration_seconds: duration,
            ..LeaseSpec::default()
        };
        Lease {
            spec: Some(spec),
            ..Lease::default()
        }
    }

    fn guard() -> (Guard, Instant) {
        (Guard::new("me", OWN), Instant::now())
    }

    fn free_after(guard: &mut Guard, lease: Option<&Lease>, now: Instant) -> Duration {
        match guard.judge(lease, now) {
            LeaseVerdict::Held { until, .. } => until - now,
            LeaseVerdict::Free | LeaseVerdict::Own => Duration::ZERO,
        }
    }

    #[rstest]
    #[case::renewed_long_ago_by_its_own_clock(Some(lease(Some("other"), Some(0), Some(10))), 10 * SECOND)]
    #[case::renewed_in_the_future(Some(lease(Some("other"), Some(4_000_000_000), Some(10))), 10 * SECOND)]
    #[case::held_without_a_duration(Some(lease(Some("other"), Some(0), None)), OWN)]
    #[case::held_with_null_times(Some(lease(Some("other"), None, None)), OWN)]
    #[case::released(Some(lease(Some(""), Some(0), Some(1))), Duration::ZERO)]
    #[case::made_ahead_of_use(Some(lease(None, None, None)), Duration::ZERO)]
    #[case::made_ahead_of_use_with_empty_holder(Some(lease(Some(""), None, Some(15))), Duration::ZERO)]
    #[case::without_a_spec(Some(Lease::default()), Duration::ZERO)]
    #[case::holder_cleared_by_hand(Some(lease(None, Some(0), Some(15))), OWN)]
    #[case::absent(None, OWN)]
    #[case::names_us(Some(lease(Some("me"), Some(0), Some(15))), Duration::ZERO)]
    fn first_read_waits(#[case] observed: Option<Lease>, #[case] wait: Duration) {
        let (mut guard, now) = guard();
        assert_eq!(free_after(&mut guard, observed.as_ref(), now), wait);
        let verdict_after_wait = guard.judge(observed.as_ref(), now + wait);
        let is_own = observed
            .as_ref()
            .and_then(|l| l.spec.as_ref())
            .and_then(holder)
            .as_deref()
            == Some("me");
        assert_eq!(
            verdict_after_wait,
            if is_own { LeaseVerdict::Own } else { LeaseVerdict::Free }
        );
    }

    #[test]
    fn each_renewal_restarts_the_wait() {
        let (mut guard, mut now) = guard();
        for renewal in 0..10 {
            let held = lease(Some("other"), Some(renewal), Some(10));
            assert_eq!(free_after(&mut guard, Some(&held), now), 10 * SECOND);
            now += 9 * SECOND;
        }
    }

    #[test]
    fn reading_more_often_does_not_prolong_the_wait() {
        let (mut guard, now) = guard();
        let held = lease(Some("other"), Some(0), Some(10));
        for second in 0..10 {
            let verdict = guard.judge(Some(&held), now + second * SECOND);
            assert_eq!(
                verdict,
                LeaseVerdict::Held {
                    holder: Some("other".into()),
                    until: now + 10 * SECOND
                }
            );
        }
        assert_eq!(guard.judge(Some(&held), now + 10 * SECOND), LeaseVerdict::Free);
    }

    #[test]
    fn release_by_a_live_holder_is_believed_at_once() {
        let (mut guard, now) = guard();
        guard.judge(Some(&lease(Some("other"), Some(0), Some(15))), now);
        assert_eq!(
            guard.judge(Some(&lease(Some(""), Some(1), Some(1))), now + SECOND),
            LeaseVerdict::Free
        );
    }

    #[rstest]
    #[case::deleted(None)]
    #[case::cleared(Some(lease(None, Some(0), Some(15))))]
    #[case::deleted_and_recreated(Some(lease(None, None, None)))]
    fn holder_that_did_not_release_keeps_its_time(#[case] emptied: Option<Lease>) {
        let (mut guard, now) = guard();
        guard.judge(Some(&lease(Some("other"), Some(0), Some(60))), now);
        assert_eq!(free_after(&mut guard, emptied.as_ref(), now + SECOND), 59 * SECOND);
        let (mut guard, now) = self::guard();
        guard.judge(Some(&lease(Some("other"), Some(0), Some(10))), now);
        assert_eq!(free_after(&mut guard, emptied.as_ref(), now + SECOND), OWN);
    }
}
