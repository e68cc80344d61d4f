//! As whom, and where, Crossplane is to work for a Cluster: read from what the Cluster is made of.

use k8s_openapi::api::core::v1::Secret;
use kube::Api;
use kube::ResourceExt;

use super::identities::{FORBIDDEN, NoIdentity, is_refused};
use super::provider_configs::Provider;
use crate::api::ClusterRef;
use crate::api::capi::{AzureASOManagedControlPlane, AzureManagedControlPlane, Cluster};
use crate::capz::cluster::reference;
use crate::capz::identity::{named, named_by, no_secret};
use crate::capz::provider_config::{IdsSource, ProviderIds, aso_secret, ids, source};
use crate::capz::reason::{Problem, Reason};
use crate::runtime::call::{ReconcileError, within};

impl Provider {
    /// As whom, and where, Crossplane is to work for a Cluster; none while what tells it does not exist.
    pub(super) async fn ids(&self, cluster: &Cluster) -> Result<Option<ProviderIds>, NoIdentity> {
        let namespace = cluster.namespace().unwrap_or_default();
        let kube = self.runtime.kube.clone();
        match source(cluster) {
            IdsSource::Nothing => Ok(None),
            IdsSource::AzureCluster(_) => {
                let Some(found) = self.azure_cluster(cluster) else {
                    return Ok(None);
                };
                let identity = named(&found)?;
                let subscription = found.spec.subscription_id.as_deref();
                let of = format!("AzureCluster {}", reference(&found));
                self.note_identity(cluster, &identity);
                self.federated(&identity, subscription, (&of, &namespace))
                    .await
                    .map(Some)
            }
            IdsSource::ManagedControlPlane(name) => {
                let api: Api<AzureManagedControlPlane> = Api::namespaced(kube, &namespace);
                let Some(found) = within(api.get_opt(&name)).await.map_err(unread)? else {
                    return Ok(None);
                };
                let of = format!("AzureManagedControlPlane {namespace}/{name}");
                let identity = named_by(found.spec.identity_ref.as_ref(), &namespace, || of.clone())?;
                let subscription = found.spec.subscription_id.as_deref();
                self.note_identity(cluster, &identity);
                self.federated(&identity, subscription, (&of, &namespace))
                    .await
                    .map(Some)
            }
            IdsSource::AsoControlPlane(name) => {
                let api: Api<AzureASOManagedControlPlane> = Api::namespaced(kube, &namespace);
                let Some(found) = within(api.get_opt(&name)).await.map_err(unread)? else {
                    return Ok(None);
                };
                let name = aso_secret(&found)?;
                self.of_secret(&ClusterRef { namespace, name }).await.map(Some)
            }
        }
    }

    /// The ids of an identity with a federated token, in a subscription.
    async fn federated(
        &self,
        identity: &ClusterRef,
        subscription: Option<&str>,
        (of, namespace): (&str, &str),
    ) -> Result<ProviderIds, NoIdentity> {
        let found = self.cx.identities.federated(&self.runtime, identity, namespace).await?;
        Ok(ids(of, [Some(&found.client), subscription, Some(&found.tenant)])?)
    }

    /// The ids in a Secret of the Azure Service Operator.
    async fn of_secret(&self, at: &ClusterRef) -> Result<ProviderIds, NoIdentity> {
        let api: Api<Secret> = Api::namespaced(self.runtime.kube.clone(), &at.namespace);
        let found = match within(api.get_opt(&at.name)).await {
            Ok(found) => found.ok_or_else(|| no_secret(at, "does not exist"))?,
            Err(error) if is_refused(&error) => return Err(no_secret(at, FORBIDDEN).into()),
            Err(error) => return Err(unread(error)),
        };
        let data = found.data.unwrap_or_default();
        let text = |key: &str| data.get(key).and_then(|value| std::str::from_utf8(&value.0).ok());
        let all = ["AZURE_CLIENT_ID", "AZURE_SUBSCRIPTION_ID", "AZURE_TENANT_ID"].map(text);
        Ok(ids(&format!("Secret {at}"), all)?)
    }
}

/// An answer of the API server that is missing says nothing of an identity.
fn unread(error: ReconcileError) -> NoIdentity {
    NoIdentity::Unread(Problem::new(Reason::IdentityMissing, error.to_string()))
}
