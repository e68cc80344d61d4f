//! The private endpoint by which a workload cluster reaches the management cluster's gateway: an entry in the workload
//! cluster itself.

use kube::ResourceExt;

use super::assignments::{no_subnet, not_owned};
use super::cluster::{Access, endpoint_subnet, resource_group, subscription};
use super::entry::{Change, DesiredEntry, entries, key, only_service};
use super::links::is_name;
use super::reason::{Problem, Reason};
use crate::api::capi::{AzureCluster, Entry};
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::kinds::Kind;

/// How it stands with the way to the gateway.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Gateway {
    /// It is not desired; holds the changes that remove what is this role's.
    NotDesired(Vec<Change>),
    /// It is desired.
    Desired {
        /// The entry.
        entry: DesiredEntry,
        /// The changes that make it so.
        changes: Vec<Change>,
        /// Whether it is there already.
        is_there: bool,
    },
    /// It cannot be.
    Blocked(Problem),
}

impl Gateway {
    /// What is to be changed.
    pub fn changes(&self) -> &[Change] {
        match self {
            Self::NotDesired(changes) | Self::Desired { changes, .. } => changes,
            Self::Blocked(_) => &[],
        }
    }
}

/// The Private Link Service of the management cluster's gateway.
fn service_name(management: &AzureCluster) -> String {
    format!("{}-gateway-privatelink", management.name_any())
}

fn entry_name(workload: &str, management: &str) -> String {
    format!("{workload}-to-{management}-gateway-privateendpoint")
}

/// Whether an entry of this name is the way from a workload cluster to the gateway of this management cluster.
pub fn is_way(name: &str, workload: &str, management: &str) -> bool {
    key(name) == key(&entry_name(workload, management))
}

/// Decides on the way from a workload cluster to the gateway; `access` is the management cluster's.
pub fn decide(workload: &AzureCluster, management: &AzureCluster, access: Access) -> Gateway {
    let (own, to) = (workload.name_any(), management.name_any());
    let found: Vec<_> = entries(workload)
        .filter(|(_, entry)| is_way(&entry.name, &own, &to))
        .collect();
    let owned = |entry: &Entry| is_owned(entry, management);
    if access == Access::Public {
        let removed = found.iter().filter(|(_, entry)| owned(entry));
        let removed = removed.map(|(at, entry)| Change::Remove {
            at: *at,
            name: entry.name.clone(),
        });
        return Gateway::NotDesired(removed.collect());
    }
    let entry = match desired(entry_name(&own, &to), workload, management) {
        Ok(entry) => entry,
        Err(problem) => return Gateway::Blocked(problem),
    };
    let Some((at, kept)) = found.iter().find(|(_, entry)| owned(entry)) else {
        if !found.is_empty() {
            return Gateway::Blocked(not_owned(&entry.name));
        }
        return match endpoint_subnet(workload) {
            None => Gateway::Blocked(no_subnet(workload)),
            Some(subnet) => Gateway::Desired {
                changes: vec![Change::Add {
                    subnet,
                    entry: entry.clone(),
                }],
                entry,
                is_there: false,
            },
        };
    };
    let fields = entry.differs(kept);
    let mut changes = Vec::new();
    if !fields.is_empty() {
        let entry = DesiredEntry {
            name: kept.name.clone(),
            ..entry.clone()
        };
        changes.push(Change::Repair { at: *at, entry, fields });
    }
    let others = found.iter().filter(|(other, entry)| other != at && owned(entry));
    changes.extend(others.map(|(at, entry)| Change::Remove {
        at: *at,
        name: entry.name.clone(),
    }));
    Gateway::Desired {
        entry,
        changes,
        is_there: true,
    }
}

fn desired(name: String, workload: &AzureCluster, management: &AzureCluster) -> Result<DesiredEntry, Problem> {
    let invalid = || {
        let message =
            format!("private endpoint {name} of the way to the gateway has no name or service that Azure takes");
        Problem::new(Reason::InvalidLinkName, message)
    };
    let subscription = subscription(management).ok_or_else(invalid)?;
    let (group, service) = (resource_group(management), service_name(management));
    let service =
        ResourceId::new(Kind::PrivateLinkService, &subscription, &group, &[&service]).map_err(|_| invalid())?;
    if !is_name(&name) {
        return Err(invalid());
    }
    let connection = format!(
        "{}-to-{}-gateway-connection",
        workload.name_any(),
        management.name_any()
    );
    Ok(DesiredEntry {
        location: workload.spec.location.clone(),
        request_message: None,
        connection,
        service,
        name,
    })
}

