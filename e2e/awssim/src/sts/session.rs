//! Sessions: temporary keys of a role.

use jiff::{SignedDuration, Timestamp};
use serde::{Deserialize, Serialize};

use crate::engine::state::State;
use crate::iam::caller::unique_id;
use crate::wire::xml::{Xml, group, text};

/// Temporary keys.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct Session {
    pub(crate) access_key_id: String,
    pub(crate) secret: String,
    pub(crate) token: String,
    /// ARN of the role.
    pub(crate) role: String,
    /// ARN of the session.
    pub(crate) arn: String,
    pub(crate) user_id: String,
    pub(crate) expires: Timestamp,
}

/// Which session is asked for.
pub(crate) struct Request<'a> {
    pub(crate) role: &'a str,
    pub(crate) name: &'a str,
    pub(crate) lasts_s: i64,
}

/// Opens a session. The role has been checked.
pub(crate) fn open(state: &mut State, now: Timestamp, request: &Request<'_>) -> Session {
    let Request { role, name, lasts_s } = request;
    let draw = |state: &mut State, parts: usize| -> String {
        (0..parts).map(|_| format!("{:016x}", state.random.bits())).collect()
    };
    let (head, path) = role.split_once(":role/").unwrap_or((role, ""));
    let role_name = path.rsplit('/').next().unwrap_or(path);
    let arn = format!("{}:assumed-role/{role_name}/{name}", head.replacen(":iam:", ":sts:", 1));
    let expires = now.checked_add(SignedDuration::from_secs(*lasts_s)).unwrap_or(now);
    let session = Session {
        access_key_id: format!("ASIA{}", draw(state, 1).to_ascii_uppercase()),
        secret: draw(state, 3).chars().take(40).collect(),
        token: draw(state, 12),
        role: (*role).to_owned(),
        arn,
        user_id: format!("{}:{name}", unique_id("AROA", role)),
        expires,
    };
    state
        .sessions
        .retain(|_, session| now.duration_since(session.expires) < SignedDuration::from_hours(24));
    state.sessions.insert(session.access_key_id.clone(), session.clone());
    session
}

impl Session {
    pub(crate) fn show(&self) -> Vec<Xml> {
        let credentials = vec![
            text("AccessKeyId", &self.access_key_id),
            text("SecretAccessKey", &self.secret),
            text("SessionToken", &self.token),
            text("Expiration", self.expires.strftime("%Y-%m-%dT%H:%M:%SZ")),
        ];
        let user = vec![text("AssumedRoleId", &self.user_id), text("Arn", &self.arn)];
        vec![group("Credentials", credentials), group("AssumedRoleUser", user)]
    }
}
