//! Which private endpoints the links of a workload cluster need in the management cluster's network.

use kube::ResourceExt;

use super::cluster::{self, reference};
use super::entry::{DesiredEntry, key, request_message};
use super::reason::{Problem, Reason};
use crate::api::capi::{AzureCluster, PrivateLink};
use crate::api::markers::capz::{LINKS_READY, MOST_LINKS};
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::kinds::Kind;

const ENTRY_SUFFIX: &str = "-privateendpoint";
const CONNECTION_SUFFIX: &str = "-connection";
/// The longest name of a private endpoint, in characters.
/// Source: <https://learn.microsoft.com/azure/azure-resource-manager/management/resource-name-rules>
const MAX_NAME: usize = 80;

/// The private endpoints of a workload cluster's links.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DesiredLinks {
    /// One for each link that can be used.
    pub entries: Vec<DesiredEntry>,
    /// Why others cannot be used, or none can.
    pub problem: Option<Problem>,
    /// Whether CAPZ has made the Private Link Services.
    pub ready: bool,
}

/// The name of the entry for a link.
pub fn entry_name(link: &str) -> String {
    format!("{link}{ENTRY_SUFFIX}")
}

/// Whether an entry could be one for a link, by its names.
pub fn has_our_form(name: &str, connection: Option<&str>) -> bool {
    let link = name.strip_suffix(ENTRY_SUFFIX);
    let other = connection.and_then(|name| name.strip_suffix(CONNECTION_SUFFIX));
    link.is_some() && link == other
}

/// The name of the link whose address is published: the one of the API server.
pub fn api_server_link(cluster: &str) -> String {
    format!("{cluster}-api-privatelink")
}

/// What the links of a workload cluster need in the management cluster's network.
pub fn desired(workload: &AzureCluster, management: &AzureCluster) -> DesiredLinks {
    let subscription = management.spec.subscription_id.as_deref().unwrap_or_default();
    let named = cluster::links(workload)
        .iter()
        .take(MOST_LINKS)
        .filter(|link| !name(link).is_empty());
    let candidates: Vec<_> = named
        .filter(|link| has(&link.allowed_subscriptions, subscription))
        .collect();
    let mut found = DesiredLinks {
        ready: workload
            .condition(LINKS_READY)
            .is_some_and(|condition| condition.is_true()),
        ..DesiredLinks::default()
    };
    if candidates.is_empty() {
        let message = "no item of apiServerLB.privateLinks allows the management cluster's subscription";
        found.problem = Some(Problem::new(Reason::LinksNotAllowed, message));
    }
    for link in candidates {
        let Some(entry) = entry(link, workload, management) else {
            let message = "a link's name, or the cluster's subscription or group, is none that Azure takes";
            found.problem = Some(Problem::new(Reason::InvalidLinkName, message));
            continue;
        };
        let known = found.entries.iter().find(|known| key(&known.name) == key(&entry.name));
        match known.map(|known| known.name.as_str()) {
            None => found.entries.push(entry),
            Some(known) if same(known, &entry.name) => {}
            Some(known) => {
                let message = format!("{known} and {} of two links are one object in Kubernetes", entry.name);
                found.problem.get_or_insert(Problem::new(Reason::NameConflict, message));
            }
        }
    }
    found
}

/// The Private Link Services of all links of a cluster, whoever may use them.
pub fn services(workload: &AzureCluster) -> impl Iterator<Item = (String, ResourceId)> {
    let links = cluster::links(workload).iter().take(MOST_LINKS);
    links.filter_map(|link| Some((entry_name(name(link)), service(name(link), workload)?)))
}

fn name(link: &PrivateLink) -> &str {
    link.name.as_deref().unwrap_or_default()
}

fn has(subscriptions: &[String], subscription: &str) -> bool {
    !subscription.is_empty() && subscriptions.iter().any(|one| same(one, subscription))
}

/// The Private Link Service of a link; none if there can be no such id.
fn service(link: &str, workload: &AzureCluster) -> Option<ResourceId> {
    let (subscription, group) = (cluster::subscription(workload)?, cluster::resource_group(workload));
    ResourceId::new(Kind::PrivateLinkService, &subscription, &group, &[link]).ok()
}

fn entry(link: &PrivateLink, workload: &AzureCluster, management: &AzureCluster) -> Option<DesiredEntry> {
    let name = entry_name(self::name(link));
    if !is_name(&name) {
        return None;
    }
    let subscription = management.spec.subscription_id.as_deref().unwrap_or_default();
    let is_manual = !has(&link.auto_approved_subscriptions, subscription);
    let message = || {
        let (from, to) = (management.name_any(), workload.name_any());
        request_message(format!("{from} requests access to the API server of {to}"))
    };
    Some(DesiredEntry {
        location: management.spec.location.clone(),
        connection: format!("{}{CONNECTION_SUFFIX}", self::name(link)),
        service: service(self::name(link), workload)?,
        request_message: is_manual.then(message),
        name,
    })
}

/// Whether CAPZ and Azure take this name for a private endpoint.
pub fn is_name(name: &str) -> bool {
    let allowed = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    name.len() <= MAX_NAME && name.chars().all(allowed) && name.starts_with(|c: char| c.is_ascii_alphanumeric())
}

