//! The version in which this process reads the kinds of Cluster API itself, which are the same in both but for a few
//! fields.

use std::sync::OnceLock;

/// The versions, the newest first.
/// Source: <https://cluster-api.sigs.k8s.io/reference/versions>
pub const VERSIONS: [&str; 2] = ["v1beta2", "v1beta1"];

static CHOSEN: OnceLock<&'static str> = OnceLock::new();

/// The version that is chosen; the newest, if none is.
pub fn version() -> &'static str {
    CHOSEN.get().copied().unwrap_or(VERSIONS[0])
}

/// Chooses a version for as long as the process lives. Only the first choice counts.
pub fn choose(version: &'static str) {
    CHOSEN.get_or_init(|| version);
}
