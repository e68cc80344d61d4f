//! Which objects name what only one cluster may have, and in which order they came. Pure: the index over all that is
//! watched.
//!
//! What an object has named since its creation is as old as the object. What it begins to name while this process
//! watches is newer than all claims known then: an object that was created early and left blank takes nothing from
//! those that came between. Nothing in Kubernetes shows when a field was set, so after a restart the object's age
//! counts again.

mod claiming;

use std::collections::{BTreeSet, HashMap, HashSet};
use std::net::IpAddr;

use jiff::Timestamp;
use kube::ResourceExt;

use crate::api::hypershift::{ClusterSpec, PublishedService};
use crate::api::{ClusterRef, HostedCluster};
use crate::azure::arm::id::lower;
use crate::hypershift::host_names::base_domain;
use crate::hypershift::names;

pub use claiming::Claiming;

/// Something that only one object may have. In lower case, as Azure and DNS compare.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Claim {
    /// The cluster id, `spec.clusterID`.
    ClusterId(String),
    /// The infra id, `spec.infraID`.
    InfraId(String),
    /// The public name of the API server or of OAuth.
    HostName(String),
    /// The namespace of the control plane, which does not follow from the HostedCluster's name alone.
    Namespace(String),
    /// The ARM id of a NAT subnet that somebody else made. Several may use one.
    NatSubnet(String),
    /// The address of a load balancer.
    Address(String),
    /// The guest's virtual network, which several may share.
    Network(String),
    /// The base domain, which several may share.
    BaseDomain(String),
    /// The name of a load balancer on AWS, in which case counts.
    LoadBalancer(String),
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
        let azure = cluster.spec.platform.azure.as_ref();
        let network = azure.and_then(|azure| azure.vnet_id.as_deref()).map(Self::network);
        let domain = base_domain(&cluster.name_any(), &cluster.spec).ok().flatten();
        let shared = [network, domain.map(Self::BaseDomain)];
        let all = std::iter::once(namespace)
            .chain(ids.into_iter().chain(shared).flatten())
            .chain(hosts);
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

    /// A virtual network.
    pub fn network(id: &str) -> Self {
        Self::Network(lower(id))
    }

    /// The address of a load balancer, if it is one.
    pub fn address(text: &str) -> Option<Self> {
        let address: IpAddr = text.parse().ok()?;
        Some(Self::Address(address.to_string()))
    }

    /// The name of a load balancer on AWS.
    pub fn load_balancer(name: &str) -> Self {
        Self::LoadBalancer(name.to_owned())
    }

    fn text(&self) -> &str {
        match self {
            Self::ClusterId(text)
            | Self::InfraId(text)
            | Self::HostName(text)
            | Self::Namespace(text)
            | Self::NatSubnet(text)
            | Self::Address(text)
            | Self::Network(text)
            | Self::BaseDomain(text)
            | Self::LoadBalancer(text) => text,
        }
    }
}

/// The public names of the API server and of OAuth.
pub fn host_names(spec: &ClusterSpec) -> impl Iterator<Item = String> {
    let published = |word: Option<&str>| matches!(word, Some("APIServer" | "OAuthServer"));
    let services = spec.services.iter().filter(move |s| published(s.service.as_deref()));
    let hosts = services.filter_map(PublishedService::host);
    hosts.map(|(_, host)| host.trim_end_matches('.').to_ascii_lowercase())
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

/// Namespace and name of an object.
pub fn reference(object: &impl ResourceExt) -> ClusterRef {
    ClusterRef {
        namespace: object.namespace().unwrap_or_default(),
        name: object.name_any(),
    }
}

/// An object with claims. Older ones sort first; of the same second, those with the lower name.
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

/// Since when something is claimed; earlier sorts first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct ClaimedSince {
    /// When its object was created; for a later claim, when the newest object known then was created.
    at: Timestamp,
    /// The order among claims of one second; 0 for what was there when this process began.
    late: u64,
}

impl ClaimedSince {
    /// Later than all that is known.
    const LAST: Self = Self {
        at: Timestamp::MAX,
        late: u64::MAX,
    };

    fn from_creation(holder: &Holder) -> Self {
        Self {
            at: holder.created,
            late: 0,
        }
    }
}

/// An object, and what it claims.
#[derive(Debug)]
struct KnownHolder {
    holder: Holder,
    claims: HashMap<Claim, ClaimedSince>,
}

/// All claims of the objects of one kind.
#[derive(Debug, Default)]
pub struct Claims {
    holders: HashMap<Claim, BTreeSet<(ClaimedSince, Holder)>>,
    by_object: HashMap<ClusterRef, KnownHolder>,
    /// The ids of the NAT subnets among the claims, by the subnet's name.
    nat_subnets: HashMap<String, BTreeSet<String>>,
    /// When the newest object was created that was ever known.
    newest: Timestamp,
    /// How many objects or claims were added since all were listed.
    late: u64,
    /// Whether all objects have been listed once.
    complete: bool,
    /// During a relist: which objects have come.
    listed: Option<HashSet<ClusterRef>>,
}

impl Claims {
    /// Sets all that an object claims.
    pub fn set(&mut self, holder: Holder, claims: Vec<Claim>) {
        if let Some(listed) = &mut self.listed {
            listed.insert(holder.object.clone());
        }
        let before = self.drop_of(&holder.object).filter(|known| known.holder == holder);
        let new_since = self.since_now(&holder, before.is_some());
        let before = before.map(|known| known.claims).unwrap_or_default();
        let mut claimed: HashMap<Claim, ClaimedSince> = HashMap::new();
        for claim in claims {
            let since = before.get(&claim).copied().unwrap_or(new_since);
            claimed.insert(claim, since);
        }
        for (claim, since) in &claimed {
            let holders = self.holders.entry(claim.clone()).or_default();
            holders.insert((*since, holder.clone()));
            if let Claim::NatSubnet(id) = claim {
                self.nat_subnets
                    .entry(subnet_name(id).to_owned())
                    .or_default()
                    .insert(id.clone());
            }
        }
        self.by_object.insert(
            holder.object.clone(),
            KnownHolder {
                holder,
                claims: claimed,
            },
        );
    }

