use std::sync::atomic::{AtomicUsize, Ordering};

use hyperlink_engine::credential_cache::{CHECK_INTERVAL, Issuer};
use rstest::rstest;

use super::*;
use crate::api::sample::{Calls, FakeAws, answer, connection, refusal};
use crate::credentials::Issued;
use crate::role_arn::RoleArn;

/// The answer to AssumeRole.
const ASSUMED: &str = "<AssumeRoleResponse><AssumeRoleResult><Credentials><AccessKeyId>ASIA2</AccessKeyId>\
    <SecretAccessKey>s</SecretAccessKey><SessionToken>t</SessionToken><Expiration>2999-01-01T00:00:00Z</Expiration>\
    </Credentials></AssumeRoleResult></AssumeRoleResponse>";

/// Issues `s1`, `s2`, ….
#[derive(Default)]
struct Script(AtomicUsize);

#[async_trait]
impl Issuer<Session> for Arc<Script> {
    async fn issue(&self) -> Result<Issued, CredentialError> {
        let number = self.0.fetch_add(1, Ordering::SeqCst) + 1;
        Ok(Issued {
            credential: Session::new(&format!("s{number}"), "secret".into(), None),
            life: Some(Duration::from_secs(3_600)),
        })
    }
}

fn script() -> (Arc<Script>, SessionCache) {
    let script = Arc::new(Script::default());
    (script.clone(), SessionCache(CredentialCache::new(script)))
}

async fn id(cache: &SessionCache) -> Result<String, CredentialError> {
    let session = cache.session().await?;
    Ok(session.access_key_id().to_owned())
}

#[rstest]
#[case(3_600, 0.0, 1_440)]
#[case(3_600, 1.0, 1_728)]
#[case::short_one_is_not_requested_over_and_over(100, 0.0, 60)]
fn session_is_renewed_while_half_an_hour_is_left(#[case] life: u64, #[case] chance: f64, #[case] renewed: u64) {
    let life = Duration::from_secs(life);
    let used = Session::renewed_after(life, chance);
    assert_eq!(used, Duration::from_secs(renewed));
    let enough = Duration::from_secs(1_800);
    assert!(life < enough || life - used >= enough + CHECK_INTERVAL);
}

#[tokio::test(start_paused = true)]
async fn only_the_session_that_aws_refuses_is_requested_again() {
    let (_, cache) = script();
    let session = cache.session().await.unwrap();
    tokio::time::advance(Duration::from_secs(60)).await;
    let same_keys = Arc::new(Session::clone(&session));
    cache.invalidate(&same_keys);
    assert_eq!(id(&cache).await.as_deref(), Ok("s1"));
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
    let aws = FakeAws::new([answer(200, ASSUMED)]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let base = SessionCache::of_profile(connection.clone(), file.path().into(), "x");
    let role = RoleArn::parse("arn:aws:iam::210987654321:role/shared").unwrap();
    let cache = SessionCache::of_role(connection, Arc::new(base), role, "x");
    assert_eq!(id(&cache).await.as_deref(), Ok("ASIA2"));
    let authorization = aws.header(0, "authorization").unwrap();
    assert!(authorization.contains("Credential=AKIA1/"), "{authorization}");
}

/// A file that names the role of the machine.
fn machine_file() -> tempfile::NamedTempFile {
    let file = tempfile::NamedTempFile::new().unwrap();
    let text = "[default]\nrole_arn = arn:aws:iam::123456789012:role/ho\ncredential_source = Ec2InstanceMetadata\n";
    std::fs::write(file.path(), text).unwrap();
    file
}

#[tokio::test(start_paused = true)]
async fn role_is_assumed_as_the_role_of_the_machine() {
    let file = machine_file();
    let machine = r#"{"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"s","Token":"of-the-machine",
        "Expiration":"2999-01-01T00:00:00Z"}"#;
    let aws = FakeAws::new([
        answer(200, "metadata-token"),
        answer(200, "worker"),
        answer(200, machine),
        answer(200, ASSUMED),
    ]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let cache = SessionCache::of_profile(connection, file.path().into(), "x");
    assert_eq!(id(&cache).await.as_deref(), Ok("ASIA2"));
    let token = |request| aws.header(request, "x-aws-ec2-metadata-token");
    let shown = Some("metadata-token".to_owned());
    assert_eq!(
        [token(0), token(1), token(2), token(3)],
        [None, shown.clone(), shown, None]
    );
    let authorization = aws.header(3, "authorization").unwrap();
    assert!(authorization.contains("Credential=ASIA1/"), "{authorization}");
    assert_eq!(aws.header(3, "x-amz-security-token").as_deref(), Some("of-the-machine"));
    let asked = aws.requests().pop().unwrap();
    assert!(
        asked.contains("Action=AssumeRole&") && asked.contains("role%2Fho"),
        "{asked}"
    );
}

/// Version 1 of the metadata service gives sessions to whoever can make a process on the machine send a GET.
#[rstest]
#[case::unknown(404)]
#[case::not_taken(405)]
#[case::turned_off(403)]
#[tokio::test(start_paused = true)]
async fn no_metadata_is_read_without_a_token(#[case] status: u16) {
    let file = machine_file();
    let aws = FakeAws::new([answer(status, "")]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let cache = SessionCache::of_profile(connection, file.path().into(), "x");
    for _ in 0..3 {
        assert!(id(&cache).await.is_err());
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    let requests = aws.requests();
    assert!(requests.len() > 1, "{requests:?}");
    assert!(
        requests.iter().all(|request| request.starts_with("PUT ")),
        "{requests:?}"
    );
}

#[tokio::test(start_paused = true)]
async fn base_session_that_is_refused_is_requested_again() {
    let (script, base) = script();
    let aws = FakeAws::new([refusal(400, "ExpiredToken")]);
    let connection = connection(&aws, &Arc::new(Calls::default()));
    let role = RoleArn::parse("arn:aws:iam::210987654321:role/shared").unwrap();
    let cache = SessionCache::of_role(connection, Arc::new(base), role, "x");
    for _ in 0..2 {
        assert!(matches!(id(&cache).await, Err(CredentialError::Refused { .. })));
        tokio::time::advance(Duration::from_secs(60)).await;
    }
    assert!(id(&cache).await.is_err());
    assert_eq!(script.0.load(Ordering::SeqCst), 2, "again after the second refusal");
}
