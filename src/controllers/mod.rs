//! The controllers. `private_link_service` and `private_endpoint` on Azure, `endpoint_service` and `vpc_endpoint` on
//! AWS each have an `observe`, `plan`, `teardown` and `status`; `driver` does the rest of a reconcile.

pub mod abandon;
pub mod awaiting;
pub mod aws;
pub mod azure;
pub mod capz;
pub mod cloud;
pub mod cloud_access;
pub mod conclusion;
pub mod contention;
pub mod context;
pub mod custom_resource;
pub mod decision;
pub mod driver;
#[cfg(test)]
mod dry_run_samples;
pub mod endpoint_service;
pub mod event;
pub mod excluded;
pub mod facts;
pub mod hosted_cluster;
pub mod observe;
pub mod outcome;
pub mod preview;
pub mod private_endpoint;
pub mod private_link_service;
pub mod reconciler;
pub mod report;
pub mod step_problem;
pub mod urgency;
pub mod vpc_endpoint;
pub mod watch;
pub mod write_status;

#[cfg(test)]
pub(crate) mod samples;
