//! One session for all callers of an identity.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use hyperlink_engine::credential_cache::{CredentialCache, CredentialState, Renewable};

use crate::api::client::Connection;
use crate::credentials::issuer::{ProfileIssuer, RoleIssuer};
use crate::credentials::{CredentialError, Session, SessionSource};
use crate::role_arn::RoleArn;

/// A session is renewed no sooner than this after it was obtained, unless it expires: instance metadata gives the same
/// one until shortly before its end.
const SHORTEST_USE: Duration = Duration::from_secs(60);

/// The state of the session, for metrics and readiness.
pub type SessionState = CredentialState<CredentialError>;

impl Renewable for Session {
    type Error = CredentialError;
    const NOT_RENEWED: &'static str = "no new session";

    /// A little before half of its life: what is left must suffice for half an hour when the source of sessions is
    /// gone.
    fn renewed_after(life: Duration, chance: f64) -> Duration {
        let usual = life.mul_f64(0.40 + 0.08 * chance);
        usual.max(SHORTEST_USE.min(life.mul_f64(0.9)))
    }

    fn unreachable(why: String) -> CredentialError {
        CredentialError::Unreachable(why)
    }
}

/// The sessions of one identity. Clones share everything.
#[derive(Clone)]
pub struct SessionCache(CredentialCache<Session>);

impl SessionCache {
    /// The identity of the profile `default` in this credentials file; requests nothing yet. `session_name` is shown in
    /// the account's audit log.
    pub fn of_profile(connection: Connection, path: PathBuf, session_name: &str) -> Self {
        Self(CredentialCache::new(ProfileIssuer::new(connection, path, session_name)))
    }

    /// A role that the identity `base` assumes; requests nothing yet.
    pub fn of_role(connection: Connection, base: Arc<dyn SessionSource>, role: RoleArn, session_name: &str) -> Self {
        Self(CredentialCache::new(RoleIssuer {
            connection,
            base,
            role,
            session_name: session_name.to_owned(),
        }))
    }

    /// Age of the session and the last failure, for metrics and readiness.
    pub fn state(&self) -> SessionState {
        self.0.state()
    }

    /// Keeps a valid session at hand for as long as this future is polled, see [`CredentialCache::keep`].
    pub async fn keep(&self, on_session: impl Fn(Result<SessionState, CredentialError>)) {
        self.0.keep(on_session).await;
    }
}

#[async_trait]
impl SessionSource for SessionCache {
    async fn session(&self) -> Result<Arc<Session>, CredentialError> {
        self.0.current().await
    }

    fn invalidate(&self, refused: &Arc<Session>) {
        self.0.invalidate(|held| std::ptr::eq(held, Arc::as_ptr(refused)));
    }
}

#[cfg(test)]
mod tests;
