//! Which subscriptions may connect to a cluster's service: those that custom resource and HostedCluster name. Pure.

use std::collections::BTreeSet;

use crate::api::{AzurePrivateLinkService, HostedCluster, Reason};
use crate::azure::arm::id::{IdError, ResourceId, SubscriptionId, same};
use crate::azure::kinds::Kind;
use crate::hypershift::identity::IDENTITY_RETRY;
use crate::hypershift::problem::Problem;

/// What the HostedCluster names of those who connect. Whoever can write the custom resource can name more there.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Connecting {
    /// Its field `spec.platform.azure.subnetID`.
    guest_subnet: Option<String>,
    /// Its field `spec.platform.azure.vnetID`.
    guest_network: Option<String>,
    /// Its field `spec.platform.azure.private.privateLink.additionalAllowedSubscriptions`.
    additional: Vec<String>,
}

impl Connecting {
    /// What a HostedCluster names.
    pub fn of(hosted: &HostedCluster) -> Self {
        let azure = hosted.spec.platform.azure.clone().unwrap_or_default();
        let private = azure.private.unwrap_or_default();
        Self {
            guest_subnet: azure.subnet_id,
            guest_network: azure.vnet_id,
            additional: private.private_link.additional_allowed_subscriptions,
        }
    }

    /// Why the guest that a custom resource names is not the HostedCluster's.
    pub(super) fn foreign_guest(&self, cr: &AzurePrivateLinkService) -> Option<Problem> {
        let field = if is_other(&cr.spec.guest_vnet_id, self.guest_network.as_deref()) {
            "guestVNetID"
        } else if is_other(&cr.spec.guest_subnet_id, self.guest_subnet.as_deref()) {
            "guestSubnetID"
        } else {
            return None;
        };
        let text = format!("{field} is not that of the HostedCluster");
        Some(Problem::new(Reason::ScopeNotAllowed, text).requeue_after(IDENTITY_RETRY))
    }

    /// The subscriptions whose connections are approved: the guest's own, and those that both objects name besides. A
    /// change reaches one of the two objects first; until the other follows, nobody more is let in.
    pub(super) fn subscriptions(&self, cr: &AzurePrivateLinkService) -> Result<BTreeSet<SubscriptionId>, IdError> {
        let guest = ResourceId::parse_as(Kind::Subnet, &cr.spec.guest_subnet_id)?;
        let both = additional(cr).filter(|given| self.names(given));
        let both = both.map(SubscriptionId::parse);
        std::iter::once(Ok(guest.subscription().clone())).chain(both).collect()
    }

    /// The subscriptions that the HostedCluster lets connect, whatever a custom resource names. None without a valid
    /// subnet id.
    pub(super) fn allowed(&self) -> Option<BTreeSet<SubscriptionId>> {
        let guest = ResourceId::parse_as(Kind::Subnet, self.guest_subnet.as_deref()?).ok()?;
        let additional = self
            .additional
            .iter()
            .filter_map(|given| SubscriptionId::parse(given).ok());
        Some(
            std::iter::once(guest.subscription().clone())
                .chain(additional)
                .collect(),
        )
    }

    /// How many subscriptions a custom resource names that the HostedCluster does not.
    pub(super) fn unconfirmed(&self, cr: &AzurePrivateLinkService) -> usize {
        additional(cr).filter(|given| !self.names(given)).count()
    }

    fn names(&self, given: &str) -> bool {
        self.additional.iter().any(|named| same(named, given))
    }
}

/// Whether what the custom resource gives is not what the HostedCluster names.
fn is_other(given: &str, named: Option<&str>) -> bool {
    !named.is_some_and(|named| same(named, given))
}

fn additional(cr: &AzurePrivateLinkService) -> impl Iterator<Item = &str> {
    let all = cr.spec.additional_allowed_subscriptions.iter().flatten();
    all.map(String::as_str)
}
