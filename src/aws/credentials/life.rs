//! When a session is used, renewed and dropped, and when the next one may be requested. Pure: takes the time as an
//! argument.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::credentials::{CredentialError, Session};

/// The wait after the first failed request for a session. It doubles with each further one, up to [`LAST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(1);

/// The longest wait after a failed request for a session.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// A session younger than this is kept when AWS refuses it. A newer one would fare no better, and each call would cause
/// a request for a session.
const KEEP_REFUSED: Duration = Duration::from_secs(10);

/// A session is renewed no sooner than this after it was obtained, unless it expires: instance metadata gives the same
/// one until shortly before its end.
const SHORTEST_USE: Duration = Duration::from_secs(60);

/// What is known about sessions at this moment.
#[derive(Debug, Default)]
pub(super) struct Life {
    held: Option<Held>,
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Held {
    session: Arc<Session>,
    got: Instant,
    /// None for keys that do not expire.
    renew: Option<Instant>,
    expires: Option<Instant>,
}

impl Held {
    fn is_valid(&self, now: Instant) -> bool {
        self.expires.is_none_or(|expires| now < expires)
    }
}

#[derive(Debug)]
struct Failed {
    error: CredentialError,
    until: Instant,
    in_a_row: u32,
}

/// What to do for a caller that needs a session.
#[derive(Debug)]
pub(super) enum Next {
    /// Return this session.
    Use(Arc<Session>),
    /// Return this session, and request the next one meanwhile.
    UseAndRenew(Arc<Session>),
    /// Request a session, and let the caller wait.
    Ask,
    /// Return this error: it is too early for another request.
    Fail(CredentialError),
}

/// The state of the session, for metrics and readiness.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct SessionState {
    /// Time since the session was obtained; none without a session.
    pub age: Option<Duration>,
    /// Time until the session expires, zero after that; none without a session, and for keys that do not expire.
    pub left: Option<Duration>,
    /// Why the last try failed; none after a success.
    pub failure: Option<CredentialError>,
}

impl Life {
    pub(super) fn next(&self, now: Instant) -> Next {
        let waiting = self.failed.as_ref().filter(|failed| now < failed.until);
        match (&self.held, waiting) {
            (Some(held), None) if held.is_valid(now) && held.renew.is_some_and(|renew| renew <= now) => {
                Next::UseAndRenew(held.session.clone())
            }
            (Some(held), _) if held.is_valid(now) => Next::Use(held.session.clone()),
            (_, Some(failed)) => Next::Fail(failed.error.clone()),
            (_, None) => Next::Ask,
        }
    }

    /// Stores a session that is valid for `life` from `now` on; without an end if that is none. It is renewed a little
    /// before half of that time, depending on `chance` (0 to 1): what is left must suffice for half an hour when the
    /// source of sessions is gone.
    pub(super) fn got(&mut self, now: Instant, session: Arc<Session>, life: Option<Duration>, chance: f64) {
        let renewed_after = |life: Duration| {
            life.mul_f64(0.40 + 0.08 * chance)
                .max(SHORTEST_USE.min(life.mul_f64(0.9)))
        };
        self.held = Some(Held {
            session,
            got: now,
            renew: life.map(|life| now + renewed_after(life)),
            expires: life.map(|life| now + life),
        });
        self.failed = None;
    }

    /// Notes that a request failed. The session held is kept; the next request has to wait for three quarters of a step
    /// to a whole one, depending on `chance` (0 to 1).
    pub(super) fn lost(&mut self, now: Instant, error: CredentialError, chance: f64) {
        let in_a_row = self.failed.as_ref().map_or(0, |failed| failed.in_a_row + 1);
        let step = FIRST_RETRY.saturating_mul(1 << in_a_row.min(16)).min(LAST_RETRY);
        self.failed = Some(Failed {
            error,
            until: now + step.mul_f64(0.75 + 0.25 * chance),
            in_a_row,
        });
    }

    /// What the session was made from has changed: it is renewed now, and used until then.
    pub(super) fn expedite(&mut self, now: Instant) {
        if let Some(held) = &mut self.held {
            held.renew = Some(held.renew.map_or(now, |renew| renew.min(now)));
        }
    }

    /// Notes that AWS refused this session. Only the session held is dropped: a late refusal must not cost a newer one.
    pub(super) fn refused(&mut self, now: Instant, session: &Arc<Session>) {
        let refused = self.held.as_ref().filter(|held| Arc::ptr_eq(&held.session, session));
        if refused.is_some_and(|held| now >= held.got + KEEP_REFUSED) {
            self.held = None;
        }
    }

