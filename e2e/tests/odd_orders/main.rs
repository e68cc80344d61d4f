//! Objects that are created, changed and deleted in unplanned orders, input at the limits of what is allowed, processes
//! that are killed: every cluster ends Available, deleted, or with one clear False condition, and heals when the input
//! is corrected. And what `hyperlink plan` reports about a cluster meanwhile.

mod both;
mod clock;
mod creation;
mod deletion;
mod domains;
mod ids;
mod killed;
mod limits;
mod management_scopes;
mod plan;
mod rest;
mod service;
mod throttled;
mod values;
mod writers;
