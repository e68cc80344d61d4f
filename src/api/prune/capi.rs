//! What watches keep of objects of Cluster API.

use super::{TEXT, picked, prune_metadata, shorten};
use crate::api::capi::{AzureCluster, AzureClusterIdentity, Cluster, KubeadmControlPlane};
use crate::api::held_by;
use crate::api::markers::capz::{
    CONDITION, FINALIZER, LEDGER, LONGEST_LEDGER, MOST_LINKS, PAUSED, PAUSED_HERE, PROVIDER_CONFIG_FINALIZER,
    READ_ANNOTATIONS,
};
use crate::hypershift::names::is_namespace;
use crate::runtime::prune::Prune;

/// The most subnets of a cluster that are kept.
const SUBNETS: usize = 256;
/// The most connections of an entry that are kept: one is as desired, and a second one tells that it is not.
const CONNECTIONS: usize = 2;
/// The most subscriptions of a link that are kept.
const SUBSCRIPTIONS: usize = 256;
/// The most namespaces of an identity that are kept.
const NAMESPACES: usize = 4_096;

fn shorten_list<T>(list: &mut Vec<T>, most: usize) {
    list.truncate(most);
    list.shrink_to_fit();
}

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
        network.subnets.truncate(SUBNETS);
        for subnet in &mut network.subnets {
            let entries = subnet.private_endpoints.as_mut().map(|entries| &mut entries.0);
            for entry in entries.into_iter().flatten() {
                if let Some(connections) = &mut entry.private_link_service_connections {
                    shorten_list(connections, CONNECTIONS);
                }
            }
        }
        if let Some(balancer) = &mut network.api_server_lb {
            shorten_list(&mut balancer.private_links, MOST_LINKS);
            for link in &mut balancer.private_links {
                shorten_list(&mut link.allowed_subscriptions, SUBSCRIPTIONS);
                shorten_list(&mut link.auto_approved_subscriptions, SUBSCRIPTIONS);
            }
        }
    }
}

impl Prune for AzureClusterIdentity {
    fn prune(&mut self) {
        prune_metadata(&mut self.metadata, &[], &[]);
        self.metadata.finalizers = None;
        let allowed = self.spec.allowed_namespaces.as_mut();
        if let Some(names) = allowed.and_then(|allowed| allowed.names.as_mut()) {
            names.retain(|name| is_namespace(name));
            shorten_list(names, NAMESPACES);
        }
    }
}

impl Prune for Cluster {
    fn prune(&mut self) {
        let is_held = held_by(self, PROVIDER_CONFIG_FINALIZER);
        prune_metadata(&mut self.metadata, &[], &[]);
        self.metadata.finalizers = is_held.then(|| vec![PROVIDER_CONFIG_FINALIZER.to_owned()]);
    }
}

impl Prune for KubeadmControlPlane {
    fn prune(&mut self) {
        // Of the owners the Cluster is read, which is no control plane.
        let owners = self.metadata.owner_references.take();
        prune_metadata(&mut self.metadata, &[PAUSED, PAUSED_HERE], &[]);
        self.metadata.owner_references = owners;
        self.metadata.finalizers = None;
    }
}
