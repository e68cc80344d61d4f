//! Fault rules on calls that are not ARM's (token endpoints, discovery): the answer that a rule wants, in Entra's form.
//! Faults of ARM calls are the engine's.

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Response, StatusCode};
use serde_json::{Value, json};

use super::http_json;
use crate::{Answer, FaultAction, WireFault};

/// Lets a rule have its way with an answer. `answer` is not even made where the rule says that nothing is applied.
pub(super) fn disturb(
    fault: Option<FaultAction>,
    answer: impl FnOnce() -> Response<Bytes>,
) -> Answer {
    let Some(fault) = fault else {
        return Answer {
            response: answer(),
            wire: WireFault::default(),
        };
    };
    let mut response = match fault.status.map(StatusCode::from_u16) {
        Some(status) => http_json(
            status.unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
            &json!({
                "error": fault.code.as_deref().unwrap_or("temporarily_unavailable"),
                "error_description": fault.message.as_deref().unwrap_or("An error occurred."),
            }),
        ),
        None => answer(),
    };
    match &fault.body {
        Some(Value::String(text)) => *response.body_mut() = Bytes::from(text.clone()),
        Some(json) => *response.body_mut() = Bytes::from(json.to_string()),
        None => {}
    }
    for (name, value) in &fault.headers {
        let text = value
            .as_str()
            .map_or_else(|| value.to_string(), str::to_owned);
        if let (Ok(name), Ok(value)) = (HeaderName::try_from(name), HeaderValue::try_from(text)) {
            response.headers_mut().insert(name, value);
        }
    }
    let wire = WireFault {
        delay: fault.delay_ms.map(std::time::Duration::from_millis),
        drop: fault.drop.filter(|_| fault.status.is_none()),
        cut_body_at: fault.cut_body_at,
        content_length: fault.content_length,
    };
    Answer { response, wire }
}
