//! What watches keep of objects of Cluster API.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::LabelSelector;

use super::{TEXT, picked, prune_metadata, shorten};
use crate::api::capi::{
    AzureCluster, AzureClusterIdentity, AzureClusterSpec, Cluster, Entry, KubeadmControlPlane, SecretRef,
};
use crate::api::held_by;
use crate::api::markers::capz::{
    CONDITION, DROPPED_ENDPOINTS, FINALIZER, LEDGER, LONGEST_RECORDS, MOST_LINKS, PAUSED, PAUSED_HERE,
    PROVIDER_CONFIG_FINALIZER, READ_ANNOTATIONS,
};
use crate::hypershift::names::is_namespace;
use crate::runtime::prune::Prune;

/// The most subnets of a cluster that are kept.
const SUBNETS: usize = 256;
/// The most entries of a cluster that are kept: rather more than the management cluster can have of this role's.
const ENTRIES: usize = 4_096;
/// The most bytes of an ARM id that are kept. Source: the sum of the longest names of its parts.
const ID: usize = 1_024;
/// What is kept of a text that is too long for its field: nothing that any name may contain.
const TOO_LONG: &str = "?too long?";
/// The most connections of an entry that are kept: one is as desired, and a second one tells that it is not.
const CONNECTIONS: usize = 2;
/// The most subscriptions of a link that are kept.
const SUBSCRIPTIONS: usize = 256;
/// The most conditions of a cluster that are kept.
const CONDITIONS: usize = 256;
/// The most labels, expressions and values of an identity's selector.
const SELECTOR: usize = 256;
/// The most namespaces of an identity that are kept.
const NAMESPACES: usize = 4_096;

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
    fn prune(&mut self) {
        let metadata = &mut self.metadata;
        let mut annotations = metadata.annotations.take();
        let mut record = |name| annotations.as_mut().and_then(|all| all.remove_entry(name));
        let records = [record(LEDGER), record(DROPPED_ENDPOINTS)];
        metadata.annotations = picked(annotations, &READ_ANNOTATIONS);
        let whole = |(_, text): &(String, String)| text.len() <= 2 * LONGEST_RECORDS;
        for (name, text) in records.into_iter().flatten().filter(whole) {
            metadata.annotations.get_or_insert_default().insert(name, text);
        }
        metadata.managed_fields = None;
        metadata.labels = None;
        metadata.owner_references = None;
        if let Some(finalizers) = &mut metadata.finalizers {
            finalizers.retain(|name| name == FINALIZER);
        }
        let conditions = self.status.as_mut().and_then(|status| status.conditions.as_mut());
        for condition in conditions.into_iter().flat_map(|conditions| {
            shorten_list(&mut conditions.0, CONDITIONS);
            &mut conditions.0
        }) {
            if condition.kind != CONDITION {
                condition.message = String::new();
                condition.reason = String::new();
            }
            shorten(&mut condition.kind, TEXT);
        }
        prune_spec(&mut self.spec);
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
    network.subnets.truncate(SUBNETS);
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
        for link in &mut balancer.private_links {
            link.name.iter_mut().for_each(refuse_long);
            for subscriptions in [&mut link.allowed_subscriptions, &mut link.auto_approved_subscriptions] {
                shorten_list(subscriptions, SUBSCRIPTIONS);
                subscriptions.iter_mut().for_each(refuse_long);
            }
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
        let owners = self.metadata.owner_references.take();
        prune_metadata(&mut self.metadata, &[PAUSED, PAUSED_HERE], &[]);
        self.metadata.owner_references = owners;
        self.metadata.finalizers = None;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pruned(object: &serde_json::Value) -> AzureCluster {
        let mut cluster: AzureCluster = serde_json::from_value(object.clone()).unwrap();
        cluster.prune();
        cluster
    }

    #[test]
    fn records_of_the_management_cluster_stay_whole() {
        let text = "x".repeat(2 * LONGEST_RECORDS);
        let cluster = pruned(
            &json!({"metadata": {"annotations": {LEDGER: text, DROPPED_ENDPOINTS: text, "a": "b"}},
            "spec": {}}),
        );
        let kept = cluster.metadata.annotations.unwrap();
        assert_eq!(kept.values().map(String::len).collect::<Vec<_>>(), [text.len(); 2]);
    }

    #[test]
    fn long_text_is_replaced_by_none_that_is_valid() {
        let long = "a".repeat(100_000);
        let cluster = pruned(
            &json!({"metadata": {}, "spec": {"location": long, "resourceGroup": long,
            "azureEnvironment": long, "subscriptionID": long, "identityRef": {"name": long, "namespace": long},
            "networkSpec": {
                "apiServerLB": {"type": long, "privateLinks": [{"name": long, "allowedSubscriptions": [long]}]},
                "subnets": [{"name": long, "role": long, "privateEndpoints": [{"name": long, "location": long,
                    "privateLinkServiceConnections": [{"name": long, "privateLinkServiceID": long,
                        "requestMessage": long}]}]}]}}}),
        );
        let text = format!("{:?}", cluster.spec);
        assert!(!text.contains("aaaa"), "{text}");
        assert_eq!(text.matches(TOO_LONG).count(), 16, "{text}");
        assert!(!crate::capz::links::is_name(TOO_LONG));
    }

    #[test]
    fn lists_of_a_cluster_are_bounded() {
        let entries = vec![json!({"name": "e"}); 5_000];
        let subnet = json!({"name": "n", "privateEndpoints": entries});
        let conditions = vec![json!({"type": "A", "status": "True"}); 5_000];
        let cluster = pruned(
            &json!({"metadata": {}, "spec": {"networkSpec": {"subnets": [subnet, subnet]}},
            "status": {"conditions": conditions}}),
        );
        let kept: Vec<usize> = cluster
            .spec
            .network_spec
            .subnets
            .iter()
            .map(|one| one.entries().len())
            .collect();
        assert_eq!(kept, [ENTRIES, 0]);
        assert_eq!(cluster.conditions().len(), CONDITIONS);
    }

    #[test]
    fn identity_with_a_long_selector_allows_nobody() {
        let values: Vec<String> = (0..1_000).map(|number| number.to_string()).collect();
        let spec = json!({"tenantID": "t".repeat(100_000), "allowedNamespaces": {"selector": {"matchExpressions":
            [{"key": "k", "operator": "In", "values": values}]}}});
        let mut identity: AzureClusterIdentity = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
        identity.prune();
        assert_eq!(identity.spec.allowed_namespaces, None);
        assert_eq!(identity.spec.tenant_id.as_deref(), Some(TOO_LONG));
    }
}
