//! When a credential is used, renewed and dropped, and when the next one may be requested. Pure: takes the time as an
//! argument.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::credential_cache::Renewable;

/// The wait after the first failed request for a credential. It doubles with each further one, up to [`LAST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest wait after a failed request for a credential.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// A credential younger than this is kept when the cloud refuses it. A newer one would fare no better, and each call
/// would cause a request for one.
const KEEP_REFUSED: Duration = Duration::from_secs(10);

/// How long after the cloud refused a credential it counts as expired: each call by one that is no good is refused, and
/// there is one at least in this time.
const REFUSED_LATELY: Duration = Duration::from_secs(900);

/// What is known about credentials at this moment.
pub(super) struct Life<C: Renewable> {
    held: Option<Held<C>>,
    failed: Option<Failed<C::Error>>,
}

impl<C: Renewable> Default for Life<C> {
    fn default() -> Self {
        let (held, failed) = (None, None);
        Self { held, failed }
    }
}

struct Held<C> {
    credential: Arc<C>,
    got: Instant,
    /// None for one that does not expire.
    renew: Option<Instant>,
    expires: Option<Instant>,
    /// Whether the cloud has refused it, and no newer one was requested since.
    refused: bool,
    /// When the cloud last refused it.
    refused_at: Option<Instant>,
}

impl<C> Held<C> {
    fn is_valid(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

struct Failed<E> {
    error: E,
    until: Instant,
    in_a_row: u32,
}

/// What to do for a caller that needs a credential.
pub(super) enum Next<C: Renewable> {
    /// Return this one.
    Use(Arc<C>),
    /// Return this one, and request the next one meanwhile.
    UseAndRenew(Arc<C>),
    /// Request one, and let the caller wait.
    Ask,
    /// Return this error: it is too early for another request.
    Fail(C::Error),
}

/// The state of the credential, for metrics and readiness.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CredentialState<E> {
    /// Time since the credential was obtained; none without one, and for one that the cloud has refused.
    pub age: Option<Duration>,
    /// Time until it expires, zero after that and for one that the cloud has refused; none without one, and for one that
    /// does not expire.
    pub left: Option<Duration>,
    /// Why the last attempt failed; none after a success.
    pub failure: Option<E>,
}

impl<E> Default for CredentialState<E> {
    fn default() -> Self {
        Self {
            age: None,
            left: None,
            failure: None,
        }
    }
}

impl<C: Renewable> Life<C> {
    pub(super) fn next(&self, now: Instant) -> Next<C> {
        let waiting = self.failed.as_ref().filter(|failed| now < failed.until);
        match (self.held.as_ref().filter(|held| held.is_valid(now)), waiting) {
            (Some(held), None) if held.refused => Next::Ask,
            (Some(held), None) if held.renew.is_some_and(|renew| renew <= now) => {
                Next::UseAndRenew(held.credential.clone())
            }
            (Some(held), _) => Next::Use(held.credential.clone()),
            (None, Some(failed)) => Next::Fail(failed.error.clone()),
            (None, None) => Next::Ask,
        }
    }

    /// The credential that is held, if it is valid, for who has requested another one in vain.
    pub(super) fn valid(&self, now: Instant) -> Option<Arc<C>> {
        let held = self.held.as_ref().filter(|held| held.is_valid(now))?;
        Some(held.credential.clone())
    }

    /// Stores a credential that is valid for `life` from `now` on; without an end if that is none. `chance` (0 to 1)
    /// spreads the renewals.
    pub(super) fn got(&mut self, now: Instant, credential: Arc<C>, life: Option<Duration>, chance: f64) {
        self.held = Some(Held {
            credential,
            got: now,
            renew: life.map(|life| now + C::renewed_after(life, chance)),
            expires: life.map(|life| now + life),
            refused: false,
            refused_at: None,
        });
        self.failed = None;
    }