/// The problem that CAPZ has not made the Private Link Services of a cluster.
pub fn not_ready(workload: &AzureCluster) -> Problem {
    let message = format!(
        "condition {LINKS_READY} of AzureCluster {} is not True",
        reference(workload)
    );
    Problem::new(Reason::LinksNotReady, message)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::samples::{MANAGEMENT_SUBSCRIPTION, management, workload};

    #[test]
    fn entry_leads_to_the_service_of_the_link() {
        let found = desired(&workload("wc").cluster(), &management().cluster());
        assert_eq!((found.problem, found.ready), (None, true));
        let [entry] = &found.entries[..] else {
            panic!("{:?}", found.entries)
        };
        assert_eq!(entry.name, "wc-api-privatelink-privateendpoint");
        assert_eq!(entry.connection, "wc-api-privatelink-connection");
        assert_eq!(entry.location.as_deref(), Some("westeurope"));
        assert_eq!(entry.request_message, None);
        let service = "/subscriptions/11111111-1111-1111-1111-111111111111/resourceGroups/wc/providers/Microsoft.Network/privateLinkServices/wc-api-privatelink";
        assert_eq!(entry.service.to_string(), service);
    }

    #[rstest]
    #[case::as_capz_sets_it(json!([{"type": "Ready", "status": "False"}, {"type": LINKS_READY, "status": "True"}]), true)]
    #[case::first_counts(json!([{"type": LINKS_READY, "status": "False"}, {"type": LINKS_READY, "status": "True"}]), false)]
    #[case::unknown(json!([{"type": LINKS_READY, "status": "Unknown"}]), false)]
    #[case::another_one(json!([{"type": "Ready", "status": "True"}]), false)]
    #[case::none(json!(null), false)]
    fn links_are_ready_when_capz_reports_it(#[case] conditions: Value, #[case] ready: bool) {
        let cluster = workload("wc").with("/status/conditions", conditions).cluster();
        let found = desired(&cluster, &management().cluster());
        assert_eq!((found.ready, found.entries.len()), (ready, 1));
    }

    #[test]
    fn connection_that_needs_approval_has_a_short_message() {
        let link =
            json!({"name": "wc-api-privatelink", "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION.to_uppercase()]});
        let found = desired(&workload("wc").links(json!([link])).cluster(), &management().cluster());
        let message = found.entries[0].request_message.as_deref();
        assert_eq!(message, Some("mc requests access to the API server of wc"));
        let name = "w".repeat(200);
        let long = workload(&name)
            .with("/spec/resourceGroup", json!("g"))
            .links(json!([link]));
        let found = desired(&long.cluster(), &management().cluster());
        assert_eq!(found.entries[0].request_message.as_ref().unwrap().len(), 140);
    }

    #[test]
    fn link_that_others_may_use_is_no_candidate() {
        let links = json!([{"name": "a", "allowedSubscriptions": ["other", null]}, {"name": "b"}, {"name": "c",
            "allowedSubscriptions": null}, {"allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]},
            {"name": "", "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}]);
        let found = desired(&workload("wc").links(links).cluster(), &management().cluster());
        assert_eq!(found.entries, []);
        assert_eq!(found.problem.unwrap().reason, Reason::LinksNotAllowed);
    }

    #[test]
    fn link_with_a_strange_name_stops_no_other() {
        let link = |name: &str| json!({"name": name, "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]});
        let strange = ["a/../b", "東京", &"x".repeat(300), "a b", "-a", "*", &"y".repeat(65)].map(link);
        let mut links = json!(strange);
        links
            .as_array_mut()
            .unwrap()
            .extend([link("good"), link("GOOD"), link(&"z".repeat(64))]);
        let found = desired(&workload("wc").links(links).cluster(), &management().cluster());
        let names: Vec<_> = found.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(
            names,
            ["good-privateendpoint", &format!("{}-privateendpoint", "z".repeat(64))]
        );
        assert_eq!(found.problem.unwrap().reason, Reason::InvalidLinkName);
    }

    #[test]
    fn of_two_links_with_one_private_endpoint_the_first_has_it() {
        let link = |name: &str| json!({"name": name, "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]});
        let found = desired(
            &workload("wc")
                .links(json!([link("a.b"), link("a-b"), link("c")]))
                .cluster(),
            &management().cluster(),
        );
        let names: Vec<_> = found.entries.iter().map(|entry| entry.name.as_str()).collect();
        assert_eq!(names, ["a.b-privateendpoint", "c-privateendpoint"]);
        assert_eq!(found.problem.unwrap().reason, Reason::NameConflict);
    }

    #[test]
    fn services_of_all_links_are_the_clusters_whoever_may_use_them() {
        let links = json!([{"name": "a"}, {"name": "b", "allowedSubscriptions": [MANAGEMENT_SUBSCRIPTION]}, {}]);
        let found: Vec<_> = services(&workload("wc").links(links).cluster())
            .map(|(name, _)| name)
            .collect();
        assert_eq!(found, ["a-privateendpoint", "b-privateendpoint"]);
    }
}
