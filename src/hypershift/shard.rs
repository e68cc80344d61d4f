//! Which part of all clusters a process serves. Pure.

use std::fmt;
use std::str::FromStr;

use sha2::{Digest, Sha256};

/// The most shards.
const MOST: u16 = 1_000;

/// One of some parts into which clusters are split, by a stable hash of a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shard {
    /// Which one, from 1 on.
    number: u16,
    of: u16,
}

impl Shard {
    /// The only one, which has all clusters.
    pub const WHOLE: Self = Self { number: 1, of: 1 };

    /// Which one it is, from 1 on.
    pub fn number(self) -> u16 {
        self.number
    }

    /// How many shards there are.
    pub fn of(self) -> u16 {
        self.of
    }

    /// Whether what has this key belongs to the shard. Keys are compared in lower case, as Azure compares ids.
    pub fn has(self, key: &str) -> bool {
        let digest = Sha256::digest(key.to_ascii_lowercase());
        let first = digest
            .iter()
            .take(8)
            .fold(0, |hash: u64, byte| hash << 8 | u64::from(*byte));
        first % u64::from(self.of) == u64::from(self.number - 1)
    }
}

impl fmt::Display for Shard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.number, self.of)
    }
}

/// A text is no shard.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
#[error("not a shard: write K/N, with K from 1 to N and N up to {MOST}")]
pub struct NoShard;

impl FromStr for Shard {
    type Err = NoShard;

    fn from_str(text: &str) -> Result<Self, NoShard> {
        let (number, of) = text.trim().split_once('/').ok_or(NoShard)?;
        let number = number.parse().map_err(|_| NoShard)?;
        let of = of.parse().map_err(|_| NoShard)?;
        let fits = (1..=of).contains(&number) && of <= MOST;
        fits.then_some(Self { number, of }).ok_or(NoShard)
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn shards(of: u16) -> Vec<Shard> {
        (1..=of).map(|number| Shard { number, of }).collect()
    }

    #[test]
    fn each_key_belongs_to_one_shard_and_no_shard_is_empty() {
        let keys: Vec<String> = (0..2_000)
            .map(|n| format!("{n:08x}-0000-4000-8000-000000000000"))
            .collect();
        for of in [1, 2, 3, 7, 16] {
            let mut counts = vec![0; of.into()];
            for key in &keys {
                let owners: Vec<Shard> = shards(of).into_iter().filter(|shard| shard.has(key)).collect();
                let [owner] = owners[..] else {
                    panic!("{key}: {owners:?}")
                };
                assert!(owner.has(&key.to_ascii_uppercase()));
                counts[usize::from(owner.number - 1)] += 1;
            }
            let fair = keys.len() / usize::from(of);
            assert!(counts.iter().all(|count| *count > fair / 2), "{counts:?}");
        }
    }

    #[test]
    fn shard_of_a_key_never_changes_with_a_version() {
        let key = "11111111-1111-4111-8111-111111111111";
        let of_three = shards(3).into_iter().position(|shard| shard.has(key));
        assert_eq!(of_three, Some(1));
    }

    #[rstest]
    #[case("1/1", true)]
    #[case(" 3/3 ", true)]
    #[case("1000/1000", true)]
    #[case("0/3", false)]
    #[case("4/3", false)]
    #[case("1/0", false)]
    #[case("1/1001", false)]
    #[case("1", false)]
    #[case("a/b", false)]
    #[case("-1/3", false)]
    fn shard_is_a_number_of_so_many(#[case] text: &str, #[case] right: bool) {
        let parsed = text.parse::<Shard>().map(|shard| shard.to_string());
        assert_eq!(
            parsed,
            if right {
                Ok(text.trim().to_owned())
            } else {
                Err(NoShard)
            }
        );
    }
}
