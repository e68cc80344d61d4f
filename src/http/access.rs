//! Decides who may read metrics over TLS: a client with a token that the API server knows, of a user who may `get` the
//! path `/metrics`. If in doubt, nobody.
//!
//! Answers are cached for a short time, so that scraping costs the API server almost nothing and a revoked right ends
//! soon.

use std::collections::HashMap;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use k8s_openapi::api::authentication::v1::{TokenReview, TokenReviewSpec, UserInfo};
use k8s_openapi::api::authorization::v1::{NonResourceAttributes, SubjectAccessReview, SubjectAccessReviewSpec};
use kube::Api;
use kube::api::PostParams;
use sha2::{Digest, Sha256};
use tokio::sync::Semaphore;
use tokio::time::Instant;

/// How long it is cached that somebody may read the metrics.
const GRANTED: Duration = Duration::from_secs(60);
/// How long it is cached that somebody may not read the metrics. People try again as soon as they have granted a right.
const REFUSED: Duration = Duration::from_secs(5);
/// How long the API server may take to say whether somebody may read the metrics.
const REVIEW_TIMEOUT: Duration = Duration::from_secs(5);
/// The most reviews at once, so that strangers cannot overload the API server.
const AT_ONCE: usize = 4;
/// The most answers in the cache. Nobody has so many scrapers.
const MOST: usize = 256;

/// Whether somebody may read metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessDecision {
    /// The client may read.
    Granted,
    /// The client is not known.
    Unknown,
    /// The client is known, and may not read.
    Forbidden,
    /// The API server has not answered.
    Unanswered,
}

impl AccessDecision {
    fn lasts(self) -> Duration {
        match self {
            AccessDecision::Granted => GRANTED,
            AccessDecision::Unknown | AccessDecision::Forbidden => REFUSED,
            AccessDecision::Unanswered => Duration::ZERO,
        }
    }
}

impl IntoResponse for AccessDecision {
    fn into_response(self) -> Response {
        match self {
            AccessDecision::Granted => StatusCode::OK.into_response(),
            AccessDecision::Unknown => {
                let how = [(header::WWW_AUTHENTICATE, "Bearer")];
                (StatusCode::UNAUTHORIZED, how, "a bearer token is needed\n").into_response()
            }
            AccessDecision::Forbidden => (StatusCode::FORBIDDEN, "get /metrics is not allowed\n").into_response(),
            AccessDecision::Unanswered => {
                let why = "the API server does not say who may read metrics\n";
                (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
            }
        }
    }
}

/// The hash of a token. The token itself is never kept.
type TokenDigest = [u8; 32];

/// Asks the API server, and caches its answers.
pub(super) struct Access {
    kube: kube::Client,
    cache: Mutex<HashMap<TokenDigest, (AccessDecision, Instant)>>,
    reviews: Semaphore,
    /// Why the API server does not answer; `None` while it does.
    failure: Mutex<Option<String>>,
}

impl Access {
    /// Makes a client of its own: it changes nothing, so it needs no gate, and a standby is scraped like a leader.
    pub(super) fn new(mut kube: kube::Config) -> kube::Result<Self> {
        kube.default_retry = false;
        Ok(Self::over(kube::Client::try_from(kube)?))
    }

    fn over(kube: kube::Client) -> Self {
        Self {
            kube,
            cache: Mutex::default(),
            reviews: Semaphore::new(AT_ONCE),
            failure: Mutex::default(),
        }
    }

    /// Whether the sender of this header may read metrics.
    pub(super) async fn verdict(&self, authorization: Option<&HeaderValue>) -> AccessDecision {
        let Some(token) = authorization.and_then(bearer) else {
            return AccessDecision::Unknown;
        };
        let key: TokenDigest = Sha256::digest(token).into();
        if let Some(verdict) = self.cached(&key) {
            return verdict;
        }
        let answer = match tokio::time::timeout(REVIEW_TIMEOUT, self.queued_review(key, token)).await {
            Ok(answer) => answer.map_err(|error| error.to_string()),
            Err(_) => Err("no answer in time".to_owned()),
        };
        match answer {
            Ok(verdict) => {
                self.failed(None);
                verdict
            }
            Err(error) => {
                self.failed(Some(error));
                AccessDecision::Unanswered
            }
        }
    }

    /// Asks when fewer than [`AT_ONCE`] reviews run, and caches the answer.
    async fn queued_review(&self, key: TokenDigest, token: &str) -> kube::Result<AccessDecision> {
        // The semaphore is never closed, so this always succeeds.
        let _permit = self.reviews.acquire().await;
        // Another request with the same token may have been first.
        if let Some(verdict) = self.cached(&key) {
            return Ok(verdict);
        }
        let verdict = self.ask(token).await?;
        self.cache_verdict(key, verdict);
        Ok(verdict)
    }

    /// Logs each failure once, however often strangers ask.
    fn failed(&self, why: Option<String>) {
        let mut failure = self.failure.lock().unwrap_or_else(PoisonError::into_inner);
        if *failure == why {
            return;
        }
        match &why {
            Some(error) => tracing::warn!(error, "the API server does not say who may read metrics"),
            None => tracing::info!("the API server says again who may read metrics"),
        }
        *failure = why;
    }

