//! In which management scope the load balancers and Private Link Services of a cluster are, as the operator of several
//! scopes writes it. Pure.
//!
//! The load balancer is where the cloud provider made it: with a scope in another subscription no frontend is found, and
//! nothing is made. Labels are as trustworthy as those who may write the HostedCluster.

use std::collections::BTreeMap;

use kube::ResourceExt;
use serde::Deserialize;
use sha2::{Digest, Sha256};

use crate::api::{ClusterRef, HostedCluster, Reason};
use crate::azure::arm::id::{SubscriptionId, is_group_name, same};
use crate::azure::arm::scope::AzureScope;
use crate::engine::text::is_uuid;
use crate::hypershift::identity::IDENTITY_RETRY;
use crate::hypershift::problem::Problem;

/// Why a text is not a valid list of management scopes.
#[derive(Debug, thiserror::Error)]
pub enum ManagementScopesError {
    /// Not the form that is documented.
    // The parser quotes the file as it is; a problem with the settings has one line.
    #[error("{}", .0.to_string().replace(char::is_control, " "))]
    Form(#[from] serde_saphyr::Error),
    /// A subscription that does not parse.
    #[error("{0:?} is not the id of a subscription, a UUID")]
    Subscription(String),
    /// A resource group that does not parse.
    #[error("{0:?} is not the name of a resource group")]
    Group(String),
    /// An entry for nobody.
    #[error("{0}: name hostedClusters or hostedClusterLabels, and nothing empty in them")]
    Nobody(ManagementScope),
    /// Two entries for the same clusters.
    #[error("two entries for {0}")]
    Twice(String),
}

/// Where load balancers and Private Link Services are. Compared as Azure does.
#[derive(Debug, Clone, Eq)]
pub struct ManagementScope {
    /// The subscription.
    pub subscription: SubscriptionId,
    /// The resource group in it.
    pub resource_group: String,
}

impl PartialEq for ManagementScope {
    fn eq(&self, other: &Self) -> bool {
        self.subscription == other.subscription && same(&self.resource_group, &other.resource_group)
    }
}

impl ManagementScope {
    /// The scope as a part of Azure.
    pub fn as_azure_scope(&self) -> AzureScope {
        AzureScope::Group(self.subscription.clone(), self.resource_group.clone())
    }
}

impl std::fmt::Display for ManagementScope {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let subscription = &self.subscription;
        let group = &self.resource_group;
        write!(f, "/subscriptions/{subscription}/resourceGroups/{group}")
    }
}

/// The file, as written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    management_scopes: Vec<Written>,
}

/// One entry of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    subscription: String,
    resource_group: String,
    #[serde(default)]
    hosted_clusters: Vec<WrittenClusters>,
    #[serde(default)]
    hosted_cluster_labels: BTreeMap<String, String>,
}

/// HostedClusters of a namespace, or all of them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct WrittenClusters {
    namespace: String,
    names: Option<Vec<String>>,
}

/// Which clusters are in which management scope. Without the operator's file: all are in the one of the flags.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagementScopes {
    /// A hash of the file.
    file: String,
    /// That of each cluster that no other rule is for.
    default: Option<ManagementScope>,
    by_name: BTreeMap<ClusterRef, ManagementScope>,
    by_labels: Vec<(BTreeMap<String, String>, ManagementScope)>,
    by_namespace: BTreeMap<String, ManagementScope>,
}

