//! Who we are and where: clouds, credentials and tokens.
//!
//! Reads no environment: everything comes in as values. A secret leaves this module only inside a request to the authority.

mod cloud;
mod source;

pub use cloud::{Cloud, CloudError};
pub use source::CredentialSource;