    async fn ask(&self, token: &str) -> kube::Result<AccessDecision> {
        let review = TokenReview {
            spec: TokenReviewSpec {
                token: Some(token.to_owned()),
                ..TokenReviewSpec::default()
            },
            ..TokenReview::default()
        };
        let once = PostParams::default();
        let reviewed = Api::all(self.kube.clone()).create(&once, &review).await?;
        let status = reviewed.status.unwrap_or_default();
        let (Some(true), Some(user)) = (status.authenticated, status.user) else {
            return Ok(AccessDecision::Unknown);
        };
        let review = may_read(user);
        let reviewed = Api::all(self.kube.clone()).create(&once, &review).await?;
        let allowed = reviewed.status.is_some_and(|status| status.allowed);
        Ok(if allowed {
            AccessDecision::Granted
        } else {
            AccessDecision::Forbidden
        })
    }

    fn cached(&self, key: &TokenDigest) -> Option<AccessDecision> {
        let cache = self.cache();
        let (verdict, until) = cache.get(key)?;
        (Instant::now() < *until).then_some(*verdict)
    }

    fn cache_verdict(&self, key: TokenDigest, verdict: AccessDecision) {
        let now = Instant::now();
        let mut cache = self.cache();
        cache.retain(|_, (_, until)| now < *until);
        if cache.len() < MOST {
            cache.insert(key, (verdict, now + verdict.lasts()));
        }
    }

