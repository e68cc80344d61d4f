//! The engine: ARM itself, without any resource type of its own.
//!
//! Checks what ARM checks, keeps resources and operations, ends operations when their time has come, and builds answers.
//! Knows no socket and no clock; what a type means is in the types' own modules.

pub(crate) mod access;
pub(crate) mod context;
pub(crate) mod disturb;
pub(crate) mod error;
pub(crate) mod fault;
pub(crate) mod id;
pub(crate) mod journal;
pub(crate) mod kind;
pub(crate) mod names;
pub(crate) mod operation;
pub(crate) mod page;
pub(crate) mod pipeline;
pub(crate) mod poll;
pub(crate) mod preset;
pub(crate) mod registry;
pub(crate) mod resource;
pub(crate) mod respond;
pub(crate) mod route;
pub(crate) mod seed;
pub(crate) mod signature;
pub(crate) mod state;
pub(crate) mod tags;
pub(crate) mod throttle;
