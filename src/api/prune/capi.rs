//! What watches keep of objects of Cluster API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::{LabelSelector, ObjectMeta};
use uuid::Uuid;

use super::{MESSAGE, TEXT, prune_metadata, shorten};
use crate::api::capi::{
    AzureCluster, AzureClusterIdentity, AzureClusterSpec, CapiCondition, Cluster, Entry, KubeadmControlPlane,
    PrivateLink, SecretRef,
};
use crate::api::held_by;
use crate::api::markers::capz::{
    API_SERVER_ADDRESS, CONDITION, DROPPED_ENDPOINTS, FINALIZER, GATEWAY_ADDRESS, LEDGER, LONGEST_RECORDS, MOST_LINKS,
    PAUSED, PAUSED_HERE, PROVIDER_CONFIG_FINALIZER,
};
use crate::hypershift::names::is_namespace;
use crate::runtime::prune::Prune;

/// The most subnets of a cluster that are kept.
const SUBNETS: usize = 256;
/// The most entries of a cluster that are kept: rather more than the management cluster can have of this role's.
const ENTRIES: usize = 4_096;
/// The most subnets of a workload cluster that are kept, and the most entries of these. What is beyond is found when the
/// cluster is read for a write.
const OF_WORKLOAD: usize = 16;
/// The most bytes of an ARM id that are kept. Source: the sum of the longest names of its parts.
const ID: usize = 1_024;
/// What is kept of a text that is too long for its field: nothing that any name may contain.
const TOO_LONG: &str = "?too long?";
/// The most connections of an entry that are kept: one is as desired, and a second one tells that it is not.
const CONNECTIONS: usize = 2;
/// The most subscriptions of all links of a cluster that are kept.
const SUBSCRIPTIONS: usize = 128;
/// How many characters a subscription id has.
const SUBSCRIPTION: usize = 36;
/// The most conditions of a cluster that are kept; CAPZ sets some 20.
const CONDITIONS: usize = 64;
/// The most bytes that are kept of a condition's status, severity or time.
const WORD: usize = 64;
/// The most labels, expressions and values of an identity's selector.
const SELECTOR: usize = 256;
/// The most namespaces of an identity that are kept.
const NAMESPACES: usize = 512;

/// Replaces a text that is longer than any that is valid by one that is not valid either. A part of it might be.
fn refuse_long(text: &mut String) {
    refuse_longer(text, TEXT);
}

fn refuse_longer(text: &mut String, most: usize) {
    if text.len() > most {
        *text = TOO_LONG.to_owned();
    }
}

fn shorten_list<T>(list: &mut Vec<T>, most: usize) {
    list.truncate(most);
    list.shrink_to_fit();
}

impl Prune for AzureCluster {
    /// Keeps what is read of the management cluster.
    fn prune(&mut self) {
        prune_azure_metadata(&mut self.metadata);
        let conditions = self.status.as_mut().and_then(|status| status.conditions.as_mut());
        if let Some(conditions) = conditions {
            prune_conditions(&mut conditions.0);
        }
        prune_spec(&mut self.spec);
    }
}

/// Keeps what is read of a workload cluster: no records, and of the entries those with a name of which `is_read` holds.
///
/// Positions do not stay, so that no patch of entries may be made of it.
pub fn prune_workload(cluster: &mut AzureCluster, is_read: impl Fn(&str) -> bool) {
    if let Some(annotations) = &mut cluster.metadata.annotations {
        annotations.retain(|name, _| ![LEDGER, DROPPED_ENDPOINTS].contains(&name.as_str()));
    }
    let subnets = &mut cluster.spec.network_spec.subnets;
    shorten_list(subnets, OF_WORKLOAD);
    let mut left = OF_WORKLOAD;
    let lists = subnets
        .iter_mut()
        .filter_map(|subnet| subnet.private_endpoints.as_mut());
    for entries in lists {
        entries.0.retain(|entry| is_read(&entry.name));
        shorten_list(&mut entries.0, left);
        left -= entries.0.len();
    }
}

fn prune_azure_metadata(metadata: &mut ObjectMeta) {
    if let Some(annotations) = &mut metadata.annotations {
        annotations.retain(|name, text| match name.as_str() {
            LEDGER | DROPPED_ENDPOINTS => text.len() <= 2 * LONGEST_RECORDS,
            API_SERVER_ADDRESS | GATEWAY_ADDRESS => {
                shorten(text, TEXT);
                true
            }
            _ => false,
        });
    }
    metadata.managed_fields = None;
    metadata.labels = None;
    metadata.owner_references = None;
    let finalizers = metadata.finalizers.take().unwrap_or_default();
    let is_held = finalizers.iter().any(|name| name == FINALIZER);
    metadata.finalizers = is_held.then(|| vec![FINALIZER.to_owned()]);
}

