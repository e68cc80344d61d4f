//! A simulated Azure Resource Manager: Private Link, private DNS, load balancers, identity.
//!
//! [`World`] is the state machine; everything that touches a socket is around it.

pub mod clock;
pub mod cloud_controller;
mod dns;
mod engine;
mod face;
mod network;
mod reachable;
pub mod replay;
mod resources;
mod spec;
mod versions;
mod world;

pub use engine::error::ErrorDetail;
pub use engine::fault::{
    DropWhen, FaultAction, FaultError, FaultMatch, FaultRule, OperationFaultKind, PathPattern, parse_faults,
};
pub use engine::id::BadId;
pub use engine::journal::JournalEntry;
pub use engine::preset::Preset;
pub use engine::seed::{
    Bucket, Federated, Principal, Quotas, Role, Seed, SeedError, Service, Subscription, Switches, Tenant, ThrottleSeed,
    VnetBusy,
};
#[doc(hidden)]
pub use face::login;
pub use face::{Options, Server, StartError};
pub use reachable::{Hop, HopKind, Reachable};
pub use spec::{Checked, Part, Rule, SpecError, Specs, Tally, Violation};
pub use world::{Answer, Caller, ControlError, ListedResource, OperationInFlight, WireFault, World};
