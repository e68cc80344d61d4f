//! Calls to a simulator's control API, as a cloud controller needs them.

use bytes::Bytes;
use http::{Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Full};
use hyper_util::{
    client::legacy::{Client, connect::HttpConnector},
    rt::TokioExecutor,
};
use serde_json::Value;

/// One call may take this long.
const CALL_TIMEOUT: std::time::Duration = std::time::Duration::from_secs(10);

/// A call to the control API that did not do what it was for.
#[derive(Debug, thiserror::Error)]
pub enum ControlError {
    /// No answer.
    #[error("control face does not answer: {0}")]
    Unreachable(String),
    /// An answer that is not success.
    #[error("control face answered {0}: {1}")]
    Refused(StatusCode, String),
}

/// The control API at one address.
#[derive(Debug, Clone)]
pub struct ControlClient {
    base: String,
    client: Client<HttpConnector, Full<Bytes>>,
}

impl ControlClient {
    /// A client of the control API at `base`, `http://127.0.0.1:PORT`.
    pub fn new(base: &str) -> Self {
        Self {
            base: base.trim_end_matches('/').to_owned(),
            client: Client::builder(TokioExecutor::new()).build_http(),
        }
    }

    /// All resources whose id starts like this.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn list(&self, prefix: &str) -> Result<Vec<Value>, ControlError> {
        let path = format!("/resources?{}", query(&[("prefix", prefix)]));
        let list = self.call(Method::GET, &path, None).await?;
        Ok(serde_json::from_value(list).unwrap_or_default())
    }

    /// Carries out one call; returns the answer's JSON.
    ///
    /// # Errors
    /// No answer, or a refusal.
    pub async fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, ControlError> {
        let unreachable = |error: String| ControlError::Unreachable(error);
        let bytes = body.map(Value::to_string).unwrap_or_default();
        let request = Request::builder()
            .method(method)
            .uri(format!("{}{path}", self.base))
            .header("content-type", "application/json")
            .body(Full::from(bytes))
            .map_err(|error| unreachable(error.to_string()))?;
        let exchange = async {
            let response = self
                .client
                .request(request)
                .await
                .map_err(|error| unreachable(error.to_string()))?;
            let status = response.status();
            let bytes = response
                .into_body()
                .collect()
                .await
                .map_err(|error| unreachable(error.to_string()))?
                .to_bytes();
            Ok((status, bytes))
        };
        let (status, bytes) = tokio::time::timeout(CALL_TIMEOUT, exchange)
            .await
            .map_err(|_| unreachable("timed out".into()))??;
        if !status.is_success() {
            return Err(ControlError::Refused(
                status,
                String::from_utf8_lossy(&bytes).into_owned(),
            ));
        }
        Ok(serde_json::from_slice(&bytes).unwrap_or(Value::Null))
    }
}

/// The query of a URL.
pub fn query(pairs: &[(&str, &str)]) -> String {
    url::form_urlencoded::Serializer::new(String::new())
        .extend_pairs(pairs)
        .finish()
}