    pub(super) fn state(&self, now: Instant) -> SessionState {
        let held = self.held.as_ref();
        SessionState {
            age: held.map(|held| now.duration_since(held.got)),
            left: held.and_then(|held| Some(held.expires?.duration_since(now))),
            failure: self.failed.as_ref().map(|failed| failed.error.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const HOUR: Duration = Duration::from_secs(3_600);

    fn session(id: &str) -> Arc<Session> {
        Arc::new(Session::new(id, "secret".into(), None))
    }

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn down() -> CredentialError {
        CredentialError::Unreachable("Timeout from AWS".into())
    }

    /// What is done, in words.
    fn next(life: &Life, now: Instant) -> String {
        match life.next(now) {
            Next::Use(session) => format!("use {}", session.access_key_id()),
            Next::UseAndRenew(session) => format!("renew {}", session.access_key_id()),
            Next::Ask => "ask".into(),
            Next::Fail(error) => error.to_string(),
        }
    }

    fn holding(start: Instant, life: Option<Duration>, chance: f64) -> Life {
        let mut held = Life::default();
        held.got(start, session("old"), life, chance);
        held
    }

    #[rstest]
    #[case(0.0, 1_440)]
    #[case(1.0, 1_728)]
    fn session_is_renewed_while_half_an_hour_is_left(#[case] chance: f64, #[case] renewed: u64) {
        let start = Instant::now();
        let life = holding(start, Some(HOUR), chance);
        assert_eq!(next(&life, after(start, renewed - 1)), "use old");
        assert_eq!(next(&life, after(start, renewed)), "renew old");
        let left = life.state(after(start, renewed)).left.unwrap();
        assert!(left >= HOUR / 2, "{left:?}");
    }

    #[test]
    fn old_session_is_used_until_it_expires_while_renewing_fails() {
        let start = Instant::now();
        let mut life = holding(start, Some(HOUR), 1.0);
        life.lost(after(start, 1_800), down(), 1.0);
        assert_eq!(
            next(&life, after(start, 1_800)),
            "use old",
            "not requested again at once"
        );
        assert_eq!(next(&life, after(start, 1_801)), "renew old");
        life.lost(after(start, 3_599), down(), 1.0);
        assert_eq!(next(&life, after(start, 3_599)), "use old");
        assert_eq!(next(&life, after(start, 3_600)), down().to_string());
        assert_eq!(next(&life, after(start, 3_602)), "ask");
    }

    #[test]
    fn keys_without_an_end_are_renewed_only_when_their_file_changes() {
        let start = Instant::now();
        let mut life = holding(start, None, 1.0);
        assert_eq!(next(&life, after(start, 1_000_000)), "use old");
        life.expedite(after(start, 5));
        assert_eq!(next(&life, after(start, 5)), "renew old");
        life.lost(after(start, 5), down(), 1.0);
        assert_eq!(
            next(&life, after(start, 5)),
            "use old",
            "also if the new file is of no use"
        );
        life.got(after(start, 6), session("new"), None, 1.0);
        assert_eq!(next(&life, after(start, 7)), "use new");
    }

    #[test]
    fn short_session_is_not_requested_over_and_over() {
        let start = Instant::now();
        let life = holding(start, Some(Duration::from_secs(100)), 0.0);
        assert_eq!(next(&life, after(start, 59)), "use old");
        assert_eq!(next(&life, after(start, 60)), "renew old");
    }

    #[test]
    fn failures_in_a_row_are_asked_about_less_and_less() {
        let start = Instant::now();
        let mut life = Life::default();
        let mut now = start;
        for wait in [1, 2, 4, 8, 16, 30, 30] {
            life.lost(now, down(), 1.0);
            now = after(now, wait);
            assert_eq!(next(&life, now - Duration::from_millis(1)), down().to_string());
            assert_eq!(next(&life, now), "ask");
        }
    }

    #[test]
    fn refused_session_is_dropped_unless_it_is_new_or_another() {
        let start = Instant::now();
        let mut life = Life::default();
        let (old, new) = (session("old"), session("new"));
        life.got(start, new.clone(), Some(HOUR), 0.0);
        life.refused(after(start, 60), &old);
        life.refused(after(start, 9), &new);
        assert_eq!(next(&life, after(start, 60)), "use new");
        life.refused(after(start, 60), &new);
        assert_eq!(next(&life, after(start, 60)), "ask");
    }
}
