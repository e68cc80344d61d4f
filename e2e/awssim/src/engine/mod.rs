//! What is the same for all services: seed and state, who calls, budgets, tags, filters and pages. No socket, no clock.

pub(crate) mod call;
pub(crate) mod fault;
pub(crate) mod filter;
pub(crate) mod journal;
pub(crate) mod page;
pub(crate) mod preset;
pub(crate) mod resource;
pub(crate) mod seed;
pub(crate) mod service;
pub(crate) mod state;
pub(crate) mod switches;
pub(crate) mod tags;
pub(crate) mod throttle;
