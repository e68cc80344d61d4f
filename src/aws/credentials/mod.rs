//! Who this process is: the credentials file, sessions, and what renews them.
//!
//! Reads no environment: everything is passed in. A secret leaves this module only inside a request to AWS.

mod cache;
mod error;
mod file;
mod issuer;
mod metadata;
mod session;

pub use cache::{SessionCache, SessionState};
pub use error::CredentialError;
pub use file::{IdentitySource, Profile};
pub(crate) use issuer::Issued;
pub(crate) use metadata::METADATA_TOKEN_PATH;
pub use session::{Session, SessionSource};
