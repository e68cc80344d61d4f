//! One call to AWS at a time: addresses, signatures, errors, throttling.

pub mod action;
mod budget;
pub mod client;
pub(crate) mod clock;
pub mod error;
pub(crate) mod exchange;
pub(crate) mod pages;
pub mod ports;
pub mod read_only;
pub(crate) mod request;
pub mod request_rate;
#[cfg(test)]
pub(crate) mod sample;
mod sign;
pub mod throttle;
pub mod transport;
