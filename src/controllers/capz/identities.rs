//! As whom Azure is called for each cluster: one credential, one token and one cache of what was observed for each
//! identity, so that what Azure denies to one delays no other.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::FutureExt;
use k8s_openapi::api::core::v1::{Namespace, Secret};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, ResourceExt};
use secrecy::{ExposeSecret, SecretString};
use sha2::{Digest, Sha256};
use tokio::time::Instant;

use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterIdentity, IdentityType};
use crate::azure::arm::auth::{AzureCloud, CredentialSource, GivenSecret, TokenCache, check_certificate};
use crate::azure::arm::client::Client;
use crate::azure::arm::transport::HttpsTransport;
use crate::azure::observations::ObservationCache;
use crate::capz::identity::{
    Permission, Proof, UsableIdentity, labels_permit, missing, named, no_secret, no_workload_identity, permission,
    refused, usable,
};
use crate::capz::reason::{Problem, Reason};
use crate::controllers::azure::access::ArmContext;
use crate::engine::call_budget::CallBudgets;
use crate::engine::gate::Gate;
use crate::metrics::IdentityResult;
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
    /// What came of the last use of each, by its UID.
    results: Mutex<HashMap<String, IdentityResult>>,
}

/// Why there is no identity to call Azure with.
pub(super) enum NoIdentity {
    /// The cluster has none that it may use and that this process can.
    Certain(Problem),
    /// The API server did not answer.
    Unread(Problem),
}

impl From<Problem> for NoIdentity {
    fn from(problem: Problem) -> Self {
        Self::Certain(problem)
    }
}

/// What makes a credential another one.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
struct IdentityKey {
    uid: String,
    identity: UsableIdentity,
    /// A hash of its secret.
    secret: Option<[u8; 32]>,
}

struct Known {
    cloud: Arc<ArmContext>,
    used: Instant,
}

