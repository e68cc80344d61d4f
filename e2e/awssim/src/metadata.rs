//! The instance metadata service of one machine, version 2 alone: whoever shows a token, which only a PUT gives, gets
//! the session of the machine's role.
//!
//! Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>

use std::collections::BTreeMap;

use bytes::Bytes;
use http::{HeaderMap, Method, Response, StatusCode};
use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::engine::state::State;
use crate::sts::session::{self, Session};

/// The longest life of a token, and the life of a session, in seconds.
const SIX_HOURS: i64 = 6 * 3600;
/// How long before the end of a session another one is given.
const OVERLAP: SignedDuration = SignedDuration::from_mins(5);
/// The machine's id, by which its sessions are named.
const INSTANCE: &str = "i-0123456789abcdef0";

/// The machine's role, and what its metadata service has given out.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Machine {
    /// ARN of the role.
    pub(crate) role: Option<String>,
    /// Tokens, and when they end.
    tokens: BTreeMap<String, Timestamp>,
    /// The access key of the latest session.
    session: Option<String>,
}

type Answered = Result<String, StatusCode>;

/// Answers a request to the metadata service.
pub(crate) fn answer(
    state: &mut State,
    now: Timestamp,
    (method, path): (&Method, &str),
    headers: &HeaderMap,
) -> Response<Bytes> {
    let answered = match path {
        "/latest/api/token" => new_token(state, now, method, headers),
        _ => credentials(state, now, method, path, headers),
    };
    let (status, body) = match answered {
        Ok(body) => (StatusCode::OK, body),
        Err(status) => (status, String::new()),
    };
    let mut response = Response::new(Bytes::from(body));
    *response.status_mut() = status;
    response
}

fn new_token(state: &mut State, now: Timestamp, method: &Method, headers: &HeaderMap) -> Answered {
    if method != Method::PUT {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let asked = headers.get("x-aws-ec2-metadata-token-ttl-seconds");
    let seconds = asked.and_then(|text| text.to_str().ok()?.parse::<i64>().ok());
    let seconds = seconds.filter(|seconds| (1..=SIX_HOURS).contains(seconds));
    let seconds = seconds.ok_or(StatusCode::BAD_REQUEST)?;
    let token = format!("{:016x}{:016x}==", state.random.bits(), state.random.bits());
    let ends = now.checked_add(SignedDuration::from_secs(seconds)).unwrap_or(now);
    state.machine.tokens.retain(|_, ends| *ends > now);
    state.machine.tokens.insert(token.clone(), ends);
    Ok(token)
}

fn credentials(state: &mut State, now: Timestamp, method: &Method, path: &str, headers: &HeaderMap) -> Answered {
    if method != Method::GET {
        return Err(StatusCode::METHOD_NOT_ALLOWED);
    }
    let shown = headers.get("x-aws-ec2-metadata-token");
    let ends = shown.and_then(|token| state.machine.tokens.get(token.to_str().ok()?));
    if ends.is_none_or(|ends| *ends <= now) {
        return Err(StatusCode::UNAUTHORIZED);
    }
    let asked = path.strip_prefix("/latest/meta-data/iam/security-credentials/");
    let asked = asked.ok_or(StatusCode::NOT_FOUND)?;
    let role = state.machine.role.clone().ok_or(StatusCode::NOT_FOUND)?;
    let name = role.rsplit('/').next().unwrap_or_default();
    match asked {
        "" => Ok(name.to_owned()),
        _ if asked == name => Ok(shown_session(&session_of(state, now, &role), now)),
        _ => Err(StatusCode::NOT_FOUND),
    }
}

/// The session that is given out now: the latest one until shortly before its end.
fn session_of(state: &mut State, now: Timestamp, role: &str) -> Session {
    let latest = state.machine.session.as_ref().and_then(|key| state.sessions.get(key));
    if let Some(latest) = latest.filter(|latest| latest.expires.duration_since(now) > OVERLAP) {
        return latest.clone();
    }
    let request = session::Request {
        role,
        name: INSTANCE,
        lasts_s: SIX_HOURS,
    };
    let session = session::open(state, now, &request);
    state.machine.session = Some(session.access_key_id.clone());
    session
}

fn shown_session(session: &Session, now: Timestamp) -> String {
    let time = |time: Timestamp| time.strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let shown = json!({
        "Code": "Success",
        "LastUpdated": time(now),
        "Type": "AWS-HMAC",
        "AccessKeyId": session.access_key_id,
        "SecretAccessKey": session.secret,
        "Token": session.token,
        "Expiration": time(session.expires),
    });
    format!("{shown:#}")
}
