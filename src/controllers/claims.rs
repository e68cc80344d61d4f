//! Who names what only one cluster may have, and in which order they came. Pure: the index over all that is watched.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::hypershift::{ClusterSpec, PublishingType};
use crate::api::{AzurePrivateLinkService, ClusterRef, HostedCluster};
use crate::azure::id::lower;
use crate::names;

/// Something that one object only may have. Spelt in lower case, as Azure and DNS compare.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// `spec.clusterID`
    ClusterId(String),
    /// `spec.infraID`
    InfraId(String),
    /// The public name of the API server or of OAuth.
    HostName(String),
    /// The namespace of the control plane, which is not to be told from the HostedCluster's name alone.
    Namespace(String),
    /// The ARM id of a NAT subnet that somebody else made. Several may use one.
    NatSubnet(String),
    /// The address of a load balancer.
    Address(String),
}

impl Claim {
    /// What a HostedCluster claims.
    pub fn of_cluster(cluster: &HostedCluster) -> Vec<Self> {
        let namespace = Self::Namespace(names::control_plane_namespace(&reference(cluster)));
        let ids = [
            cluster.spec.cluster_id.as_deref().map(Self::cluster_id),
            cluster.spec.infra_id.as_deref().map(Self::infra_id),
            nat_subnet(&cluster.spec).map(Self::nat_subnet),
        ];
        let hosts = host_names(&cluster.spec).map(Self::HostName);
        let all = std::iter::once(namespace).chain(ids.into_iter().flatten()).chain(hosts);
        all.filter(|claim| !claim.text().is_empty()).collect()
    }

    /// A cluster id.
    pub fn cluster_id(text: &str) -> Self {
        Self::ClusterId(text.to_ascii_lowercase())
    }

    /// An infra id.
    pub fn infra_id(text: &str) -> Self {
        Self::InfraId(text.to_ascii_lowercase())
    }

    /// A NAT subnet.
    pub fn nat_subnet(id: &str) -> Self {
        Self::NatSubnet(lower(id))
    }

    /// The address of a load balancer, if it is one.
    pub fn address(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        Some(Self::Address(address.to_string()))
    }

    /// What a custom resource claims.
    pub fn of_resource(cr: &AzurePrivateLinkService) -> Vec<Self> {
        let subnet = cr.spec.nat_subnet_id.as_deref().map(Self::nat_subnet);
        let address = cr.spec.load_balancer_ip.as_deref().and_then(Self::address);
        subnet.into_iter().chain(address).collect()
    }

    fn text(&self) -> &str {
        match self {
            Self::ClusterId(text)
            | Self::InfraId(text)
            | Self::HostName(text)
            | Self::Namespace(text)
            | Self::NatSubnet(text)
            | Self::Address(text) => text,
        }
    }
}

/// The public names of the API server and of OAuth.
pub fn host_names(spec: &ClusterSpec) -> impl Iterator<Item = String> {
    let published = |word: Option<&str>| matches!(word, Some("APIServer" | "OAuthServer"));
    let services = spec.services.iter().filter(move |s| published(s.service.as_deref()));
    services.filter_map(|service| {
        let strategy = &service.service_publishing_strategy;
        let host = match strategy.kind? {
            PublishingType::Route => strategy.route.hostname.as_deref()?,
            PublishingType::LoadBalancer => strategy.load_balancer.hostname.as_deref()?,
            PublishingType::Other => return None,
        };
        Some(host.trim_end_matches('.').to_ascii_lowercase())
    })
}

/// The NAT subnet that a cluster's owner gives, if any.
pub fn nat_subnet(spec: &ClusterSpec) -> Option<&str> {
    let private = spec.platform.azure.as_ref()?.private.as_ref()?;
    private
        .private_link
        .nat_subnet_id
        .as_deref()
        .filter(|id| !id.is_empty())
}

fn reference(object: &impl ResourceExt) -> ClusterRef {
    ClusterRef {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}

/// An object that claims. Older ones sort first, of the same second those with the lower name.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Holder {
    created: Timestamp,
    /// Its namespace and name.
    pub object: ClusterRef,
}

impl Holder {
    /// The holder that an object is.
    pub fn of(object: &impl ResourceExt) -> Self {
        Self {
            // What was not created yet is newer than all that was.
            created: object.creation_timestamp().map_or(Timestamp::MAX, |time| time.0),
            object: reference(object),
        }
    }

    /// Whether it was made after `object`.
    pub fn newer_than(&self, object: &impl ResourceExt) -> bool {
        object.creation_timestamp().is_some_and(|time| time.0 < self.created)
    }
}

/// All claims of the objects of one kind.
#[derive(Debug, Default)]
pub struct Claims {
    holders: HashMap<Claim, BTreeSet<Holder>>,
    by_object: HashMap<ClusterRef, (Holder, Vec<Claim>)>,
    /// While all objects are listed anew: which of them have come.
    listed: Option<HashSet<ClusterRef>>,
}

impl Claims {
    /// An object claims this, and nothing else.
    pub fn set(&mut self, holder: Holder, claims: Vec<Claim>) {
        if let Some(listed) = &mut self.listed {
            listed.insert(holder.object.clone());
        }
        self.drop_of(&holder.object);
        for claim in &claims {
            self.holders.entry(claim.clone()).or_default().insert(holder.clone());
        }
        if !claims.is_empty() {
            self.by_object.insert(holder.object.clone(), (holder, claims));
        }
    }

    /// An object is gone.
    pub fn remove(&mut self, holder: &Holder) {
        self.drop_of(&holder.object);
    }

    /// All objects come again.
    pub fn list_begins(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// All objects have come; others are gone.
    pub fn list_ends(&mut self) {
        let listed = self.listed.take().unwrap_or_default();
        let known: Vec<ClusterRef> = self.by_object.keys().cloned().collect();
        for gone in known.iter().filter(|object| !listed.contains(object)) {
            self.drop_of(gone);
        }
    }

    fn drop_of(&mut self, object: &ClusterRef) {
        let Some((holder, claims)) = self.by_object.remove(object) else {
            return;
        };
        for claim in claims {
            if let Some(holders) = self.holders.get_mut(&claim) {
                holders.remove(&holder);
                if holders.is_empty() {
                    self.holders.remove(&claim);
                }
            }
        }
    }

    /// Who claims this, the oldest first.
    pub fn holders(&self, claim: &Claim) -> impl Iterator<Item = &Holder> {
        self.holders.get(claim).into_iter().flatten()
    }

    /// Whether an older object than `own` claims this.
    pub fn older(&self, own: &Holder, claim: &Claim) -> bool {
        let mut others = self.holders(claim).filter(|holder| holder.object != own.object);
        others.any(|holder| holder < own)
    }

    /// Whether any other object than `own` claims this.
    pub fn other(&self, own: Option<&ClusterRef>, claim: &Claim) -> bool {
        self.holders(claim).any(|holder| Some(&holder.object) != own)
    }

    /// The NAT subnets of this name that somebody gives.
    pub fn nat_subnets<'a>(&'a self, name: &str) -> impl Iterator<Item = &'a str> {
        let end = format!("/{}", lower(name));
        self.holders.keys().filter_map(move |claim| match claim {
            Claim::NatSubnet(id) if id.ends_with(&end) => Some(id.as_str()),
            _ => None,
        })
    }
}

#[cfg(test)]
mod tests;
