use std::sync::atomic::{AtomicUsize, Ordering};

use futures::future::join_all;
use tokio::sync::Semaphore;

use super::*;
use crate::api::sample::{Calls, FakeAws, answer, connection, refusal};
use crate::credentials::Issued;

const HOUR: Duration = Duration::from_secs(3_600);

/// Issues `s1`, `s2`, …, each when the test allows it; fails from the `fails_from`th on.
struct Script {
    asked: AtomicUsize,
    go: Semaphore,
    fails_from: usize,
}

#[async_trait]
impl Issuer for Arc<Script> {
    async fn issue(&self) -> Result<Issued, CredentialError> {
        let number = self.asked.fetch_add(1, Ordering::SeqCst) + 1;
        self.go.acquire().await.unwrap().forget();
        if number >= self.fails_from {
            return Err(CredentialError::Unreachable("Timeout from AWS".into()));
        }
        Ok(Issued {
            session: Session::new(&format!("s{number}"), "secret".into(), None),
            life: Some(HOUR),
        })
    }
}

fn script(fails_from: usize, go: usize) -> (Arc<Script>, SessionCache) {
    let script = Arc::new(Script {
        asked: AtomicUsize::new(0),
        go: Semaphore::new(go),
        fails_from,
    });
    (script.clone(), SessionCache::with(Box::new(script)))
}

async fn id(cache: &SessionCache) -> Result<String, CredentialError> {
    let session = cache.session().await?;
    Ok(session.access_key_id().to_owned())
}

#[tokio::test(start_paused = true)]
async fn fifty_callers_make_one_request() {
    let (script, cache) = script(9, 0);
    let callers = join_all((0..50).map(|_| id(&cache)));
    let let_go = async { script.go.add_permits(50) };
    let (sessions, ()) = futures::join!(callers, let_go);
    assert!(sessions.iter().all(|got| got.as_deref() == Ok("s1")));
    assert_eq!(script.asked.load(Ordering::SeqCst), 1);
}

#[tokio::test(start_paused = true)]
async fn caller_that_gives_up_takes_no_session_from_the_others() {
    let (script, cache) = script(9, 0);
    assert!(id(&cache).now_or_never().is_none(), "given up at once");
    script.go.add_permits(1);
    assert_eq!(id(&cache).await.as_deref(), Ok("s1"));
    assert_eq!(script.asked.load(Ordering::SeqCst), 1);
}

/// Keeps a session at hand for `time`; returns the shortest life that was left at any check.
async fn keep_for(cache: &SessionCache, time: Duration) -> Option<Duration> {
    let least = Mutex::new(None::<Duration>);
    let keeping = cache.keep(|state| {
        if let Ok(left) = state.map(|state| state.left.unwrap_or_default()) {
            let mut least = least.lock().unwrap();
            *least = Some(least.map_or(left, |least| least.min(left)));
        }
    });
    tokio::time::timeout(time, keeping).await.unwrap_err();
    least.into_inner().unwrap()
}

#[tokio::test(start_paused = true)]
async fn half_an_hour_is_left_at_any_time() {
    let (script, cache) = script(999, 999);
    let least = keep_for(&cache, 10 * HOUR).await.unwrap();
    assert!(least >= HOUR / 2, "{least:?}");
    let asked = script.asked.load(Ordering::SeqCst);
    assert!((20..=26).contains(&asked), "asked {asked} times in ten lives");
}

#[tokio::test(start_paused = true)]
async fn session_is_kept_while_its_source_is_gone() {
    let (script, cache) = script(2, 9_999);
    keep_for(&cache, HOUR - CHECK_INTERVAL).await.unwrap();
    assert_eq!(id(&cache).await.as_deref(), Ok("s1"));
    assert!(
        cache.state().failure.is_some(),
        "reported while the session is still good"
    );
    keep_for(&cache, 2 * CHECK_INTERVAL).await;
    assert!(id(&cache).await.is_err());
    let asked = script.asked.load(Ordering::SeqCst);
    assert!(asked < 100, "asked {asked} times");
}

