//! ARM and its token endpoint as real HTTPS servers: who gets a token, what is refused, how a failure is reported.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests; the exemption for tests leaves out their helpers"
)]

mod server;
mod tokens;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use futures::stream;
use http_body_util::{BodyExt, StreamBody};
use hyper::body::Frame;
use hyperlink::azure::arm::auth::{AuthError, AzureCloud, CredentialSource, Token, TokenCache, TokenSource};
use hyperlink::azure::arm::https::{HttpSettings, ProxySettings};
use hyperlink::azure::arm::transport::{ANSWER_LIMIT, HttpsTransport, Transport, TransportError};

use server::{Ca, Observed, Reply, Server, Tunnels, answer, redirect};

const AUDIENCE: &str = "https://management.example/";

/// ARM, the authority and a client for both.
struct Azure {
    arm: Server,
    authority: Server,
    tokens: TokenCache,
    transport: HttpsTransport,
    secret: tempfile::NamedTempFile,
    ca: Ca,
}

/// Answers with `token-1`, `token-2`, …, which live for that many seconds.
fn issues_tokens(seconds: u32) -> impl Fn(&Observed) -> Reply {
    let count = Mutex::new(0);
    move |_| {
        let mut count = count.lock().unwrap();
        *count += 1;
        answer(
            200,
            format!(r#"{{"token_type":"Bearer","expires_in":{seconds},"access_token":"token-{count}"}}"#),
        )
    }
}

fn credentials(secret: &str) -> String {
    format!("subscriptionId: s\ntenantId: the-tenant\nclientId: the-client\nclientSecret: {secret}\n")
}

fn settings(ca: &Ca) -> HttpSettings {
    let mut settings = HttpSettings::new("ho");
    settings.ca_file = Some(ca.file.path().into());
    settings
}

impl Azure {
    async fn start(
        arm: impl Fn(&Observed) -> Reply + Send + Sync + 'static,
        authority: impl Fn(&Observed) -> Reply + Send + Sync + 'static,
        change: impl FnOnce(&mut HttpSettings),
    ) -> Self {
        let ca = Ca::new();
        let (arm, authority) = futures::join!(Server::https(&ca, arm), Server::https(&ca, authority));
        let secret = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(secret.path(), credentials("secret-1")).unwrap();
        let cloud = AzureCloud::custom(&arm.url(), &authority.url(), AUDIENCE).unwrap();
        let mut settings = settings(&ca);
        change(&mut settings);
        let client = settings.client().unwrap();
        let source = CredentialSource::SecretFile {
            path: secret.path().into(),
        };
        let tokens = TokenCache::new(source, &cloud, client.clone());
        let transport = HttpsTransport::new(client, &cloud, Arc::new(tokens.clone()));
        Self {
            arm,
            authority,
            tokens,
            transport,
            secret,
            ca,
        }
    }

    async fn get(&self, path: &str) -> Result<http::Response<Bytes>, TransportError> {
        self.get_url(&format!("{}{path}", self.arm.url())).await
    }

    async fn get_url(&self, url: &str) -> Result<http::Response<Bytes>, TransportError> {
        let request = http::Request::get(url).body(Bytes::new()).unwrap();
        self.transport.send(request).await
    }
}

#[tokio::test]
async fn request_carries_the_token_and_keeps_its_connection() {
    let azure = Azure::start(
        |observed| answer(202, format!("{} {}", observed.method, observed.body)),
        issues_tokens(3600),
        |_| {},
    )
    .await;
    for _ in 0..10 {
        let request = http::Request::put(format!("{}/a?api-version=1", azure.arm.url()))
            .header("authorization", "Bearer of the caller")
            .header("if-match", "x")
            .body(Bytes::from("{}"))
            .unwrap();
        let answer = azure.transport.send(request).await.unwrap();
        assert_eq!(answer.status(), 202);
        assert_eq!(answer.body(), "PUT {}");
        assert_eq!(answer.headers()["content-length"], "6");
    }
    let observed = azure.arm.observed();
    assert_eq!(observed.len(), 10);
    assert_eq!(observed[9].header("authorization"), "Bearer token-1");
    assert_eq!(observed[9].headers.get_all("authorization").iter().count(), 1);
    assert_eq!(observed[9].header("if-match"), "x");
    assert_eq!(observed[9].uri, "/a?api-version=1");
    let agent = format!("hyperlink/{} (ho)", env!("CARGO_PKG_VERSION"));
    assert_eq!(observed[9].header("user-agent"), agent);
    assert_eq!((azure.arm.connections(), azure.authority.observed().len()), (1, 1));
}

#[rstest::rstest]
#[case::other_port("https://127.0.0.1:{evil}/x?nextLink", "https://127.0.0.1:{evil}")]
#[case::other_host("https://localhost:{arm}/x", "https://localhost:{arm}")]
#[case::other_scheme("http://127.0.0.1:{arm}/x", "http://127.0.0.1:{arm}")]
#[case::default_port("https://127.0.0.1/x", "https://127.0.0.1")]
#[case::host_in_the_user_name("https://127.0.0.1:{arm}@localhost:{evil}/x", "https://localhost:{evil}")]
#[case::user_name("https://me:pw@127.0.0.1:{arm}/x", "an address with a user name")]
#[case::no_host("/x", "an address that is no URL")]
#[tokio::test]
async fn address_off_the_arm_host_is_refused_and_nobody_is_called(#[case] url: &str, #[case] named: &str) {
    let azure = Azure::start(|_| answer(200, ""), issues_tokens(3600), |_| {}).await;
    let evil = Server::https(&azure.ca, |_| answer(200, "")).await;
    let fill = |text: &str| {
        text.replace("{evil}", &evil.address.port().to_string())
            .replace("{arm}", &azure.arm.address.port().to_string())
    };
    let error = azure.get_url(&fill(url)).await.unwrap_err();
    assert_eq!(error, TransportError::ForeignHost(fill(named)));
    let calls = [&evil, &azure.arm, &azure.authority].map(Server::connections);
    assert_eq!(calls, [0, 0, 0]);
}

#[tokio::test]
async fn redirect_is_returned_and_not_followed() {
    let ca = Ca::new();
    let evil = Server::https(&ca, |_| answer(200, "")).await;
    let to = evil.url();
    let azure = Azure::start(move |_| redirect(&to), issues_tokens(3600), |_| {}).await;
    let answer = azure.get("/x").await.unwrap();
    assert_eq!(answer.status(), 307);
    assert_eq!(answer.headers()["location"], evil.url().as_str());
    assert_eq!((azure.arm.observed().len(), evil.connections()), (1, 0));
}

#[tokio::test]
async fn arm_401_is_returned_and_its_token_reported() {
    #[derive(Default)]
    struct OneToken(Mutex<Vec<Token>>);
    #[async_trait]
    impl TokenSource for OneToken {
        async fn token(&self) -> Result<Token, AuthError> {
            Token::new("stale")
        }
        fn invalidate(&self, refused: &Token) {
            self.0.lock().unwrap().push(refused.clone());
        }
    }
    let status = Arc::new(Mutex::new(403));
    let current = status.clone();
    let reply = move |_: &Observed| answer(*current.lock().unwrap(), "{}");
    let azure = Azure::start(reply, issues_tokens(3600), |_| {}).await;
    let cloud = AzureCloud::custom(&azure.arm.url(), &azure.authority.url(), AUDIENCE).unwrap();
    let tokens = Arc::new(OneToken::default());
    let client = settings(&azure.ca).client().unwrap();
    let transport = HttpsTransport::new(client, &cloud, tokens.clone());
    for next in [401, 200] {
        let request = http::Request::get(azure.arm.url()).body(Bytes::new()).unwrap();
        let before = *status.lock().unwrap();
        assert_eq!(transport.send(request).await.unwrap().status(), before);
        assert_eq!(tokens.0.lock().unwrap().len(), usize::from(before == 401));
        *status.lock().unwrap() = next;
    }
    assert_eq!(*tokens.0.lock().unwrap(), [Token::new("stale").unwrap()]);
}

#[rstest::rstest]
#[case::read_continues_with_the_next_token("GET", true, 200, &["token-1", "token-2"])]
#[case::read_whose_next_token_is_refused_too("GET", false, 401, &["token-1", "token-2"])]
#[case::write_waits_for_the_next_reconcile("PUT", true, 401, &["token-1"])]
#[tokio::test]
async fn read_with_a_token_that_azure_no_longer_takes(
    #[case] method: &str,
    #[case] next_is_good: bool,
    #[case] status: u16,
    #[case] tokens: &[&str],
) {
    struct EachOnce(Mutex<u8>);
    #[async_trait]
    impl TokenSource for EachOnce {
        async fn token(&self) -> Result<Token, AuthError> {
            Token::new(&format!("token-{}", self.0.lock().unwrap()))
        }
        fn invalidate(&self, _: &Token) {
            *self.0.lock().unwrap() += 1;
        }
    }
    let good = next_is_good.then_some("Bearer token-2");
    let reply = move |observed: &Observed| {
        answer(
            if Some(observed.header("authorization")) == good {
                200
            } else {
                401
            },
            "{}",
        )
    };
    let azure = Azure::start(reply, issues_tokens(3600), |_| {}).await;
    let cloud = AzureCloud::custom(&azure.arm.url(), &azure.authority.url(), AUDIENCE).unwrap();
    let client = settings(&azure.ca).client().unwrap();
    let transport = HttpsTransport::new(client, &cloud, Arc::new(EachOnce(Mutex::new(1))));
    let request = http::Request::builder().method(method).uri(azure.arm.url());
    let answer = transport.send(request.body(Bytes::new()).unwrap()).await.unwrap();
    assert_eq!(answer.status(), status);
    let used = azure.arm.observed();
    let used: Vec<_> = used
        .iter()
        .map(|observed| observed.header("authorization").replace("Bearer ", ""))
        .collect();
    assert_eq!(used, tokens);
}

/// A body without a length, which is sent in parts.
fn in_parts(parts: Vec<Result<Bytes, std::io::Error>>) -> Reply {
    let frames = parts.into_iter().map(|part| part.map(Frame::data));
    let body = StreamBody::new(stream::iter(frames)).boxed_unsync();
    Reply::Answer(http::Response::new(body))
}

#[rstest::rstest]
#[case::announced(|size: usize| answer(200, vec![b' '; size]))]
#[case::in_parts(|size: usize| in_parts(vec![Ok(vec![b' '; size / 2].into()), Ok(vec![b' '; size - size / 2].into())]))]
#[tokio::test]
async fn answer_over_the_limit_is_refused(#[case] reply: fn(usize) -> Reply) {
    let size = |observed: &Observed| observed.uri.path()[1..].parse::<usize>().unwrap();
    let azure = Azure::start(move |observed| reply(size(observed)), issues_tokens(3600), |_| {}).await;
    let just = azure.get(&format!("/{ANSWER_LIMIT}")).await.unwrap();
    assert_eq!(just.body().len(), ANSWER_LIMIT);
    let over = azure.get(&format!("/{}", ANSWER_LIMIT + 1)).await;
    assert_eq!(over.unwrap_err(), TransportError::TooLarge(ANSWER_LIMIT));
}

#[tokio::test]
async fn answer_that_breaks_off_is_a_failed_connection() {
    let broken = |_: &Observed| in_parts(vec![Ok("{".into()), Err(std::io::Error::other("cut off"))]);
    let azure = Azure::start(broken, issues_tokens(3600), |_| {}).await;
    let error = azure.get("/x?sig=secret").await.unwrap_err();
    assert!(matches!(error, TransportError::Connection(_)), "{error}");
    assert!(!error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn slow_answer_times_out() {
    let short = |settings: &mut HttpSettings| settings.total_timeout = Duration::from_secs(1);
    let azure = Azure::start(|_| Reply::Never, issues_tokens(3600), short).await;
    assert_eq!(azure.get("/x").await.unwrap_err(), TransportError::Timeout);
    assert_eq!(azure.arm.observed().len(), 1);
}

#[rstest::rstest]
#[case::other_name("another CA")]
#[case::same_name("test CA")]
#[tokio::test]
async fn server_of_an_unknown_authority_gets_no_token(#[case] trusted: &str) {
    let other = Ca::named(trusted);
    let theirs: PathBuf = other.file.path().into();
    let trust_the_other = |settings: &mut HttpSettings| settings.ca_file = Some(theirs);
    let azure = Azure::start(|_| answer(200, ""), issues_tokens(3600), trust_the_other).await;
    let error = azure.get("/x").await.unwrap_err();
    assert_eq!(
        error.to_string(),
        "no token from the token endpoint: the server's certificate comes from an unknown authority"
    );
    assert_eq!((azure.authority.observed().len(), azure.arm.connections()), (0, 0));
}

#[tokio::test]
async fn certificate_for_another_name_is_refused() {
    let azure = Azure::start(|_| answer(200, ""), issues_tokens(3600), |_| {}).await;
    let other = Server::https_named(&azure.ca, "elsewhere.example").await;
    let cloud = AzureCloud::custom(&other.url(), &azure.authority.url(), AUDIENCE).unwrap();
    let client = settings(&azure.ca).client().unwrap();
    let transport = HttpsTransport::new(client, &cloud, Arc::new(azure.tokens.clone()));
    let request = http::Request::get(other.url()).body(Bytes::new()).unwrap();
    assert_eq!(
        transport.send(request).await.unwrap_err(),
        TransportError::Connection("the server's certificate is for another name".into())
    );
    assert_eq!(other.observed().len(), 0);
}

#[tokio::test]
async fn closed_port_is_a_failed_connection() {
    let azure = Azure::start(|_| answer(200, ""), issues_tokens(3600), |_| {}).await;
    let free = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("https://{}", free.local_addr().unwrap());
    drop(free);
    let cloud = AzureCloud::custom(&url, &azure.authority.url(), AUDIENCE).unwrap();
    let client = settings(&azure.ca).client().unwrap();
    let transport = HttpsTransport::new(client, &cloud, Arc::new(azure.tokens.clone()));
    let request = http::Request::get(url).body(Bytes::new()).unwrap();
    assert_eq!(
        transport.send(request).await.unwrap_err(),
        TransportError::Connection("connection refused".into())
    );
}

#[rstest::rstest]
#[case::no_exception(None, 2)]
#[case::other_exception(Some("example.com,10.0.0.0/8"), 2)]
#[case::address(Some("example.com, 127.0.0.1"), 0)]
#[case::network(Some("127.0.0.0/8"), 0)]
#[case::everything(Some("*"), 0)]
#[tokio::test]
async fn proxy_is_used_unless_the_host_is_excepted(#[case] except: Option<&str>, #[case] tunnels: usize) {
    let proxy = Tunnels::start(true).await;
    let azure = Azure::start(
        |_| answer(200, "ok"),
        issues_tokens(3600),
        |settings| {
            settings.proxy = ProxySettings {
                https_proxy: Some(proxy.address.to_string().into()),
                no_proxy: except.map(Into::into),
            };
        },
    )
    .await;
    for _ in 0..3 {
        assert_eq!(azure.get("/x").await.unwrap().body(), "ok");
    }
    assert_eq!(proxy.asked(), tunnels, "one for the authority, one for ARM");
}

#[tokio::test]
async fn refusing_proxy_is_named() {
    let proxy = Tunnels::start(false).await;
    let azure = Azure::start(
        |_| answer(200, ""),
        issues_tokens(3600),
        |settings| {
            settings.proxy.https_proxy = Some(format!("http://{}", proxy.address).into());
        },
    )
    .await;
    let error = azure.get("/x").await.unwrap_err().to_string();
    assert!(error.ends_with("the proxy refused to connect"), "{error}");
    assert_eq!((azure.authority.connections(), azure.arm.connections()), (0, 0));
}
