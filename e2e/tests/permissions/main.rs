//! Least privilege, measured: what the roles of Hyperlink use in a whole life is what the shipped role files grant,
//! verb by verb in Kubernetes and action by action in Azure and AWS.

mod aws;
mod granted;
mod groups;
mod missing;
mod whole_life;

use std::time::Duration;

const SOON: Duration = Duration::from_secs(60);
