//! What watches keep of objects of Cluster API.

use super::{TEXT, picked, shorten};
use crate::api::capi::{AzureCluster, AzureClusterIdentity, Cluster, KubeadmControlPlane};
use crate::api::markers::capz::{CONDITION, FINALIZER, LEDGER, LONGEST_LEDGER, PAUSED, PAUSED_HERE, READ_ANNOTATIONS};
use crate::runtime::prune::Prune;

/// The most items of a list that are kept: private endpoints, links, subnets.
const ITEMS: usize = 4_096;

impl Prune for AzureCluster {
    fn prune(&mut self) {
        let metadata = &mut self.metadata;
        let mut annotations = metadata.annotations.take();
        let ledger = annotations.as_mut().and_then(|all| all.remove_entry(LEDGER));
        metadata.annotations = picked(annotations, &READ_ANNOTATIONS);
        if let Some((name, text)) = ledger.filter(|(_, text)| text.len() <= 2 * LONGEST_LEDGER) {
            metadata.annotations.get_or_insert_default().insert(name, text);
        }
        metadata.managed_fields = None;
        metadata.labels = None;
        metadata.owner_references = None;
        if let Some(finalizers) = &mut metadata.finalizers {
            finalizers.retain(|name| name == FINALIZER);
        }
        let conditions = self.status.as_mut().and_then(|status| status.conditions.as_mut());
        for condition in conditions.into_iter().flat_map(|conditions| &mut conditions.0) {
            if condition.kind != CONDITION {
                condition.message = String::new();
                condition.reason = String::new();
            }
            shorten(&mut condition.kind, TEXT);
        }
        let network = &mut self.spec.network_spec;
        network.subnets.truncate(ITEMS);
        if let Some(balancer) = &mut network.api_server_lb {
            balancer.private_links.truncate(ITEMS);
        }
    }
}

impl Prune for AzureClusterIdentity {
    fn prune(&mut self) {
        self.metadata.annotations = None;
        self.metadata.labels = None;
        self.metadata.managed_fields = None;
        self.metadata.owner_references = None;
        self.metadata.finalizers = None;
    }
}

impl Prune for Cluster {
    fn prune(&mut self) {
        self.metadata.annotations = None;
        self.metadata.labels = None;
        self.metadata.managed_fields = None;
        self.metadata.owner_references = None;
        self.metadata.finalizers = None;
    }
}

impl Prune for KubeadmControlPlane {
    fn prune(&mut self) {
        self.metadata.annotations = picked(self.metadata.annotations.take(), &[PAUSED, PAUSED_HERE]);
        self.metadata.labels = None;
        self.metadata.managed_fields = None;
        self.metadata.finalizers = None;
    }
}
