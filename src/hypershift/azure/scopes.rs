//! Which parts of Azure a control plane may use, as the operator of a process for many namespaces writes it. Pure.
//!
//! A namespace is no claim: the API server shows where an object is. Which HostedClusters have their control planes
//! there follows from the file alone; the annotation has to agree with it and decides nothing.

use std::collections::{BTreeSet, HashSet};

use kube::ResourceExt;
use serde::Deserialize;

use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkService, ClusterRef, Reason};
use crate::azure::arm::id::{ResourceId, SubscriptionId};
use crate::azure::arm::scope::AzureScope;
use crate::azure::kinds::Kind;
use crate::hypershift::host_names::dns_name;
use crate::hypershift::names;
use crate::hypershift::problem::Problem;

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
    /// A scope that does not parse.
    #[error(
        "{0:?} is not a scope: write /subscriptions/ID, /subscriptions/ID/resourceGroups/NAME or the id of a virtual network"
    )]
    Scope(String),
    /// A subscription that does not parse.
    #[error("{0:?} is not the id of a subscription")]
    Subscription(String),
    /// A base domain that is no DNS name.
    #[error("{0:?} is not a base domain: write a DNS name such as example.com")]
    Domain(String),
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

/// One entry of the file.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Written {
    namespace: String,
    names: Option<Vec<String>>,
    scopes: Vec<String>,
    #[serde(default)]
    additional_allowed_subscriptions: Vec<String>,
    #[serde(default)]
    base_domains: Vec<String>,
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
struct ScopesEntry {
    /// Which one of the file: HostedClusters that are named together trust each other.
    number: usize,
    /// Where the HostedClusters are.
    namespace: String,
    /// The name of the only one; none: all.
    name: Option<String>,
    scopes: Vec<AzureScope>,
    /// Subscriptions that may connect, besides those in `scopes`.
    connect: Vec<SubscriptionId>,
    /// Domains that base domains are, or lie below; in lower case.
    base_domains: Vec<String>,
}

/// Another HostedCluster in the network of a control plane, and the base domain that it has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetworkPeer {
    /// Which HostedCluster it is.
    pub cluster: ClusterRef,
    /// Its base domain, in lower case.
    pub base_domain: String,
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

    /// Why a custom resource must not be served; none if its control plane may use everything that it names. `peers`
    /// are the HostedClusters in its network.
    pub fn refusal(&self, cr: &AzurePrivateLinkService, peers: &[NetworkPeer]) -> Option<Problem> {
        self.check(cr, peers)
            .err()
            .map(|message| Problem::new(Reason::ScopeNotAllowed, message))
    }

    fn check(&self, cr: &AzurePrivateLinkService, peers: &[NetworkPeer]) -> Result<(), String> {
        let entry = self.entry(&cr.namespace().unwrap_or_default())?;
        let annotation = cr.annotations().get(CLUSTER_ANNOTATION);
        let claimed: Option<ClusterRef> = annotation.and_then(|text| text.parse().ok());
        if !claimed.is_some_and(|claimed| entry.is_for(&claimed, &cr.namespace().unwrap_or_default())) {
            return Err("the HostedCluster is not that of the entry in the allowed scopes".to_owned());
        }
        if let Some(field) = entry.outside(cr) {
            return Err(format!("{field} is outside of the allowed scopes"));
        }
        let zone = cr.spec.base_domain.as_deref().and_then(dns_name).unwrap_or_default();
        if peers.iter().any(|other| self.hides(entry, &zone, cr, other)) {
            return Err(
                "baseDomain is the parent of a domain that another entry's cluster has in the network".to_owned(),
            );
        }
        Ok(())
    }

    /// Whether a zone of an entry's cluster would hide the names of a cluster of another entry, which may have them
    /// there.
    fn hides(&self, own: &ScopesEntry, zone: &str, cr: &AzurePrivateLinkService, other: &NetworkPeer) -> bool {
        let control_plane = names::control_plane_namespace(&other.cluster);
        let theirs = self.entry(&control_plane).ok();
        let theirs = theirs.filter(|entry| entry.number != own.number && entry.is_for(&other.cluster, &control_plane));
        let allowed = theirs.is_some_and(|entry| {
            entry.covers_resource(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)
                && entry.allows_domain(&other.base_domain)
        });
        allowed && is_below(&other.base_domain, zone)
    }

    /// The only entry for a control plane's namespace. One that names the HostedCluster takes precedence over one that
    /// does not.
    fn entry(&self, namespace: &str) -> Result<&ScopesEntry, String> {
        let (named, general): (Vec<&ScopesEntry>, Vec<&ScopesEntry>) = self
            .entries
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

fn entries_of(number: usize, written: Written) -> Result<Vec<ScopesEntry>, AllowedScopesError> {
    let scopes = each(&written.scopes, parse_scope)?;
    let connect = each(&written.additional_allowed_subscriptions, parse_subscription)?;
    let base_domains = each(&written.base_domains, parse_domain)?;
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
        scopes: scopes.clone(),
        connect: connect.clone(),
        base_domains: base_domains.clone(),
    });
    Ok(entries.collect())
}

