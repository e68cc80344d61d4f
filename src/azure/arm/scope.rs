//! Parts of Azure that a control plane may use: a subscription, a resource group or a virtual network. Parsed once,
//! compared the way ARM does.

use crate::arm::id::{IdError, ResourceId, SubscriptionId, is_group_name, same};
use crate::kinds::Kind;

/// A part of Azure, with everything in it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AzureScope {
    /// A whole subscription.
    Subscription(SubscriptionId),
    /// A whole resource group.
    Group(SubscriptionId, String),
    /// A virtual network with its subnets.
    Network(ResourceId),
}

impl AzureScope {
    /// Parses `/subscriptions/ID`, `/subscriptions/ID/resourceGroups/NAME`, or the id of a virtual network.
    pub fn parse(text: &str) -> Result<Self, IdError> {
        let segments: Vec<&str> = text.trim_end_matches('/').split('/').collect();
        match segments.as_slice() {
            ["", word, id] if same(word, "subscriptions") => Ok(Self::Subscription(SubscriptionId::parse(id)?)),
            ["", word, id, groups, group] if same(word, "subscriptions") && same(groups, "resourceGroups") => {
                let name = is_group_name(group).then(|| (*group).to_owned());
                Ok(Self::Group(SubscriptionId::parse(id)?, name.ok_or(IdError::Segment)?))
            }
            _ => ResourceId::parse_as(Kind::VirtualNetwork, text.trim_end_matches('/')).map(Self::Network),
        }
    }

    /// The subscription that the scope is, or is a part of.
    pub fn subscription(&self) -> &SubscriptionId {
        match self {
            Self::Subscription(own) | Self::Group(own, _) => own,
            Self::Network(own) => own.subscription(),
        }
    }

    /// Whether a whole subscription lies in it.
    pub fn covers_subscription(&self, subscription: &SubscriptionId) -> bool {
        matches!(self, Self::Subscription(own) if own == subscription)
    }

    /// Whether a whole resource group lies in it.
    pub fn covers_group(&self, subscription: &SubscriptionId, group: &str) -> bool {
        match self {
            Self::Group(own, name) => own == subscription && same(name, group),
            _ => self.covers_subscription(subscription),
        }
    }

    /// Whether a resource lies in it.
    pub fn covers(&self, id: &ResourceId) -> bool {
        match self {
            Self::Network(own) => own == id || id.is_in(own),
            _ => self.covers_group(id.subscription(), id.group()),
        }
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    const NETWORK: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v";

    #[rstest]
    #[case::subscription("/subscriptions/S", true)]
    #[case::other_subscription("/subscriptions/other", false)]
    #[case::group("/SUBSCRIPTIONS/s/resourcegroups/G/", true)]
    #[case::group_whose_name_begins_the_same("/subscriptions/s/resourceGroups/g2", false)]
    #[case::group_of_that_name_elsewhere("/subscriptions/other/resourceGroups/g", false)]
    #[case::network(
        "/subscriptions/s/resourcegroups/g/providers/microsoft.network/virtualnetworks/V",
        true
    )]
    #[case::network_whose_name_begins_the_same(
        "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v2",
        false
    )]
    fn scope_covers_what_lies_in_it_in_any_case(#[case] scope: &str, #[case] covered: bool) {
        let scope = AzureScope::parse(scope).unwrap();
        let network = ResourceId::parse(NETWORK).unwrap();
        let subnet = network.child(Kind::Subnet, "default").unwrap();
        assert_eq!((scope.covers(&network), scope.covers(&subnet)), (covered, covered));
    }

    #[test]
    fn narrow_scope_does_not_cover_what_is_around_it() {
        let subscription = SubscriptionId::parse("s").unwrap();
        let network = AzureScope::parse(NETWORK).unwrap();
        let group = AzureScope::parse("/subscriptions/s/resourceGroups/g").unwrap();
        let whole = AzureScope::parse("/subscriptions/s").unwrap();
        let covers = |scope: &AzureScope| {
            (
                scope.covers_group(&subscription, "G"),
                scope.covers_subscription(&subscription),
            )
        };
        assert_eq!(
            [&network, &group, &whole].map(covers),
            [(false, false), (true, false), (true, true)]
        );
    }

    #[rstest]
    #[case("")]
    #[case("/")]
    #[case("/subscriptions")]
    #[case("/subscriptions/")]
    #[case("/subscriptions/*/x")]
    #[case("/subscriptions/s/resourceGroups/a b")]
    #[case("/subscriptions/s/resourceGroups/..")]
    #[case("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/virtualNetworks/v/subnets/x")]
    #[case("https://management.azure.com/subscriptions/s")]
    fn other_text_is_no_scope(#[case] text: &str) {
        assert!(AzureScope::parse(text).is_err());
    }
}
