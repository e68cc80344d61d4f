//! What all controllers of one role share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::api::PatchParams;

use super::awaiting::Awaiting;
use super::contention::PublishedConditions;
use super::custom_resources::CustomResources;
use super::excluded::ExcludedNamespaces;
use super::failures::Failures;
use super::polls::Polls;
use super::recorder::Recorder;
use crate::api::Role;
use crate::azure::client::Client as ArmClient;
use crate::azure::inventory::Inventory;
use crate::azure::observation_cache::ObservationCache;
use crate::metrics::Metrics;

/// What every reconcile of one role works with.
pub struct Context {
    /// The role that this process plays.
    pub role: Role,
    /// The Kubernetes API; writes pass the gate.
    pub kube: kube::Client,
    /// ARM; writes pass the gate.
    pub arm: ArmClient,
    /// Writes the role's Events.
    pub events: Recorder,
    /// The conditions as this process last published them.
    pub published: PublishedStore,
    /// How often to poll for what no watch shows.
    pub polls: Polls,
    /// The custom resources that wait in a write queue.
    pub awaiting: Awaiting,
    /// The custom resources that the role watches.
    pub resources: Arc<CustomResources>,
    /// How many reconciles in a row have failed.
    pub failures: Failures,
    /// What was last observed in Azure.
    pub observations: Arc<ObservationCache>,
    /// Lists of resources that all clusters share.
    pub inventory: Inventory,
    /// The metrics of this process.
    pub metrics: Arc<Metrics>,
    /// The namespaces that the operator excludes.
    pub excluded: ExcludedNamespaces,
    /// The interval at which ready resources are read again.
    pub resync: Duration,
}

impl Context {
    /// The parameters of every patch that the role sends.
    pub fn patch_params(&self) -> PatchParams {
        PatchParams {
            field_manager: Some(self.role.field_manager().to_owned()),
            ..PatchParams::default()
        }
    }
}

/// The conditions that this process has published, by the UID of the object.
#[derive(Debug, Default)]
pub struct PublishedStore(Mutex<HashMap<String, PublishedConditions>>);

impl PublishedStore {
    fn all(&self) -> MutexGuard<'_, HashMap<String, PublishedConditions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The published conditions of one object.
    pub fn of(&self, uid: &str) -> PublishedConditions {
        self.all().get(uid).cloned().unwrap_or_default()
    }

    /// Stores the published conditions of one object.
    pub fn keep(&self, uid: &str, published: PublishedConditions) {
        self.all().insert(uid.to_owned(), published);
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }
}

/// A context for tests of what is done in Kubernetes: its Azure never answers.
#[cfg(test)]
pub(crate) mod sample {
    use async_trait::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};

    use super::*;
    use crate::azure::ports::Gate;
    use crate::azure::transport::{Transport, TransportError};

    struct NoAzure;

    impl Gate for NoAzure {
        fn open(&self) -> bool {
            false
        }
    }

    #[async_trait]
    impl Transport for NoAzure {
        async fn ready(&self) -> Result<(), TransportError> {
            Err(TransportError::Timeout)
        }

        async fn send(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            Err(TransportError::Timeout)
        }
    }

    pub(crate) fn context(kube: kube::Client) -> Context {
        context_with(kube, Duration::from_secs(60))
    }

    pub(crate) fn context_with(kube: kube::Client, resync: Duration) -> Context {
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let endpoint = "https://management.azure.com".parse().unwrap();
        Context {
            role: Role::Cpo,
            events: Recorder::new(kube.clone(), Role::Cpo, "test", metrics.clone()),
            kube,
            published: PublishedStore::default(),
            polls: Polls::default(),
            awaiting: Awaiting::default(),
            resources: Arc::new(CustomResources::new(Role::Cpo)),
            failures: Failures::default(),
            arm: ArmClient::new(Arc::new(NoAzure), endpoint, Arc::new(NoAzure), metrics.clone()),
            observations: Arc::new(ObservationCache::new(resync, resync)),
            inventory: Inventory::default(),
            metrics,
            excluded: ExcludedNamespaces::default(),
            resync,
        }
    }
}