/// A Secret as it was read last.
#[derive(Clone)]
struct ReadSecret {
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
            results: Mutex::default(),
        }
    }

    /// Azure, as it is called for a cluster.
    ///
    /// # Errors
    /// The cluster has no identity that it may use and that this process can.
    pub(super) async fn cloud(&self, runtime: &Runtime, cluster: &AzureCluster) -> Result<Arc<ArmContext>, NoIdentity> {
        let namespace = cluster.namespace().unwrap_or_default();
        let (uid, identity) = self.identity(runtime, &named(cluster)?, &namespace).await?;
        let secret = match &identity.proof {
            Proof::ClientSecret(at) | Proof::Certificate(at) => Some(self.secret(runtime, at).await?),
            Proof::FederatedToken | Proof::ManagedIdentity => None,
        };
        let key = IdentityKey {
            uid,
            secret: secret
                .as_ref()
                .map(|secret| Sha256::digest(secret.text.expose_secret()).into()),
            identity,
        };
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        if let Some(known) = known.get_mut(&key) {
            known.used = now;
            return Ok(Arc::clone(&known.cloud));
        }
        let existing: HashSet<String> = self.all.state().iter().filter_map(|identity| identity.uid()).collect();
        known.retain(|other, known| {
            let is_used = now.saturating_duration_since(known.used) < UNUSED_FOR;
            other.uid != key.uid && is_used && existing.contains(&other.uid)
        });
        if let (Proof::Certificate(at), Some(secret)) = (&key.identity.proof, &secret) {
            check_certificate(&secret.text).map_err(|error| no_secret(at, &format!("cannot be used: {error}")))?;
        }
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

    /// The UID of this identity and what it is, if this namespace may use it.
    async fn identity(
        &self,
        runtime: &Runtime,
        name: &ClusterRef,
        namespace: &str,
    ) -> Result<(String, UsableIdentity), NoIdentity> {
        let object = ObjectRef::new(&name.name).within(&name.namespace);
        let found = self.all.get(&object).ok_or_else(|| {
            let problem = missing(name);
            if self.are_listed() {
                NoIdentity::Certain(problem)
            } else {
                NoIdentity::Unread(problem)
            }
        })?;
        if !self.may_use(runtime, &found, namespace).await? {
            return Err(refused(name, namespace).into());
        }
        Ok((found.uid().unwrap_or_default(), usable(&found)?))
    }

    /// Whether the first list of all identities is complete.
    pub(super) fn are_listed(&self) -> bool {
        self.all.wait_until_ready().now_or_never().is_some()
    }

    /// The tenant and client id of this identity, if this namespace may use it and a federated token proves it.
    ///
    /// # Errors
    /// There is none, or it is of another type.
    pub(super) async fn federated(
        &self,
        runtime: &Runtime,
        name: &ClusterRef,
        namespace: &str,
    ) -> Result<UsableIdentity, NoIdentity> {
        let (_, identity) = self.identity(runtime, name, namespace).await?;
        if identity.proof == Proof::FederatedToken {
            Ok(identity)
        } else {
            Err(no_workload_identity(name).into())
        }
    }

    /// Notes what came of the use of a cluster's identity.
    pub(super) fn note(&self, cluster: &AzureCluster, result: IdentityResult) {
        let named = named(cluster).ok();
        let found = named.and_then(|name| self.all.get(&ObjectRef::new(&name.name).within(&name.namespace)));
        if let Some(uid) = found.and_then(|found| found.uid()) {
            let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
            results.insert(uid, result);
        }
    }

    /// How many identities of these clusters were used, by type and what came of their last use. What nobody names any
    /// more is forgotten.
    pub(super) fn by_result<'a>(
        &self,
        clusters: impl Iterator<Item = &'a AzureCluster>,
    ) -> BTreeMap<(IdentityType, IdentityResult), usize> {
        let used: HashSet<ClusterRef> = clusters.filter_map(|cluster| named(cluster).ok()).collect();
        let is_used = |identity: &AzureClusterIdentity| {
            used.contains(&ClusterRef {
                namespace: identity.namespace().unwrap_or_default(),
                name: identity.name_any(),
            })
        };
        let all: HashMap<String, IdentityType> = self
            .all
            .state()
            .iter()
            .filter(|identity| is_used(identity))
            .filter_map(|identity| Some((identity.uid()?, identity.spec.kind.unwrap_or(IdentityType::Other))))
            .collect();
        let mut results = self.results.lock().unwrap_or_else(PoisonError::into_inner);
        results.retain(|uid, _| all.contains_key(uid));
        let mut counts = BTreeMap::new();
        for (uid, result) in results.iter() {
            if let Some(kind) = all.get(uid) {
                *counts.entry((*kind, *result)).or_default() += 1;
            }
        }
        counts
    }

    async fn may_use(
        &self,
        runtime: &Runtime,
        identity: &AzureClusterIdentity,
        namespace: &str,
    ) -> Result<bool, NoIdentity> {
        match permission(identity, namespace) {
            Permission::Allowed => Ok(true),
            Permission::Refused => Ok(false),
            Permission::ByLabels => {
                let api: Api<Namespace> = Api::all(runtime.kube.clone());
                let found = within(api.get_opt(namespace)).await.map_err(|_| {
                    let message = format!("the labels of namespace {namespace} cannot be read");
                    NoIdentity::Unread(Problem::new(Reason::IdentityNotAllowed, message))
                })?;
                Ok(found.is_some_and(|found| labels_permit(identity, found.labels())))
            }
        }
    }

    /// A Secret, read again each `resync`.
    async fn secret(&self, runtime: &Runtime, at: &ClusterRef) -> Result<ReadSecret, NoIdentity> {
        let all = || self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let now = Instant::now();
        let known = all().get(at).cloned();
        let is_fresh = |known: &&ReadSecret| now.saturating_duration_since(known.read) < runtime.resync;
        if let Some(known) = known.as_ref().filter(is_fresh) {
            return Ok(known.clone());
        }
        let api: Api<Secret> = Api::namespaced(runtime.kube.clone(), &at.namespace);
        let found = match (within(api.get_opt(&at.name)).await, known) {
            (Ok(found), _) => found,
            // What was read before is as good as any, while nothing is known of another one.
            (Err(error), Some(known)) if !is_refused(&error) => return Ok(known),
            (Err(error), _) if is_refused(&error) => return Err(no_secret(at, FORBIDDEN).into()),
            (Err(_), _) => return Err(NoIdentity::Unread(no_secret(at, "cannot be read"))),
        };
        let found = found.ok_or_else(|| no_secret(at, "does not exist"))?;
        let value = found.data.as_ref().and_then(|data| data.get(SECRET_KEY));
        let text = value
            .and_then(|value| std::str::from_utf8(&value.0).ok())
            .filter(|text| !text.trim().is_empty());
        let text = text.ok_or_else(|| no_secret(at, "has no key clientSecret"))?;
        let read = ReadSecret {
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

/// What is wrong with a Secret that the API server does not show to this process.
pub(super) const FORBIDDEN: &str = "may not be read: this process has no Role for it in its namespace";

pub(super) fn is_refused(error: &ReconcileError) -> bool {
    matches!(error, ReconcileError::Kube(kube::Error::Api(status)) if status.code == 403)
}

#[cfg(test)]
mod tests;
