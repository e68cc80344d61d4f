//! What each fuzz target does with its bytes: each one reads them as Hyperlink reads data of others, and checks laws
//! about the result.
//!
//! Only panics are findings: broken laws panic too. `tests/fuzz_seeds.rs` runs the same functions over `seeds/`.
#![allow(clippy::unwrap_used, clippy::panic, reason = "a finding is a panic")]

mod answers;
mod aws;
mod bodies;
mod credentials;
#[path = "../../tests/azure_simulated/desired.rs"]
mod desired;
mod ids;
mod intents;
#[path = "../../e2e/armsim/fuzz/src/mutate.rs"]
mod mutate;
mod objects;
mod scopes;

pub use answers::answers;
pub use aws::aws;
pub use credentials::credentials;
pub use ids::ids;
pub use intents::intents;
pub use objects::objects;
pub use scopes::scopes;
