//! The session of the machine on which the process runs, by version 2 of the instance metadata service.
//!
//! Source: <https://docs.aws.amazon.com/AWSEC2/latest/UserGuide/instancedata-data-retrieval.html>

use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, Response};
use secrecy::SecretString;
use serde_json::Value;

use crate::api::action::Action;
use crate::api::client::Connection;
use crate::api::error::AwsError;
use crate::api::request::ServiceRequest;
use crate::credentials::issuer::Issued;
use crate::credentials::{CredentialError, Session};
use crate::sts::life;
use crate::wire::form::Form;
use crate::wire::xml::Malformed;

/// How long the instance metadata service may take: it is on the same machine.
const TIMEOUT: Duration = Duration::from_secs(3);

/// The path at which a token is obtained, by a PUT. No other PUT is sent.
pub(crate) const METADATA_TOKEN_PATH: &str = "/latest/api/token";

/// The longest answer that is used, in bytes: the token and the role's name become parts of requests.
const MAX_TEXT: usize = 1_024;

const TTL_HEADER: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token-ttl-seconds");
const TOKEN_HEADER: HeaderName = HeaderName::from_static("x-aws-ec2-metadata-token");

/// Reads the session of the machine's role.
pub(super) async fn session(connection: &Connection) -> Result<Issued, CredentialError> {
    let token = token(connection).await?;
    // An empty name: the list of roles, of which there is at most one.
    let path = |role| ["latest", "meta-data", "iam", "security-credentials", role];
    let roles = get(connection, &path(""), &token, text).await;
    let roles = roles.map_err(|error| of(&error))?;
    let role = roles.lines().next().unwrap_or_default().trim();
    let session = get(connection, &path(role), &token, issued).await;
    session.map_err(|error| of(&error))
}

/// Obtains a token. The answer to this request crosses no more network hops than the machine's setting allows, so it
/// never arrives in a pod of its own network where that is one.
async fn token(connection: &Connection) -> Result<SecretString, CredentialError> {
    let request = ServiceRequest::get(Action::GetMetadataToken, &["latest", "api", "token"], Form::default())
        .put()
        .with_header(TTL_HEADER, "300".into());
    let sent = tokio::time::timeout(TIMEOUT, connection.send(&request, None, text)).await;
    match sent.map(|sent| sent.map_err(|failed| failed.error)) {
        Ok(Ok(token)) => Ok(token.into()),
        Ok(Err(error)) if error.status != 0 => Err(of(&error)),
        _ => Err(CredentialError::Unreachable(
            "the instance metadata service does not answer; in a pod, the machine's hop limit must be 2 or more".into(),
        )),
    }
}

async fn get<T>(
    connection: &Connection,
    path: &[&str],
    token: &SecretString,
    parse: fn(&Response<Bytes>) -> Result<T, Malformed>,
) -> Result<T, AwsError> {
    let request = ServiceRequest::get(Action::GetMetadataCredentials, path, Form::default())
        .with_header(TOKEN_HEADER, token.clone());
    let sent = tokio::time::timeout(TIMEOUT, connection.send(&request, None, parse)).await;
    let sent = sent.map_err(|_| AwsError::own(hyperlink_engine::failure::Class::Down, "Timeout"))?;
    sent.map_err(|failed| failed.error)
}

fn of(error: &AwsError) -> CredentialError {
    match error.status {
        404 => CredentialError::Misconfigured("the machine has no role; give it an instance profile".into()),
        401 | 403 => CredentialError::Misconfigured("the instance metadata service is turned off; turn it on".into()),
        0 | 200 => CredentialError::Unreachable("the instance metadata service gives no usable answer".into()),
        status => CredentialError::Unreachable(format!("the instance metadata service answered {status}")),
    }
}

fn text(answer: &Response<Bytes>) -> Result<String, Malformed> {
    let text = std::str::from_utf8(answer.body()).map_err(|_| Malformed::Unreadable("text"))?;
    match text.trim() {
        text if (1..=MAX_TEXT).contains(&text.len()) => Ok(text.to_owned()),
        _ => Err(Malformed::Unreadable("text")),
    }
}

fn issued(answer: &Response<Bytes>) -> Result<Issued, Malformed> {
    let body: Value = serde_json::from_slice(answer.body()).map_err(|_| Malformed::Unreadable("JSON"))?;
    let field = |name: &'static str| body[name].as_str().ok_or(Malformed::Missing(name));
    if field("Code")? != "Success" {
        return Err(Malformed::Unreadable("Code"));
    }
    let (id, secret, token) = (field("AccessKeyId")?, field("SecretAccessKey")?, field("Token")?);
    let life = life(field("Expiration")?, answer).ok_or(Malformed::Unreadable("Expiration"))?;
    Ok(Issued {
        credential: Session::new(id, secret.into(), Some(token.into())),
        life: Some(life),
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::api::sample::{Calls, FakeAws, answer, connection};
    use crate::api::transport::TransportError;

    const CREDENTIALS: &str = r#"{"Code":"Success","AccessKeyId":"ASIA1","SecretAccessKey":"hunter2","Token":"t",
        "Expiration":"2999-01-01T00:00:00Z","Type":"AWS-HMAC"}"#;

    async fn session_of(aws: &Arc<FakeAws>) -> Result<Issued, CredentialError> {
        session(&connection(aws, &Arc::new(Calls::default()))).await
    }

    #[tokio::test]
    async fn session_is_read_with_a_token() {
        let aws = FakeAws::new([answer(200, "tok"), answer(200, "worker\n"), answer(200, CREDENTIALS)]);
        let issued = session_of(&aws).await.unwrap();
        assert_eq!(issued.credential.access_key_id(), "ASIA1");
        assert_eq!(
            aws.requests(),
            [
                "PUT http://169.254.169.254/latest/api/token",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/",
                "GET http://169.254.169.254/latest/meta-data/iam/security-credentials/worker",
            ]
        );
        assert_eq!(aws.header(0, TTL_HEADER.as_str()).as_deref(), Some("300"));
        assert_eq!(aws.header(2, TOKEN_HEADER.as_str()).as_deref(), Some("tok"));
        assert_eq!(aws.header(2, "authorization"), None);
    }

    #[tokio::test]
    async fn hop_limit_is_named_when_no_answer_comes() {
        let aws = FakeAws::new([Err(TransportError::Timeout)]);
        let error = session_of(&aws).await.unwrap_err();
        assert!(error.to_string().contains("hop limit"), "{error}");
    }

    #[tokio::test]
    async fn machine_without_a_role_and_odd_answers_are_distinguished() {
        let text = async |answers: Vec<_>| session_of(&FakeAws::new(answers)).await.unwrap_err().to_string();
        let no_role = text(vec![answer(200, "tok"), answer(404, "")]).await;
        assert!(no_role.contains("instance profile"), "{no_role}");
        let off = text(vec![answer(403, "")]).await;
        assert!(off.contains("turned off"), "{off}");
        let odd = text(vec![answer(200, "tok"), answer(200, "worker"), answer(200, "<html>")]).await;
        assert_eq!(odd, "no session: the instance metadata service gives no usable answer");
    }
}
