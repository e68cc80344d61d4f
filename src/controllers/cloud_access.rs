//! How controllers reach a cloud, and what one process keeps of it.

use std::fmt::Debug;
use std::sync::Arc;
use std::time::Duration;

use super::cloud::ServedCloud;
use crate::engine::client::{CloudClient, Reconcile};
use crate::engine::inventory::Inventory;
use crate::engine::observation_cache::ObservationCache;
use crate::engine::read::Reader;
use crate::runtime::polls::Polls;

/// The same cloud as a running process reaches it.
pub trait CloudAccess: ServedCloud {
    /// The client for its calls.
    type Client: CloudClient<Self> + 'static;
    /// The lists that one process keeps for all clusters, beside those of the inventory.
    type SharedLists: Debug + Default + Send + Sync;

    /// Reads a list.
    fn read_list(
        reading: Reading<'_, Self>,
        need: Self::ListNeed,
        facts: &mut Self::ListFacts,
    ) -> impl Future<Output = ()> + Send;
}

/// What reads a list, and for whom.
pub struct Reading<'a, C: CloudAccess> {
    /// The cloud.
    pub cloud: &'a CloudContext<C>,
    /// How often a namespace may have lists read.
    pub polls: &'a Polls,
    /// How often resources are read again.
    pub resync: Duration,
    /// The reconcile that needs it.
    pub reconcile: Reconcile,
}

/// A cloud, and what was observed in it.
pub struct CloudContext<C: CloudAccess> {
    /// The client for all calls; writes pass the gate.
    pub client: C::Client,
    /// What was last observed.
    pub observations: Arc<ObservationCache<C>>,
    /// Lists of resources that all clusters share.
    pub inventory: Inventory<C>,
    /// Other lists that all clusters share.
    pub lists: C::SharedLists,
}

impl<C: CloudAccess> CloudContext<C> {
    /// A context in which nothing is observed yet.
    pub fn new(client: C::Client, observations: ObservationCache<C>) -> Self {
        Self {
            client,
            observations: Arc::new(observations),
            inventory: Inventory::default(),
            lists: C::SharedLists::default(),
        }
    }

    /// The reader of single resources for one reconcile.
    pub fn reader(&self, reconcile: Reconcile) -> Reader<'_, C, C::Client> {
        Reader {
            client: &self.client,
            observations: &self.observations,
            inventory: &self.inventory,
            reconcile,
        }
    }
}
