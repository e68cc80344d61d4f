//! One session for all callers of an identity. Decides who waits for a session; `life` decides when one is requested.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::api::client::Connection;
use crate::api::throttle::chance;
use crate::credentials::issuer::{Issuer, ProfileIssuer, RoleIssuer};
use crate::credentials::life::{Life, Next};
use crate::credentials::{CredentialError, RoleArn, Session, SessionSource, SessionState};

/// How long a request for a session may take before it counts as failed. All calls that need the session wait as long.
const SESSION_TIMEOUT: Duration = Duration::from_secs(15);

/// The time between two checks whether a session has to be renewed, also while no call needs one, and whether the
/// credentials file has changed. [`SessionCache::keep`] makes them.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// The sessions of one identity. Clones share everything.
#[derive(Clone)]
pub struct SessionCache(Arc<Inner>);

struct Inner {
    issuer: Box<dyn Issuer>,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    life: Life,
    asking: Option<Asking>,
    /// When it was last checked whether the session is outdated.
    checked: Option<Instant>,
}

/// A request under way. All who need its outcome wait for this one.
struct Asking {
    task: AbortHandle,
    outcome: SessionOutcome,
}

type SessionOutcome = Shared<BoxFuture<'static, Result<Arc<Session>, CredentialError>>>;

impl SessionCache {
    /// The identity of the profile `default` in this credentials file; requests nothing yet. `session_name` is shown in
    /// the account's audit log.
    pub fn of_profile(connection: Connection, path: PathBuf, session_name: &str) -> Self {
        Self::with(Box::new(ProfileIssuer::new(connection, path, session_name)))
    }

    /// A role that the identity `base` assumes; requests nothing yet.
    pub fn of_role(connection: Connection, base: Arc<dyn SessionSource>, role: RoleArn, session_name: &str) -> Self {
        Self::with(Box::new(RoleIssuer {
            connection,
            base,
            role,
            session_name: session_name.to_owned(),
        }))
    }

    /// Age of the session and the last failure, for metrics and readiness.
    pub fn state(&self) -> SessionState {
        self.0.lock().life.state(Instant::now())
    }

    /// Keeps a valid session at hand for as long as this future is polled, even while nobody uses one: when the source
    /// of sessions is gone, the last one must last for half an hour. After each check, `on_session` gets the state of
    /// the session held, or why there is none.
    pub async fn keep(&self, on_session: impl Fn(Result<SessionState, CredentialError>)) {
        loop {
            on_session(self.session().await.map(|_| self.state()));
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    fn with(issuer: Box<dyn Issuer>) -> Self {
        let state = Mutex::default();
        Self(Arc::new(Inner { issuer, state }))
    }

    /// Starts a request, or joins the one under way. The request is a task of its own, so that it goes on if one caller
    /// gives up.
    fn ask(&self, state: &mut CacheState) -> SessionOutcome {
        if let Some(asking) = state.asking.as_ref().filter(|asking| !asking.task.is_finished()) {
            return asking.outcome.clone();
        }
        let inner = self.0.clone();
        let task = tokio::spawn(async move { inner.fetch().await });
        let handle = task.abort_handle();
        let outcome = async {
            let stopped = |_| CredentialError::Unreachable("the request was broken off".into());
            task.await.map_err(stopped)?
        }
        .boxed()
        .shared();
        state.asking = Some(Asking {
            task: handle,
            outcome: outcome.clone(),
        });
        outcome
    }
}

#[async_trait]
impl SessionSource for SessionCache {
    async fn session(&self) -> Result<Arc<Session>, CredentialError> {
        let outcome = {
            let (mut state, now) = (self.0.lock(), Instant::now());
            self.0.check(&mut state, now);
            match state.life.next(now) {
                Next::Use(session) => return Ok(session),
                Next::UseAndRenew(session) => {
                    // The task runs by itself; nobody waits for its outcome.
                    drop(self.ask(&mut state));
                    return Ok(session);
                }
                Next::Fail(error) => return Err(error),
                Next::Ask => self.ask(&mut state),
            }
        };
        outcome.await
    }

    fn invalidate(&self, refused: &Arc<Session>) {
        self.0.lock().life.refused(Instant::now(), refused);
    }
}

impl Inner {
    /// Has the session renewed if what it was made from has changed.
    fn check(&self, state: &mut CacheState, now: Instant) {
        let is_due = |checked: Instant| now.saturating_duration_since(checked) >= CHECK_INTERVAL;
        if state.checked.is_none_or(is_due) {
            state.checked = Some(now);
            if self.issuer.is_outdated() {
                state.life.expedite(now);
            }
        }
    }

    async fn fetch(&self) -> Result<Arc<Session>, CredentialError> {
        let issued = tokio::time::timeout(SESSION_TIMEOUT, self.issuer.issue()).await;
        let issued = issued.unwrap_or_else(|_| {
            let seconds = SESSION_TIMEOUT.as_secs();
            Err(CredentialError::Unreachable(format!("no answer within {seconds} s")))
        });
        let issued = issued.and_then(|issued| match issued.life {
            Some(Duration::ZERO) => Err(CredentialError::Unreachable("it has expired already".into())),
            _ => Ok(issued),
        });
        let mut state = self.lock();
        let now = Instant::now();
        match issued {
            Ok(issued) => {
                let session = Arc::new(issued.session);
                state.life.got(now, session.clone(), issued.life, chance());
                Ok(session)
            }
            Err(error) => {
                tracing::warn!(%error, "no new session");
                state.life.lost(now, error.clone(), chance());
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
