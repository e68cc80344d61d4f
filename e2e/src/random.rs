//! Random numbers that a seed repeats.

use std::time::{SystemTime, UNIX_EPOCH};

/// The generator SplitMix64.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The numbers of this seed.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number from 0 to `limit`, exclusive. The limit must not be 0.
    pub fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    /// One of these, or `None` if there are none.
    pub fn one_of<'a, T>(&mut self, all: &'a [T]) -> Option<&'a T> {
        let count = u64::try_from(all.len()).ok().filter(|count| *count > 0)?;
        all.get(usize::try_from(self.below(count)).ok()?)
    }
}

/// The seed that `E2E_SEED` gives, else one that the time gives; prints it, so that it can be given again.
pub fn seed() -> u64 {
    let given = std::env::var("E2E_SEED").ok().and_then(|text| text.parse().ok());
    let now = || {
        SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .map_or(0, |now| now.as_secs())
    };
    let seed = given.unwrap_or_else(now);
    println!("E2E_SEED={seed}");
    seed
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn same_seed_has_the_same_numbers() {
        let numbers = |seed| {
            let mut random = Random::new(seed);
            [(); 8].map(|()| random.below(1000))
        };
        assert_eq!(numbers(7), numbers(7));
        assert_ne!(numbers(7), numbers(8));
        assert!(numbers(7).iter().all(|number| *number < 1000));
    }

    #[test]
    fn one_of_none_is_none() {
        assert_eq!(Random::new(1).one_of::<u8>(&[]), None);
        assert_eq!(Random::new(1).one_of(&[3]), Some(&3));
    }
}
