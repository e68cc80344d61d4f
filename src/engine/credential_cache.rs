//! One credential for all callers of an identity. Decides who waits for it; `life` decides when one is requested.

use std::fmt::{Debug, Display};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::chance::chance;
pub use life::CredentialState;
use life::{Life, Next};

mod life;

/// How long a request for a credential may take before it counts as failed. All calls that need it wait as long.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(15);

/// The time between two checks whether the credential has to be renewed, also while no call needs one, and whether what
/// it was made from has changed. [`CredentialCache::keep`] makes them.
pub const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// What is renewed before it expires: a token, or the keys of a session.
pub trait Renewable: Send + Sync + 'static {
    /// Why there is none. Equal causes give equal texts.
    type Error: Clone + Debug + Display + PartialEq + Send + Sync + 'static;

    /// What the log says when no new one could be obtained.
    const NOT_RENEWED: &'static str;

    /// How long one that is valid for `life` is used before it is renewed, depending on `chance` (0 to 1).
    fn renewed_after(life: Duration, chance: f64) -> Duration;

    /// The error of a request that got no usable answer; another try may help.
    fn unreachable(why: String) -> Self::Error;
}

/// A new credential.
#[derive(Debug)]
pub struct Issued<C> {
    /// The credential itself.
    pub credential: C,
    /// How long it is valid from now on; none for one that does not expire.
    pub life: Option<Duration>,
}

/// Obtains a new credential with each call; no cache, no retry.
#[async_trait]
pub trait Issuer<C: Renewable>: Send + Sync {
    /// A new credential.
    async fn issue(&self) -> Result<Issued<C>, C::Error>;

    /// Whether what the last credential was made from has changed since.
    fn is_outdated(&self) -> bool {
        false
    }
}

/// The credentials of one identity. Clones share everything.
pub struct CredentialCache<C: Renewable>(Arc<Inner<C>>);

impl<C: Renewable> Clone for CredentialCache<C> {
    fn clone(&self) -> Self {
        Self(self.0.clone())
    }
}

struct Inner<C: Renewable> {
    issuer: Box<dyn Issuer<C>>,
    state: Mutex<CacheState<C>>,
}

struct CacheState<C: Renewable> {
    life: Life<C>,
    asking: Option<Asking<C>>,
    /// When it was last checked whether the credential is outdated.
    checked: Option<Instant>,
}

/// A request under way. All who need its outcome wait for this one.
struct Asking<C: Renewable> {
    task: AbortHandle,
    outcome: RequestOutcome<C>,
}

type RequestOutcome<C> = Shared<BoxFuture<'static, Result<Arc<C>, <C as Renewable>::Error>>>;

impl<C: Renewable> CredentialCache<C> {
    /// An empty cache; requests nothing yet.
    pub fn new(issuer: impl Issuer<C> + 'static) -> Self {
        Self(Arc::new(Inner {
            issuer: Box::new(issuer),
            state: Mutex::new(CacheState {
                life: Life::default(),
                asking: None,
                checked: None,
            }),
        }))
    }

    /// Age of the credential and the last failure, for metrics and readiness.
    pub fn state(&self) -> CredentialState<C::Error> {
        self.0.lock().life.state(Instant::now())
    }

    /// Keeps a valid credential at hand for as long as this future is polled, even while nobody uses one; `life`
    /// decides when one is requested. After each check, `on_check` gets the state of the one held, or why there is
    /// none.
    pub async fn keep(&self, on_check: impl Fn(Result<CredentialState<C::Error>, C::Error>)) {
        loop {
            on_check(self.current().await.map(|_| self.state()));
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    /// A credential that is valid now.
    ///
    /// # Errors
    /// None is held, and the source gives none.
    pub async fn current(&self) -> Result<Arc<C>, C::Error> {
        let outcome = {
            let (mut state, now) = (self.0.lock(), Instant::now());
            self.0.check(&mut state, now);
            match state.life.next(now) {
                Next::Use(credential) => return Ok(credential),
                Next::UseAndRenew(credential) => {
                    // The task runs by itself; nobody waits for its outcome.
                    drop(self.ask(&mut state));
                    return Ok(credential);
                }
                Next::Fail(error) => return Err(error),
                Next::Ask => self.ask(&mut state),
            }
        };
        let valid = || self.0.lock().life.valid(Instant::now());
        outcome.await.or_else(|error| valid().ok_or(error))
    }

    /// The cloud refused a credential: the one held is not returned again if it is that one, unless it is brand new, or
    /// no other one can be had.
    pub fn invalidate(&self, is_refused: impl Fn(&C) -> bool) {
        self.0.lock().life.refused(Instant::now(), is_refused);
    }

    /// Starts a request, or joins the one under way. The request is a task of its own, so that it goes on if one caller
    /// gives up.
    fn ask(&self, state: &mut CacheState<C>) -> RequestOutcome<C> {
        if let Some(asking) = state.asking.as_ref().filter(|asking| !asking.task.is_finished()) {
            return asking.outcome.clone();
        }
        let inner = self.0.clone();
        let task = tokio::spawn(async move { inner.fetch().await });
        let handle = task.abort_handle();
        let outcome = async {
            let stopped = |_| C::unreachable("the request was broken off".into());
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

impl<C: Renewable> Inner<C> {
    /// Has the credential renewed if what it was made from has changed.
    fn check(&self, state: &mut CacheState<C>, now: Instant) {
        let is_due = |checked: Instant| now.saturating_duration_since(checked) >= CHECK_INTERVAL;
        if state.checked.is_none_or(is_due) {
            state.checked = Some(now);
            if self.issuer.is_outdated() {
                state.life.expedite(now);
            }
        }
    }

    async fn fetch(&self) -> Result<Arc<C>, C::Error> {
        let issued = tokio::time::timeout(REQUEST_TIMEOUT, self.issuer.issue()).await;
        let issued = issued.unwrap_or_else(|_| {
            let seconds = REQUEST_TIMEOUT.as_secs();
            Err(C::unreachable(format!("no answer within {seconds} s")))
        });
        let issued = issued.and_then(|issued| match issued.life {
            Some(Duration::ZERO) => Err(C::unreachable("it has expired already".into())),
            _ => Ok(issued),
        });
        let mut state = self.lock();
        let now = Instant::now();
        match issued {
            Ok(Issued { credential, life }) => {
                let credential = Arc::new(credential);
                state.life.got(now, credential.clone(), life, chance());
                Ok(credential)
            }
            Err(error) => {
                tracing::warn!(%error, "{}", C::NOT_RENEWED);
                state.life.lost(now, error.clone(), chance());
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState<C>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests;
