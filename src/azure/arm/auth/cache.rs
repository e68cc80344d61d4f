//! One token for all callers. Decides who waits for a token; `life` decides when one is requested.
//!
//! It stands in front of azure_identity because that one's cache renews only when 300 s are left, fails while the old
//! token is still good, and lets every caller wait behind one lock.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use futures::FutureExt;
use futures::future::{BoxFuture, Shared};
use tokio::task::AbortHandle;
use tokio::time::Instant;

use crate::arm::auth::credential::Credential;
use crate::arm::auth::life::{Life, Next};
use crate::arm::auth::{AuthError, AzureCloud, CredentialSource, Token, TokenSource, TokenState};

/// How long a request for a token may take before it counts as failed. All calls to Azure that need the token wait as
/// long.
const TOKEN_TIMEOUT: Duration = Duration::from_secs(15);

/// The time between two checks whether the token for Azure has to be renewed, also while no call needs one.
/// [`TokenCache::keep`] makes them.
const CHECK_INTERVAL: Duration = Duration::from_secs(5);

/// A new token, and how long it is valid from now on.
pub(super) struct Issued {
    pub(super) token: Token,
    pub(super) life: Duration,
}

/// Requests a new token with each call; no cache, no retry.
#[async_trait]
pub(super) trait Issuer: Send + Sync {
    async fn issue(&self) -> Result<Issued, AuthError>;
}

/// The tokens of one identity for one cloud. Clones share everything.
#[derive(Clone)]
pub struct TokenCache(Arc<Inner>);

struct Inner {
    issuer: Box<dyn Issuer>,
    patience: Duration,
    state: Mutex<CacheState>,
}

#[derive(Default)]
struct CacheState {
    life: Life,
    asking: Option<Asking>,
}

/// A request under way. All who need its outcome wait for this one.
struct Asking {
    task: AbortHandle,
    outcome: TokenOutcome,
}

type TokenOutcome = Shared<BoxFuture<'static, Result<Token, AuthError>>>;

impl TokenCache {
    /// Makes an empty cache; requests nothing yet. `http` carries the requests to the authority; it must not follow
    /// redirects.
    pub fn new(source: CredentialSource, cloud: &AzureCloud, http: reqwest::Client) -> Self {
        Self::with(Box::new(Credential::new(source, cloud, http)), TOKEN_TIMEOUT)
    }

    /// Age of the token and the last failure, for metrics and readiness.
    pub fn state(&self) -> TokenState {
        self.0.lock().life.state(Instant::now())
    }

    /// Keeps a valid token at hand for as long as this future is polled, even while nobody uses one; `life` decides
    /// when one is requested. After each check, `on_token` gets the state of the token held, or why there is none.
    pub async fn keep(&self, on_token: impl Fn(Result<TokenState, AuthError>)) {
        loop {
            on_token(self.token().await.map(|_| self.state()));
            tokio::time::sleep(CHECK_INTERVAL).await;
        }
    }

    fn with(issuer: Box<dyn Issuer>, patience: Duration) -> Self {
        Self(Arc::new(Inner {
            issuer,
            patience,
            state: Mutex::default(),
        }))
    }

