//! Requests tokens from the authority, through azure_identity.
//!
//! A credential is built for every request. So its file is read again, and azure_identity's own cache, which returns a
//! token until only 300 s of its life are left, is not used. There is no instance discovery: the only request is the
//! one for the token.

use std::sync::Arc;
use std::time::{Duration, SystemTime};

use async_trait::async_trait;
use azure_core::cloud::{CloudConfiguration, CustomConfiguration};
use azure_core::credentials::{Secret, TokenCredential};
use azure_core::error::ErrorKind;
use azure_core::http::{
    AsyncRawResponse, ClientMethodOptions, ClientOptions, HttpClient, Request, RetryOptions, Transport,
};
use azure_core::time::OffsetDateTime;
use azure_identity::{
    AzureCliCredential, ClientAssertion, ClientAssertionCredential, ClientAssertionCredentialOptions,
    ClientSecretCredential, ClientSecretCredentialOptions, ManagedIdentityCredential, ManagedIdentityCredentialOptions,
    UserAssignedId,
};
use futures::StreamExt;
use hyperlink_engine::credential_cache::{Issued, Issuer};
use secrecy::{ExposeSecret, SecretString};

use crate::arm::auth::certificate;
use crate::arm::auth::file::{self, CredentialsFile};
use crate::arm::auth::{AuthError, AzureCloud, CredentialSource, Token};
use crate::arm::https;

/// The longest answer of a token endpoint that is read, in bytes.
const ANSWER_LIMIT: usize = 256 * 1024;

pub(super) struct Credential {
    source: CredentialSource,
    authority: String,
    scope: String,
    http: reqwest::Client,
}

impl Credential {
    pub(super) fn new(source: CredentialSource, cloud: &AzureCloud, http: reqwest::Client) -> Self {
        Self {
            source,
            authority: cloud.authority().to_string(),
            scope: cloud.scope(),
            http,
        }
    }

    fn build(&self) -> Result<Arc<dyn TokenCredential>, AuthError> {
        let client_options = self.options();
        let built: azure_core::Result<Arc<dyn TokenCredential>> = match &self.source {
            CredentialSource::SecretFile { path } => {
                let read = CredentialsFile::read(path)?;
                client_secret(&read.tenant, read.client, &read.secret, client_options)
            }
            CredentialSource::ClientSecret { tenant, client, secret } => {
                client_secret(tenant, client.clone(), &secret.0, client_options)
            }
            CredentialSource::ClientCertificate { tenant, client, pem } => {
                let audience = format!("{}/{tenant}/oauth2/v2.0/token", self.authority.trim_end_matches('/'));
                let assertion = certificate::assertion(&pem.0, client, &audience, SystemTime::now())?;
                client_assertion(tenant, client, assertion, client_options)
            }
            CredentialSource::WorkloadIdentity {
                tenant,
                client,
                token_file,
            } => client_assertion(tenant, client, file::federated_token(token_file)?, client_options),
            CredentialSource::ManagedIdentity { client_id } => {
                ManagedIdentityCredential::new(Some(ManagedIdentityCredentialOptions {
                    user_assigned_id: client_id.clone().map(UserAssignedId::ClientId),
                    client_options,
                }))
                .map(|built| built as _)
            }
            CredentialSource::AzureCli => AzureCliCredential::new(None).map(|built| built as _),
        };
        built.map_err(|_| {
            let advice = self.source.advice();
            AuthError::Misconfigured(format!("the credential cannot be used; {advice}"))
        })
    }

    fn options(&self) -> ClientOptions {
        let mut cloud = CustomConfiguration::default();
        cloud.authority_host.clone_from(&self.authority);
        let endpoint = TokenEndpoint {
            http: self.http.clone(),
            advice: self.source.advice(),
        };
        ClientOptions {
            transport: Some(Transport::new(Arc::new(endpoint))),
            cloud: Some(Arc::new(CloudConfiguration::Custom(cloud))),
            retry: RetryOptions::none(),
            ..ClientOptions::default()
        }
    }

