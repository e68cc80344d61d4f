//! As whom Azure is called for each cluster: one credential, one token and one cache of what was observed for each
//! identity, so that what Azure denies to one delays no other.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use secrecy::SecretString;
use tokio::time::Instant;

use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterIdentity};
use crate::azure::arm::auth::{AzureCloud, CredentialSource, GivenSecret, TokenCache};
use crate::azure::arm::client::Client;
use crate::azure::arm::transport::HttpsTransport;
use crate::azure::observations::ObservationCache;
use crate::capz::identity::{
    Permission, Proof, UsableIdentity, labels_permit, missing, named, no_secret, permission, refused, usable,
};
use crate::capz::reason::Problem;
use crate::controllers::azure::access::ArmContext;
use crate::engine::call_budget::CallBudgets;
use crate::engine::gate::Gate;
use crate::runtime::Runtime;
use crate::runtime::call::{ReconcileError, within};

/// How long an identity is kept that nobody uses.
const UNUSED_FOR: Duration = Duration::from_secs(3_600);

/// The key of a Secret that holds a client secret or a certificate.
const SECRET_KEY: &str = "clientSecret";

/// How tokens are requested, and ARM is reached.
#[derive(Clone)]
pub struct IdentitySettings {
    /// Where tokens are issued, and for what.
    pub cloud: AzureCloud,
    /// Carries the requests to both.
    pub http: reqwest::Client,
    /// Whether this process may write, which no call of the role needs.
    pub gate: Arc<dyn Gate>,
    /// The token of the process' Pod.
    pub federated_token_file: Option<PathBuf>,
}

/// The identities that clusters use.
pub(super) struct Identities {
    settings: IdentitySettings,
    all: Store<AzureClusterIdentity>,
    known: Mutex<HashMap<IdentityKey, Known>>,
    secrets: Mutex<HashMap<ClusterRef, ReadSecret>>,
}

/// What makes a credential another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct IdentityKey {
    uid: String,
    identity: UsableIdentity,
    /// The version of its Secret.
    secret: Option<String>,
}

struct Known {
    cloud: Arc<ArmContext>,
    used: Instant,
}

/// A Secret as it was read last.
#[derive(Clone)]
struct ReadSecret {
    version: String,
    text: SecretString,
    read: Instant,
}

impl Identities {
    pub(super) fn new(settings: IdentitySettings, all: Store<AzureClusterIdentity>) -> Self {
        Self {
            settings,
            all,
            known: Mutex::default(),
            secrets: Mutex::default(),
        }
    }

    /// Azure, as it is called for a cluster.
    ///
    /// # Errors
    /// The cluster has no identity that it may use and that this process can.
    pub(super) async fn cloud(&self, runtime: &Runtime, cluster: &AzureCluster) -> Result<Arc<ArmContext>, Problem> {
        let name = named(cluster)?;
        let object = ObjectRef::new(&name.name).within(&name.namespace);
        let found = self.all.get(&object).ok_or_else(|| missing(&name))?;
        let namespace = cluster.namespace().unwrap_or_default();
        if !self.may_use(runtime, &found, &namespace).await {
            return Err(refused(&name, &namespace));
        }
        let identity = usable(&found)?;
        let secret = match &identity.proof {
            Proof::ClientSecret(at) | Proof::Certificate(at) => Some(self.secret(runtime, at).await?),
            Proof::FederatedToken | Proof::ManagedIdentity => None,
        };
        let key = IdentityKey {
            uid: found.uid().unwrap_or_default(),
            secret: secret.as_ref().map(|secret| secret.version.clone()),
            identity,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(known) = known.get_mut(&key) {
            known.used = now;
            return Ok(Arc::clone(&known.cloud));
        }
        known.retain(|other, known| other.uid != key.uid && now.saturating_duration_since(known.used) < UNUSED_FOR);
        let source = self.source(&key.identity, secret);
        let cloud = Arc::new(self.connect(runtime, source));
        known.insert(
            key,
            Known {
                cloud: Arc::clone(&cloud),
                used: now,
            },
        );
        Ok(cloud)
    }

    async fn may_use(&self, runtime: &Runtime, identity: &AzureClusterIdentity, namespace: &str) -> bool {
        match permission(identity, namespace) {
            Permission::Allowed => true,
            Permission::Refused => false,
            Permission::ByLabels => {
                let api: Api<Namespace> = Api::all(runtime.kube.clone());
                let found = within(api.get_opt(namespace)).await.ok().flatten();
                found.is_some_and(|found| labels_permit(identity, found.labels()))
            }
        }
    }

    /// A Secret, read again each `resync`.
    async fn secret(&self, runtime: &Runtime, at: &ClusterRef) -> Result<ReadSecret, Problem> {
        let all = || self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let known = all().get(at).cloned();
        if let Some(known) = known.filter(|known| now.saturating_duration_since(known.read) < runtime.resync) {
            return Ok(known);
        }
        let api: Api<Secret> = Api::namespaced(runtime.kube.clone(), &at.namespace);
        let found = within(api.get_opt(&at.name))
            .await
            .map_err(|error| unreadable(at, &error))?;
        let found = found.ok_or_else(|| no_secret(at, "does not exist"))?;
        let value = found.data.as_ref().and_then(|data| data.get(SECRET_KEY));
        let text = value
            .and_then(|value| std::str::from_utf8(&value.0).ok())
            .filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| no_secret(at, "has no key clientSecret"))?;
        let read = ReadSecret {
            version: found.resource_version().unwrap_or_default(),
            text: text.trim().to_owned().into(),
            read: now,
        };
        let mut all = all();
        all.retain(|_, known| now.saturating_duration_since(known.read) < UNUSED_FOR);
        all.insert(at.clone(), read.clone());
        Ok(read)
    }

    fn source(&self, identity: &UsableIdentity, secret: Option<ReadSecret>) -> CredentialSource {
        let (tenant, client) = (identity.tenant.clone(), identity.client.clone());
        let secret = GivenSecret(secret.map_or_else(SecretString::default, |secret| secret.text));
        match identity.proof {
            Proof::FederatedToken => CredentialSource::WorkloadIdentity {
                tenant,
                client,
                // Without one the first request tells what is missing.
                token_file: self.settings.federated_token_file.clone().unwrap_or_default(),
            },
            Proof::ManagedIdentity => CredentialSource::ManagedIdentity {
                client_id: Some(client),
            },
            Proof::ClientSecret(_) => CredentialSource::ClientSecret { tenant, client, secret },
            Proof::Certificate(_) => CredentialSource::ClientCertificate {
                tenant,
                client,
                pem: secret,
            },
        }
    }

    fn connect(&self, runtime: &Runtime, source: CredentialSource) -> ArmContext {
        let IdentitySettings { cloud, http, gate, .. } = &self.settings;
        let tokens = Arc::new(TokenCache::new(source, cloud, http.clone()));
        let transport = Arc::new(HttpsTransport::new(http.clone(), cloud, tokens));
        let endpoint = cloud.endpoint().clone();
        let client = Client::new(transport, endpoint, Arc::clone(gate), runtime.metrics.clone())
            .with_call_budgets(CallBudgets::for_resync(runtime.resync));
        ArmContext::new(client, ObservationCache::new(runtime.resync, runtime.resync))
    }
}

fn unreadable(at: &ClusterRef, error: &ReconcileError) -> Problem {
    let why = match error {
        ReconcileError::Kube(kube::Error::Api(status)) if status.code == 403 => {
            "may not be read: this process has no Role for it in its namespace"
        }
        _ => "cannot be read",
    };
    no_secret(at, why)
}
