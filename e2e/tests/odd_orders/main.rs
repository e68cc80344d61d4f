//! Objects that come, change and go in orders that nobody plans, input at the edges of what is allowed, processes that are killed:
//! every cluster ends Available, gone, or with one clear False condition, and heals when the input is mended. And what
//! `hyperlink plan` says of a cluster meanwhile.

mod creation;
mod deletion;
mod domains;
mod ids;
mod killed;
mod limits;
mod plan;
mod service;
mod throttled;
mod values;
mod writers;
