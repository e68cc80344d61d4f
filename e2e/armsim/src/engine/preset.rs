//! How long operations take and what `Retry-After` asks callers to wait, in each preset.

use std::str::FromStr;

use jiff::SignedDuration;
use serde::{Deserialize, Serialize};
use simulator::random::Random;

/// How fast the simulated Azure is. The answers are the same in both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Preset {
    /// Operations of 0.2 to 1 s; `Retry-After: 1` wherever Azure sends one.
    Fast,
    /// The durations and `Retry-After` values of recorded traffic.
    Recorded,
}

impl FromStr for Preset {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "fast" => Ok(Self::Fast),
            "recorded" => Ok(Self::Recorded),
            _ => Err(format!("unknown preset '{text}': fast or recorded")),
        }
    }
}

/// The recorded duration of one kind of operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    /// The usual duration in seconds; 0 is an operation that has ended when its answer is sent.
    pub(crate) typical_s: f64,
    /// Rare longer ones: (share of all, seconds).
    pub(crate) tails: &'static [(f64, f64)],
    /// The `Retry-After` of the first answer in seconds; 0 sends none.
    pub(crate) retry_after_s: u32,
}

impl Pace {
    pub(crate) const fn new(typical_s: f64, retry_after_s: u32) -> Self {
        Self {
            typical_s,
            tails: &[],
            retry_after_s,
        }
    }

    /// Over when it is answered.
    pub(crate) const AT_ONCE: Self = Self::new(0.0, 0);
}

/// A duration of `fast` lies between these, by the recorded one.
const FAST_S: (f64, f64) = (0.2, 1.0);
/// The recorded duration that `fast` shows as its longest.
const LONGEST_S: f64 = 40.0;

impl Preset {
    /// Draws the duration of one operation.
    pub(crate) fn duration(self, pace: &Pace, random: &mut Random) -> SignedDuration {
        let drawn = random.fraction();
        let mut below = 0.0;
        let mut seconds = pace.typical_s;
        for (share, long) in pace.tails {
            below += share;
            if drawn < below {
                seconds = *long;
                break;
            }
        }
        if seconds > 0.0 && self == Self::Fast {
            seconds = FAST_S.0 + (FAST_S.1 - FAST_S.0) * (pace.typical_s / LONGEST_S).min(1.0);
        }
        SignedDuration::from_millis((seconds * 1000.0) as i64)
    }

    /// `Retry-After` in seconds where Azure sends `recorded_s`.
    pub(crate) fn retry_after(self, recorded_s: u32) -> u32 {
        match self {
            Self::Fast => recorded_s.min(1),
            Self::Recorded => recorded_s,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tails_are_drawn_as_often_as_they_say() {
        let pace = Pace {
            typical_s: 40.0,
            tails: &[(0.01, 600.0), (0.05, 120.0)],
            retry_after_s: 10,
        };
        let mut random = Random::new(7);
        let drawn: Vec<i64> = (0..10_000)
            .map(|_| Preset::Recorded.duration(&pace, &mut random).as_secs())
            .collect();
        let share = |seconds| drawn.iter().filter(|drawn| **drawn == seconds).count();
        assert!((50..200).contains(&share(600)), "{}", share(600));
        assert!((350..650).contains(&share(120)), "{}", share(120));
        assert_eq!(share(600) + share(120) + share(40), drawn.len());
    }

    #[test]
    fn fast_is_between_a_fifth_of_a_second_and_one() {
        let mut random = Random::new(7);
        for typical_s in [0.5, 3.0, 12.0, 40.0, 300.0] {
            let ms = Preset::Fast
                .duration(&Pace::new(typical_s, 10), &mut random)
                .as_millis();
            assert!((200..=1000).contains(&ms), "{typical_s}: {ms}");
        }
        assert_eq!(Preset::Fast.duration(&Pace::AT_ONCE, &mut random).as_millis(), 0);
        assert_eq!((Preset::Fast.retry_after(30), Preset::Fast.retry_after(0)), (1, 0));
    }
}
