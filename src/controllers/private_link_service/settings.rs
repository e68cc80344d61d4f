//! What the operator decided for all clusters, as role `ho` needs it.

use super::frontend::FrontendMatch;
use super::nat_prefix::NatSubnetRules;
use super::service_id;
use crate::api::{AzurePrivateLinkService, HostedCluster};
use crate::azure::arm::id::{ResourceId, same};
use crate::azure::arm::scope::AzureScope;
use crate::hypershift::azure::management_scopes::{ManagementScope, ManagementScopes};
use crate::hypershift::problem::Problem;

/// What the operator decided for all clusters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The Azure cloud that this process serves, as HostedClusters spell it.
    pub cloud: &'static str,
    /// The UID of the management cluster's namespace kube-system, with which each Private Link Service is stamped.
    pub management_cluster: String,
    /// Where the cluster's load balancer is, and its Private Link Service is made.
    pub scope: ManagementScope,
    /// The management scopes of other clusters. What was made there can be deleted and narrowed, and is never extended.
    pub other_scopes: Vec<ManagementScope>,
    /// How NAT subnets are chosen.
    pub nat: NatSubnetRules,
    /// The NAT subnet that clusters in its network share, where none is given.
    pub nat_subnet: Option<ResourceId>,
    /// How frontends are recognised.
    pub frontend_match: FrontendMatch,
    /// Further scopes in which this process may manage what was made there. The groups among them are searched for load
    /// balancers before the whole subscription.
    pub also_manage: Vec<AzureScope>,
}

impl Settings {
    /// Whether this process may touch a Private Link Service with this id.
    pub fn allows(&self, id: &ResourceId) -> bool {
        self.scope.as_azure_scope().covers(id) || self.also_manages(id)
    }

    /// Whether this process may remove a NAT subnet with this id: its network may be in any group of the subscription.
    pub fn allows_subnet(&self, id: &ResourceId) -> bool {
        *id.subscription() == self.scope.subscription || self.also_manages(id)
    }

    /// The settings for what only takes away: a cluster that was moved to another management scope can be deleted, and
    /// its service lets in nobody who is revoked.
    pub(super) fn to_take_away(&self) -> Self {
        let others = self.other_scopes.iter().map(ManagementScope::as_azure_scope);
        Self {
            also_manage: self.also_manage.iter().cloned().chain(others).collect(),
            ..self.clone()
        }
    }

    fn also_manages(&self, id: &ResourceId) -> bool {
        self.also_manage.iter().any(|scope| scope.covers(id))
    }

    /// Further groups of the own subscription.
    pub(super) fn further_groups(&self) -> impl Iterator<Item = &str> {
        self.also_manage.iter().filter_map(|scope| match scope {
            AzureScope::Group(subscription, group) if *subscription == self.scope.subscription => {
                Some(group.as_str()).filter(|group| !same(group, &self.scope.resource_group))
            }
            _ => None,
        })
    }
}

/// The settings in each management scope, and which cluster is in which.
pub struct ScopedSettings {
    scopes: ManagementScopes,
    first: Settings,
    others: Vec<Settings>,
}

impl ScopedSettings {
    /// The settings that `of_scope` gives for each scope beside its others; none without a scope.
    pub fn new(
        scopes: ManagementScopes,
        of_scope: impl Fn(ManagementScope, Vec<ManagementScope>) -> Settings,
    ) -> Option<Self> {
        let all = scopes.all();
        let mut settings = all.iter().map(|scope| {
            let others = all.iter().filter(|other| *other != scope).cloned().collect();
            of_scope(scope.clone(), others)
        });
        Some(Self {
            first: settings.next()?,
            others: settings.collect(),
            scopes,
        })
    }

    /// The management scope of a cluster.
    pub(super) fn scope_of(&self, cluster: &HostedCluster) -> Result<ManagementScope, Problem> {
        self.scopes.of(cluster).cloned()
    }

    /// The scope whose process serves a custom resource: the one in which its service was recorded, so that a cluster
    /// that is moved stays with one process; else its cluster's.
    pub(super) fn serving_scope<'a>(
        &'a self,
        cr: &AzurePrivateLinkService,
        scope: Option<&'a ManagementScope>,
    ) -> &'a ManagementScope {
        let recorded = service_id::recorded(cr);
        let all = std::iter::once(&self.first).chain(&self.others);
        let scopes = all.map(|settings| &settings.scope);
        let holds = |scope: &&ManagementScope| recorded.as_ref().is_some_and(|id| scope.as_azure_scope().covers(id));
        scopes.clone().find(holds).or(scope).unwrap_or(&self.first.scope)
    }

    /// What is the same for all clusters.
    pub(super) fn common(&self) -> &Settings {
        &self.first
    }

    /// The settings for a cluster in this scope. Those of the first scope are for a cluster whose scope is not known.
    pub(super) fn of(&self, scope: Option<&ManagementScope>) -> &Settings {
        let is_of = |settings: &&Settings| scope == Some(&settings.scope);
        self.others.iter().find(is_of).unwrap_or(&self.first)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::controllers::private_link_service::samples::{management_scope, settings};
    use crate::controllers::samples::{cr, management};

    fn of_two() -> ScopedSettings {
        let file = "managementScopes: [{subscription: SUB, resourceGroup: other, hostedClusterLabels: {a: b}}]";
        let file = file.replace("SUB", crate::controllers::samples::MANAGEMENT);
        let scopes = ManagementScopes::parse(&file).unwrap();
        let of_scope = |scope, other_scopes| Settings {
            scope,
            other_scopes,
            ..settings()
        };
        ScopedSettings::new(scopes.with_default(management_scope("mgmt")), of_scope).unwrap()
    }

    #[test]
    fn settings_of_a_scope_know_the_others() {
        let scoped = of_two();
        let other = management_scope("OTHER");
        let found = scoped.of(Some(&other));
        assert_eq!(found.scope.resource_group, "other");
        assert_eq!(found.other_scopes, [management_scope("mgmt")]);
        assert_eq!(scoped.of(None).scope, management_scope("mgmt"));
        let id = ResourceId::parse(&management("privateLinkServices/pls-x")).unwrap();
        assert!(!found.allows(&id) && found.to_take_away().allows(&id));
    }

    #[test]
    fn moved_cluster_stays_with_the_process_of_its_service() {
        let scoped = of_two();
        let other = management_scope("other");
        let made = cr(
            json!({"privateLinkServiceID": management("privateLinkServices/pls-x")}),
            json!({}),
        );
        let new = cr(Value::Null, json!({}));
        let group = |cr, scope| scoped.serving_scope(cr, scope).resource_group.as_str();
        assert_eq!(group(&made, Some(&other)), "mgmt");
        assert_eq!(group(&new, Some(&other)), "other");
        assert_eq!(group(&new, None), "mgmt");
    }
}
