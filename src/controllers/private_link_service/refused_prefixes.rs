//! The prefixes for one NAT subnet that Azure has refused, and for how long they are left out.

use std::time::Duration;

use ipnet::Ipv4Net;
use tokio::time::Instant;

use super::nat_prefix::Refused;

/// How long a prefix for the NAT subnet that Azure has refused is left out at first. After each further refusal it is
/// twice as long.
///
/// Rule: W13 in `docs/compatibility.md`.
const FIRST_EXCLUSION: Duration = Duration::from_secs(300);
/// The longest time for which a refused prefix for the NAT subnet is left out.
///
/// Rule: W13 in `docs/compatibility.md`.
const LONGEST_EXCLUSION: Duration = Duration::from_secs(3_600);
/// So many refusals in a row have another cause than a race with other clusters.
const RACE: u32 = 16;
/// So many refusals are remembered; in a race each prefix is another one.
const KNOWN: usize = 64;

#[derive(Debug)]
struct Refusal {
    refused: Refused,
    duration: Duration,
    until: Instant,
}

/// The refused prefixes, the latest last.
#[derive(Debug, Default)]
pub(super) struct RefusedPrefixes {
    all: Vec<Refusal>,
    in_a_row: u32,
}

impl RefusedPrefixes {
    /// Records a refused prefix. Returns whether to try another one at once, or to wait as after any other refusal.
    pub(super) fn add(&mut self, prefix: Ipv4Net, layout: Option<u64>, now: Instant) -> bool {
        let refused = Refused { prefix, layout };
        let previous = self.all.extract_if(.., |known| known.refused.prefix == prefix).last();
        let repeated = previous.filter(|known| known.refused == refused);
        let duration = repeated.map_or(FIRST_EXCLUSION, |known| (known.duration * 2).min(LONGEST_EXCLUSION));
        if self.all.len() == KNOWN {
            self.all.remove(0);
        }
        self.all.push(Refusal {
            refused,
            duration,
            until: now + duration,
        });
        self.in_a_row = (self.in_a_row + 1) % RACE;
        self.in_a_row > 0
    }

    /// The refusals that still count.
    pub(super) fn active(&self, now: Instant) -> Vec<Refused> {
        let counting = self.all.iter().filter(|known| known.until > now);
        counting.map(|known| known.refused).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn prefix(n: u8) -> Ipv4Net {
        Ipv4Net::new([10, 0, n, 0].into(), 28).unwrap()
    }

    #[tokio::test(start_paused = true)]
    async fn prefixes_that_are_all_refused_are_waited_out() {
        let (mut refusals, now) = (RefusedPrefixes::default(), Instant::now());
        for n in 1..16 {
            assert!(
                refusals.add(prefix(n), None, now),
                "another cluster may have been quicker"
            );
        }
        assert!(!refusals.add(prefix(16), None, now), "no race");
        assert!(refusals.add(prefix(17), None, now), "the next is one anew");
        assert_eq!(refusals.active(now).len(), 17);
        for n in 0..200 {
            refusals.add(prefix(n), None, now);
        }
        assert_eq!(refusals.active(now).len(), KNOWN);
    }

    #[tokio::test(start_paused = true)]
    async fn refusal_of_a_prefix_ends_later_each_time() {
        let (mut refusals, mut now) = (RefusedPrefixes::default(), Instant::now());
        let mut duration = |layout| {
            refusals.add(prefix(1), layout, now);
            let began = now;
            while !refusals.active(now).is_empty() {
                now += Duration::from_secs(60);
            }
            (now - began).as_secs() / 60
        };
        let same: Vec<_> = (0..6).map(|_| duration(Some(1))).collect();
        assert_eq!(same, [5, 10, 20, 40, 60, 60]);
        assert_eq!(duration(Some(2)), 5, "of another network it says nothing");
    }
}
