//! Credentials files, and sessions by answers of STS and of the instance metadata service: any input is an error of
//! bounded size, or keys that a request can be signed with.

use std::sync::Arc;

use async_trait::async_trait;
use hyperlink_aws::api::client::Connection;
use hyperlink_aws::api::error::AwsError;
use hyperlink_aws::credentials::{CredentialError, IdentitySource, Profile, Session, SessionCache, SessionSource};
use hyperlink_aws::role_arn::RoleArn;
use hyperlink_aws::sts::caller_account;

use super::aws::{Answers, connection, is_bounded, run};

const ROLE: &str = "arn:aws:iam::123456789012:role/a/b";

/// A credentials file. Keys in it sign a request.
pub fn credentials(data: &[u8]) {
    let profile = match Profile::parse(&String::from_utf8_lossy(data)) {
        Ok(profile) => profile,
        Err(why) => return assert!(why.len() < 200 && !why.contains(char::is_control), "{why}"),
    };
    if let IdentitySource::Keys(session) = profile.source {
        let answers = Arc::new(Answers::of(200, b""));
        let keys = Keys(Arc::new(session));
        let error = run(caller_account(&connection(answers.clone()), &keys)).unwrap_err();
        is_bounded(&error);
        assert!(answers.sent() > 0, "keys that cannot sign: {error:?}");
    }
}

/// The error of a request signed by a session that the answers give, if it has one.
pub(super) async fn error_of_session(call: &str, connection: &Connection) -> Option<AwsError> {
    let folder = tempfile::tempdir().unwrap();
    let (file, token) = (folder.path().join("file"), folder.path().join("token"));
    let source = match call {
        "web-identity" => format!("web_identity_token_file = {}", token.display()),
        _ => "credential_source = Ec2InstanceMetadata".to_owned(),
    };
    std::fs::write(&token, "a.b.c").unwrap();
    std::fs::write(&file, format!("[default]\nrole_arn = {ROLE}\n{source}\n")).unwrap();
    let sessions = match call {
        "role" => {
            let base = Arc::new(Keys(Arc::new(Session::new("AKIA1", "secret".into(), None))));
            SessionCache::of_role(connection.clone(), base, RoleArn::parse(ROLE).unwrap(), "x")
        }
        _ => SessionCache::of_profile(connection.clone(), file, "x"),
    };
    let error = caller_account(connection, &sessions).await.err()?;
    // A session is obtained in a task of its own, whose panic is nobody else's.
    assert!(!error.text.contains("broken off"), "{error:?}");
    Some(error)
}

/// Keys that stay.
pub(super) struct Keys(pub(super) Arc<Session>);

#[async_trait]
impl SessionSource for Keys {
    async fn session(&self) -> Result<Arc<Session>, CredentialError> {
        Ok(self.0.clone())
    }

    fn invalidate(&self, _: &Arc<Session>) {}
}
