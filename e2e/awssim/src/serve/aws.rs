//! The HTTPS address: reads a request whole and hands it to the state machine.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use http::{Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use hyper::body::Incoming;
use jiff::Timestamp;
use simulator::wire::{Dropped, WireBody, perform};
use tokio::time::timeout;

use super::Shared;

/// The largest body that is read, in bytes.
const MAX_BODY: usize = 1024 * 1024;
/// What a client may take to send a body.
const BODY: Duration = Duration::from_secs(60);

/// Answers a request, or breaks the connection.
///
/// # Errors
/// The client did not send what it promised, or a fault rule forbids an answer.
pub(super) async fn answer(shared: Arc<Shared>, request: Request<Incoming>) -> Result<Response<WireBody>, Dropped> {
    let (parts, body) = request.into_parts();
    let body = match timeout(BODY, Limited::new(body, MAX_BODY).collect()).await {
        Ok(Ok(body)) => body.to_bytes(),
        Ok(Err(error)) if error.is::<LengthLimitError>() => return Ok(too_large()),
        Ok(Err(_)) | Err(_) => return Err(Dropped),
    };
    let request = Request::from_parts(parts, body);
    let answer = {
        let mut simulation = shared.lock();
        let now = simulation.clock.now();
        let speed = simulation.clock.read().speed;
        simulation.aws.set_callers_behind(now.duration_since(Timestamp::now()));
        let mut answer = simulation.aws.handle(now, &request);
        // What AWS takes is simulated time.
        answer.wire.delay = answer.wire.delay.map(|delay| delay.div_f64(speed.max(1.0)));
        answer
    };
    perform(answer).await
}

fn too_large() -> Response<WireBody> {
    let mut response = Response::new(WireBody::whole(Bytes::from_static(b"<ErrorResponse/>")));
    *response.status_mut() = StatusCode::PAYLOAD_TOO_LARGE;
    // The rest of the body is still on its way.
    let close = http::HeaderValue::from_static("close");
    response.headers_mut().insert(header::CONNECTION, close);
    response
}