    fn cache(&self) -> MutexGuard<'_, HashMap<TokenDigest, (AccessDecision, Instant)>> {
        self.cache.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token of `Bearer TOKEN`; the scheme in any case, as RFC 9110 has it.
fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The question whether `user` may `get` the path.
fn may_read(user: UserInfo) -> SubjectAccessReview {
    SubjectAccessReview {
        spec: SubjectAccessReviewSpec {
            non_resource_attributes: Some(NonResourceAttributes {
                path: Some("/metrics".to_owned()),
                verb: Some("get".to_owned()),
            }),
            user: user.username,
            uid: user.uid,
            groups: user.groups,
            extra: user.extra,
            ..SubjectAccessReviewSpec::default()
        },
        ..SubjectAccessReview::default()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use http::{Request, Response};
    use kube::client::Body;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;

    #[derive(Clone, Copy, PartialEq)]
    enum Server {
        Answers,
        Refuses,
        IsSilent,
    }

    /// An [`Access`] over such an API server, and the questions that it got. `good` and `other` are tokens; `good` may
    /// read.
    fn access(is: Server) -> (Access, Arc<Mutex<Vec<Value>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let received = Arc::clone(&asked);
        let server = tower::service_fn(move |request: Request<Body>| {
            let received = Arc::clone(&received);
            async move {
                let body = request.into_body().collect_bytes().await?;
                let mut review: Value = serde_json::from_slice(&body)?;
                received.lock().unwrap().push(review.clone());
                if is == Server::IsSilent {
                    return std::future::pending().await;
                }
                if is == Server::Refuses {
                    let why = json!({"kind": "Status", "status": "Failure", "code": 403, "message": "forbidden"});
                    let body = Body::from(serde_json::to_vec(&why)?);
                    return Ok(Response::builder().status(403).body(body)?);
                }
                let user = |name: &str| json!({"username": name, "groups": ["g"], "uid": "u", "extra": {"e": ["v"]}});
                review["status"] = match review["spec"]["token"].as_str() {
                    Some(token @ ("good" | "other")) => json!({"authenticated": true, "user": user(token)}),
                    Some("expired") => json!({"authenticated": false, "user": user("good")}),
                    Some("nobody's") => json!({"authenticated": true}),
                    Some(_) => json!({"authenticated": false, "error": "no"}),
                    None => json!({"allowed": review["spec"]["user"] == "good"}),
                };
                Ok::<_, tower::BoxError>(Response::new(Body::from(serde_json::to_vec(&review)?)))
            }
        });
        (Access::over(kube::Client::new(server, "default")), asked)
    }

    async fn ask(access: &Access, header: &str) -> AccessDecision {
        access.verdict(Some(&HeaderValue::from_str(header).unwrap())).await
    }

    #[rstest]
    #[case::may_read("Bearer good", AccessDecision::Granted)]
    #[case::scheme_in_small_letters("bearer good", AccessDecision::Granted)]
    #[case::may_not_read("Bearer other", AccessDecision::Forbidden)]
    #[case::not_a_token("Bearer forged", AccessDecision::Unknown)]
    #[case::user_is_named_all_the_same("Bearer expired", AccessDecision::Unknown)]
    #[case::no_user_is_named("Bearer nobody's", AccessDecision::Unknown)]
    #[tokio::test]
    async fn verdict_on_a_token(#[case] header: &str, #[case] expected: AccessDecision) {
        assert_eq!(ask(&access(Server::Answers).0, header).await, expected);
    }

    #[tokio::test]
    async fn without_a_bearer_token_nobody_is_asked() {
        let (access, asked) = access(Server::Answers);
        assert_eq!(access.verdict(None).await, AccessDecision::Unknown);
        for header in ["Basic good", "good", "Bearer", "Bearer ", "Bearer  "] {
            assert_eq!(ask(&access, header).await, AccessDecision::Unknown, "{header}");
        }
        assert_eq!(asked.lock().unwrap().len(), 0);
    }

    #[rstest]
    #[case(AccessDecision::Unknown, 401, Some("Bearer"))]
    #[case(AccessDecision::Forbidden, 403, None)]
    #[case(AccessDecision::Unanswered, 503, None)]
    fn refusal_as_an_answer(#[case] verdict: AccessDecision, #[case] status: u16, #[case] how: Option<&str>) {
        let answer = verdict.into_response();
        assert_eq!(answer.status(), status);
        let shown = answer.headers().get(header::WWW_AUTHENTICATE);
        assert_eq!(shown.map(|how| how.to_str().unwrap()), how);
    }

    #[tokio::test]
    async fn the_question_is_about_that_user_and_that_path() {
        let (access, asked) = access(Server::Answers);
        ask(&access, "Bearer good").await;
        let asked = asked.lock().unwrap();
        // No audience is named, so the API server's own counts.
        assert_eq!(asked[0]["spec"], json!({"token": "good"}));
        let expected = json!({"user": "good", "groups": ["g"], "uid": "u", "extra": {"e": ["v"]},
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
        assert_eq!(asked[1]["spec"], expected);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_cached_for_a_while_and_refusals_for_less() {
        let (access, asked) = access(Server::Answers);
        let questions = || asked.lock().unwrap().len();
        for (header, lasts, each) in [
            ("Bearer good", GRANTED, 2),
            ("Bearer other", REFUSED, 2),
            ("Bearer forged", REFUSED, 1),
        ] {
            let before = questions();
            let first = ask(&access, header).await;
            tokio::time::advance(lasts - Duration::from_secs(1)).await;
            assert_eq!(ask(&access, header).await, first);
            assert_eq!(questions(), before + each, "{header}");
            tokio::time::advance(Duration::from_secs(2)).await;
            ask(&access, header).await;
            assert_eq!(questions(), before + 2 * each, "{header}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn silent_api_server_lets_nobody_in_and_is_asked_again() {
        let (access, asked) = access(Server::IsSilent);
        let began = Instant::now();
        assert_eq!(ask(&access, "Bearer good").await, AccessDecision::Unanswered);
        assert_eq!(ask(&access, "Bearer good").await, AccessDecision::Unanswered);
        assert_eq!(asked.lock().unwrap().len(), 2);
        assert_eq!(began.elapsed(), REVIEW_TIMEOUT * 2);
    }

    #[tokio::test]
    async fn api_server_that_refuses_the_question_lets_nobody_in() {
        let (access, asked) = access(Server::Refuses);
        assert_eq!(ask(&access, "Bearer good").await, AccessDecision::Unanswered);
        assert_eq!(asked.lock().unwrap().len(), 1);
    }

    #[tokio::test(start_paused = true)]
    async fn crowd_of_strangers_asks_few_questions_and_waits_like_one() {
        let (access, asked) = access(Server::IsSilent);
        let began = Instant::now();
        let headers: Vec<_> = (0..5 * AT_ONCE).map(|n| format!("Bearer forged-{n}")).collect();
        let verdicts = futures::future::join_all(headers.iter().map(|header| ask(&access, header))).await;
        assert!(verdicts.iter().all(|verdict| *verdict == AccessDecision::Unanswered));
        assert_eq!(asked.lock().unwrap().len(), AT_ONCE);
        assert_eq!(began.elapsed(), REVIEW_TIMEOUT);
    }

    #[tokio::test]
    async fn those_who_wait_with_the_same_token_do_not_ask_again() {
        let (access, asked) = access(Server::Answers);
        let verdicts = futures::future::join_all((0..5 * AT_ONCE).map(|_| ask(&access, "Bearer good"))).await;
        assert!(verdicts.iter().all(|verdict| *verdict == AccessDecision::Granted));
        assert!(asked.lock().unwrap().len() <= 2 * AT_ONCE);
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_tokens_does_not_fill_the_memory() {
        let (access, asked) = access(Server::Answers);
        for n in 0..2 * MOST {
            ask(&access, &format!("Bearer forged-{n}")).await;
        }
        assert_eq!(access.cache().len(), MOST);
        // Somebody who may read still can, and is cached as soon as there is room.
        assert_eq!(ask(&access, "Bearer good").await, AccessDecision::Granted);
        tokio::time::advance(REFUSED).await;
        ask(&access, "Bearer good").await;
        let before = asked.lock().unwrap().len();
        assert_eq!(ask(&access, "Bearer good").await, AccessDecision::Granted);
        assert_eq!(asked.lock().unwrap().len(), before);
    }
}
