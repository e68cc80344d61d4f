//! Which parts of Azure a control plane may use, as the operator's file says it. Pure.

use kube::ResourceExt;

use crate::api::markers::CLUSTER_ANNOTATION;
use crate::api::{AzurePrivateLinkService, ClusterRef, Reason};
use crate::azure::arm::id::{ResourceId, SubscriptionId};
use crate::azure::arm::scope::AzureScope;
use crate::azure::kinds::Kind;
use crate::hypershift::host_names::dns_name;
use crate::hypershift::names;
use crate::hypershift::problem::Problem;
use crate::hypershift::scopes::{AllowedScopes, OF_ANOTHER, ScopesEntry};

/// What an entry of the file has for Azure, as written.
pub(in crate::hypershift) struct WrittenAzure {
    pub(in crate::hypershift) scopes: Option<Vec<String>>,
    pub(in crate::hypershift) additional_allowed_subscriptions: Vec<String>,
    pub(in crate::hypershift) base_domains: Vec<String>,
}

/// What the control planes of an entry may use on Azure.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::hypershift) struct AzureScopes {
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

impl WrittenAzure {
    /// What is written; none without `scopes`.
    pub(in crate::hypershift) fn read(self) -> Result<Option<AzureScopes>, String> {
        let Some(scopes) = &self.scopes else {
            let nothing = self.additional_allowed_subscriptions.is_empty() && self.base_domains.is_empty();
            let text = "an entry has additionalAllowedSubscriptions or baseDomains, and no scopes";
            return if nothing { Ok(None) } else { Err(text.to_owned()) };
        };
        Ok(Some(AzureScopes {
            scopes: each(scopes, parse_scope)?,
            connect: each(&self.additional_allowed_subscriptions, parse_subscription)?,
            base_domains: each(&self.base_domains, parse_domain)?,
        }))
    }
}

impl AllowedScopes {
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
            return Err(OF_ANOTHER.to_owned());
        }
        let azure = entry.azure.as_ref();
        let azure = azure.ok_or("the entry in the allowed scopes has nothing on Azure: it lacks scopes")?;
        if let Some(field) = azure.outside(cr) {
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
        let allowed = theirs.and_then(|entry| entry.azure.as_ref()).is_some_and(|entry| {
            entry.covers_resource(Kind::VirtualNetwork, &cr.spec.guest_vnet_id)
                && entry.allows_domain(&other.base_domain)
        });
        allowed && is_below(&other.base_domain, zone)
    }
}

fn each<T>(texts: &[String], parse: fn(&str) -> Result<T, String>) -> Result<Vec<T>, String> {
    texts.iter().map(|text| parse(text)).collect()
}

fn parse_scope(text: &str) -> Result<AzureScope, String> {
    AzureScope::parse(text).map_err(|_| {
        format!(
            "{text:?} is not a scope: write /subscriptions/ID, /subscriptions/ID/resourceGroups/NAME or the id of a virtual network"
        )
    })
}

fn parse_subscription(text: &str) -> Result<SubscriptionId, String> {
    SubscriptionId::parse(text).map_err(|_| format!("{text:?} is not the id of a subscription"))
}

fn parse_domain(text: &str) -> Result<String, String> {
    dns_name(text).ok_or_else(|| format!("{text:?} is not a base domain: write a DNS name such as example.com"))
}

impl AzureScopes {
    fn covers_resource(&self, kind: Kind, text: &str) -> bool {
        ResourceId::parse_as(kind, text).is_ok_and(|id| self.scopes.iter().any(|scope| scope.covers(&id)))
    }

    fn allows_domain(&self, text: &str) -> bool {
        let Some(name) = dns_name(text) else { return false };
        self.base_domains.iter().any(|own| *own == name || is_below(&name, own))
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
