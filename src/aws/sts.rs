//! The Security Token Service: sessions of roles, for an hour, and whose account a session is of.
//!
//! API: <https://docs.aws.amazon.com/STS/latest/APIReference/>

use std::time::{Duration, SystemTime};

use bytes::Bytes;
use http::Response;
use jiff::Timestamp;
use secrecy::{ExposeSecret, SecretString};

use crate::api::action::Action;
use crate::api::client::Connection;
use crate::api::clock::date;
use crate::api::error::AwsError;
use crate::api::exchange::document;
use crate::api::request::ServiceRequest;
use crate::credentials::{CredentialError, Issued, Session, SessionSource};
use crate::role_arn::RoleArn;
use crate::wire::form::Form;
use crate::wire::xml::Malformed;

/// How long a session is valid. A role that assumes a role gets no longer one.
///
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/id_roles.html>
const SESSION_LIFE: Duration = Duration::from_secs(3_600);

/// The account of the identity of `sessions`. No policy is needed for this call, and none can deny it.
///
/// API: <https://docs.aws.amazon.com/STS/latest/APIReference/API_GetCallerIdentity.html>
///
/// # Errors
/// There is no session, or AWS's, or the answer cannot be read. A session that AWS refuses is not used again.
pub async fn caller_account(connection: &Connection, sessions: &dyn SessionSource) -> Result<String, AwsError> {
    let request = ServiceRequest::query(Action::GetCallerIdentity, &Form::default());
    let session = sessions.session().await.map_err(|error| error.of_unsent_call())?;
    let mut sent = connection.send(&request, Some(&session), account).await;
    if sent.as_ref().is_err_and(|failed| failed.corrected_clock) {
        sent = connection.send(&request, Some(&session), account).await;
    }
    sent.map_err(|failed| {
        if failed.error.refuses_session() {
            sessions.invalidate(&session);
        }
        failed.error
    })
}

fn account(answer: &Response<Bytes>) -> Result<String, Malformed> {
    let root = document(Action::GetCallerIdentity, answer)?;
    let account = root.required_child("GetCallerIdentityResult")?.required("Account")?;
    let is_account = account.len() == 12 && account.bytes().all(|digit| digit.is_ascii_digit());
    is_account.then_some(account).ok_or(Malformed::Unreadable("Account"))
}

/// Assumes a role as the identity of `base`.
///
/// # Errors
/// AWS's, or the answer cannot be read.
pub(crate) async fn assume_role(
    connection: &Connection,
    base: &Session,
    role: &RoleArn,
    session_name: &str,
) -> Result<Issued, AwsError> {
    let request = ServiceRequest::query(Action::AssumeRole, &form(role, session_name));
    let sent = connection.send(&request, Some(base), |answer| issued(Action::AssumeRole, answer));
    match sent.await {
        Ok(issued) => Ok(issued),
        Err(failed) if failed.corrected_clock => {
            let again = connection.send(&request, Some(base), |answer| issued(Action::AssumeRole, answer));
            again.await.map_err(|failed| failed.error)
        }
        Err(failed) => Err(failed.error),
    }
}

/// Assumes a role with a token of an identity provider. The request is not signed, and the token goes to the Security
/// Token Service only.
pub(crate) async fn assume_role_with_web_identity(
    connection: &Connection,
    role: &RoleArn,
    session_name: &str,
    token: &SecretString,
) -> Result<Issued, CredentialError> {
    const ACTION: Action = Action::AssumeRoleWithWebIdentity;
    let form = form(role, session_name).with("WebIdentityToken", token.expose_secret());
    let request = ServiceRequest::query(ACTION, &form);
    let sent = connection.send(&request, None, |answer| issued(ACTION, answer)).await;
    sent.map_err(|failed| CredentialError::of_call(&failed.error))
}

fn form(role: &RoleArn, session_name: &str) -> Form {
    Form::default()
        .with("RoleArn", role.as_str())
        .with("RoleSessionName", usable_name(session_name))
        .with("DurationSeconds", SESSION_LIFE.as_secs().to_string())
}

/// The name with nothing in it that names of sessions cannot have, 64 characters at most.
fn usable_name(name: &str) -> String {
    let usable = |c: char| c.is_ascii_alphanumeric() || "_=,.@-".contains(c);
    let name = name.chars().map(|c| if usable(c) { c } else { '-' });
    let name: String = name.take(64).collect();
    // The shortest name has two characters.
    if name.len() < 2 { "hyperlink".to_owned() } else { name }
}

fn issued(action: Action, answer: &Response<Bytes>) -> Result<Issued, Malformed> {
    let root = document(action, answer)?;
    let result = match action {
        Action::AssumeRole => root.required_child("AssumeRoleResult")?,
        _ => root.required_child("AssumeRoleWithWebIdentityResult")?,
    };
    let credentials = result.required_child("Credentials")?;
    let expiration = credentials.required("Expiration")?;
    let life = life(&expiration, answer).ok_or(Malformed::Unreadable("Expiration"))?;
    let secret = credentials.required("SecretAccessKey")?;
    let token = credentials.required("SessionToken")?;
    Ok(Issued {
        credential: Session::new(&credentials.required("AccessKeyId")?, secret.into(), Some(token.into())),
        life: Some(life.min(SESSION_LIFE)),
    })
}

/// How long a session is valid from now on that expires at this time, by the clock of its issuer: that of this machine
/// may be wrong. None if the time cannot be read.
pub(crate) fn life(expiration: &str, answer: &Response<Bytes>) -> Option<Duration> {
    let expires: SystemTime = expiration.parse::<Timestamp>().ok()?.into();
    let now = date(answer.headers()).unwrap_or_else(SystemTime::now);
    Some(expires.duration_since(now).unwrap_or_default())
}

#[cfg(test)]
mod tests;
