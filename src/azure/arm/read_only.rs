//! The transport of a process that must change nothing: it sends reads only.

use std::sync::Arc;

use async_trait::async_trait;
use bytes::Bytes;
use http::{Method, Request, Response};

use crate::arm::transport::{Transport, TransportError};

/// A transport that sends GET requests and refuses all others.
pub struct ReadOnly(pub Arc<dyn Transport>);

#[async_trait]
impl Transport for ReadOnly {
    async fn ready(&self) -> Result<(), TransportError> {
        self.0.ready().await
    }

    async fn send(&self, request: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
        if *request.method() == Method::GET {
            self.0.send(request).await
        } else {
            Err(TransportError::ReadOnly)
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use rstest::rstest;

    use super::*;

    /// Answers every request and counts them.
    #[derive(Default)]
    struct Azure(AtomicUsize);

    #[async_trait]
    impl Transport for Azure {
        async fn ready(&self) -> Result<(), TransportError> {
            Ok(())
        }

        async fn send(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(Response::new(Bytes::new()))
        }
    }

    #[rstest]
    #[case::get(Method::GET, true)]
    #[case::head(Method::HEAD, false)]
    #[case::put(Method::PUT, false)]
    #[case::delete(Method::DELETE, false)]
    #[case::post(Method::POST, false)]
    #[case::patch(Method::PATCH, false)]
    #[tokio::test]
    async fn only_reads_are_sent(#[case] method: Method, #[case] sent: bool) {
        let azure = Arc::new(Azure::default());
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = method;
        let answer = ReadOnly(azure.clone()).send(request).await;
        assert_eq!(answer.is_ok(), sent);
        assert_eq!(azure.0.load(Ordering::SeqCst), usize::from(sent));
    }
}