#[tokio::test(start_paused = true)]
async fn renewing_delays_nobody() {
    let (script, cache) = script(9, 1);
    assert_eq!(id(&cache).await.as_deref(), Ok("s1"));
    tokio::time::advance(HOUR / 2).await;
    // The second request hangs; meanwhile callers still get the first session.
    assert_eq!(id(&cache).await.as_deref(), Ok("s1"));
    tokio::task::yield_now().await;
    assert_eq!(id(&cache).now_or_never().unwrap().as_deref(), Ok("s1"));
    assert_eq!(script.asked.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn hanging_source_ends_in_an_error() {
    let (_, cache) = script(9, 0);
    assert_eq!(
        id(&cache).await.unwrap_err().to_string(),
        "no session: no answer within 15 s"
    );
}

#[tokio::test(start_paused = true)]
async fn session_that_aws_refuses_is_requested_again() {
    let (_, cache) = script(9, 9);
    let session = cache.session().await.unwrap();
    cache.invalidate(&session);
    assert_eq!(id(&cache).await.as_deref(), Ok("s1"), "brand new");
    tokio::time::advance(Duration::from_secs(60)).await;
    cache.invalidate(&session);
    assert_eq!(id(&cache).await.as_deref(), Ok("s2"));
}

#[tokio::test(start_paused = true)]
async fn keys_are_read_again_when_their_file_changes() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let write = |id: &str| {
        let text = format!("[default]\naws_access_key_id = {id}\naws_secret_access_key = s\n");
        std::fs::write(file.path(), text).unwrap();
    };
    let aws = FakeAws::new([refusal(500, "InternalError")]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let cache = SessionCache::of_profile(connection, file.path().into(), "x");
    write("AKIA1");
    assert_eq!(id(&cache).await.as_deref(), Ok("AKIA1"));
    write("AKIA22");
    assert_eq!(id(&cache).await.as_deref(), Ok("AKIA1"), "not checked with each call");
    tokio::time::advance(CHECK_INTERVAL).await;
    // The file is read while this one still gets the keys held.
    assert_eq!(id(&cache).await.as_deref(), Ok("AKIA1"));
    tokio::task::yield_now().await;
    assert_eq!(id(&cache).await.as_deref(), Ok("AKIA22"));
    assert!(aws.requests().is_empty());
}

#[tokio::test(start_paused = true)]
async fn role_is_assumed_as_the_identity_of_the_file() {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "[default]\naws_access_key_id = AKIA1\naws_secret_access_key = s\n";
    std::fs::write(file.path(), text).unwrap();
    let body = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA2</AccessKeyId>\
        <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>\
        </Credentials></AssumeRoleResult></AssumeRoleResponse>";
    let aws = FakeAws::new([answer(200, body)]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let base = SessionCache::of_profile(connection.clone(), file.path().into(), "x");
    let role = RoleArn::parse("arn:aws:iam::210987654321:role/shared").unwrap();
    let cache = SessionCache::of_role(connection, Arc::new(base), role, "x");
    assert_eq!(id(&cache).await.as_deref(), Ok("ASIA2"));
    let authorization = aws.header(0, "authorization").unwrap();
    assert!(authorization.contains("Credential=AKIA1/"), "{authorization}");
}

#[tokio::test(start_paused = true)]
async fn base_session_that_is_refused_is_requested_again() {
    let (script, base) = script(9, 9);
    let aws = FakeAws::new([refusal(400, "ExpiredToken")]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let role = RoleArn::parse("arn:aws:iam::210987654321:role/shared").unwrap();
    let cache = SessionCache::of_role(connection, Arc::new(base), role, "x");
    for _ in 0..2 {
        assert!(matches!(id(&cache).await, Err(CredentialError::Refused { .. })));
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    assert!(id(&cache).await.is_err());
    assert_eq!(script.asked.load(Ordering::SeqCst), 2, "again after the second refusal");
}
