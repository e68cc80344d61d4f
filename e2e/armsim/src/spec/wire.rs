//! Where the specs and the service disagree, and the service is right: observed in recorded traffic.
//!
//! `point` is the number in the reference data's own list of these places (`arm.md` 1.3); what has none was observed
//! in the recordings alone.

use std::fmt;

use super::value::Finding;
use super::violation::Rule;

/// A finding that is no violation.
#[derive(Debug)]
pub(super) struct Disagreement {
    point: Option<u8>,
    at: Where,
    rule: Rule,
    why: &'static str,
}

#[derive(Debug)]
enum Where {
    /// Operations by their names (`*` at the end stands for any rest), and the place as in a violation.
    Operations(&'static [&'static str], &'static str),
    /// A definition, and a field that it does not have.
    Field(&'static str, &'static str),
    /// A definition, and a value that it does not list, as JSON text.
    Value(&'static str, &'static str),
}

/// All of them.
pub(super) const DISAGREEMENTS: &[Disagreement] = &[
    Disagreement {
        point: Some(1),
        at: Where::Operations(
            &["PrivateLinkServices_UpdatePrivateEndpointConnection"],
            "azure-asyncoperation",
        ),
        rule: Rule::Header,
        why: "deciding a connection is a long-running operation",
    },
    Disagreement {
        point: Some(4),
        at: Where::Operations(
            &[
                "PrivateLinkServices_*",
                "PrivateEndpoints_*",
                "PrivateDnsZoneGroups_List",
            ],
            "/error",
        ),
        rule: Rule::Wrapping,
        why: "refusals have `error` around them",
    },
    Disagreement {
        point: Some(4),
        at: Where::Operations(&["RecordSets_*"], ""),
        rule: Rule::Wrapping,
        why: "the service's own refusals have no `error` around them",
    },
    Disagreement {
        point: Some(5),
        at: Where::Value("ProvisioningState", "\"Canceled\""),
        rule: Rule::Value,
        why: "a superseded write leaves it",
    },
    Disagreement {
        point: Some(7),
        at: Where::Operations(
            &[
                "PrivateLinkServices_*",
                "PrivateEndpoints_*",
                "LoadBalancers_*",
                "LoadBalancerBackendAddressPools_*",
                "InboundNatRules_*",
                "NetworkInterfaces_*",
                "NetworkSecurityGroups_*",
                "SecurityRules_*",
                "ApplicationSecurityGroups_*",
                "RouteTables_*",
                "Routes_*",
                "PublicIPAddresses_*",
                "NatGateways_*",
                "Subnets_*",
                "VirtualNetworks_*",
            ],
            "if-match",
        ),
        rule: Rule::Unknown,
        why: "the service takes a precondition that is not declared",
    },
    Disagreement {
        point: None,
        at: Where::Operations(&["PrivateZones_*", "VirtualNetworkLinks_*"], ""),
        rule: Rule::Empty,
        why: "202 has an empty object",
    },
    field("PrivateLinkServiceProperties", "resourceGuid"),
    field("PrivateEndpointProperties", "resourceGuid"),
    field("PrivateEndpointProperties", "isIPv6EnabledPrivateEndpoint"),
    field("PrivateEndpointIPConfiguration", "id"),
    field("PrivateEndpointIPConfigurationProperties", "provisioningState"),
    field("NetworkInterface", "kind"),
    field("NetworkInterface", "managedBy"),
    field("NetworkInterfacePropertiesFormat", "allowPort25Out"),
    field("PrivateDnsZoneGroup", "type"),
    field("PrivateDnsZoneConfig", "etag"),
    field("PrivateDnsZoneConfig", "id"),
    field("PrivateDnsZoneConfig", "type"),
    field("PrivateDnsZonePropertiesFormat", "provisioningState"),
    field("LoadBalancerBackendAddress", "etag"),
    field("LoadBalancerBackendAddress", "id"),
    field("LoadBalancerBackendAddress", "type"),
    field("LoadBalancerBackendAddressPropertiesFormat", "provisioningState"),
    field("LoadBalancingRulePropertiesFormat", "allowBackendPortConflict"),
    field("LoadBalancingRulePropertiesFormat", "enableDestinationServiceEndpoint"),
    field("InboundNatRulePropertiesFormat", "allowBackendPortConflict"),
    field("InboundNatRulePropertiesFormat", "enableDestinationServiceEndpoint"),
    field("InboundNatPoolPropertiesFormat", "allowBackendPortConflict"),
    field("InboundNatPoolPropertiesFormat", "enableDestinationServiceEndpoint"),
];

/// A field that the service answers. A client that changes what it has read sends it too.
const fn field(definition: &'static str, name: &'static str) -> Disagreement {
    Disagreement {
        point: None,
        at: Where::Field(definition, name),
        rule: Rule::Unknown,
        why: "a field that the service answers",
    }
}

impl Disagreement {
    /// Whether `finding` in `operation` is this.
    pub(super) fn excuses(&self, operation: &str, finding: &Finding) -> bool {
        let named = |known: &&str| match known.strip_suffix('*') {
            Some(start) => operation.starts_with(start),
            None => operation == *known,
        };
        self.rule == finding.rule
            && match self.at {
                Where::Operations(names, place) => finding.place == place && names.iter().any(named),
                Where::Field(name, field) => {
                    finding.definition == name && finding.place.rsplit('/').next() == Some(field)
                }
                Where::Value(name, value) => finding.definition == name && finding.found == value,
            }
    }
}

impl fmt::Display for Disagreement {
    fn fmt(&self, to: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(point) = self.point {
            write!(to, "{point}. ")?;
        }
        match self.at {
            Where::Operations(names, place) => write!(to, "{} {place}: {}", names.join(", "), self.why),
            Where::Field(name, what) | Where::Value(name, what) => write!(to, "{name}.{what}: {}", self.why),
        }
    }
}
