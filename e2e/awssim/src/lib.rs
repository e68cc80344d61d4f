//! A simulated AWS for private paths: PrivateLink, security groups, load balancers, Route 53, STS.
//!
//! [`SimulatedAws`] is the state machine; everything that touches a socket is around it. [`cloud_controller`] gives a
//! cluster's Services load balancers of it.

pub mod cloud_controller;
mod ec2;
mod elbv2;
mod engine;
mod iam;
mod metadata;
mod reachable;
mod route53;
mod serve;
mod simulated_aws;
mod sts;
mod wire;

pub use engine::fault::{DropWhen, FaultAction, FaultError, FaultMatch, FaultRule, PathPattern, parse_faults};
pub use engine::journal::JournalEntry;
pub use engine::preset::Preset;
pub use engine::resource::load_balancer_hash;
pub use engine::seed::{Account, KubernetesService, OidcProvider, Quotas, Role, Seed, SeedError, User, WebIdentity};
pub use engine::switches::Switches;
pub use engine::throttle::{Bucket, ThrottleSeed};
pub use iam::policy::{Condition, ConditionKeys, Effect, OneOrMany, Policy, PolicyRule};
pub use reachable::{Hop, HopKind, Question, Reachable};
pub use serve::{Options, Server, StartError};
pub use simulated_aws::{ControlError, SimulatedAws};
pub use simulator::clock;
pub use simulator::wire::{Answer, WireFault};
