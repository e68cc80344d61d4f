//! How the clouds of the chosen platforms are reached, and who keeps the process' credentials for them valid.

use std::sync::Arc;

use anyhow::Context as _;

use super::items::CloudItems;
use super::waits::{keep_session, keep_token, wait_for_arm};
use crate::api::Platform;
use crate::aws::api::client::Connection;
use crate::aws::api::transport::{HttpsTransport as AwsHttpsTransport, Transport as AwsTransport};
use crate::aws::calls::accounts::SESSION_NAME;
use crate::aws::credentials::SessionCache;
use crate::azure::arm::auth::{NoIdentity, TokenCache, TokenSource};
use crate::azure::arm::read_only::ReadOnly;
use crate::azure::arm::transport::{HttpsTransport, Transport};
use crate::config::{Aws, Azure, Config};
use crate::metrics::Metrics;
use crate::roles::CloudConnection;
use crate::roles::aws::AwsConnection;
use crate::roles::azure::AzureConnection;

/// The clouds of the chosen platforms.
pub struct Clouds {
    azure: Option<AzureCloud>,
    aws: Option<AwsConnection>,
}

struct AzureCloud {
    connection: AzureConnection,
    /// None where each cluster has an identity of its own.
    tokens: Option<TokenCache>,
}

impl Clouds {
    /// Opens no connection yet. `read_only`: only requests that change nothing are sent.
    ///
    /// # Errors
    /// No HTTPS client can be built.
    pub fn new(config: &Config, metrics: &Arc<Metrics>, read_only: bool) -> anyhow::Result<Self> {
        let azure = config
            .azure
            .as_ref()
            .map(|azure| AzureCloud::new(azure, metrics, read_only));
        let aws = config.aws.as_ref().map(|aws| aws_connection(aws, metrics, read_only));
        Ok(Self {
            azure: azure.transpose()?,
            aws: aws.transpose()?,
        })
    }

    /// How the cloud of a platform is reached.
    ///
    /// # Errors
    /// The platform is not chosen.
    pub fn of(&self, platform: Platform) -> anyhow::Result<CloudConnection> {
        let connection = match platform {
            Platform::Azure => {
                let azure = self.azure.as_ref();
                azure.map(|azure| CloudConnection::Azure(azure.connection.clone()))
            }
            Platform::Aws => self.aws.clone().map(CloudConnection::Aws),
        };
        connection.with_context(|| format!("platform {platform} is not chosen"))
    }

    /// Keeps the credentials valid, and reports their state and whether the clouds answer; never returns while there
    /// are any.
    pub(super) async fn keep(self, items: CloudItems) {
        let azure = async {
            if let Some((AzureCloud { connection, tokens }, items)) = self.azure.zip(items.azure) {
                let endpoint = connection.settings.cloud.endpoint().clone();
                let token = async {
                    if let Some((tokens, item)) = tokens.zip(items.token) {
                        keep_token(tokens, item).await;
                    }
                };
                tokio::join!(token, wait_for_arm(connection.http, endpoint, items.arm));
            }
        };
        let aws = async {
            if let Some((aws, item)) = self.aws.zip(items.aws) {
                keep_session(aws.sessions, item).await;
            }
        };
        tokio::join!(azure, aws);
    }
}

impl AzureCloud {
    fn new(settings: &Azure, metrics: &Metrics, read_only: bool) -> anyhow::Result<Self> {
        let http = settings.http.client()?;
        let source = settings.credential.clone();
        let tokens = source.map(|source| TokenCache::new(source, &settings.cloud, http.clone()));
        let source: Arc<dyn TokenSource> = match tokens.clone() {
            Some(tokens) => Arc::new(tokens),
            None => Arc::new(NoIdentity),
        };
        let transport = HttpsTransport::new(http.clone(), &settings.cloud, source);
        let transport: Arc<dyn Transport> = match Arc::new(transport) {
            transport if read_only => Arc::new(ReadOnly(transport)),
            transport => transport,
        };
        if let Some(tokens) = tokens.clone() {
            metrics.read_token_with(move || tokens.state());
        }
        let connection = AzureConnection {
            settings: Arc::new(settings.clone()),
            transport,
            http,
        };
        Ok(Self { connection, tokens })
    }
}

fn aws_connection(settings: &Aws, metrics: &Arc<Metrics>, read_only: bool) -> anyhow::Result<AwsConnection> {
    let transport = Arc::new(AwsHttpsTransport::new(
        settings.http.builder()?,
        settings.endpoints.clone(),
    )?);
    let transport: Arc<dyn AwsTransport> = match transport {
        transport if read_only => Arc::new(crate::aws::api::read_only::ReadOnly(transport)),
        transport => transport,
    };
    let connection = Connection::new(transport, settings.endpoints.clone(), metrics.clone());
    let sessions = SessionCache::of_profile(connection.clone(), settings.credentials_file.clone(), SESSION_NAME);
    metrics.read_session_with({
        let sessions = sessions.clone();
        move || sessions.state()
    });
    Ok(AwsConnection {
        settings: Arc::new(settings.clone()),
        connection,
        sessions,
    })
}
