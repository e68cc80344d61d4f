//! Azure: Azure Resource Manager (ARM) as a cloud of the engine, and the kinds of resources that are used. Knows no
//! Kubernetes.

pub mod arm;
pub mod body;
pub mod cloud;
pub mod frontends;
pub mod kinds;
pub mod observations;
pub mod owner_tags;
pub mod plan;
