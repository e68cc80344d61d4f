//! What this process knows of all HostedClusters and custom resources together, from what it watches.

use std::fmt::Debug;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::runtime::watcher::Event;
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio_util::sync::CancellationToken;

use crate::api::HostedCluster;
use crate::hypershift::claims::{Claim, Claiming, Claims, Holder};
use crate::runtime::call::{ReconcileError, list};

/// How long a reconcile waits until all HostedClusters, or all custom resources, have been listed once. After that it
/// fails, and is tried again.
const FIRST_LISTS_TIMEOUT: Duration = Duration::from_secs(10);

/// How many objects are read at once from a list.
const PAGE: u32 = 50;

/// The claims of one kind, and whether all are known.
#[derive(Debug, Default)]
struct KindIndex {
    claims: Mutex<Claims>,
    listed: CancellationToken,
}

impl KindIndex {
    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until all have been listed once: no decision is made from a part of them.
    async fn known(&self, kind: &'static str) -> Result<(), ReconcileError> {
        let waited = tokio::time::timeout(FIRST_LISTS_TIMEOUT, self.listed.cancelled()).await;
        waited.map_err(|_| ReconcileError::Unlisted(kind))
    }

    fn heard<K: ResourceExt>(&self, event: &Event<K>, claims_of: impl Fn(&K) -> Vec<Claim>) {
        let mut claims = self.claims();
        match event {
            Event::Init => claims.list_begins(),
            Event::InitApply(object) | Event::Apply(object) => claims.set(Holder::of(object), claims_of(object)),
            Event::Delete(object) => claims.remove(&Holder::of(object)),
            Event::InitDone => {
                claims.list_ends();
                self.listed.cancel();
            }
        }
    }
}

/// The events of a watch that begins with all objects.
async fn events<K: Clone + Debug + DeserializeOwned>(api: &Api<K>) -> Result<Vec<Event<K>>, ReconcileError> {
    let mut events = vec![Event::Init];
    list(api, PAGE, |object| events.push(Event::InitApply(object))).await?;
    events.push(Event::InitDone);
    Ok(events)
}

/// The claims of all clusters and custom resources.
#[derive(Debug, Default)]
pub struct ClusterIndex {
    clusters: KindIndex,
    resources: KindIndex,
}

impl ClusterIndex {
    /// Reads two lists, for a process that does not watch.
    pub async fn read<R>(kube: &kube::Client) -> Result<Self, ReconcileError>
    where
        R: Claiming + Resource<DynamicType = ()> + Clone + Debug + DeserializeOwned,
    {
        let cluster_index = Self::read_clusters(kube).await?;
        let events = events(&Api::<R>::all(kube.clone())).await?;
        events.iter().for_each(|event| cluster_index.resource(event));
        Ok(cluster_index)
    }

    /// Reads one list, of the HostedClusters alone.
    pub async fn read_clusters(kube: &kube::Client) -> Result<Self, ReconcileError> {
        let cluster_index = Self::default();
        let events = events(&Api::<HostedCluster>::all(kube.clone())).await?;
        events.iter().for_each(|event| cluster_index.cluster(event));
        Ok(cluster_index)
    }

    /// Applies an event of the HostedClusters.
    pub fn cluster(&self, event: &Event<HostedCluster>) {
        self.clusters.heard(event, Claim::of_cluster);
    }

    /// Applies an event of the custom resources.
    pub fn resource(&self, event: &Event<impl Claiming>) {
        self.resources.heard(event, Claiming::claims);
    }

    /// Waits until all have been listed once: no decision is made from a part of them.
    pub async fn known(&self) -> Result<(), ReconcileError> {
        tokio::try_join!(self.clusters_known(), self.resources.known("custom resources")).map(drop)
    }

    /// Waits until all HostedClusters have been listed once.
    pub async fn clusters_known(&self) -> Result<(), ReconcileError> {
        self.clusters.known("HostedClusters").await
    }

    /// What the HostedClusters claim. Not to be held while waiting.
    pub fn clusters(&self) -> MutexGuard<'_, Claims> {
        self.clusters.claims()
    }

    /// What the custom resources claim. Not to be held while waiting.
    pub fn resources(&self) -> MutexGuard<'_, Claims> {
        self.resources.claims()
    }
}

#[cfg(test)]
mod tests;
