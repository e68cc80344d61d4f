//! The keys of a session, and the trait of those who supply them.

use std::sync::Arc;

use async_trait::async_trait;
use secrecy::SecretString;

use crate::credentials::CredentialError;

/// The keys that requests are signed with. `Debug` shows the access key's id, which is no secret, and nothing else.
#[derive(Debug, Clone)]
pub struct Session {
    access_key_id: String,
    secret: SecretString,
    token: Option<SecretString>,
}

impl Session {
    /// A session with these keys; long-lived keys have no token.
    pub fn new(access_key_id: &str, secret: SecretString, token: Option<SecretString>) -> Self {
        Self {
            access_key_id: access_key_id.to_owned(),
            secret,
            token,
        }
    }

    /// The id of the access key.
    pub fn access_key_id(&self) -> &str {
        &self.access_key_id
    }

    pub(crate) fn secret(&self) -> &SecretString {
        &self.secret
    }

    pub(crate) fn token(&self) -> Option<&SecretString> {
        self.token.as_ref()
    }
}

/// Supplies the sessions of one identity. Cheap to call before every request.
#[async_trait]
pub trait SessionSource: Send + Sync {
    /// Returns a session that is valid now.
    async fn session(&self) -> Result<Arc<Session>, CredentialError>;

    /// AWS refused this session: do not return it again, unless it is brand new, or no other one can be had.
    fn invalidate(&self, refused: &Arc<Session>);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secrets_do_not_show_in_debug() {
        let session = Session::new("AKIA1", "hunter2".into(), Some("hunter3".into()));
        let shown = format!("{session:?}");
        assert!(shown.contains("AKIA1") && !shown.contains("hunter"), "{shown}");
    }
}