fn each<T>(texts: &[String], parse: fn(&str) -> Result<T, AllowedScopesError>) -> Result<Vec<T>, AllowedScopesError> {
    texts.iter().map(|text| parse(text)).collect()
}

fn parse_scope(text: &str) -> Result<AzureScope, AllowedScopesError> {
    AzureScope::parse(text).map_err(|_| AllowedScopesError::Scope(text.to_owned()))
}

fn parse_subscription(text: &str) -> Result<SubscriptionId, AllowedScopesError> {
    SubscriptionId::parse(text).map_err(|_| AllowedScopesError::Subscription(text.to_owned()))
}

fn parse_domain(text: &str) -> Result<String, AllowedScopesError> {
    dns_name(text).ok_or_else(|| AllowedScopesError::Domain(text.to_owned()))
}

impl ScopesEntry {
    /// Whether the control plane of one of its HostedClusters can be in this namespace.
    fn fits(&self, control_plane: &str) -> bool {
        match &self.name {
            Some(name) => control_plane == self.control_plane(name),
            None => {
                let name = control_plane
                    .strip_prefix(&self.namespace)
                    .and_then(|suffix| suffix.strip_prefix('-'));
                name.is_some_and(|name| !name.is_empty())
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

    fn covers_resource(&self, kind: Kind, text: &str) -> bool {
        ResourceId::parse_as(kind, text).is_ok_and(|id| self.scopes.iter().any(|scope| scope.covers(&id)))
    }

    fn allows_domain(&self, text: &str) -> bool {
        let Some(name) = dns_name(text) else { return false };
        self.base_domains.iter().any(|own| *own == name || is_below(&name, own))
    }

    /// The HostedClusters of the entry, for messages.
    fn whom(&self) -> String {
        format!("{}/{}", self.namespace, self.name.as_deref().unwrap_or("*"))
    }

    fn covers_group(&self, subscription: &str, group: &str) -> bool {
        SubscriptionId::parse(subscription)
            .is_ok_and(|id| self.scopes.iter().any(|scope| scope.covers_group(&id, group)))
    }

    /// Whether the subscription may connect.
    fn may_connect(&self, subscription: &str) -> bool {
        SubscriptionId::parse(subscription).is_ok_and(|id| {
            self.connect.contains(&id) || self.scopes.iter().any(|scope| scope.covers_subscription(&id))
        })
    }

    /// The first field of a custom resource that names something else than what is allowed.
    fn outside(&self, cr: &AzurePrivateLinkService) -> Option<&'static str> {
        let spec = &cr.spec;
        let mut additional = spec.additional_allowed_subscriptions.iter().flatten();
        if !self.covers_group(&spec.subscription_id, &spec.resource_group_name) {
            Some("resourceGroupName")
        } else if !self.covers_resource(Kind::VirtualNetwork, &spec.guest_vnet_id) {
            Some("guestVNetID")
        } else if !self.covers_resource(Kind::Subnet, &spec.guest_subnet_id) {
            Some("guestSubnetID")
        } else if !additional.all(|subscription| self.may_connect(subscription)) {
            Some("additionalAllowedSubscriptions")
        } else if !spec
            .base_domain
            .as_deref()
            .is_none_or(|domain| self.allows_domain(domain))
        {
            Some("baseDomain")
        } else {
            None
        }
    }
}

/// Whether a name lies below a domain, and is not the domain itself. Both in lower case.
fn is_below(name: &str, domain: &str) -> bool {
    let labels = name.strip_suffix(domain).and_then(|prefix| prefix.strip_suffix('.'));
    !domain.is_empty() && labels.is_some_and(|labels| !labels.is_empty())
}

#[cfg(test)]
mod tests;
