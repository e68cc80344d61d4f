//! Real time → simulated time: freeze, advance, speed. The engine never asks for the time; each call passes it the
//! time of this clock. Token expiry does not come here: it follows real time.

use std::time::{Duration, Instant};

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

/// The fastest that simulated time may run, in simulated seconds per real second.
const MAX_SPEED: f64 = 100_000.0;

/// A clock of simulated time.
#[derive(Debug, Clone)]
pub struct Clock {
    real: Instant,
    simulated: Timestamp,
    speed: f64,
    frozen: bool,
}

/// The body of `POST /clock`. Applied in the order speed, freeze, advance; an absent key changes nothing.
#[derive(Debug, Clone, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockChange {
    /// `true` stops simulated time, `false` lets it continue from where it stands.
    pub freeze: Option<bool>,
    /// Simulated seconds to jump forward, also while frozen.
    pub advance_s: Option<f64>,
    /// Simulated seconds per real second.
    pub speed: Option<f64>,
}

/// What the clock shows; the answer to `POST /clock`, and what `--state` keeps.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClockReading {
    /// Simulated time.
    pub now: Timestamp,
    /// Whether simulated time stands still.
    pub frozen: bool,
    /// Simulated seconds per real second while it does not.
    pub speed: f64,
    /// The real time at which it was read.
    pub real: Timestamp,
}

/// A change that the clock refuses.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum ClockError {
    /// Simulated time never runs backwards.
    #[error("advance_s: must be a number of seconds, 0 or more, that ends before the year 9999")]
    Advance,
    /// Zero is what `freeze` is for.
    #[error("speed: must be above 0 and at most {MAX_SPEED}")]
    Speed,
}

impl Default for Clock {
    /// Simulated time that starts at the real time and runs with it.
    fn default() -> Self {
        Self {
            real: Instant::now(),
            simulated: Timestamp::now(),
            speed: 1.0,
            frozen: false,
        }
    }
}

impl Clock {
    /// A clock that continues from a reading taken earlier: real time that has passed since counts, unless it was
    /// frozen.
    #[must_use]
    pub fn resume(reading: &ClockReading) -> Self {
        let away = Timestamp::now().duration_since(reading.real).max(SignedDuration::ZERO);
        let passed = if reading.frozen {
            SignedDuration::ZERO
        } else {
            scale(away.unsigned_abs(), reading.speed)
        };
        let simulated = reading.now.checked_add(passed).unwrap_or(reading.now);
        Self {
            real: Instant::now(),
            simulated,
            speed: reading.speed,
            frozen: reading.frozen,
        }
    }

    /// Simulated time.
    #[must_use]
    pub fn now(&self) -> Timestamp {
        self.at(Instant::now())
    }

    fn at(&self, real: Instant) -> Timestamp {
        if self.frozen {
            return self.simulated;
        }
        let passed = scale(real.saturating_duration_since(self.real), self.speed);
        self.simulated.checked_add(passed).unwrap_or(Timestamp::MAX)
    }

    /// What the clock shows.
    #[must_use]
    pub fn read(&self) -> ClockReading {
        ClockReading {
            now: self.now(),
            frozen: self.frozen,
            speed: self.speed,
            real: Timestamp::now(),
        }
    }

    /// Applies a change, whole or not at all.
    ///
    /// # Errors
    /// A negative or overflowing advance, a speed out of range.
    pub fn apply(&mut self, change: &ClockChange) -> Result<(), ClockError> {
        self.apply_at(Instant::now(), change)
    }

    fn apply_at(&mut self, real: Instant, change: &ClockChange) -> Result<(), ClockError> {
        let now = self.at(real);
        let speed = change.speed.unwrap_or(self.speed);
        if !(speed > 0.0 && speed <= MAX_SPEED) {
            return Err(ClockError::Speed);
        }
        let advance = seconds(change.advance_s.unwrap_or(0.0)).ok_or(ClockError::Advance)?;
        let simulated = now.checked_add(advance).map_err(|_| ClockError::Advance)?;
        let frozen = change.freeze.unwrap_or(self.frozen);
        *self = Self {
            real,
            simulated,
            speed,
            frozen,
        };
        Ok(())
    }
}

fn seconds(value: f64) -> Option<SignedDuration> {
    let duration = Duration::try_from_secs_f64(value).ok()?;
    SignedDuration::try_from(duration).ok()
}

fn scale(real: Duration, speed: f64) -> SignedDuration {
    seconds(real.as_secs_f64() * speed).unwrap_or(SignedDuration::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(text: &str) -> ClockChange {
        serde_json::from_str(text).unwrap()
    }

    fn after(real: Instant, seconds: u64) -> Instant {
        real + Duration::from_secs(seconds)
    }

    #[test]
    fn frozen_time_moves_only_by_advance() {
        let mut clock = Clock::default();
        let real = clock.real;
        let start = clock.simulated;
        clock.apply_at(after(real, 1), &change(r#"{"freeze":true}"#)).unwrap();
        assert_eq!(
            clock.at(after(real, 60)).duration_since(start),
            SignedDuration::from_secs(1)
        );
        clock.apply_at(after(real, 60), &change(r#"{"advance_s":30}"#)).unwrap();
        assert_eq!(
            clock.at(after(real, 90)).duration_since(start),
            SignedDuration::from_secs(31)
        );
    }

    #[test]
    fn thawed_time_continues_from_the_advanced_time() {
        let mut clock = Clock::default();
        let (real, start) = (clock.real, clock.simulated);
        clock
            .apply_at(real, &change(r#"{"freeze":true,"advance_s":1000}"#))
            .unwrap();
        clock.apply_at(after(real, 50), &change(r#"{"freeze":false}"#)).unwrap();
        assert_eq!(
            clock.at(after(real, 55)).duration_since(start),
            SignedDuration::from_secs(1005)
        );
    }

    #[test]
    fn speed_multiplies_only_the_time_after_it_was_set() {
        let mut clock = Clock::default();
        let (real, start) = (clock.real, clock.simulated);
        clock.apply_at(after(real, 7), &change(r#"{"speed":10}"#)).unwrap();
        assert_eq!(
            clock.at(after(real, 10)).duration_since(start),
            SignedDuration::from_secs(37)
        );
    }

    #[test]
    fn bad_changes_are_refused_whole() {
        let mut clock = Clock::default();
        let (real, start) = (clock.real, clock.simulated);
        for (text, error) in [
            (r#"{"speed":0,"advance_s":5}"#, ClockError::Speed),
            (r#"{"speed":-1}"#, ClockError::Speed),
            (r#"{"advance_s":-1,"freeze":true}"#, ClockError::Advance),
            (r#"{"advance_s":1e18}"#, ClockError::Advance),
        ] {
            assert_eq!(clock.apply_at(real, &change(text)), Err(error));
        }
        assert_eq!(clock.at(real), start);
        assert!(!clock.frozen);
        assert!(
            serde_json::from_str::<ClockChange>(r#"{"frozen":true}"#)
                .unwrap_err()
                .to_string()
                .contains("frozen")
        );
    }

    #[test]
    fn resumed_clock_counts_the_time_away_unless_frozen() {
        let now = Timestamp::now();
        let mut reading = ClockReading {
            now,
            frozen: false,
            speed: 2.0,
            real: now - SignedDuration::from_secs(100),
        };
        let running = Clock::resume(&reading).now().duration_since(now);
        assert!(
            running >= SignedDuration::from_secs(200) && running < SignedDuration::from_secs(260),
            "{running}"
        );
        reading.frozen = true;
        assert_eq!(Clock::resume(&reading).now(), now);
    }
}
