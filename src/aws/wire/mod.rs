//! The forms of requests and answers on the wire: parameters as a form, and XML.

pub(crate) mod form;
pub(crate) mod xml;