/// Whether an entry of the desired name is this role's: it leads to the gateway's service, in the management cluster's
/// group or in one of its name, as the reference takes it.
fn is_owned(entry: &Entry, management: &AzureCluster) -> bool {
    only_service(entry).is_some_and(|service| {
        let is_group = |group: &str| same(service.group(), group);
        same(service.name(), &service_name(management))
            && (is_group(&resource_group(management)) || is_group(&management.name_any()))
    })
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::capz::entry::Position;
    use crate::capz::samples::{MANAGEMENT_SUBSCRIPTION, management, workload};

    fn existing(group: &str, service: &str) -> Value {
        let id = format!(
            "/subscriptions/{MANAGEMENT_SUBSCRIPTION}/resourceGroups/{group}/providers/Microsoft.Network/privateLinkServices/{service}"
        );
        json!({"name": "wc-to-mc-gateway-privateendpoint", "location": "westeurope", "privateLinkServiceConnections": [
            {"name": "wc-to-mc-gateway-connection", "privateLinkServiceID": id}]})
    }

    fn with(entries: Value) -> AzureCluster {
        workload("wc").entries(entries).cluster()
    }

    #[test]
    fn private_management_cluster_is_reached_by_an_endpoint() {
        let Gateway::Desired {
            entry,
            changes,
            is_there,
        } = decide(&with(json!(null)), &management().cluster(), Access::Internal)
        else {
            panic!("not desired")
        };
        assert!(!is_there);
        assert_eq!(
            entry.service.to_string(),
            existing("mc", "mc-gateway-privatelink")["privateLinkServiceConnections"][0]["privateLinkServiceID"]
        );
        assert_eq!(changes, [Change::Add { subnet: 0, entry }]);
    }

    #[test]
    fn endpoint_that_is_as_desired_is_kept() {
        let found = decide(
            &with(json!([existing("mc", "mc-gateway-privatelink")])),
            &management().cluster(),
            Access::Internal,
        );
        assert!(
            matches!(found, Gateway::Desired { is_there: true, ref changes, .. } if changes.is_empty()),
            "{found:?}"
        );
    }

    #[test]
    fn group_of_the_references_form_is_repaired() {
        let management = management().with("/spec/resourceGroup", json!("group")).cluster();
        let found = decide(
            &with(json!([existing("MC", "mc-gateway-privatelink")])),
            &management,
            Access::Internal,
        );
        let Gateway::Desired { changes, .. } = found else {
            panic!("{found:?}")
        };
        assert!(
            matches!(
                &changes[..],
                [Change::Repair {
                    at: Position { subnet: 0, entry: 0 },
                    ..
                }]
            ),
            "{changes:?}"
        );
    }

    #[test]
    fn somebody_elses_endpoint_of_the_name_is_not_touched() {
        for theirs in [existing("mc", "another"), existing("other", "mc-gateway-privatelink")] {
            let cluster = with(json!([theirs]));
            let found = decide(&cluster, &management().cluster(), Access::Internal);
            assert!(
                matches!(&found, Gateway::Blocked(problem) if problem.reason == Reason::NotOurs),
                "{found:?}"
            );
            assert_eq!(
                decide(&cluster, &management().cluster(), Access::Public),
                Gateway::NotDesired(Vec::new())
            );
        }
    }

    #[test]
    fn endpoint_to_a_public_management_cluster_is_removed() {
        let cluster = with(json!([{"name": "other"}, existing("mc", "mc-gateway-privatelink")]));
        let found = decide(&cluster, &management().cluster(), Access::Public);
        let at = Position { subnet: 0, entry: 1 };
        let name = "wc-to-mc-gateway-privateendpoint".to_owned();
        assert_eq!(found, Gateway::NotDesired(vec![Change::Remove { at, name }]));
    }

    #[test]
    fn second_endpoint_of_the_name_is_removed() {
        let two = json!([{"name": "a", "role": "node", "privateEndpoints": [existing("mc", "mc-gateway-privatelink")]},
            {"name": "b", "role": "node", "privateEndpoints": [existing("mc", "mc-gateway-privatelink")]}]);
        let cluster = workload("wc").with("/spec/networkSpec/subnets", two).cluster();
        let found = decide(&cluster, &management().cluster(), Access::Internal);
        assert!(
            matches!(
                found.changes(),
                [Change::Remove {
                    at: Position { subnet: 1, entry: 0 },
                    ..
                }]
            ),
            "{found:?}"
        );
    }

    #[test]
    fn cluster_without_a_subnet_has_no_endpoint() {
        let cluster = workload("wc").with("/spec/networkSpec/subnets", json!([])).cluster();
        let found = decide(&cluster, &management().cluster(), Access::Internal);
        assert!(
            matches!(&found, Gateway::Blocked(problem) if problem.reason == Reason::SubnetsNotSet),
            "{found:?}"
        );
    }

    #[test]
    fn name_that_is_too_long_is_reported() {
        let cluster = workload(&"w".repeat(63)).cluster();
        let found = decide(&cluster, &management().cluster(), Access::Internal);
        assert!(
            matches!(&found, Gateway::Blocked(problem) if problem.reason == Reason::InvalidLinkName),
            "{found:?}"
        );
    }
}
