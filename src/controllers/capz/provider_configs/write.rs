//! Writes ProviderConfigs, and the finalizers of the Clusters that they are for.

use kube::api::{DeleteParams, Patch, PostParams, Preconditions};
use kube::core::DynamicObject;
use kube::discovery::ApiResource;
use kube::{Api, ResourceExt};

use super::{Provider, is_held};
use crate::api::capi::{Cluster, ProviderConfig};
use crate::api::markers::capz::PROVIDER_CONFIG_FINALIZER;
use crate::capz::patch::finalizer;
use crate::capz::provider_config::{ProviderIds, manifest};
use crate::metrics::{KubeResource, KubeVerb};
use crate::runtime::call::{ReconcileError, changing, within};

impl Provider {
    /// Creates or repairs the ProviderConfig of a Cluster.
    pub(super) async fn write(
        &self,
        cluster: &Cluster,
        ids: &ProviderIds,
        over: Option<&ProviderConfig>,
    ) -> Result<(), ReconcileError> {
        let (name, desired) = (cluster.name_any(), manifest(cluster, ids, over));
        let verb = if over.is_some() {
            let params = self.runtime.patch_params().force();
            changing(self.api().patch(&name, &params, &Patch::Apply(&desired))).await?;
            KubeVerb::Patch
        } else {
            let params = PostParams {
                field_manager: Some(self.runtime.field_manager.to_owned()),
                ..PostParams::default()
            };
            let kind = ApiResource::erase::<ProviderConfig>(&());
            let object: DynamicObject = serde_json::from_value(desired).map_err(kube::Error::SerdeError)?;
            let api: Api<DynamicObject> = Api::all_with(self.runtime.kube.clone(), &kind);
            changing(api.create(&params, &object)).await?;
            KubeVerb::Create
        };
        self.runtime.metrics.kube_write(KubeResource::ProviderConfig, verb);
        tracing::info!("ProviderConfig {name} written");
        Ok(())
    }

    /// Deletes a ProviderConfig as it was read.
    pub(super) async fn delete(&self, found: &ProviderConfig) -> Result<(), ReconcileError> {
        let params = DeleteParams::default().preconditions(Preconditions {
            uid: found.uid(),
            resource_version: found.resource_version(),
        });
        match within(self.api().delete(&found.name_any(), &params)).await {
            Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 404 => return Ok(()),
            deleted => deleted.map(drop)?,
        }
        self.runtime
            .metrics
            .kube_write(KubeResource::ProviderConfig, KubeVerb::Delete);
        tracing::info!("ProviderConfig {} deleted", found.name_any());
        Ok(())
    }

    /// Adds the finalizer, before anything is made for the Cluster.
    pub(super) async fn hold(&self, cluster: &Cluster) -> Result<(), ReconcileError> {
        let fresh = self.same(cluster).await?;
        let fresh = fresh.filter(|fresh| fresh.metadata.deletion_timestamp.is_none());
        let fresh = fresh.ok_or(ReconcileError::Gone)?;
        if is_held(&fresh) {
            return Ok(());
        }
        self.write_finalizer(&fresh, true).await
    }

    pub(super) async fn write_finalizer(&self, fresh: &Cluster, is_held: bool) -> Result<(), ReconcileError> {
        let api = self.clusters(&fresh.namespace().unwrap_or_default());
        let patch = finalizer(fresh, PROVIDER_CONFIG_FINALIZER, is_held);
        changing(api.patch(&fresh.name_any(), &self.runtime.patch_params(), &Patch::Merge(patch))).await?;
        self.runtime.metrics.kube_write(KubeResource::Cluster, KubeVerb::Patch);
        Ok(())
    }
}
