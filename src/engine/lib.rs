//! Brings the resources of a cloud to what is desired: compares what is observed with that, plans, executes, and knows
//! what was observed. Generic over the cloud; knows no Kubernetes.

pub mod bulkhead;
pub mod call_budget;
pub mod chance;
pub mod client;
pub mod cloud;
mod creation_read;
pub mod credential_cache;
mod deletion;
pub mod execute;
mod failed_reads;
pub mod failure;
mod first_read;
pub mod gate;
pub mod inventory;
pub mod kind_rules;
pub mod lists;
pub mod observation_cache;
pub mod plan;
pub mod read;
pub mod resource;
#[cfg(test)]
mod sample;
#[cfg(test)]
mod tests;
pub mod text;
pub mod urgency;
mod write_queue;
