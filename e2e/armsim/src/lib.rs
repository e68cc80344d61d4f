//! A simulated Azure Resource Manager: Private Link, private DNS, load balancers, identity.
//!
//! [`SimulatedAzure`] is the state machine; everything that touches a socket is around it.

pub mod cloud_controller;
mod dns;
mod engine;
mod network;
mod reachable;
pub mod replay;
mod resources;
mod serve;
mod simulated_azure;
mod spec;
mod versions;

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
pub use reachable::{Hop, HopKind, Reachable};
#[doc(hidden)]
pub use serve::login;
pub use serve::{Options, Server, StartError};
pub use simulated_azure::{Answer, Caller, ControlError, ListedResource, OperationInFlight, SimulatedAzure, WireFault};
pub use simulator::clock;
pub use spec::{Checked, Part, Rule, SpecError, Specs, Tally, Violation};
