//! Tokens from a real HTTPS authority: which request fetches them, which files are read when, how a refusal is
//! reported.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use futures::future::join_all;
use hyperlink::azure::arm::auth::{AuthError, AzureCloud, CredentialSource, TokenCache, TokenSource};
use hyperlink::azure::arm::https::HttpSettings;
use hyperlink::azure::arm::transport::TransportError;

use crate::server::{Ca, Observed, Reply, Server, answer, redirect};
use crate::{AUDIENCE, Azure, credentials, issues_tokens, settings};

const ARM_IS_FINE: fn(&Observed) -> Reply = |_| answer(200, "");

fn refusal(error: TransportError) -> AuthError {
    match error {
        TransportError::Token(error) => error,
        other => panic!("not about a token: {other}"),
    }
}

/// Uses tokens until the authority has received a request that fits.
async fn until_asked_with(tokens: &TokenCache, authority: &Server, fits: impl Fn(&Observed) -> bool) {
    tokio::time::timeout(Duration::from_secs(20), async {
        while !authority.observed().iter().any(&fits) {
            tokens.token().await.unwrap();
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    })
    .await
    .expect("the authority is asked");
}

#[tokio::test]
async fn fifty_requests_at_once_ask_for_one_token() {
    let azure = Azure::start(ARM_IS_FINE, issues_tokens(3600), |_| {}).await;
    let answers = join_all((0..50).map(|_| azure.get("/x"))).await;
    assert!(answers.iter().all(Result::is_ok));
    let asked = azure.authority.observed();
    assert_eq!(asked.len(), 1);
    assert_eq!(asked[0].uri, "/the-tenant/oauth2/v2.0/token");
    let fields = ["grant_type", "client_id", "client_secret", "scope"];
    assert_eq!(
        fields.map(|name| asked[0].field(name)),
        [
            "client_credentials",
            "the-client",
            "secret-1",
            "https://management.example//.default"
        ]
    );
    let state = azure.tokens.state();
    assert!(state.left.unwrap() > Duration::from_secs(3500), "{state:?}");
    assert_eq!(state.failure, None);
}

#[tokio::test]
async fn rotated_secret_is_used_for_the_next_token() {
    let azure = Azure::start(ARM_IS_FINE, issues_tokens(1), |_| {}).await;
    azure.get("/x").await.unwrap();
    std::fs::write(azure.secret.path(), credentials("secret-2")).unwrap();
    until_asked_with(&azure.tokens, &azure.authority, |observed| {
        observed.field("client_secret") == "secret-2"
    })
    .await;
}

#[tokio::test]
async fn federated_token_is_trimmed_and_read_again() {
    let ca = Ca::new();
    let authority = Server::https(&ca, issues_tokens(1)).await;
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "jwt-1\n").unwrap();
    let cloud = AzureCloud::custom("https://arm.example", &authority.url(), AUDIENCE).unwrap();
    let source = CredentialSource::WorkloadIdentity {
        tenant: "the-tenant".into(),
        client: "the-client".into(),
        token_file: file.path().into(),
    };
    let tokens = TokenCache::new(source, &cloud, settings(&ca).client().unwrap());
    tokens.token().await.unwrap();
    let first = &authority.observed()[0];
    let fields = ["client_assertion", "client_assertion_type", "client_id"];
    assert_eq!(
        fields.map(|name| first.field(name)),
        [
            "jwt-1",
            "urn:ietf:params:oauth:client-assertion-type:jwt-bearer",
            "the-client"
        ]
    );
    std::fs::write(file.path(), "jwt-2\n").unwrap();
    until_asked_with(&tokens, &authority, |observed| {
        observed.field("client_assertion") == "jwt-2"
    })
    .await;
}

#[rstest::rstest]
#[case(400, r#"{"error":"unauthorized_client","error_codes":[700016],"error_description":"AADSTS700016: Application x. Trace ID: t-1"}"#,
    "(AADSTS700016); check the client id and the tenant")]
