//! The only source of chance: a small generator that is part of the saved state, so that equal calls give equal answers.

use serde::{Deserialize, Serialize};

/// The seed that was given, else another one each time.
pub fn seed(given: Option<u64>) -> u64 {
    given.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().0)
}

/// SplitMix64 (Steele, Lea, Flood 2014).
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Random(u64);

impl Random {
    /// Equal seeds give equal draws.
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// From 0 up to but not including 1.
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// A version 4 GUID in lower case.
    pub fn guid(&mut self) -> String {
        let mut bytes = [0u8; 16];
        bytes[..8].copy_from_slice(&self.bits().to_be_bytes());
        bytes[8..].copy_from_slice(&self.bits().to_be_bytes());
        uuid::Builder::from_random_bytes(bytes).into_uuid().to_string()
    }
}
