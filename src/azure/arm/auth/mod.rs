//! Who this process is and where: clouds, credentials and tokens.
//!
//! Reads no environment: everything is passed in. A secret leaves this module only inside a request to the authority.

mod cache;
mod certificate;
mod cloud;
mod credential;
mod error;
mod file;
mod source;
mod token;

pub use cache::{TokenCache, TokenState};
pub use certificate::check_certificate;
pub use cloud::{AzureCloud, CloudError};
pub use error::AuthError;
pub use file::CredentialsFile;
pub use source::{CredentialSource, GivenSecret};
pub use token::{NoIdentity, Token, TokenSource};
