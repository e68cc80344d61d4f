//! What a fault rule changes in an answer that is ready to be sent.

use bytes::Bytes;
use http::{Request, Response, StatusCode};
use serde_json::{Value, json};

use super::fault::FaultAction;
use super::respond::{base, error_body, set};

/// What a fault rule changes in the answer itself.
pub(crate) fn disturb(response: &mut Response<Bytes>, fault: &FaultAction, request: &Request<Bytes>) {
    if let Some(status) = fault.status {
        *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        for name in [
            "azure-asyncoperation",
            "azure-asyncnotification",
            "location",
            "retry-after",
            "etag",
        ] {
            response.headers_mut().remove(name);
        }
        let body = if status >= 400 {
            set(response.headers_mut(), "x-ms-failure-cause", "service");
            let code = fault.code.as_deref().unwrap_or("InternalServerError");
            error_body(code, fault.message.as_deref().unwrap_or("An error occurred.")).to_string()
        } else {
            response.headers_mut().remove("x-ms-failure-cause");
            String::new()
        };
        *response.body_mut() = Bytes::from(body);
    }
    if fault.page_loop
        && let Ok(mut body) = serde_json::from_slice::<Value>(response.body())
    {
        body["nextLink"] = json!(format!(
            "{}{}",
            base(request),
            request.uri().path_and_query().map_or("", |path| path.as_str())
        ));
        *response.body_mut() = Bytes::from(body.to_string());
    }
    if let Some(url) = &fault.poll_url {
        for name in ["azure-asyncoperation", "location"] {
            if response.headers().contains_key(name) {
                set(response.headers_mut(), name, url);
            }
        }
    }
    lay_over(response, fault);
}

/// Body and headers, as the rule has them.
pub(crate) fn lay_over(response: &mut Response<Bytes>, fault: &FaultAction) {
    match &fault.body {
        Some(Value::String(text)) => *response.body_mut() = Bytes::from(text.clone()),
        Some(json) => *response.body_mut() = Bytes::from(json.to_string()),
        None => {}
    }
    for (name, value) in &fault.headers {
        let text = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        set(response.headers_mut(), name, &text);
    }
}