    /// Notes that a request failed. The credential held is kept, also one that the cloud has refused: that may have
    /// been wrong, and there is no other. The next request has to wait for three quarters of a step to a whole one,
    /// depending on `chance` (0 to 1).
    pub(super) fn lost(&mut self, now: Instant, error: C::Error, chance: f64) {
        if let Some(held) = self.held.as_mut().filter(|held| held.refused) {
            held.refused = false;
            held.renew = Some(now);
        }
        let in_a_row = self.failed.as_ref().map_or(0, |failed| failed.in_a_row + 1);
        let step = FIRST_RETRY.saturating_mul(1 << in_a_row.min(16)).min(LAST_RETRY);
        self.failed = Some(Failed {
            error,
            until: now + step.mul_f64(0.75 + 0.25 * chance),
            in_a_row,
        });
    }

    /// What the credential was made from has changed: it is renewed now, and used until then.
    pub(super) fn expedite(&mut self, now: Instant) {
        if let Some(held) = &mut self.held {
            held.renew = Some(held.renew.map_or(now, |renew| renew.min(now)));
        }
    }

    /// Notes that the cloud refused a credential. Only for the one held another one is requested: a late refusal must
    /// not cost a newer one.
    pub(super) fn refused(&mut self, now: Instant, is_refused: impl Fn(&C) -> bool) {
        let refused = self.held.as_mut().filter(|held| is_refused(&held.credential));
        if let Some(held) = refused.filter(|held| now >= held.got + KEEP_REFUSED) {
            held.refused = true;
            held.refused_at = Some(now);
        }
    }

