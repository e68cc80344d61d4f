//! When a token is used, renewed and dropped, and when the next one may be requested. Pure: takes the time as an
//! argument.

use std::time::Duration;

use tokio::time::Instant;

use crate::arm::auth::{AuthError, Token};

/// The wait after the first failed request for a token. It doubles with each further one, up to [`LAST_RETRY`].
const FIRST_RETRY: Duration = Duration::from_secs(1);
/// The longest wait after a failed request for a token.
const LAST_RETRY: Duration = Duration::from_secs(30);

/// A token younger than this is kept when Azure refuses it. A newer one would fare no better, and each ARM call would
/// cause a token request.
const KEEP_REFUSED: Duration = Duration::from_secs(10);

/// What is known about tokens at this moment.
#[derive(Debug, Default)]
pub(super) struct Life {
    held: Option<Held>,
    failed: Option<Failed>,
}

#[derive(Debug)]
struct Held {
    token: Token,
    got: Instant,
    renew: Instant,
    expires: Instant,
}

#[derive(Debug)]
struct Failed {
    error: AuthError,
    until: Instant,
    in_a_row: u32,
}

/// What to do for a caller that needs a token.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Next {
    /// Return this token.
    Use(Token),
    /// Return this token, and request the next one meanwhile.
    UseAndRenew(Token),
    /// Request a token, and let the caller wait.
    Ask,
    /// Return this error: it is too early for another request.
    Fail(AuthError),
}

/// The state of the token, for metrics and readiness.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct TokenState {
    /// Time since the token was received; none without a token.
    pub age: Option<Duration>,
    /// Time until the token expires, zero after that; none without a token.
    pub left: Option<Duration>,
    /// Why the last attempt failed; none after a success.
    pub failure: Option<AuthError>,
}

impl Life {
    pub(super) fn next(&self, now: Instant) -> Next {
        let waiting = self.failed.as_ref().filter(|failed| now < failed.until);
        match (&self.held, waiting) {
            (Some(held), None) if held.renew <= now && now < held.expires => Next::UseAndRenew(held.token.clone()),
            (Some(held), _) if now < held.expires => Next::Use(held.token.clone()),
            (_, Some(failed)) => Next::Fail(failed.error.clone()),
            (_, None) => Next::Ask,
        }
    }

    /// Stores a token that is valid for `life` from `now` on. It is renewed after half to three quarters of that time,
    /// depending on `chance` (0 to 1).
    pub(super) fn got(&mut self, now: Instant, token: Token, life: Duration, chance: f64) {
        self.held = Some(Held {
            token,
            got: now,
            renew: now + life.mul_f64(0.5 + 0.25 * chance),
            expires: now + life,
        });
        self.failed = None;
    }

    /// Notes that a request failed. The token held is kept; the next request has to wait for three quarters of a step
    /// to a whole one, depending on `chance` (0 to 1).
    pub(super) fn lost(&mut self, now: Instant, error: AuthError, chance: f64) {
        let in_a_row = self.failed.as_ref().map_or(0, |failed| failed.in_a_row + 1);
        let step = FIRST_RETRY.saturating_mul(1 << in_a_row.min(16)).min(LAST_RETRY);
        self.failed = Some(Failed {
            error,
            until: now + step.mul_f64(0.75 + 0.25 * chance),
            in_a_row,
        });
    }

    /// Notes that ARM refused this token. Only the token held is dropped: a late 401 must not cost a newer one.
    pub(super) fn refused(&mut self, now: Instant, token: &Token) {
        let refused = self.held.as_ref().filter(|held| held.token == *token);
        if refused.is_some_and(|held| now >= held.got + KEEP_REFUSED) {
            self.held = None;
        }
    }