/// Keeps of this role's condition all texts, of the others type and status: whether they are True is read.
fn prune_conditions(conditions: &mut Vec<CapiCondition>) {
    shorten_list(conditions, CONDITIONS);
    let own = conditions.iter().position(|condition| condition.kind == CONDITION);
    for (at, condition) in conditions.iter_mut().enumerate() {
        if Some(at) != own {
            let CapiCondition { kind, status, .. } = std::mem::take(condition);
            (condition.kind, condition.status) = (kind, status);
        }
        shorten(&mut condition.kind, TEXT);
        shorten(&mut condition.status, WORD);
        shorten(&mut condition.severity, WORD);
        shorten(&mut condition.last_transition_time, WORD);
        shorten(&mut condition.reason, TEXT);
        shorten(&mut condition.message, MESSAGE);
    }
}

fn prune_spec(spec: &mut AzureClusterSpec) {
    let identity = spec.identity_ref.as_mut();
    let named = identity.map(|one| [&mut one.kind, &mut one.name, &mut one.namespace]);
    let own = [
        &mut spec.subscription_id,
        &mut spec.resource_group,
        &mut spec.location,
        &mut spec.azure_environment,
    ];
    own.into_iter()
        .chain(named.into_iter().flatten())
        .flatten()
        .for_each(refuse_long);
    let network = &mut spec.network_spec;
    shorten_list(&mut network.subnets, SUBNETS);
    let mut left = ENTRIES;
    for subnet in &mut network.subnets {
        refuse_long(&mut subnet.name);
        refuse_long(&mut subnet.role);
        if let Some(entries) = subnet.private_endpoints.as_mut() {
            shorten_list(&mut entries.0, left);
            left -= entries.0.len();
            entries.0.iter_mut().for_each(prune_entry);
        }
    }
    if let Some(balancer) = &mut network.api_server_lb {
        balancer.kind.iter_mut().for_each(refuse_long);
        shorten_list(&mut balancer.private_links, MOST_LINKS);
        prune_links(&mut balancer.private_links);
    }
}

fn prune_links(links: &mut [PrivateLink]) {
    let mut left = SUBSCRIPTIONS;
    for link in links {
        link.name.iter_mut().for_each(refuse_long);
        for subscriptions in [&mut link.allowed_subscriptions, &mut link.auto_approved_subscriptions] {
            subscriptions.retain(|id| id.len() == SUBSCRIPTION && Uuid::try_parse(id).is_ok());
            shorten_list(subscriptions, left);
            left -= subscriptions.len();
        }
    }
}

fn prune_entry(entry: &mut Entry) {
    refuse_long(&mut entry.name);
    entry.location.iter_mut().for_each(refuse_long);
    if let Some(connections) = &mut entry.private_link_service_connections {
        shorten_list(connections, CONNECTIONS);
        for connection in connections {
            let texts = [&mut connection.name, &mut connection.request_message];
            texts.into_iter().flatten().for_each(refuse_long);
            let id = connection.private_link_service_id.as_mut();
            id.into_iter().for_each(|id| refuse_longer(id, ID));
        }
    }
}

/// Whether a selector has more than anybody needs.
fn is_long(selector: &LabelSelector) -> bool {
    let labels = selector.match_labels.iter().flatten().count();
    let expressions = selector.match_expressions.iter().flatten();
    let values = expressions.map(|one| 1 + one.values.iter().flatten().count() + one.key.len() / TEXT);
    labels + values.sum::<usize>() > SELECTOR
}

impl Prune for AzureClusterIdentity {
    fn prune(&mut self) {
        prune_metadata(&mut self.metadata, &[], &[]);
        self.metadata.finalizers = None;
        let spec = &mut self.spec;
        let SecretRef { name, namespace } = &mut spec.client_secret;
        let texts = [
            &mut spec.tenant_id,
            &mut spec.client_id,
            &mut spec.cert_path,
            name,
            namespace,
        ];
        texts.into_iter().flatten().for_each(refuse_long);
        let selector = spec
            .allowed_namespaces
            .as_ref()
            .and_then(|allowed| allowed.selector.as_ref());
        if selector.is_some_and(is_long) {
            // None allows nobody; a part of it might allow somebody else.
            spec.allowed_namespaces = None;
        }
        let allowed = spec.allowed_namespaces.as_mut();
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
        let named = [&mut self.spec.infrastructure_ref, &mut self.spec.control_plane_ref];
        for named in named.into_iter().flatten() {
            refuse_long(&mut named.kind);
            refuse_long(&mut named.name);
        }
    }
}

impl Prune for KubeadmControlPlane {
    fn prune(&mut self) {
        // Of the owners the Cluster is read, which is no control plane.
        let owners = self.metadata.owner_references.take().into_iter().flatten();
        prune_metadata(&mut self.metadata, &[PAUSED, PAUSED_HERE], &[]);
        let owner = owners.into_iter().find(|owner| owner.controller == Some(true));
        self.metadata.owner_references = owner.map(|mut owner| {
            let texts = [&mut owner.api_version, &mut owner.kind, &mut owner.name, &mut owner.uid];
            texts.into_iter().for_each(refuse_long);
            vec![owner]
        });
        self.metadata.finalizers = None;
    }
}

#[cfg(test)]
mod tests;