    pub(super) fn state(&self, now: Instant) -> CredentialState<C::Error> {
        let is_good = |held: &&Held<C>| held.refused_at.is_none_or(|at| now >= at + REFUSED_LATELY);
        let (held, good) = (self.held.as_ref(), self.held.as_ref().filter(is_good));
        let left = |held: &Held<C>| match good {
            Some(_) => Some(held.expires?.duration_since(now)),
            None => Some(Duration::ZERO),
        };
        CredentialState {
            age: good.map(|held| now.duration_since(held.got)),
            left: held.and_then(left),
            failure: self.failed.as_ref().map(|failed| failed.error.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::credential_cache::tests::Badge;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn badge(name: &str) -> Arc<Badge> {
        Arc::new(Badge(name.to_owned()))
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn down() -> String {
        "it answered 503".to_owned()
    }

    /// What is done, in words.
    fn next(life: &Life<Badge>, now: Instant) -> String {
        match life.next(now) {
            Next::Use(badge) => format!("use {}", badge.0),
            Next::UseAndRenew(badge) => format!("renew {}", badge.0),
            Next::Ask => "ask".into(),
            Next::Fail(error) => error,
        }
    }

    fn holding(start: Instant, life: Option<Duration>) -> Life<Badge> {
        let mut held = Life::default();
        held.got(start, badge("old"), life, 0.0);
        held
    }

    #[test]
    fn old_credential_is_used_until_it_expires_while_renewing_fails() {
        let start = Instant::now();
        let mut life = holding(start, Some(HOUR));
        assert_eq!(next(&life, after(start, 1_799)), "use old");
        assert_eq!(next(&life, after(start, 1_800)), "renew old");
        life.lost(after(start, 1_800), down(), 1.0);
        assert_eq!(next(&life, after(start, 1_800)), "use old", "not asked again at once");
        assert_eq!(next(&life, after(start, 1_801)), "renew old");
        life.lost(after(start, 3_599), down(), 1.0);
        assert_eq!(next(&life, after(start, 3_599)), "use old");
        assert_eq!(next(&life, after(start, 3_600)), down());
        assert_eq!(next(&life, after(start, 3_602)), "ask");
    }

    #[test]
    fn credential_without_an_end_is_renewed_only_when_its_source_changes() {
        let start = Instant::now();
        let mut life = holding(start, None);
        assert_eq!(next(&life, after(start, 1_000_000)), "use old");
        life.expedite(after(start, 5));
        assert_eq!(next(&life, after(start, 5)), "renew old");
        life.lost(after(start, 5), down(), 1.0);
        assert_eq!(
            next(&life, after(start, 5)),
            "use old",
            "also if the new source is of no use"
        );
        life.got(after(start, 6), badge("new"), None, 1.0);
        assert_eq!(next(&life, after(start, 7)), "use new");
    }

    #[test]
    fn failures_in_a_row_are_asked_about_less_and_less() {
        let start = Instant::now();
        let mut life = Life::default();
        let mut now = start;
        for wait in [1, 2, 4, 8, 16, 30, 30, 30] {
            life.lost(now, down(), 1.0);
            now = after(now, wait);
            assert_eq!(next(&life, now - Duration::from_millis(1)), down());
            assert_eq!(next(&life, now), "ask");
        }
        for _ in 0..100 {
            life.lost(now, down(), 0.0);
        }
        assert_eq!(next(&life, after(now, 23)), "ask", "three quarters of the longest step");
    }

    #[test]
    fn success_forgets_failures() {
        let start = Instant::now();
        let mut life = Life::default();
        life.lost(start, down(), 1.0);
        life.lost(start, down(), 1.0);
        life.got(start, badge("new"), Some(HOUR), 0.0);
        assert_eq!(life.state(start).failure, None);
        life.lost(start, down(), 1.0);
        assert_eq!(next(&life, after(start, 3_600)), "ask");
    }

    #[test]
    fn refused_credential_is_dropped_unless_it_is_new_or_another() {
        let start = Instant::now();
        let mut life = holding(start, Some(HOUR));
        life.refused(after(start, 60), |held| held.0 == "the one before");
        life.refused(after(start, 9), |held| held.0 == "old");
        assert_eq!(next(&life, after(start, 60)), "use old");
        life.refused(after(start, 60), |held| held.0 == "old");
        assert_eq!(next(&life, after(start, 60)), "ask");
        let refused = life.state(after(start, 60));
        assert_eq!((refused.age, refused.left), (None, Some(Duration::ZERO)));
        life.got(after(start, 61), badge("new"), Some(HOUR), 1.0);
        assert_eq!(next(&life, after(start, 61)), "use new");
    }

    #[test]
    fn refused_credential_is_used_while_no_other_comes() {
        let start = Instant::now();
        let mut life = holding(start, Some(HOUR));
        for refused in [60, 120] {
            life.refused(after(start, refused), |held| held.0 == "old");
            assert_eq!(next(&life, after(start, refused)), "ask");
            life.lost(after(start, refused), down(), 1.0);
            assert_eq!(next(&life, after(start, refused)), "use old");
            assert_eq!(
                life.state(after(start, refused)).left,
                Some(Duration::ZERO),
                "it does no good"
            );
            assert_eq!(next(&life, after(start, refused + 30)), "renew old", "nobody waits");
        }
        life.lost(after(start, 200), down(), 1.0);
        life.refused(after(start, 201), |held| held.0 == "old");
        assert_eq!(next(&life, after(start, 201)), "use old", "none can be requested");
        life.refused(after(start, 3_601), |held| held.0 == "old");
        assert_eq!(next(&life, after(start, 3_601)), "ask", "it has expired");
        life.lost(after(start, 3_601), down(), 1.0);
        assert_eq!(next(&life, after(start, 3_601)), down());
    }

    #[test]
    fn age_and_remaining_life_are_shown() {
        let start = Instant::now();
        let mut life = holding(start, Some(HOUR));
        life.lost(after(start, 10), down(), 0.0);
        let observed = life.state(after(start, 600));
        assert_eq!(observed.age, Some(Duration::from_secs(600)));
        assert_eq!(observed.left, Some(Duration::from_secs(3_000)));
        assert_eq!(observed.failure, Some(down()));
        assert_eq!(life.state(after(start, 9_999)).left, Some(Duration::ZERO));
    }

    #[test]
    fn refused_credential_without_an_end_counts_as_expired() {
        let start = Instant::now();
        let mut life = holding(start, None);
        assert_eq!(life.state(after(start, 60)).left, None);
        life.refused(after(start, 60), |_| true);
        life.lost(after(start, 60), down(), 1.0);
        assert_eq!(life.state(after(start, 60)).left, Some(Duration::ZERO));
        let (lately, later) = (after(start, 60) + REFUSED_LATELY, Duration::from_secs(1));
        assert_eq!(life.state(lately - later).left, Some(Duration::ZERO));
        assert_eq!(life.state(lately).left, None, "it has been used since");
        life.refused(lately, |_| true);
        assert_eq!(life.state(lately).left, Some(Duration::ZERO));
        life.got(lately, badge("new"), None, 1.0);
        assert_eq!(life.state(lately).left, None);
    }
}
