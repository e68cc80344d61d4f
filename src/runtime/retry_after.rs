//! The wait that the API server asks for when it has too much to do: HTTP 429 with `Retry-After`
//! (<https://kubernetes.io/docs/concepts/cluster-administration/flow-control/>). No request is sent before it is over.

use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};
use std::time::Duration;

use futures::FutureExt;
use futures::future::BoxFuture;
use http::header::RETRY_AFTER;
use http::{Method, Request, Response, StatusCode};
use kube::client::Body;
use tokio::time::{Instant, Sleep, sleep_until};
use tower::{BoxError, Service};

/// The wait if the answer names none, or none in seconds.
const USUAL: Duration = Duration::from_secs(1);
/// The longest wait: a call that waits must not exceed its own time for that.
const LONGEST: Duration = Duration::from_secs(20);

/// Until when no request is sent.
#[derive(Debug, Clone, Default)]
struct NotBefore(Arc<Mutex<Option<Instant>>>);

impl NotBefore {
    fn get(&self) -> Option<Instant> {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn note<B>(&self, answer: &Response<B>) {
        if answer.status() != StatusCode::TOO_MANY_REQUESTS {
            return;
        }
        let asked = answer
            .headers()
            .get(RETRY_AFTER)
            .and_then(|value| value.to_str().ok()?.parse().ok());
        let wait = asked.map_or(USUAL, Duration::from_secs).min(LONGEST);
        let until = Instant::now() + wait;
        let mut not_before = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *not_before = (*not_before).max(Some(until));
    }
}

/// A service that sends nothing while the API server has asked to wait.
pub(super) struct RetryAfter<S> {
    inner: S,
    not_before: NotBefore,
    waiting: Option<Pin<Box<Sleep>>>,
}

impl<S> RetryAfter<S> {
    pub(super) fn new(inner: S) -> Self {
        Self {
            inner,
            not_before: NotBefore::default(),
            waiting: None,
        }
    }
}

impl<S, B> Service<Request<Body>> for RetryAfter<S>
where
    S: Service<Request<Body>, Response = Response<B>, Error = BoxError>,
    S::Future: Send + 'static,
    B: Send + 'static,
{
    type Response = Response<B>;
    type Error = BoxError;
    type Future = BoxFuture<'static, Result<Response<B>, BoxError>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        while let Some(until) = self.not_before.get().filter(|until| *until > Instant::now()) {
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep_until(until)));
            if waiting.deadline() < until {
                waiting.as_mut().reset(until);
            }
            if waiting.poll_unpin(cx).is_pending() {
                return Poll::Pending;
            }
        }
        self.waiting = None;
        self.inner.poll_ready(cx)
    }

    fn call(&mut self, request: Request<Body>) -> Self::Future {
        // Limits of Events are of a namespace or an object, and hold up nothing else.
        let is_event = request.method() == Method::POST && request.uri().path().ends_with("/events");
        let not_before = self.not_before.clone();
        let answered = self.inner.call(request);
        async move {
            let answer = answered.await?;
            if !is_event {
                not_before.note(&answer);
            }
            Ok(answer)
        }
        .boxed()
    }
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use rstest::rstest;
    use tower::{ServiceExt, service_fn};

    use super::*;

    /// After how long the second request is sent, if the first one gets this answer.
    async fn second_after(first: Request<Body>, answer: http::response::Builder) -> Duration {
        let answer = Arc::new(answer.body(()).unwrap());
        let answers = move |_: Request<Body>| {
            let answer = Arc::clone(&answer);
            async move {
                let mut copy = Response::new(());
                *copy.status_mut() = answer.status();
                *copy.headers_mut() = answer.headers().clone();
                Ok::<_, Infallible>(copy)
            }
        };
        let mut service = RetryAfter::new(service_fn(answers).map_err(BoxError::from));
        service.ready().await.unwrap().call(first).await.unwrap();
        let began = Instant::now();
        let second = Request::new(Body::empty());
        service.ready().await.unwrap().call(second).await.unwrap();
        began.elapsed()
    }

    #[tokio::test(start_paused = true)]
    async fn limit_of_events_holds_up_nothing_else() {
        let path = "/apis/events.k8s.io/v1/namespaces/clusters-one/events";
        let limited = || Response::builder().status(429).header(RETRY_AFTER, "7");
        let event = Request::post(path).body(Body::empty()).unwrap();
        assert_eq!(second_after(event, limited()).await, Duration::ZERO);
        let watch = Request::get(path).body(Body::empty()).unwrap();
        assert_eq!(second_after(watch, limited()).await.as_secs(), 7);
    }

    #[rstest]
    #[case::as_asked(429, Some("7"), 7)]
    #[case::without_a_time(429, None, 1)]
    #[case::with_a_date(429, Some("Thu, 26 Nov 2026 08:00:00 GMT"), 1)]
    #[case::too_long(429, Some("86400"), 20)]
    #[case::other_refusal(503, Some("7"), 0)]
    #[case::success(200, Some("7"), 0)]
    #[tokio::test(start_paused = true)]
    async fn next_request_waits(#[case] status: u16, #[case] asked: Option<&str>, #[case] seconds: u64) {
        let answer = Response::builder().status(status);
        let answer = asked
            .into_iter()
            .fold(answer, |answer, asked| answer.header(RETRY_AFTER, asked));
        let first = Request::new(Body::empty());
        assert_eq!(second_after(first, answer).await.as_secs(), seconds);
    }
}
