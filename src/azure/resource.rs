//! What all kinds of ARM resources have in common.

/// The kinds of ARM resources that Hyperlink reads or writes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kind {
    /// `Microsoft.Network/loadBalancers`, only read.
    LoadBalancer,
    /// `Microsoft.Network/virtualNetworks`, only read.
    VirtualNetwork,
    /// `Microsoft.Network/virtualNetworks/subnets`
    Subnet,
    /// `Microsoft.Network/privateLinkServices`
    LinkService,
    /// `Microsoft.Network/privateLinkServices/privateEndpointConnections`
    Connection,
    /// `Microsoft.Network/privateEndpoints`
    Endpoint,
    /// `Microsoft.Network/privateDnsZones`
    Zone,
    /// `Microsoft.Network/privateDnsZones/virtualNetworkLinks`
    ZoneLink,
    /// `Microsoft.Network/privateDnsZones/A`
    Record,
}

impl Kind {
    /// Every kind, for tables and labels.
    pub const ALL: [Kind; 9] = [
        Kind::LoadBalancer,
        Kind::VirtualNetwork,
        Kind::Subnet,
        Kind::LinkService,
        Kind::Connection,
        Kind::Endpoint,
        Kind::Zone,
        Kind::ZoneLink,
        Kind::Record,
    ];

    /// The metric label and the word for logs and messages.
    pub fn label(self) -> &'static str {
        match self {
            Kind::LoadBalancer => "load_balancer",
            Kind::VirtualNetwork => "virtual_network",
            Kind::Subnet => "subnet",
            Kind::LinkService => "private_link_service",
            Kind::Connection => "private_endpoint_connection",
            Kind::Endpoint => "private_endpoint",
            Kind::Zone => "private_dns_zone",
            Kind::ZoneLink => "virtual_network_link",
            Kind::Record => "record_set",
        }
    }
}
