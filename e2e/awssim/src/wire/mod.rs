//! The four forms on the wire: how a request is read and how an answer or an error is written.

pub(crate) mod error;
pub(crate) mod params;
pub(crate) mod respond;
pub(crate) mod sigv4;
pub(crate) mod xml;
