//! Hyperlink: private paths for HyperShift hosted clusters on Azure.
//!
//! The modules are the architecture; `ARCHITECTURE.md` follows the data through them.

pub mod api;
pub mod azure;
pub mod conditions;
pub mod config;
pub mod controllers;
pub mod engine;
pub mod http;
pub mod hypershift;
pub mod metrics;
pub mod names;
pub mod observer;
pub mod runtime;
pub mod scopes_file;
pub mod telemetry;