    pub(super) fn state(&self, now: Instant) -> TokenState {
        let held = self.held.as_ref();
        TokenState {
            age: held.map(|held| now.duration_since(held.got)),
            left: held.map(|held| held.expires.duration_since(now)),
            failure: self.failed.as_ref().map(|failed| failed.error.clone()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const HOUR: Duration = Duration::from_secs(3600);

    fn after(start: Instant, seconds: u64) -> Instant {
        start + Duration::from_secs(seconds)
    }

    fn token(text: &str) -> Token {
        Token::new(text).unwrap()
    }

    fn down() -> AuthError {
        AuthError::Unreachable("it answered 503".into())
    }

    fn holding(start: Instant, chance: f64) -> Life {
        let mut life = Life::default();
        life.got(start, token("old"), HOUR, chance);
        life
    }

    #[rstest::rstest]
    #[case(0.0, 1800)]
    #[case(1.0, 2700)]
    fn token_is_renewed_between_half_and_three_quarters_of_its_life(#[case] chance: f64, #[case] renewed: u64) {
        let start = Instant::now();
        let life = holding(start, chance);
        assert_eq!(life.next(after(start, renewed - 1)), Next::Use(token("old")));
        assert_eq!(life.next(after(start, renewed)), Next::UseAndRenew(token("old")));
    }

    #[test]
    fn old_token_is_used_until_it_expires_while_renewing_fails() {
        let start = Instant::now();
        let mut life = holding(start, 0.0);
        life.lost(after(start, 1800), down(), 1.0);
        assert_eq!(
            life.next(after(start, 1800)),
            Next::Use(token("old")),
            "not asked again at once"
        );
        assert_eq!(life.next(after(start, 1801)), Next::UseAndRenew(token("old")));
        life.lost(after(start, 3599), down(), 1.0);
        assert_eq!(life.next(after(start, 3599)), Next::Use(token("old")));
        assert_eq!(life.next(after(start, 3600)), Next::Fail(down()));
        assert_eq!(life.next(after(start, 3602)), Next::Ask);
    }

    #[test]
    fn failures_in_a_row_are_asked_about_less_and_less() {
        let start = Instant::now();
        let mut life = Life::default();
        let mut now = start;
        for wait in [1, 2, 4, 8, 16, 30, 30, 30] {
            life.lost(now, down(), 1.0);
            now = after(now, wait);
            assert_eq!(life.next(now - Duration::from_millis(1)), Next::Fail(down()));
            assert_eq!(life.next(now), Next::Ask);
        }
        for _ in 0..100 {
            life.lost(now, down(), 0.0);
        }
        assert_eq!(
            life.next(after(now, 23)),
            Next::Ask,
            "three quarters of the longest step"
        );
    }

    #[test]
    fn success_forgets_failures() {
        let start = Instant::now();
        let mut life = Life::default();
        life.lost(start, down(), 1.0);
        life.lost(start, down(), 1.0);
        life.got(start, token("new"), HOUR, 0.0);
        assert_eq!(life.state(start).failure, None);
        life.lost(start, down(), 1.0);
        assert_eq!(life.next(after(start, 3600)), Next::Ask);
    }

    #[test]
    fn refused_token_is_dropped() {
        let start = Instant::now();
        let mut life = holding(start, 0.0);
        life.refused(after(start, 60), &token("old"));
        assert_eq!(life.next(after(start, 60)), Next::Ask);
    }

    #[test]
    fn late_refusal_of_an_earlier_token_costs_nothing() {
        let start = Instant::now();
        let mut life = holding(start, 0.0);
        life.refused(after(start, 60), &token("the one before"));
        assert_eq!(life.next(after(start, 60)), Next::Use(token("old")));
    }

    #[test]
    fn brand_new_token_is_kept_when_refused() {
        let start = Instant::now();
        let mut life = holding(start, 0.0);
        life.refused(after(start, 9), &token("old"));
        assert_eq!(life.next(after(start, 9)), Next::Use(token("old")));
    }

    #[test]
    fn age_and_remaining_life_are_shown() {
        let start = Instant::now();
        let mut life = holding(start, 0.0);
        life.lost(after(start, 10), down(), 0.0);
        let observed = life.state(after(start, 600));
        assert_eq!(observed.age, Some(Duration::from_secs(600)));
        assert_eq!(observed.left, Some(Duration::from_secs(3000)));
        assert_eq!(observed.failure, Some(down()));
        assert_eq!(life.state(after(start, 9999)).left, Some(Duration::ZERO));
    }
}
