//! Where sessions come from: the credentials file with what it names, or a role that another identity assumes.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use async_trait::async_trait;
use hyperlink_engine::credential_cache::Issuer;

use crate::api::client::Connection;
use crate::credentials::file::{self, FileStamp, IdentitySource, Profile};
use crate::credentials::{CredentialError, Session, SessionSource, metadata};
use crate::role_arn::RoleArn;
use crate::sts;

/// A new session; without an end if its keys do not expire.
pub(crate) type Issued = hyperlink_engine::credential_cache::Issued<Session>;

/// The identity of the credentials file. The file and the token file are read for each session.
pub(super) struct ProfileIssuer {
    connection: Connection,
    path: PathBuf,
    session_name: String,
    read: Mutex<Option<FileStamp>>,
}

impl ProfileIssuer {
    pub(super) fn new(connection: Connection, path: PathBuf, session_name: &str) -> Self {
        Self {
            connection,
            path,
            session_name: session_name.to_owned(),
            read: Mutex::default(),
        }
    }
}

#[async_trait]
impl Issuer<Session> for ProfileIssuer {
    async fn issue(&self) -> Result<Issued, CredentialError> {
        let stamp = FileStamp::of(&self.path);
        *self.read.lock().unwrap_or_else(PoisonError::into_inner) = Some(stamp);
        let connection = &self.connection;
        match Profile::read(&self.path)?.source {
            IdentitySource::Keys(session) => Ok(Issued {
                credential: session,
                life: None,
            }),
            IdentitySource::WebIdentity { role, token_file } => {
                let token = file::web_identity_token(&token_file)?;
                sts::assume_role_with_web_identity(connection, &role, &self.session_name, &token).await
            }
            IdentitySource::InstanceMetadata { role } => {
                let instance = metadata::session(connection).await?;
                let assumed = sts::assume_role(connection, &instance.credential, &role, &self.session_name).await;
                assumed.map_err(|error| CredentialError::of_call(&error))
            }
        }
    }

    fn is_outdated(&self) -> bool {
        let read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        read.as_ref().is_some_and(|stamp| *stamp != FileStamp::of(&self.path))
    }
}

/// A role that another identity assumes.
pub(super) struct RoleIssuer {
    pub(super) connection: Connection,
    pub(super) base: Arc<dyn SessionSource>,
    pub(super) role: RoleArn,
    pub(super) session_name: String,
}

#[async_trait]
impl Issuer<Session> for RoleIssuer {
    async fn issue(&self) -> Result<Issued, CredentialError> {
        let base = self.base.session().await?;
        let assumed = sts::assume_role(&self.connection, &base, &self.role, &self.session_name).await;
        assumed.map_err(|error| {
            if error.refuses_session() {
                self.base.invalidate(&base);
            }
            CredentialError::of_call(&error)
        })
    }
}
