//! Who may read metrics where they are served by TLS: whoever brings a token that the API server knows, of somebody who may `get` the
//! path `/metrics`. Where in doubt, nobody.
//!
//! Answers are kept for a short time, so that scraping costs the API server next to nothing and a right that is taken away soon counts.

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

/// How long the right to read is believed.
const GRANTED: Duration = Duration::from_secs(60);
/// How long a refusal is: people try again as soon as they have set a right.
const REFUSED: Duration = Duration::from_secs(5);
/// The API server has this long to answer.
const PATIENCE: Duration = Duration::from_secs(5);
/// Questions at once, so that strangers cannot drown the API server.
const AT_ONCE: usize = 4;
/// Answers that are kept. Nobody has so many scrapers.
const MOST: usize = 256;

/// Whether somebody may read metrics.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Verdict {
    /// Yes.
    Granted,
    /// We do not know who it is.
    Unknown,
    /// We know, and it may not.
    Forbidden,
    /// The API server has not told.
    Unanswered,
}

impl Verdict {
    fn lasts(self) -> Duration {
        match self {
            Verdict::Granted => GRANTED,
            Verdict::Unknown | Verdict::Forbidden => REFUSED,
            Verdict::Unanswered => Duration::ZERO,
        }
    }
}

impl IntoResponse for Verdict {
    fn into_response(self) -> Response {
        match self {
            Verdict::Granted => StatusCode::OK.into_response(),
            Verdict::Unknown => {
                let how = [(header::WWW_AUTHENTICATE, "Bearer")];
                (StatusCode::UNAUTHORIZED, how, "a bearer token is needed\n").into_response()
            }
            Verdict::Forbidden => (StatusCode::FORBIDDEN, "get /metrics is not allowed\n").into_response(),
            Verdict::Unanswered => {
                let why = "the API server does not say who may read metrics\n";
                (StatusCode::SERVICE_UNAVAILABLE, why).into_response()
            }
        }
    }
}

/// A token is never kept, only what it hashes to.
type Key = [u8; 32];

/// Asks the API server, and remembers.
pub(super) struct Access {
    kube: kube::Client,
    known: Mutex<HashMap<Key, (Verdict, Instant)>>,
    turns: Semaphore,
}

impl Access {
    /// With a client of its own: it writes nothing, so it asks no gate, and a standby is scraped like a leader.
    pub(super) fn new(mut kube: kube::Config) -> kube::Result<Self> {
        kube.default_retry = false;
        Ok(Self::over(kube::Client::try_from(kube)?))
    }

    fn over(kube: kube::Client) -> Self {
        Self {
            kube,
            known: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
        }
    }

    /// Whether whoever sent this header may read metrics.
    pub(super) async fn verdict(&self, authorization: Option<&HeaderValue>) -> Verdict {
        let Some(token) = authorization.and_then(bearer) else {
            return Verdict::Unknown;
        };
        let key: Key = Sha256::digest(token).into();
        if let Some(verdict) = self.remembered(&key) {
            return verdict;
        }
        let Ok(_turn) = self.turns.acquire().await else {
            return Verdict::Unanswered;
        };
        // Somebody with the same token may have been first.
        if let Some(verdict) = self.remembered(&key) {
            return verdict;
        }
        let verdict = match tokio::time::timeout(PATIENCE, self.ask(token)).await {
            Ok(Ok(verdict)) => verdict,
            Ok(Err(error)) => {
                tracing::warn!(%error, "cannot ask who may read metrics");
                Verdict::Unanswered
            }
            Err(_) => {
                tracing::warn!("the API server does not say in time who may read metrics");
                Verdict::Unanswered
            }
        };
        self.remember(key, verdict);
        verdict
    }

    async fn ask(&self, token: &str) -> kube::Result<Verdict> {
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
            return Ok(Verdict::Unknown);
        };
        let review = may_read(user);
        let reviewed = Api::all(self.kube.clone()).create(&once, &review).await?;
        let allowed = reviewed.status.is_some_and(|status| status.allowed);
        Ok(if allowed { Verdict::Granted } else { Verdict::Forbidden })
    }

    fn remembered(&self, key: &Key) -> Option<Verdict> {
        let known = self.known();
        let (verdict, until) = known.get(key)?;
        (Instant::now() < *until).then_some(*verdict)
    }

    fn remember(&self, key: Key, verdict: Verdict) {
        let now = Instant::now();
        let mut known = self.known();
        known.retain(|_, (_, until)| now < *until);
        if known.len() < MOST && verdict.lasts() > Duration::ZERO {
            known.insert(key, (verdict, now + verdict.lasts()));
        }
    }

    fn known(&self) -> MutexGuard<'_, HashMap<Key, (Verdict, Instant)>> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The token of `Bearer TOKEN`; the scheme in any case, as RFC 9110 has it.
