//! The time that requests are signed with: this machine's, corrected by what AWS's answers show if that is refused.
//! AWS accepts a signature for five minutes
//! (<https://docs.aws.amazon.com/IAM/latest/UserGuide/signing-elements.html>).

use std::sync::atomic::{AtomicI64, Ordering};
use std::time::{Duration, SystemTime};

use http::HeaderMap;
use http::header::DATE;

/// How far this machine's clock may be from AWS's before it is corrected: a minute less than what AWS accepts.
///
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/signing-elements.html>
const TOLERATED: Duration = Duration::from_secs(240);

/// The largest correction of this machine's clock. A clock that is further off is to be repaired.
const LARGEST: Duration = Duration::from_secs(24 * 3_600);

/// The corrected clock. All identities share it.
#[derive(Debug, Default)]
pub(crate) struct Clock {
    /// How many seconds AWS's clock is ahead of this machine's.
    ahead: AtomicI64,
}

impl Clock {
    /// How many seconds AWS's clock is ahead of this machine's, as far as it is known.
    pub(crate) fn ahead(&self) -> i64 {
        self.ahead.load(Ordering::Relaxed)
    }

    /// The time of a clock that is so many seconds ahead of this machine's.
    pub(crate) fn now(ahead: i64) -> SystemTime {
        shifted(SystemTime::now(), ahead)
    }

    /// Corrects the clock by the `Date` of an answer that refuses the time of a request, which was signed `signed`
    /// seconds ahead of this machine's clock. Returns whether the clock is another one now, also if the answer to
    /// another request corrected it: then it is worth sending the request again.
    pub(crate) fn correct(&self, headers: &HeaderMap, signed: i64) -> bool {
        let Some(date) = date(headers) else { return false };
        if difference(date, Self::now(signed)).unsigned_abs() <= TOLERATED.as_secs() {
            return false;
        }
        let ahead = difference(date, SystemTime::now());
        if ahead.unsigned_abs() > LARGEST.as_secs() {
            tracing::error!("the clock of this machine is more than a day off: it is not corrected");
            return false;
        }
        tracing::warn!("the clock of this machine is minutes off; requests are signed with AWS's time");
        self.ahead.store(ahead, Ordering::Relaxed);
        true
    }
}

/// The `Date` of an answer.
pub(crate) fn date(headers: &HeaderMap) -> Option<SystemTime> {
    let text = headers.get(DATE)?.to_str().ok()?;
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp().into())
}

/// How many seconds `later` is after `earlier`; negative if it is before.
fn difference(later: SystemTime, earlier: SystemTime) -> i64 {
    let seconds = |duration: Duration| i64::try_from(duration.as_secs()).unwrap_or(i64::MAX);
    match later.duration_since(earlier) {
        Ok(ahead) => seconds(ahead),
        Err(behind) => -seconds(behind.duration()),
    }
}

fn shifted(time: SystemTime, seconds: i64) -> SystemTime {
    let by = Duration::from_secs(seconds.unsigned_abs());
    let shifted = if seconds < 0 {
        time.checked_sub(by)
    } else {
        time.checked_add(by)
    };
    shifted.unwrap_or(time)
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Headers of an answer whose clock is so many seconds ahead.
    pub(crate) fn headers(ahead: i64) -> HeaderMap {
        let time = shifted(SystemTime::now(), ahead);
        let stamp = jiff::Timestamp::try_from(time).unwrap();
        let text = stamp.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        HeaderMap::from_iter([(DATE, text.parse().unwrap())])
    }

    #[test]
    fn clock_that_is_off_is_corrected_once() {
        for ahead in [-7_200, 600, 80_000] {
            let clock = Clock::default();
            assert!(clock.correct(&headers(ahead), 0), "{ahead}");
            assert!(
                !clock.correct(&headers(ahead), clock.ahead()),
                "{ahead}: no second time"
            );
            assert!((clock.ahead() - ahead).abs() <= 2);
            assert!(clock.correct(&headers(ahead), 0), "a request that was signed before");
        }
    }

    #[test]
    fn small_and_absurd_differences_change_nothing() {
        let clock = Clock::default();
        for ahead in [0, 200, -200, 90_000, -9_000_000] {
            assert!(!clock.correct(&headers(ahead), 0), "{ahead}");
        }
        assert!(!clock.correct(&HeaderMap::new(), 0));
        let garbage = HeaderMap::from_iter([(DATE, "tomorrow".parse().unwrap())]);
        assert!(!clock.correct(&garbage, 0));
        assert_eq!(clock.ahead(), 0);
    }

    #[test]
    fn clock_that_was_repaired_is_believed_again() {
        let clock = Clock::default();
        assert!(clock.correct(&headers(3_600), 0));
        assert!(clock.correct(&headers(0), clock.ahead()));
        assert!(clock.ahead().abs() <= 2);
    }
}
