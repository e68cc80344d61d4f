//! Reading a seed, whose content is the cloud's.

use serde::de::DeserializeOwned;

/// Why a seed is refused. The state stays as it was.
#[derive(Debug, thiserror::Error)]
pub enum SeedError {
    /// Not the form of a seed.
    #[error("seed: {0}")]
    Form(String),
    /// A resource that cannot be put.
    #[error("seed: resource '{id}': {why}")]
    Resource {
        /// Its id, as given.
        id: String,
        /// What is wrong with it.
        why: String,
    },
}

/// Reads a seed.
///
/// # Errors
/// Another form, an unknown key, which is named.
pub fn parse<S: DeserializeOwned>(json: &[u8]) -> Result<S, SeedError> {
    serde_json::from_slice(json).map_err(|error| SeedError::Form(error.to_string()))
}