    /// Starts a request, or joins the one under way. The request is a task of its own, so that it goes on if one caller
    /// gives up.
    fn ask(&self, state: &mut CacheState) -> TokenOutcome {
        if let Some(asking) = state.asking.as_ref().filter(|asking| !asking.task.is_finished()) {
            return asking.outcome.clone();
        }
        let inner = self.0.clone();
        let task = tokio::spawn(async move { inner.fetch().await });
        let handle = task.abort_handle();
        let outcome = async {
            let stopped = |_| AuthError::Unreachable("the request was broken off".into());
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
impl TokenSource for TokenCache {
    async fn token(&self) -> Result<Token, AuthError> {
        let outcome = {
            let mut state = self.0.lock();
            match state.life.next(Instant::now()) {
                Next::Use(token) => return Ok(token),
                Next::UseAndRenew(token) => {
                    // The task runs by itself; nobody waits for its outcome.
                    drop(self.ask(&mut state));
                    return Ok(token);
                }
                Next::Fail(error) => return Err(error),
                Next::Ask => self.ask(&mut state),
            }
        };
        outcome.await
    }

    fn invalidate(&self, refused: &Token) {
        self.0.lock().life.refused(Instant::now(), refused);
    }
}

impl Inner {
    async fn fetch(&self) -> Result<Token, AuthError> {
        let issued = tokio::time::timeout(self.patience, self.issuer.issue())
            .await
            .unwrap_or_else(|_| {
                let seconds = self.patience.as_secs();
                Err(AuthError::Unreachable(format!("no answer within {seconds} s")))
            });
        let mut state = self.lock();
        let now = Instant::now();
        match issued {
            Ok(Issued { token, life }) => {
                state.life.got(now, token.clone(), life, chance());
                Ok(token)
            }
            Err(error) => {
                tracing::warn!(%error, "no new token");
                state.life.lost(now, error.clone(), chance());
                Err(error)
            }
        }
    }

    fn lock(&self) -> MutexGuard<'_, CacheState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A random number between 0 and 1, evenly distributed. The last four bytes of a version 4 UUID are all random.
fn chance() -> f64 {
    let [.., a, b, c, d] = uuid::Uuid::new_v4().into_bytes();
    f64::from(u32::from_be_bytes([a, b, c, d])) / f64::from(u32::MAX)
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use futures::future::join_all;
    use tokio::sync::Semaphore;

    use super::*;

    /// Issues `t1`, `t2`, …, each when the test allows it; fails from the `fails_from`th on. `life` is that of the
    /// first; the others live long.
    struct Script {
        asked: AtomicUsize,
        go: Semaphore,
        life: Duration,
        fails_from: usize,
    }

    #[async_trait]
    impl Issuer for Arc<Script> {
        async fn issue(&self) -> Result<Issued, AuthError> {
            let n = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
            self.go.acquire().await.unwrap().forget();
            if n >= self.fails_from {
                return Err(AuthError::Unreachable("it answered 503".into()));
            }
            Ok(Issued {
                token: Token::new(&format!("t{n}")).unwrap(),
                life: if n == 1 { self.life } else { HOUR },
            })
        }
    }

    fn script(life: Duration, fails_from: usize, go: usize) -> (Arc<Script>, TokenCache) {
        let script = Arc::new(Script {
            asked: AtomicUsize::new(0),
            go: Semaphore::new(go),
            life,
            fails_from,
        });
        let cache = TokenCache::with(Box::new(script.clone()), TOKEN_TIMEOUT);
        (script, cache)
    }

    async fn until(mut met: impl FnMut() -> bool) {
        tokio::time::timeout(Duration::from_secs(10), async {
            while !met() {
                tokio::task::yield_now().await;
            }
        })
        .await
        .expect("the condition is met");
    }

    const HOUR: Duration = Duration::from_secs(3600);

    #[tokio::test]
    async fn fifty_callers_make_one_request() {
        let (script, cache) = script(HOUR, 9, 0);
        let callers = join_all((0..50).map(|_| cache.token()));
        let let_go = async { script.go.add_permits(50) };
        let (tokens, ()) = futures::join!(callers, let_go);
        assert!(tokens.iter().all(|got| *got == Token::new("t1")));
        assert_eq!(script.asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn caller_that_gives_up_takes_no_token_from_the_others() {
        let (script, cache) = script(HOUR, 9, 0);
        assert!(cache.token().now_or_never().is_none(), "given up at once");
        script.go.add_permits(1);
        assert_eq!(cache.token().await, Token::new("t1"));
        assert_eq!(script.asked.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn renewing_delays_nobody() {
        let (script, cache) = script(Duration::from_millis(400), 9, 1);
        assert_eq!(cache.token().await, Token::new("t1"));
        // The second request hangs; meanwhile callers still get the first token.
        until(|| {
            let got = cache.token().now_or_never();
            assert!(got.is_none_or(|got| got == Token::new("t1")));
            script.asked.load(Ordering::SeqCst) == 2
        })
        .await;
        script.go.add_permits(1);
        until(|| cache.token().now_or_never() == Some(Token::new("t2"))).await;
    }

    #[tokio::test]
    async fn refused_credential_is_not_asked_about_with_every_call() {
        let (script, cache) = script(HOUR, 1, 100);
        for _ in 0..100 {
            assert!(cache.token().await.is_err());
        }
        assert_eq!(script.asked.load(Ordering::SeqCst), 1);
        assert!(cache.state().failure.is_some());
    }

    #[tokio::test]
    async fn token_that_arm_refuses_is_requested_again() {
        let (_, cache) = script(HOUR, 9, 1);
        let old = Token::new("old").unwrap();
        let minute_ago = Instant::now() - Duration::from_secs(60);
        cache.0.lock().life.got(minute_ago, old.clone(), HOUR, 0.5);
        assert_eq!(cache.token().await, Ok(old.clone()));
        cache.invalidate(&old);
        assert_eq!(cache.token().await, Token::new("t1"));
    }

    /// Keeps a token at hand for `time`; returns the state that was reported last.
    async fn keep_for(cache: &TokenCache, time: Duration) -> Result<TokenState, AuthError> {
        let last = Mutex::new(None);
        let keeping = cache.keep(|state| *last.lock().unwrap() = Some(state));
        tokio::time::timeout(time, keeping).await.unwrap_err();
        last.into_inner().unwrap().expect("something was told")
    }

    #[tokio::test(start_paused = true)]
    async fn standby_that_uses_no_token_holds_a_good_one_for_ever() {
        let (script, cache) = script(HOUR, 99, 99);
        for _ in 0..10 {
            let held = keep_for(&cache, HOUR).await.unwrap();
            assert_eq!(held.failure, None);
            assert!(held.left.unwrap() >= HOUR / 4 - CHECK_INTERVAL, "{held:?}");
        }
        let asked = script.asked.load(Ordering::SeqCst);
        assert!((14..=21).contains(&asked), "asked {asked} times in ten lives");
    }

    #[tokio::test(start_paused = true)]
    async fn failed_renewal_is_reported_at_once_and_when_the_token_ends() {
        let (script, cache) = script(HOUR, 2, 999);
        let held = keep_for(&cache, HOUR / 2 - CHECK_INTERVAL).await.unwrap();
        assert_eq!((held.failure, script.asked.load(Ordering::SeqCst)), (None, 1));
        let held = keep_for(&cache, HOUR / 2 - CHECK_INTERVAL).await.unwrap();
        assert!(held.failure.is_some(), "told while the first token is good still");
        keep_for(&cache, 4 * CHECK_INTERVAL).await.unwrap_err();
        keep_for(&cache, HOUR).await.unwrap_err();
        let asked = script.asked.load(Ordering::SeqCst);
        assert!(asked < 250, "asked {asked} times: not with every look");
    }

    #[tokio::test]
    async fn hanging_token_endpoint_ends_in_an_error() {
        let (script, _) = script(HOUR, 9, 0);
        let cache = TokenCache::with(Box::new(script), Duration::from_millis(50));
        let error = cache.token().await.unwrap_err();
        assert!(matches!(error, AuthError::Unreachable(_)), "{error}");
    }

    #[tokio::test]
    async fn panic_while_asking_is_an_error_and_not_the_end() {
        struct Panics;
        #[async_trait]
        impl Issuer for Panics {
            async fn issue(&self) -> Result<Issued, AuthError> {
                panic!("in a dependency")
            }
        }
        let cache = TokenCache::with(Box::new(Panics), TOKEN_TIMEOUT);
        for _ in 0..2 {
            assert!(cache.token().await.is_err());
        }
    }
}
