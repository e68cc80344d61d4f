//! The operator's file of a process for many namespaces: which control planes may use what, on each cloud. Pure.
//!
//! A namespace is no claim: the API server shows where an object is. Which HostedClusters have their control planes
//! there follows from the file alone; what the namespace says of itself has to agree with it and decides nothing.

use std::collections::{BTreeSet, HashSet};

use serde::Deserialize;

use crate::api::ClusterRef;
use crate::hypershift::aws::scopes::{AwsScopes, WrittenAws};
use crate::hypershift::azure::scopes::{AzureScopes, WrittenAzure};
use crate::hypershift::names;

/// Why a text is not a valid list of allowed scopes.
#[derive(Debug, thiserror::Error)]
pub enum AllowedScopesError {
    /// Not the form that is documented.
    // The parser quotes the file as it is; `/readyz` has one line for it all.
    #[error("{}", .0.to_string().replace(char::is_control, " "))]
    Form(#[from] serde_saphyr::Error),
    /// A file that was cut off, more likely than one that allows nothing.
    #[error("it has neither hostedClusters nor excludeNamespaces")]
    Empty,
    /// What one cloud's part of an entry has is not of the right form.
    #[error("{0}")]
    Part(String),
    /// An entry for nobody.
    #[error("an entry has no namespace, or an empty list or item of names")]
    Nobody,
    /// Two entries for the same clusters.
    #[error("two entries for the HostedClusters {0:?}")]
    Twice(String),
    /// A name that no namespace has.
    #[error("excludeNamespaces: {0:?} is not the name of a namespace")]
    NoNamespace(String),
}

/// The file, as written.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    hosted_clusters: Option<Vec<Written>>,
    exclude_namespaces: Option<BTreeSet<String>>,
}

/// One entry of the file. What is Azure's stands beside `aws`, because it was there first.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    namespace: String,
    names: Option<Vec<String>>,
    scopes: Option<Vec<String>>,
    #[serde(default)]
    additional_allowed_subscriptions: Vec<String>,
    #[serde(default)]
    base_domains: Vec<String>,
    aws: Option<WrittenAws>,
}

/// What control planes may use, and which of them are left to others.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct AllowedScopes {
    entries: Vec<ScopesEntry>,
    /// The namespaces of control planes that processes of their own serve.
    excluded: BTreeSet<String>,
}

/// What the control planes of some HostedClusters may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ScopesEntry {
    /// Which one of the file: HostedClusters that are named together trust each other.
    pub(super) number: usize,
    /// Where the HostedClusters are.
    namespace: String,
    /// The name of the only one; none: all.
    name: Option<String>,
    /// What they may use on Azure; none: nothing.
    pub(super) azure: Option<AzureScopes>,
    /// What they may use on AWS; none: nothing.
    pub(super) aws: Option<AwsScopes>,
}

impl AllowedScopes {
    /// Reads the operator's file, YAML or JSON.
    pub fn parse(text: &str) -> Result<Self, AllowedScopesError> {
        // The error is one line of a log and of `/readyz`; a name is a text, as for Kubernetes.
        let options = serde_saphyr::options! { with_snippet: false, no_schema: true, strict_booleans: true };
        let file: File = serde_saphyr::from_str_with_options(text, options)?;
        if file.hosted_clusters.is_none() && file.exclude_namespaces.is_none() {
            return Err(AllowedScopesError::Empty);
        }
        let excluded = file.exclude_namespaces.unwrap_or_default();
        let mut entries = Vec::new();
        for (number, written) in file.hosted_clusters.unwrap_or_default().into_iter().enumerate() {
            entries.extend(entries_of(number, written)?);
        }
        let mut unique = HashSet::new();
        for entry in &entries {
            if !unique.insert((&entry.namespace, &entry.name)) {
                return Err(AllowedScopesError::Twice(entry.whom()));
            }
        }
        if let Some(wrong) = excluded.iter().find(|name| !names::is_namespace(name)) {
            return Err(AllowedScopesError::NoNamespace(wrong.clone()));
        }
        Ok(Self { entries, excluded })
    }

    /// How many entries there are, a named HostedCluster counting by itself.
    pub fn entries(&self) -> usize {
        self.entries.len()
    }

    /// How many namespaces are excluded.
    pub fn excluded(&self) -> usize {
        self.excluded.len()
    }

    /// Whether the namespace of a control plane is left to a process of its own.
    pub fn excludes(&self, namespace: &str) -> bool {
        self.excluded.contains(namespace)
    }