impl ManagementScopes {
    /// Reads the operator's file, YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, ManagementScopesError> {
        // The error is one line; a name is a text, as for Kubernetes.
        let options = serde_saphyr::options! { with_snippet: false, no_schema: true, strict_booleans: true };
        let file: File = serde_saphyr::from_str_with_options(text, options)?;
        let mut scopes = Self {
            file: hash(text),
            ..Self::default()
        };
        for written in file.management_scopes {
            scopes.add(written)?;
        }
        Ok(scopes)
    }

    fn add(&mut self, written: Written) -> Result<(), ManagementScopesError> {
        let scope = scope(&written)?;
        let labels = written.hosted_cluster_labels;
        let is_empty = |cluster: &WrittenClusters| {
            let names = cluster.names.as_ref();
            cluster.namespace.is_empty()
                || names.is_some_and(|names| names.is_empty() || names.iter().any(String::is_empty))
        };
        let names_nobody = written.hosted_clusters.is_empty() && labels.is_empty();
        if names_nobody || written.hosted_clusters.iter().any(is_empty) || labels.keys().any(String::is_empty) {
            return Err(ManagementScopesError::Nobody(scope));
        }
        if !labels.is_empty() {
            if self.by_labels.iter().any(|(other, _)| *other == labels) {
                return Err(ManagementScopesError::Twice(format!("the labels {labels:?}")));
            }
            self.by_labels.push((labels, scope.clone()));
        }
        for WrittenClusters { namespace, names } in written.hosted_clusters {
            let Some(names) = names else {
                let twice = format!("the HostedClusters {namespace}/*");
                let before = self.by_namespace.insert(namespace, scope.clone());
                before.map_or(Ok(()), |_| Err(ManagementScopesError::Twice(twice)))?;
                continue;
            };
            for name in names {
                let namespace = namespace.clone();
                let cluster = ClusterRef { namespace, name };
                let twice = format!("the HostedCluster {cluster}");
                let before = self.by_name.insert(cluster, scope.clone());
                before.map_or(Ok(()), |_| Err(ManagementScopesError::Twice(twice)))?;
            }
        }
        Ok(())
    }

    /// Puts each cluster for which the file has no entry into this scope.
    #[must_use]
    pub fn with_default(self, default: ManagementScope) -> Self {
        Self {
            default: Some(default),
            ..self
        }
    }

    /// A short text that is the same for processes which put each cluster into the same scope, and for few others.
    pub fn fingerprint(&self) -> String {
        let default = self.default.as_ref().map(ToString::to_string).unwrap_or_default();
        hash(&format!("{}{}", self.file, default.to_ascii_lowercase()))
    }

    /// Each scope once, the default one first.
    pub fn all(&self) -> Vec<ManagementScope> {
        let by_labels = self.by_labels.iter().map(|(_, scope)| scope);
        let named = self.by_name.values().chain(self.by_namespace.values());
        let mut all: Vec<ManagementScope> = Vec::new();
        for scope in self.default.iter().chain(by_labels).chain(named) {
            if !all.contains(scope) {
                all.push(scope.clone());
            }
        }
        all
    }

    /// The scope of a cluster. An entry that names it goes before one for its labels, and that before one for its
    /// namespace.
    pub fn of(&self, cluster: &HostedCluster) -> Result<&ManagementScope, Problem> {
        let reference = ClusterRef {
            namespace: cluster.namespace().unwrap_or_default(),
            name: cluster.name_any(),
        };
        if let Some(named) = self.by_name.get(&reference) {
            return Ok(named);
        }
        let own = cluster.labels();
        let fits = |labels: &BTreeMap<String, String>| labels.iter().all(|(name, value)| own.get(name) == Some(value));
        let mut labelled = self.by_labels.iter().filter(|(labels, _)| fits(labels));
        if let Some((_, scope)) = labelled.next() {
            return match labelled.find(|(_, other)| other != scope) {
                None => Ok(scope),
                Some((_, other)) => Err(refused(format!(
                    "the labels of HostedCluster {reference} fit the management scopes {scope} and {other}"
                ))),
            };
        }
        let general = self.by_namespace.get(&reference.namespace).or(self.default.as_ref());
        general.ok_or_else(|| refused(format!("no management scope is for HostedCluster {reference}")))
    }
}

fn hash(text: &str) -> String {
    let digest = Sha256::digest(text);
    digest.iter().take(4).map(|byte| format!("{byte:02x}")).collect()
}

fn refused(message: String) -> Problem {
    Problem::new(Reason::ScopeNotAllowed, message).requeue_after(IDENTITY_RETRY)
}

fn scope(written: &Written) -> Result<ManagementScope, ManagementScopesError> {
    let Written {
        subscription,
        resource_group,
        ..
    } = written;
    let id = SubscriptionId::parse(subscription)
        .ok()
        .filter(|_| is_uuid(subscription));
    let group = Some(resource_group).filter(|name| is_group_name(name));
    Ok(ManagementScope {
        subscription: id.ok_or_else(|| ManagementScopesError::Subscription(subscription.clone()))?,
        resource_group: group
            .ok_or_else(|| ManagementScopesError::Group(resource_group.clone()))?
            .clone(),
    })
}

#[cfg(test)]
mod tests;