#[case(
    401,
    r#"{"error":"invalid_client","error_codes":[7000215],"error_description":"AADSTS7000215: bad. Trace ID: t-2"}"#,
    "(AADSTS7000215); check the client secret"
)]
#[case(
    401,
    "not json, trace t-3",
    "(HTTP 401); check tenantId, clientId and clientSecret in the credentials file"
)]
#[tokio::test]
async fn refused_credential_shows_a_code_and_reaches_no_arm(
    #[case] status: u16,
    #[case] body: &'static str,
    #[case] end: &str,
) {
    let azure = Azure::start(ARM_IS_FINE, move |_| answer(status, body), |_| {}).await;
    for _ in 0..20 {
        let error = refusal(azure.get("/x").await.unwrap_err());
        assert!(matches!(error, AuthError::Refused { .. }));
        let expected = format!("the token endpoint refused the credential {end}");
        assert_eq!(error.to_string(), expected);
        assert!(!format!("{error:?}").contains("secret-1"));
    }
    assert_eq!((azure.authority.observed().len(), azure.arm.connections()), (1, 0));
}

#[rstest::rstest]
#[case(503, "it answered 503")]
#[case(429, "it answered 429")]
#[case(200, "its answer is not a token")]
#[tokio::test]
async fn token_endpoint_in_trouble_is_asked_once(#[case] status: u16, #[case] why: &str) {
    let azure = Azure::start(ARM_IS_FINE, move |_| answer(status, "<html>"), |_| {}).await;
    let error = refusal(azure.get("/x").await.unwrap_err());
    assert_eq!(error, AuthError::Unreachable(why.into()));
    assert_eq!(azure.authority.observed().len(), 1, "no retry inside");
}

#[tokio::test]
async fn expired_token_is_not_used() {
    let azure = Azure::start(ARM_IS_FINE, issues_tokens(0), |_| {}).await;
    let error = refusal(azure.get("/x").await.unwrap_err());
    assert!(error.to_string().ends_with("check the clock"), "{error}");
}

#[tokio::test]
async fn hanging_token_endpoint_is_an_error_in_time() {
    let short = |settings: &mut HttpSettings| settings.total_timeout = Duration::from_secs(1);
    let azure = Azure::start(ARM_IS_FINE, |_| Reply::Never, short).await;
    let error = refusal(azure.get("/x").await.unwrap_err());
    assert_eq!(error, AuthError::Unreachable("no answer in time".into()));
}

#[tokio::test]
async fn secret_does_not_follow_a_redirect() {
    let ca = Ca::new();
    let evil = Server::https(&ca, |_| answer(200, "")).await;
    let to = evil.url();
    let azure = Azure::start(ARM_IS_FINE, move |_| redirect(&to), |_| {}).await;
    let error = refusal(azure.get("/x").await.unwrap_err());
    assert_eq!(error, AuthError::Unreachable("it answered 307".into()));
    assert_eq!(evil.connections(), 0);
}

#[tokio::test]
async fn missing_credentials_file_is_no_request() {
    let azure = Azure::start(ARM_IS_FINE, issues_tokens(3600), |_| {}).await;
    std::fs::remove_file(azure.secret.path()).unwrap();
    let error = refusal(azure.get("/x").await.unwrap_err());
    assert!(matches!(error, AuthError::Misconfigured(_)), "{error}");
    assert_eq!(azure.authority.connections(), 0);
}

const IN_CHILD: &str = "HYPERLINK_TEST_IN_CHILD";

/// Runs one test of this binary again as a process of its own, because azure_identity reads some settings from the
/// environment.
async fn in_child(test: &str, environment: &[(&str, &str)]) {
    let mut child = Command::new(std::env::current_exe().unwrap());
    child.args(["--exact", test, "--nocapture"]).env(IN_CHILD, "1");
    child.envs(environment.iter().copied());
    let output = tokio::task::spawn_blocking(move || child.output().unwrap())
        .await
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success() && text.contains("1 passed"), "{text}");
}