    /// Since when an object claims what it did not claim before. One that claims nothing yet is `known` too.
    fn since_now(&mut self, holder: &Holder, known: bool) -> ClaimedSince {
        // What was not created yet does not count.
        if holder.created < Timestamp::MAX {
            self.newest = self.newest.max(holder.created);
        }
        if !self.complete {
            return ClaimedSince::from_creation(holder);
        }
        self.late += 1;
        let late = self.late;
        let at = if known {
            self.newest.max(holder.created)
        } else {
            holder.created
        };
        ClaimedSince { at, late }
    }

    /// Removes an object that is gone.
    pub fn remove(&mut self, holder: &Holder) {
        self.drop_of(&holder.object);
    }

    /// A list of all objects begins.
    pub fn list_begins(&mut self) {
        self.listed = Some(HashSet::new());
    }

    /// The list is complete; objects that are not in it are gone.
    pub fn list_ends(&mut self) {
        let listed = self.listed.take().unwrap_or_default();
        let known: Vec<ClusterRef> = self.by_object.keys().cloned().collect();
        for gone in known.iter().filter(|object| !listed.contains(object)) {
            self.drop_of(gone);
        }
        self.complete = true;
    }

    fn drop_of(&mut self, object: &ClusterRef) -> Option<KnownHolder> {
        let known = self.by_object.remove(object)?;
        for (claim, since) in &known.claims {
            if let Some(holders) = self.holders.get_mut(claim) {
                holders.remove(&(*since, known.holder.clone()));
                if holders.is_empty() {
                    self.holders.remove(claim);
                    self.drop_subnet(claim);
                }
            }
        }
        Some(known)
    }

    fn drop_subnet(&mut self, claim: &Claim) {
        let Claim::NatSubnet(id) = claim else {
            return;
        };
        let name = subnet_name(id);
        if let Some(ids) = self.nat_subnets.get_mut(name) {
            ids.remove(id);
            if ids.is_empty() {
                self.nat_subnets.remove(name);
            }
        }
    }

    /// Who claims this, the earliest first.
    pub fn holders(&self, claim: &Claim) -> impl Iterator<Item = &Holder> + use<'_> {
        self.holders.get(claim).into_iter().flatten().map(|(_, holder)| holder)
    }

    /// Since when an object claims this.
    fn since(&self, own: &Holder, claim: &Claim) -> ClaimedSince {
        let known = self.by_object.get(&own.object).filter(|known| known.holder == *own);
        match known.map(|known| known.claims.get(claim)) {
            Some(Some(since)) => *since,
            // It was read before the watch has shown it.
            Some(None) if self.complete => ClaimedSince::LAST,
            None if self.complete => ClaimedSince {
                late: u64::MAX,
                ..ClaimedSince::from_creation(own)
            },
            _ => ClaimedSince::from_creation(own),
        }
    }

    /// Whether another object claims this, and did before `own`.
    pub fn older(&self, own: &Holder, claim: &Claim) -> bool {
        self.older_than(own, claim, claim)
    }

    /// Whether another object claims this, and did before `own` came to claim what it has `claimed`.
    pub fn older_than(&self, own: &Holder, claimed: &Claim, claim: &Claim) -> bool {
        self.before(own, claimed, claim).next().is_some()
    }

    /// Who else claims this, and did before `own`.
    pub fn olders(&self, own: &Holder, claim: &Claim) -> Vec<Holder> {
        self.before(own, claim, claim).cloned().collect()
    }

    fn before<'a>(&'a self, own: &'a Holder, claimed: &Claim, claim: &Claim) -> impl Iterator<Item = &'a Holder> {
        let since = self.since(own, claimed);
        let others = self.holders.get(claim).into_iter().flatten();
        let older =
            others.filter(move |(other, holder)| holder.object != own.object && (other, holder) < (&since, own));
        older.map(|(_, holder)| holder)
    }

    /// Whether any other object than `own` claims this.
    pub fn other(&self, own: Option<&ClusterRef>, claim: &Claim) -> bool {
        self.holders(claim).any(|holder| Some(&holder.object) != own)
    }

    /// The HostedClusters in a virtual network that have a base domain, with that domain.
    pub fn domains_in(&self, network: &str) -> Vec<(ClusterRef, String)> {
        let network = Claim::network(network);
        let there = self.holders(&network);
        there.filter_map(|holder| self.domain_of(holder)).collect()
    }

    /// A HostedCluster with its base domain, if it has one.
    fn domain_of(&self, holder: &Holder) -> Option<(ClusterRef, String)> {
        let known = self.by_object.get(&holder.object)?;
        known.claims.keys().find_map(|claim| match claim {
            Claim::BaseDomain(domain) => Some((holder.object.clone(), domain.clone())),
            _ => None,
        })
    }

    /// The NAT subnets of this name that a cluster's owner gives, and who does.
    pub fn nat_subnets(&self, name: &str) -> impl Iterator<Item = (&str, &Holder)> {
        let ids = self.nat_subnets.get(&lower(name)).into_iter().flatten();
        ids.flat_map(|id| {
            let givers = self.holders(&Claim::NatSubnet(id.clone()));
            givers.map(move |giver| (id.as_str(), giver))
        })
    }
}

fn subnet_name(id: &str) -> &str {
    id.rsplit('/').next().unwrap_or_default()
}

#[cfg(test)]
mod tests;
