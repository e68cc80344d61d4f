//! Chance, where many processes must not do the same at the same moment.

use uuid::Uuid;

/// A random number between 0 and 1, evenly distributed. The last four bytes of a version 4 UUID are all random.
pub fn chance() -> f64 {
    let [.., a, b, c, d] = Uuid::new_v4().into_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}