async fn token_of(source: CredentialSource) -> Result<String, AuthError> {
    let mut settings = HttpSettings::new("ho");
    // Instance metadata never goes through the proxy; nothing listens there.
    settings.proxy.https_proxy = Some("http://127.0.0.1:9".into());
    let tokens = TokenCache::new(source, &AzureCloud::public(), settings.client().unwrap());
    let token = tokens.token().await?.authorization();
    Ok(token.to_str().unwrap().to_owned())
}

#[tokio::test]
async fn managed_identity_is_asked_for_by_its_client_id() {
    if std::env::var_os(IN_CHILD).is_some() {
        let client_id = Some("user-assigned".to_owned());
        let token = token_of(CredentialSource::ManagedIdentity { client_id }).await;
        assert_eq!(token.unwrap(), "Bearer token-mi");
        return;
    }
    let identity = Server::http(|_| {
        let expires = jiff::Timestamp::now().as_second() + 3600;
        answer(
            200,
            format!(r#"{{"access_token":"token-mi","expires_on":"{expires}","resource":"r","token_type":"Bearer"}}"#),
        )
    })
    .await;
    let url = format!("{}/msi/token", identity.url());
    let ca = Ca::new();
    let environment = [
        ("IDENTITY_ENDPOINT", url.as_str()),
        ("IDENTITY_HEADER", "header-secret"),
        ("SSL_CERT_FILE", ca.file.path().to_str().unwrap()),
    ];
    in_child("tokens::managed_identity_is_asked_for_by_its_client_id", &environment).await;
    let asked = &identity.observed()[0];
    assert_eq!(asked.header("x-identity-header"), "header-secret");
    let query = asked.uri.query().unwrap();
    assert!(query.contains("client_id=user-assigned"), "{query}");
    assert!(
        query.contains("resource=https%3A%2F%2Fmanagement.core.windows.net%2F"),
        "{query}"
    );
}

fn fake_az(directory: &Path, script: &str) -> String {
    use std::os::unix::fs::PermissionsExt;
    let az = directory.join("az");
    std::fs::write(&az, format!("#!/bin/sh\n{script}\n")).unwrap();
    std::fs::set_permissions(&az, std::fs::Permissions::from_mode(0o755)).unwrap();
    format!("{}:/usr/bin:/bin", directory.display())
}

#[tokio::test]
async fn login_of_the_az_command_is_used() {
    if std::env::var_os(IN_CHILD).is_some() {
        assert_eq!(token_of(CredentialSource::AzureCli).await.unwrap(), "Bearer token-az");
        return;
    }
    let expires = jiff::Timestamp::now().as_second() + 3600;
    let directory = tempfile::tempdir().unwrap();
    let path = fake_az(
        directory.path(),
        &format!(r#"echo '{{"accessToken":"token-az","expires_on":{expires},"tokenType":"Bearer"}}'"#),
    );
    let ca = Ca::new();
    let environment = [
        ("PATH", path.as_str()),
        ("SSL_CERT_FILE", ca.file.path().to_str().unwrap()),
    ];
    in_child("tokens::login_of_the_az_command_is_used", &environment).await;
}

#[tokio::test]
async fn az_without_a_login_advises_what_to_do() {
    if std::env::var_os(IN_CHILD).is_some() {
        let error = token_of(CredentialSource::AzureCli).await.unwrap_err();
        let text = "`az` gave no token; install it and run `az login`";
        assert_eq!(error, AuthError::Misconfigured(text.into()));
        return;
    }
    let directory = tempfile::tempdir().unwrap();
    let path = fake_az(directory.path(), "echo 'ERROR: trace 123' >&2; exit 1");
    let ca = Ca::new();
    let environment = [
        ("PATH", path.as_str()),
        ("SSL_CERT_FILE", ca.file.path().to_str().unwrap()),
    ];
    in_child("tokens::az_without_a_login_advises_what_to_do", &environment).await;
}
