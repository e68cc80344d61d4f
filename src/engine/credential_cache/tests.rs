use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::Semaphore;

use super::*;

const HOUR: Duration = Duration::from_secs(3_600);

/// A credential that is its name. It is renewed between half and three quarters of its life.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Badge(pub(super) String);

impl Renewable for Badge {
    type Error = String;
    const NOT_RENEWED: &'static str = "no new badge";

    fn renewed_after(life: Duration, chance: f64) -> Duration {
        life.mul_f64(0.5 + 0.25 * chance)
    }

    fn unreachable(why: String) -> String {
        why
    }
}

/// Issues `1`, `2`, …, each when the test allows it; fails from the `fails_from`th on.
struct Script {
    asked: AtomicUsize,
    go: Semaphore,
    fails_from: usize,
    life: Duration,
}

#[async_trait]
impl Issuer<Badge> for Arc<Script> {
    async fn issue(&self) -> Result<Issued<Badge>, String> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.go.acquire().await.unwrap().forget();
        if number >= self.fails_from {
            return Err("it answered 503".into());
        }
        Ok(Issued {
            credential: Badge(number.to_string()),
            life: Some(self.life),
        })
    }
}

impl Script {
    fn asked(&self) -> usize {
        self.asked.load(Ordering::SeqCst)
    }
}

fn script_with(life: Duration, fails_from: usize, go: usize) -> (Arc<Script>, CredentialCache<Badge>) {
    let script = Arc::new(Script {
        asked: AtomicUsize::new(0),
        go: Semaphore::new(go),
        fails_from,
        life,
    });
    (script.clone(), CredentialCache::new(script))
}

fn script(fails_from: usize, go: usize) -> (Arc<Script>, CredentialCache<Badge>) {
    script_with(HOUR, fails_from, go)
}

