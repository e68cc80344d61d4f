//! The test environment of Hyperlink: a real Kubernetes control plane, a simulated Azure or AWS, and the real
//! executables. This crate plays HyperShift's part.
//!
//! Everything here starts processes or talks to them; nothing decides what Hyperlink should do.
//! Each process that a test starts dies with the test's own process ([`process`]).
//! When a test fails, its logs stay and their path is printed ([`run_dir`]).

pub mod aws_cluster;
pub mod aws_env;
pub mod aws_sim;
pub mod azure_sim;
pub mod bench;
pub mod binaries;
pub mod capz_cluster;
pub mod capz_controllers;
pub mod capz_env;
mod control_api;
pub mod control_plane;
pub mod crds;
pub mod demo;
pub mod foreign;
pub mod go_controllers;
pub mod helm;
pub mod hosted_cluster;
pub mod hyperlink;
pub mod installed;
pub mod kubeconfig;
pub mod node;
pub mod pipe;
pub mod pki;
pub mod pod;
pub mod process;
pub mod random;
pub mod reference;
pub mod rights;
pub mod roles;
pub mod run_dir;
pub mod runbook;
pub mod running;
pub mod scenario;
pub mod scenarios;
pub mod shared_env;
pub mod target;
pub mod tenant;
pub mod test_env;
pub mod wait;

pub use aws_env::AwsEnv;
pub use capz_env::CapzEnv;
pub use control_plane::ControlPlane;
pub use scenario::scenario;
pub use target::Target;
pub use test_env::TestEnv;
pub use wait::{eventually, patient};

use std::path::{Path, PathBuf};

/// The root of the repository that this crate was compiled in.
pub fn repository() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .parent()
        .map_or_else(PathBuf::new, Path::to_path_buf)
}
