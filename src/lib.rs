//! Hyperlink: private paths for HyperShift hosted clusters on Azure and AWS.
//!
//! The modules are the architecture; `ARCHITECTURE.md` follows the data through them.

pub use hyperlink_aws as aws;
pub use hyperlink_azure as azure;
pub use hyperlink_engine as engine;

pub mod api;
pub mod capz;
pub mod config;
pub mod controllers;
pub mod http;
pub mod hypershift;
pub mod manager;
pub mod metrics;
pub mod observer;
pub mod preview;
pub mod roles;
pub mod runtime;
pub mod scopes_file;
pub mod telemetry;

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The source's commit, given to the build as HYPERLINK_COMMIT.
pub const COMMIT: &str = match option_env!("HYPERLINK_COMMIT") {
    Some(commit) => commit,
    None => "unknown",
};