fn bearer(header: &HeaderValue) -> Option<&str> {
    let (scheme, token) = header.to_str().ok()?.split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

/// The question whether somebody may `get` the path.
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

    /// Over an API server that answers like this, and the questions that it got. `good` and `other` are tokens; `good` may read.
    fn access(answers: bool) -> (Access, Arc<Mutex<Vec<Value>>>) {
        let asked = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&asked);
        let server = tower::service_fn(move |request: Request<Body>| {
            let seen = Arc::clone(&seen);
            async move {
                let body = request.into_body().collect_bytes().await?;
                let mut review: Value = serde_json::from_slice(&body)?;
                seen.lock().unwrap().push(review.clone());
                if !answers {
                    return std::future::pending().await;
                }
                review["status"] = match review["spec"]["token"].as_str() {
                    Some(token @ ("good" | "other")) => {
                        json!({"authenticated": true, "user": {"username": token, "groups": ["g"], "uid": "u"}})
                    }
                    Some(_) => json!({"authenticated": false, "error": "no"}),
                    None => json!({"allowed": review["spec"]["user"] == "good"}),
                };
                Ok::<_, tower::BoxError>(Response::new(Body::from(serde_json::to_vec(&review)?)))
            }
        });
        (Access::over(kube::Client::new(server, "default")), asked)
    }

    async fn ask(access: &Access, header: &str) -> Verdict {
        access.verdict(Some(&HeaderValue::from_str(header).unwrap())).await
    }

    #[rstest]
    #[case::may_read("Bearer good", Verdict::Granted)]
    #[case::scheme_in_small_letters("bearer good", Verdict::Granted)]
    #[case::may_not_read("Bearer other", Verdict::Forbidden)]
    #[case::not_a_token("Bearer forged", Verdict::Unknown)]
    #[case::another_scheme("Basic good", Verdict::Unknown)]
    #[case::no_token("Bearer ", Verdict::Unknown)]
    #[tokio::test]
    async fn verdict_on_a_header(#[case] header: &str, #[case] expected: Verdict) {
        assert_eq!(ask(&access(true).0, header).await, expected);
    }

    #[tokio::test]
    async fn without_a_header_nobody_is_asked() {
        let (access, asked) = access(true);
        assert_eq!(access.verdict(None).await, Verdict::Unknown);
        assert_eq!(asked.lock().unwrap().len(), 0);
    }

    #[tokio::test]
    async fn the_question_is_about_that_user_and_that_path() {
        let (access, asked) = access(true);
        ask(&access, "Bearer good").await;
        let spec = &asked.lock().unwrap()[1]["spec"];
        let expected = json!({"user": "good", "groups": ["g"], "uid": "u",
            "nonResourceAttributes": {"path": "/metrics", "verb": "get"}});
        assert_eq!(*spec, expected);
    }

    #[tokio::test(start_paused = true)]
    async fn answers_are_believed_for_a_while_and_refusals_for_a_short_one() {
        let (access, asked) = access(true);
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
        let (access, asked) = access(false);
        assert_eq!(ask(&access, "Bearer good").await, Verdict::Unanswered);
        assert_eq!(ask(&access, "Bearer good").await, Verdict::Unanswered);
        assert_eq!(asked.lock().unwrap().len(), 2);
    }

    #[tokio::test(start_paused = true)]
    async fn flood_of_tokens_does_not_fill_the_memory() {
        let (access, _) = access(true);
        for n in 0..2 * MOST {
            ask(&access, &format!("Bearer forged-{n}")).await;
        }
        assert_eq!(access.known().len(), MOST);
        // Somebody who may read still can.
        assert_eq!(ask(&access, "Bearer good").await, Verdict::Granted);
    }
}