    /// The only entry for a control plane's namespace. One that names the HostedCluster takes precedence over one that
    /// does not.
    pub(super) fn entry(&self, namespace: &str) -> Result<&ScopesEntry, String> {
        let (named, general): (Vec<&ScopesEntry>, Vec<&ScopesEntry>) = self
            .entries
            .iter()
            .filter(|entry| entry.fits(namespace))
            .partition(|entry| entry.name.is_some());
        let fitting = if named.is_empty() { general } else { named };
        match fitting.as_slice() {
            [] => Err("the namespace has no entry in the allowed scopes".to_owned()),
            [entry] => Ok(entry),
            _ => Err(SEVERAL.to_owned()),
        }
    }

    /// The same, where a namespace in which a HostedCluster of another entry may have its control plane, from another
    /// namespace, is nobody's.
    pub(super) fn only_entry(&self, namespace: &str) -> Result<&ScopesEntry, String> {
        let entry = self.entry(namespace)?;
        let is_rival = |other: &ScopesEntry| other.namespace != entry.namespace && other.fits(namespace);
        match self.entries.iter().any(is_rival) {
            true => Err(SEVERAL.to_owned()),
            false => Ok(entry),
        }
    }
}

const SEVERAL: &str = "the namespace has several entries in the allowed scopes";
/// Said of a control plane that names another HostedCluster than those of its entry.
pub(super) const OF_ANOTHER: &str = "the HostedCluster is not that of the entry in the allowed scopes";

fn entries_of(number: usize, written: Written) -> Result<Vec<ScopesEntry>, AllowedScopesError> {
    let azure = WrittenAzure {
        scopes: written.scopes,
        additional_allowed_subscriptions: written.additional_allowed_subscriptions,
        base_domains: written.base_domains,
    };
    let azure = azure.read().map_err(AllowedScopesError::Part)?;
    let aws = written.aws.map(WrittenAws::read).transpose();
    let aws = aws.map_err(AllowedScopesError::Part)?;
    if azure.is_none() && aws.is_none() {
        let text = "an entry has neither scopes, for Azure, nor aws";
        return Err(AllowedScopesError::Part(text.to_owned()));
    }
    if aws.is_some() && written.names.is_none() {
        let text = "an entry with aws needs names: nothing else says whose a namespace is";
        return Err(AllowedScopesError::Part(text.to_owned()));
    }
    let names: Vec<Option<String>> = match written.names {
        None => vec![None],
        Some(names) => names.into_iter().map(Some).collect(),
    };
    let nobody = names.is_empty() || names.iter().flatten().any(String::is_empty);
    if written.namespace.is_empty() || nobody {
        return Err(AllowedScopesError::Nobody);
    }
    let entries = names.into_iter().map(|name| ScopesEntry {
        number,
        namespace: written.namespace.clone(),
        name,
        azure: azure.clone(),
        aws: aws.clone(),
    });
    Ok(entries.collect())
}

impl ScopesEntry {
    /// Whether the control plane of one of its HostedClusters can be in this namespace.
    fn fits(&self, control_plane: &str) -> bool {
        match &self.name {
            Some(name) => control_plane == names::control_plane_namespace(&self.cluster(name)),
            None => {
                let name = control_plane
                    .strip_prefix(&self.namespace)
                    .and_then(|suffix| suffix.strip_prefix('-'));
                name.is_some_and(|name| !name.is_empty())
            }
        }
    }

    /// Whether this is one of its HostedClusters, and has its control plane in this namespace.
    pub(super) fn is_for(&self, cluster: &ClusterRef, control_plane: &str) -> bool {
        cluster.namespace == self.namespace
            && self.name.as_ref().is_none_or(|name| *name == cluster.name)
            && control_plane == names::control_plane_namespace(cluster)
    }

    /// The only HostedCluster, if the entry names it.
    pub(super) fn named(&self) -> Option<ClusterRef> {
        self.name.as_ref().map(|name| self.cluster(name))
    }

    /// A HostedCluster of this name, where those of the entry are.
    pub(super) fn cluster(&self, name: &str) -> ClusterRef {
        ClusterRef {
            namespace: self.namespace.clone(),
            name: name.to_owned(),
        }
    }

    /// The HostedClusters of the entry, for messages.
    fn whom(&self) -> String {
        format!("{}/{}", self.namespace, self.name.as_deref().unwrap_or("*"))
    }
}

#[cfg(test)]
mod tests;
