//! Fault rules on calls that are not ARM's (token endpoints, managed identities, discovery): the answer that a rule
//! sets, in the form of the endpoint. Faults of ARM calls are the engine's.

use bytes::Bytes;
use http::{Response, StatusCode};
use serde_json::Value;

use super::http_json;
use crate::engine::disturb::lay_over;
use crate::{Answer, FaultAction, WireFault};

/// Applies a rule to an answer. `answer` is not called where the rule lets nothing be applied; `refusal` makes the body
/// of a status from it, a code and a message.
pub(super) fn disturb(
    fault: Option<FaultAction>,
    refusal: impl FnOnce(u16, &str, &str) -> Value,
    answer: impl FnOnce() -> Response<Bytes>,
) -> Answer {
    let Some(fault) = fault else {
        return Answer {
            response: answer(),
            wire: WireFault::default(),
        };
    };
    let mut response = match fault.status {
        Some(status) => {
            let code = fault.code.as_deref().unwrap_or("temporarily_unavailable");
            let message = fault.message.as_deref().unwrap_or("An error occurred.");
            http_json(
                StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR),
                &refusal(status, code, message),
            )
        }
        None => answer(),
    };
    lay_over(&mut response, &fault);
    Answer {
        response,
        wire: fault.into(),
    }
}
