//! The controllers. `link_service` and `endpoint` have an `observe`, `plan`, `teardown` and `status` each; `frame` does the rest of a pass.

pub mod abandon;
pub mod awaiting;
pub mod claims;
pub mod contention;
pub mod context;
pub mod custom_resources;
pub mod decision;
pub mod endpoint;
pub mod event;
pub mod excluded;
pub mod facts;
pub mod failures;
pub mod frame;
pub mod hosted_cluster;
pub mod identity;
pub mod intent;
pub mod link_service;
pub mod neighbours;
pub mod observe;
pub mod owner;
pub mod pace;
pub mod places;
pub mod polls;
pub mod preview;
pub mod rate;
pub mod recorder;
pub mod report;
pub mod run;
pub mod scopes;
pub mod watch;
pub mod watch_health;
pub mod write_status;

#[cfg(test)]
mod samples;