    /// Finds the cause under azure_identity's texts, which quote answers and so change with each one.
    fn explain(&self, error: &azure_core::Error) -> AuthError {
        let mut cause: Option<&(dyn std::error::Error + 'static)> = Some(error);
        while let Some(current) = cause {
            if let Some(auth_error) = current.downcast_ref::<AuthError>() {
                return auth_error.clone();
            }
            if let Some(wire) = current.downcast_ref::<reqwest::Error>() {
                return AuthError::Unreachable(https::why(wire));
            }
            cause = current.source();
        }
        match self.source {
            CredentialSource::AzureCli => {
                AuthError::Misconfigured(format!("`az` gave no token; {}", self.source.advice()))
            }
            _ => AuthError::Unreachable("its answer is not a token".into()),
        }
    }
}

fn client_secret(
    tenant: &str,
    client: String,
    secret: &SecretString,
    client_options: ClientOptions,
) -> azure_core::Result<Arc<dyn TokenCredential>> {
    let secret = Secret::new(secret.expose_secret().to_owned());
    let options = ClientSecretCredentialOptions { client_options };
    ClientSecretCredential::new(tenant, client, secret, Some(options)).map(|built| built as _)
}

fn client_assertion(
    tenant: &str,
    client: &str,
    assertion: SecretString,
    client_options: ClientOptions,
) -> azure_core::Result<Arc<dyn TokenCredential>> {
    let options = ClientAssertionCredentialOptions { client_options };
    let (tenant, client) = (tenant.to_owned(), client.to_owned());
    ClientAssertionCredential::new(tenant, client, Assertion(assertion), Some(options)).map(|built| built as _)
}

#[async_trait]
impl Issuer<Token> for Credential {
    async fn issue(&self) -> Result<Issued<Token>, AuthError> {
        let got = self
            .build()?
            .get_token(&[&self.scope], None)
            .await
            .map_err(|error| self.explain(&error))?;
        let life = Duration::try_from(got.expires_on - OffsetDateTime::now_utc())
            .ok()
            .filter(|life| !life.is_zero())
            .ok_or_else(|| AuthError::Unreachable("its token has expired already; check the clock".into()))?;
        Ok(Issued {
            credential: Token::new(got.token.secret())?,
            life: Some(life),
        })
    }
}

impl CredentialSource {
    /// What to check first when this credential is not accepted.
    fn advice(&self) -> &'static str {
        match self {
            Self::SecretFile { .. } => "check tenantId, clientId and clientSecret in the credentials file",
            Self::WorkloadIdentity { .. } => "check the tenant, the client id and the federated credential",
            Self::ManagedIdentity { .. } => "check that the identity is assigned to this machine",
            Self::AzureCli => "install it and run `az login`",
            Self::ClientSecret { .. } => "check the tenant, the client id and the client secret",
            Self::ClientCertificate { .. } => "check the tenant, the client id and the certificate",
        }
    }
}

#[derive(Debug)]
struct Assertion(SecretString);

#[async_trait]
impl ClientAssertion for Assertion {
    async fn secret(&self, _: Option<ClientMethodOptions<'_>>) -> azure_core::Result<String> {
        Ok(self.0.expose_secret().to_owned())
    }
}

/// Carries azure_identity's requests. Turns every answer but success into an [`AuthError`] at once: azure_identity
/// drops the status of an answer that is not JSON, and retries some requests by itself.
#[derive(Debug)]
struct TokenEndpoint {
    http: reqwest::Client,
    advice: &'static str,
}

#[async_trait]
impl HttpClient for TokenEndpoint {
    async fn execute_request(&self, request: &Request) -> azure_core::Result<AsyncRawResponse> {
        let (status, headers, mut parts) = HttpClient::execute_request(&self.http, request)
            .await
            .map_err(|error| azure_core::Error::new(ErrorKind::Credential, error))?
            .deconstruct();
        let mut body = Vec::new();
        while let Some(part) = parts.next().await {
            body.extend_from_slice(&part?);
            if body.len() > ANSWER_LIMIT {
                return Err(fatal(AuthError::Unreachable("its answer is too long".into())));
            }
        }
        if status.is_success() {
            return Ok(AsyncRawResponse::from_bytes(status, headers, body));
        }
        let status = u16::from(status);
        Err(fatal(AuthError::from_answer(status, &body, self.advice)))
    }
}

/// The error in the type that azure_identity passes on.
fn fatal(error: AuthError) -> azure_core::Error {
    azure_core::Error::new(ErrorKind::Credential, error)
}
