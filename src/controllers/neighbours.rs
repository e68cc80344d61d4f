//! What this process knows of all HostedClusters and custom resources together, kept from what is watched.

use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::ResourceExt;
use kube::runtime::watcher::Event;
use tokio_util::sync::CancellationToken;

use super::claims::{Claim, Claims, Holder};
use super::frame::PassError;
use crate::api::{AzurePrivateLinkService, HostedCluster};

/// A pass waits this long for the first lists.
const PATIENCE: Duration = Duration::from_secs(10);

/// The claims of one kind, and whether all are known.
#[derive(Debug, Default)]
struct Known {
    claims: Mutex<Claims>,
    listed: CancellationToken,
}

impl Known {
    fn claims(&self) -> MutexGuard<'_, Claims> {
        self.claims.lock().unwrap_or_else(PoisonError::into_inner)
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

/// Everybody's claims.
#[derive(Debug, Default)]
pub struct Neighbours {
    clusters: Known,
    resources: Known,
}

impl Neighbours {
    /// A HostedCluster has changed.
    pub fn cluster(&self, event: &Event<HostedCluster>) {
        self.clusters.heard(event, Claim::of_cluster);
    }

    /// A custom resource has changed.
    pub fn resource(&self, event: &Event<AzurePrivateLinkService>) {
        self.resources.heard(event, |cr| {
            cr.spec
                .nat_subnet_id
                .as_deref()
                .map(Claim::nat_subnet)
                .into_iter()
                .collect()
        });
    }

    /// Waits until all have been listed once: nobody decides on a part of them.
    pub async fn known(&self) -> Result<(), PassError> {
        let listed = async { tokio::join!(self.clusters.listed.cancelled(), self.resources.listed.cancelled()) };
        let waited = tokio::time::timeout(PATIENCE, listed).await;
        waited.map(drop).map_err(|_| PassError::Timeout)
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
