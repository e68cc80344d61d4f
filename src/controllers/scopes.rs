//! Which parts of Azure a control plane may use, as the operator of a process for many namespaces says. Pure.
//!
//! A namespace is no claim: the API server says where an object is. Which HostedClusters have their control planes there follows
//! from the file alone; the annotation has to agree with it and decides nothing.

use std::collections::HashSet;

use kube::ResourceExt;
use serde::Deserialize;

use super::decision::Problem;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkService, ClusterRef, Reason};
use crate::azure::id::{ResourceId, SubscriptionId};
use crate::azure::resource::Kind;
use crate::azure::scope::Scope;
use crate::names;

/// Why a text does not say who may use what.
#[derive(Debug, thiserror::Error)]
pub enum AllowedScopesError {
    /// Not the form that is documented.
    #[error("{0}")]
    Form(#[from] serde_yaml_ng::Error),
    /// A scope that does not parse.
    #[error(
        "{0:?} is not a scope: write /subscriptions/ID, /subscriptions/ID/resourceGroups/NAME or the id of a virtual network"
    )]
    Scope(String),
    /// A subscription that does not parse.
    #[error("{0:?} is not the id of a subscription")]
    Subscription(String),
    /// An entry for nobody.
    #[error("an entry has no namespace, or an empty list or item of names")]
    Nobody,
    /// Two entries for the same clusters.
    #[error("two entries for the HostedClusters {0}")]
    Twice(String),
}

/// The file, as written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    hosted_clusters: Vec<Written>,
}

/// One entry of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    namespace: String,
    names: Option<Vec<String>>,
    scopes: Vec<String>,
    #[serde(default)]
    additional_allowed_subscriptions: Vec<String>,
}

/// What control planes may use.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedScopes(Vec<Entry>);

/// What the control planes of some HostedClusters may use.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Entry {
    /// Where the HostedClusters are.
    namespace: String,
    /// The name of the only one; none: all.
    name: Option<String>,
    scopes: Vec<Scope>,
    /// Subscriptions that may connect, besides those in `scopes`.
    connect: Vec<SubscriptionId>,
}

impl AllowedScopes {
    /// Reads the operator's file, YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, AllowedScopesError> {
        let file: File = serde_yaml_ng::from_str(text)?;
        let mut entries = Vec::new();
        for written in file.hosted_clusters {
            entries.extend(entries_of(written)?);
        }
        let mut seen = HashSet::new();
        for entry in &entries {
            if !seen.insert((&entry.namespace, &entry.name)) {
                return Err(AllowedScopesError::Twice(entry.whom()));
            }
        }
        Ok(Self(entries))
    }

    /// How many entries there are, a named HostedCluster counting by itself.
    pub fn entries(&self) -> usize {
        self.0.len()
    }

    /// Why a custom resource must not be served; none if its control plane may use everything that it names.
    pub fn refusal(&self, cr: &AzurePrivateLinkService) -> Option<Problem> {
        self.check(cr)
            .err()
            .map(|message| Problem::new(Reason::ScopeNotAllowed, message))
    }

    fn check(&self, cr: &AzurePrivateLinkService) -> Result<(), String> {
        let entry = self.entry(&cr.namespace().unwrap_or_default())?;
        let annotation = cr.annotations().get(CLUSTER_ANNOTATION);
        let claimed: Option<ClusterRef> = annotation.and_then(|text| text.parse().ok());
        if !claimed.is_some_and(|claimed| entry.is_for(&claimed, &cr.namespace().unwrap_or_default())) {
            return Err("the HostedCluster is not that of the entry in the allowed scopes".to_owned());
        }
        match entry.outside(cr) {
            Some(field) => Err(format!("{field} is outside of the allowed scopes")),
            None => Ok(()),
        }
    }

    /// The only entry for a control plane's namespace. One that names the HostedCluster goes before one that does not.
    fn entry(&self, namespace: &str) -> Result<&Entry, String> {
        let (named, general): (Vec<&Entry>, Vec<&Entry>) = self
            .0
            .iter()
            .filter(|entry| entry.fits(namespace))
            .partition(|entry| entry.name.is_some());
        let fitting = if named.is_empty() { general } else { named };
        match fitting.as_slice() {
            [] => Err("the namespace has no entry in the allowed scopes".to_owned()),
            [entry] => Ok(entry),
            _ => Err("the namespace has several entries in the allowed scopes".to_owned()),
        }
    }
}