async fn name(cache: &CredentialCache<Badge>) -> Result<String, String> {
    Ok(cache.current().await?.0.clone())
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_make_one_request() {
    let (script, cache) = script(9, 0);
    let callers = join_all((0..50).map(|_| name(&cache)));
    let let_go = async { script.go.add_permits(50) };
    let (names, ()) = futures::join!(callers, let_go);
    assert!(names.iter().all(|got| got.as_deref() == Ok("1")));
    assert_eq!(script.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn caller_that_gives_up_takes_no_credential_from_the_others() {
    let (script, cache) = script(9, 0);
    assert!(name(&cache).now_or_never().is_none(), "given up at once");
    script.go.add_permits(1);
    assert_eq!(name(&cache).await.as_deref(), Ok("1"));
    assert_eq!(script.asked(), 1);
}

#[tokio::test(start_paused = true)]
async fn renewing_delays_nobody() {
    let (script, cache) = script(9, 1);
    assert_eq!(name(&cache).await.as_deref(), Ok("1"));
    tokio::time::advance(HOUR.mul_f64(0.75)).await;
    // The second request hangs; meanwhile callers still get the first credential.
    assert_eq!(name(&cache).await.as_deref(), Ok("1"));
    tokio::task::yield_now().await;
    assert_eq!(name(&cache).now_or_never().unwrap().as_deref(), Ok("1"));
    assert_eq!(script.asked(), 2);
    script.go.add_permits(1);
    tokio::task::yield_now().await;
    assert_eq!(name(&cache).now_or_never().unwrap().as_deref(), Ok("2"));
}

#[tokio::test(start_paused = true)]
async fn refused_identity_is_not_asked_about_with_every_call() {
    let (script, cache) = script(1, 100);
    for _ in 0..100 {
        assert!(name(&cache).await.is_err());
    }
    assert_eq!(script.asked(), 1);
    assert!(cache.state().failure.is_some());
}

#[tokio::test(start_paused = true)]
async fn credential_that_the_cloud_refuses_is_requested_again() {
    let (_, cache) = script(9, 9);
    let refused = cache.current().await.unwrap();
    cache.invalidate(|held| *held == *refused);
    assert_eq!(name(&cache).await.as_deref(), Ok("1"), "brand new");
    tokio::time::advance(Duration::from_secs(60)).await;
    cache.invalidate(|held| *held == *refused);
    assert_eq!(name(&cache).await.as_deref(), Ok("2"));
}

#[tokio::test(start_paused = true)]
async fn refused_credential_is_not_lost_before_there_is_another() {
    let (script, cache) = script(2, 99);
    let refused = cache.current().await.unwrap();
    for asked in 2..5 {
        tokio::time::advance(Duration::from_secs(60)).await;
        cache.invalidate(|held| *held == *refused);
        let names = join_all((0..9).map(|_| name(&cache))).await;
        assert!(names.iter().all(|got| got.as_deref() == Ok("1")), "{names:?}");
        assert_eq!(script.asked(), asked, "all wait for one request");
        assert!(cache.state().failure.is_some());
    }
    tokio::time::advance(HOUR).await;
    assert!(name(&cache).await.is_err(), "it has expired");
}

/// Keeps a credential at hand for `time`; returns what was reported last, and the shortest life left at any check.
async fn keep_for(
    cache: &CredentialCache<Badge>,
    time: Duration,
) -> (Result<CredentialState<String>, String>, Option<Duration>) {
    let reports = Mutex::new((None, None::<Duration>));
    let keeping = cache.keep(|state| {
        let mut reports = reports.lock().unwrap();
        let left = state.as_ref().ok().and_then(|state| state.left);
        reports.1 = reports.1.into_iter().chain(left).min();
        reports.0 = Some(state);
    });
    tokio::time::timeout(time, keeping).await.unwrap_err();
    let (last, least) = reports.into_inner().unwrap();
    (last.expect("something was reported"), least)
}

#[tokio::test(start_paused = true)]
async fn standby_that_uses_no_credential_holds_a_good_one_for_ever() {
    let (script, cache) = script(99, 99);
    for _ in 0..10 {
        let (last, least) = keep_for(&cache, HOUR).await;
        assert_eq!(last.unwrap().failure, None);
        assert!(least.unwrap() >= HOUR / 4 - CHECK_INTERVAL, "{least:?}");
    }
    let asked = script.asked();
    assert!((14..=21).contains(&asked), "asked {asked} times in ten lives");
}

#[tokio::test(start_paused = true)]
async fn failed_renewal_is_reported_at_once_and_when_the_credential_ends() {
    let (script, cache) = script(2, 999);
    let (held, _) = keep_for(&cache, HOUR / 2 - CHECK_INTERVAL).await;
    assert_eq!((held.unwrap().failure, script.asked()), (None, 1));
    let (held, _) = keep_for(&cache, HOUR / 2 - CHECK_INTERVAL).await;
    assert!(
        held.unwrap().failure.is_some(),
        "reported while the first is good still"
    );
    keep_for(&cache, 4 * CHECK_INTERVAL).await.0.unwrap_err();
    keep_for(&cache, HOUR).await.0.unwrap_err();
    let asked = script.asked();
    assert!(asked < 250, "asked {asked} times: not with every check");
}

#[tokio::test(start_paused = true)]
async fn hanging_source_ends_in_an_error() {
    let (_, cache) = script(9, 0);
    assert_eq!(name(&cache).await.unwrap_err(), "no answer within 15 s");
}

#[tokio::test(start_paused = true)]
async fn credential_that_has_expired_already_is_an_error() {
    let (_, cache) = script_with(Duration::ZERO, 9, 9);
    assert_eq!(name(&cache).await.unwrap_err(), "it has expired already");
}

#[tokio::test(start_paused = true)]
async fn panic_while_asking_is_an_error_and_not_the_end() {
    struct Panics;
    #[async_trait]
    impl Issuer<Badge> for Panics {
        async fn issue(&self) -> Result<Issued<Badge>, String> {
            panic!("in a dependency")
        }
    }
    let cache = CredentialCache::new(Panics);
    for _ in 0..2 {
        assert_eq!(name(&cache).await.unwrap_err(), "the request was broken off");
    }
}
