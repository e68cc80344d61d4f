//! The desired resources: one of each kind.

use std::collections::BTreeSet;

use hyperlink::azure::arm::id::{ResourceId, SubscriptionId};
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_dns_zone::PrivateDnsZone;
use hyperlink::azure::kinds::private_endpoint::PrivateEndpoint;
use hyperlink::azure::kinds::private_link_service::{OwnedPrivateLinkService, PrivateLinkService};
use hyperlink::azure::kinds::record_set::RecordSet;
use hyperlink::azure::kinds::subnet::NatSubnet;
use hyperlink::azure::kinds::virtual_network_link::VirtualNetworkLink;
use hyperlink::azure::owner_tags::{OwnerTags, Stamp};

pub(crate) const SUB: &str = "33333333-3333-3333-3333-333333333333";
pub(crate) const GUEST_SUB: &str = "44444444-4444-4444-4444-444444444444";
pub(crate) const NET: &str =
    "/subscriptions/33333333-3333-3333-3333-333333333333/resourceGroups/mgmt/providers/Microsoft.Network";
pub(crate) const GUEST: &str =
    "/subscriptions/44444444-4444-4444-4444-444444444444/resourceGroups/guest/providers/Microsoft.Network";
pub(crate) const ADDRESS: &str = "10.1.0.4";

pub(crate) fn id(text: &str) -> ResourceId {
    ResourceId::parse(text).unwrap()
}

fn owner_tags() -> OwnerTags {
    OwnerTags {
        owner: ("cluster".into(), "x".into()),
        ..OwnerTags::default()
    }
}

pub(crate) fn subnet() -> NatSubnet {
    NatSubnet {
        id: id(&format!("{NET}/virtualNetworks/hub/subnets/x-pls-nat")),
        prefix: "10.0.1.0/28".parse().ok(),
    }
}

/// The stamp of the management cluster.
pub(crate) fn stamp() -> Stamp {
    Stamp {
        tag: "management".into(),
        own: "m".into(),
        former: None,
    }
}

/// A service whose NAT addresses come from a subnet of the seed.
pub(crate) fn link_service() -> PrivateLinkService {
    PrivateLinkService {
        owned: OwnedPrivateLinkService {
            id: id(&format!("{NET}/privateLinkServices/pls-x")),
            owner_tags: owner_tags(),
            stamp: stamp(),
            frontend: Some(format!("{NET}/loadBalancers/lb/frontendIPConfigurations/router")),
            proven: false,
        },
        location: "westus2".into(),
        nat_subnet: id(&format!("{NET}/virtualNetworks/hub/subnets/given")),
        subscriptions: BTreeSet::from([SubscriptionId::parse(GUEST_SUB).unwrap()]),
    }
}

pub(crate) fn endpoint(alias: &str) -> PrivateEndpoint {
    PrivateEndpoint {
        id: id(&format!("{GUEST}/privateEndpoints/private-router-pe")),
        location: "westus2".into(),
        owner_tags: owner_tags(),
        subnet: id(&format!("{GUEST}/virtualNetworks/workers/subnets/guest")),
        alias: Some(alias.to_owned()),
        proven: false,
        request_message: "for x",
    }
}

pub(crate) fn zone() -> PrivateDnsZone {
    PrivateDnsZone {
        id: id(&format!("{GUEST}/privateDnsZones/x.hypershift.local")),
        owner_tags: owner_tags(),
        proven: false,
    }
}

pub(crate) fn zone_link() -> VirtualNetworkLink {
    VirtualNetworkLink {
        id: zone()
            .id
            .child(Kind::VirtualNetworkLink, "private-router-vnet-link")
            .unwrap(),
        owner_tags: owner_tags(),
        virtual_network: id(&format!("{GUEST}/virtualNetworks/workers")),
        proven: true,
    }
}

pub(crate) fn record(name: &str) -> RecordSet {
    RecordSet {
        id: zone().id.child(Kind::RecordSet, name).unwrap(),
        owner_tags: owner_tags(),
        address: ADDRESS.parse().ok(),
    }
}