fn entries_of(written: Written) -> Result<Vec<Entry>, AllowedScopesError> {
    let scope = |text: &String| Scope::parse(text).map_err(|_| AllowedScopesError::Scope(text.clone()));
    let connect =
        |text: &String| SubscriptionId::parse(text).map_err(|_| AllowedScopesError::Subscription(text.clone()));
    let scopes: Vec<Scope> = written.scopes.iter().map(scope).collect::<Result<_, _>>()?;
    let connect: Vec<SubscriptionId> = written
        .additional_allowed_subscriptions
        .iter()
        .map(connect)
        .collect::<Result<_, _>>()?;
    let names: Vec<Option<String>> = match written.names {
        None => vec![None],
        Some(names) => names.into_iter().map(Some).collect(),
    };
    let nobody = names.is_empty() || names.iter().flatten().any(String::is_empty);
    if written.namespace.is_empty() || nobody {
        return Err(AllowedScopesError::Nobody);
    }
    let entry = |name| Entry {
        namespace: written.namespace.clone(),
        name,
        scopes: scopes.clone(),
        connect: connect.clone(),
    };
    Ok(names.into_iter().map(entry).collect())
}

impl Entry {
    /// Whether the control plane of one of its HostedClusters can be in this namespace.
    fn fits(&self, control_plane: &str) -> bool {
        match &self.name {
            Some(name) => control_plane == self.control_plane(name),
            None => {
                let rest = control_plane
                    .strip_prefix(&self.namespace)
                    .and_then(|rest| rest.strip_prefix('-'));
                rest.is_some_and(|name| !name.is_empty())
            }
        }
    }

    fn is_for(&self, cluster: &ClusterRef, control_plane: &str) -> bool {
        cluster.namespace == self.namespace
            && self.name.as_ref().is_none_or(|name| *name == cluster.name)
            && control_plane == names::control_plane_namespace(cluster)
    }

    fn control_plane(&self, name: &str) -> String {
        names::control_plane_namespace(&ClusterRef {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        })
    }

    /// For messages.
    fn whom(&self) -> String {
        format!("{}/{}", self.namespace, self.name.as_deref().unwrap_or("*"))
    }

    /// The first field of a custom resource that names something else than what is allowed.
    fn outside(&self, cr: &AzurePrivateLinkService) -> Option<&'static str> {
        let spec = &cr.spec;
        let any = |covers: &dyn Fn(&Scope) -> bool| self.scopes.iter().any(covers);
        let resource =
            |kind, text: &str| ResourceId::parse_as(kind, text).is_ok_and(|id| any(&|scope: &Scope| scope.covers(&id)));
        let group = SubscriptionId::parse(&spec.subscription_id)
            .is_ok_and(|id| any(&|scope: &Scope| scope.covers_group(&id, &spec.resource_group_name)));
        let connects = |text: &String| {
            SubscriptionId::parse(text)
                .is_ok_and(|id| self.connect.contains(&id) || any(&|scope: &Scope| scope.covers_subscription(&id)))
        };
        let additional = spec.additional_allowed_subscriptions.iter().flatten().all(connects);
        let fields = [
            (group, "resourceGroupName"),
            (resource(Kind::VirtualNetwork, &spec.guest_vnet_id), "guestVNetID"),
            (resource(Kind::Subnet, &spec.guest_subnet_id), "guestSubnetID"),
            (additional, "additionalAllowedSubscriptions"),
        ];
        fields
            .into_iter()
            .find_map(|(inside, field)| (!inside).then_some(field))
    }
}

#[cfg(test)]
mod tests;
