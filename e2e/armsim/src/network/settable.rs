//! The properties that a PUT can set, by type: Azure drops what it does not know.
//!
//! From the service's OpenAPI files of api-version 2024-05-01, without what is read-only; a test compares.

use serde_json::Value;

/// Types and lists of nested resources below Microsoft.Network, and the names of their properties.
static SETTABLE: &[(&str, &str)] = &[
    ("applicationSecurityGroups", ""),
    (
        "loadBalancers",
        "backendAddressPools frontendIPConfigurations inboundNatPools inboundNatRules loadBalancingRules \
         outboundRules probes",
    ),
    (
        "loadBalancers/backendAddressPools",
        "drainPeriodInSeconds loadBalancerBackendAddresses location syncMode tunnelInterfaces virtualNetwork",
    ),
    (
        "loadBalancers/backendAddressPools/loadBalancerBackendAddresses",
        "adminState ipAddress loadBalancerFrontendIPConfiguration subnet virtualNetwork",
    ),
    (
        "loadBalancers/frontendIPConfigurations",
        "gatewayLoadBalancer privateIPAddress privateIPAddressVersion privateIPAllocationMethod publicIPAddress \
         publicIPPrefix subnet",
    ),
    (
        "loadBalancers/inboundNatPools",
        "backendPort enableFloatingIP enableTcpReset frontendIPConfiguration frontendPortRangeEnd \
         frontendPortRangeStart idleTimeoutInMinutes protocol",
    ),
    (
        "loadBalancers/inboundNatRules",
        "backendAddressPool backendPort enableFloatingIP enableTcpReset frontendIPConfiguration frontendPort \
         frontendPortRangeEnd frontendPortRangeStart idleTimeoutInMinutes protocol",
    ),
    (
        "loadBalancers/loadBalancingRules",
        "backendAddressPool backendAddressPools backendPort disableOutboundSnat enableFloatingIP enableTcpReset \
         frontendIPConfiguration frontendPort idleTimeoutInMinutes loadDistribution probe protocol",
    ),
    (
        "loadBalancers/outboundRules",
        "allocatedOutboundPorts backendAddressPool enableTcpReset frontendIPConfigurations idleTimeoutInMinutes \
         protocol",
    ),
    (
        "loadBalancers/probes",
        "intervalInSeconds noHealthyBackendsBehavior numberOfProbes port probeThreshold protocol requestPath",
    ),
    ("natGateways", "idleTimeoutInMinutes publicIpAddresses publicIpPrefixes"),
    (
        "networkInterfaces",
        "auxiliaryMode auxiliarySku disableTcpStateTracking dnsSettings enableAcceleratedNetworking \
         enableIPForwarding ipConfigurations migrationPhase networkSecurityGroup nicType privateLinkService \
         workloadType",
    ),
    (
        "networkInterfaces/ipConfigurations",
        "applicationGatewayBackendAddressPools applicationSecurityGroups gatewayLoadBalancer \
         loadBalancerBackendAddressPools loadBalancerInboundNatRules primary privateIPAddress \
         privateIPAddressPrefixLength privateIPAddressVersion privateIPAllocationMethod publicIPAddress subnet \
         virtualNetworkTaps",
    ),
    ("networkSecurityGroups", "flushConnection securityRules"),
    (
        "networkSecurityGroups/securityRules",
        "access description destinationAddressPrefix destinationAddressPrefixes \
         destinationApplicationSecurityGroups destinationPortRange destinationPortRanges direction priority \
         protocol sourceAddressPrefix sourceAddressPrefixes sourceApplicationSecurityGroups sourcePortRange \
         sourcePortRanges",
    ),
    (
        "privateEndpoints",
        "applicationSecurityGroups customDnsConfigs customNetworkInterfaceName ipConfigurations \
         manualPrivateLinkServiceConnections privateLinkServiceConnections subnet",
    ),
    (
        "privateEndpoints/ipConfigurations",
        "groupId memberName privateIPAddress",
    ),
    (
        "privateEndpoints/manualPrivateLinkServiceConnections",
        "groupIds privateLinkServiceConnectionState privateLinkServiceId requestMessage",
    ),
    (
        "privateEndpoints/privateLinkServiceConnections",
        "groupIds privateLinkServiceConnectionState privateLinkServiceId requestMessage",
    ),
    (
        "privateLinkServices",
        "autoApproval destinationIPAddress enableProxyProtocol fqdns ipConfigurations \
         loadBalancerFrontendIpConfigurations visibility",
    ),
    (
        "privateLinkServices/ipConfigurations",
        "primary privateIPAddress privateIPAddressVersion privateIPAllocationMethod subnet",
    ),
    (
        "publicIPAddresses",
        "ddosSettings deleteOption dnsSettings idleTimeoutInMinutes ipAddress ipTags linkedPublicIPAddress \
         migrationPhase natGateway publicIPAddressVersion publicIPAllocationMethod publicIPPrefix \
         servicePublicIPAddress",
    ),
    ("routeTables", "disableBgpRoutePropagation routes"),
    ("routeTables/routes", "addressPrefix nextHopIpAddress nextHopType"),
    (
        "virtualNetworks",
        "addressSpace bgpCommunities ddosProtectionPlan dhcpOptions enableDdosProtection enableVmProtection \
         encryption flowTimeoutInMinutes ipAllocations privateEndpointVNetPolicies subnets virtualNetworkPeerings",
    ),
    (
        "virtualNetworks/subnets",
        "addressPrefix addressPrefixes applicationGatewayIPConfigurations defaultOutboundAccess delegations \
         ipAllocations ipamPoolPrefixAllocations natGateway networkSecurityGroup privateEndpointNetworkPolicies \
         privateLinkServiceNetworkPolicies routeTable serviceEndpointPolicies serviceEndpoints sharingScope",
    ),
    ("virtualNetworks/subnets/applicationGatewayIPConfigurations", "subnet"),
    ("virtualNetworks/subnets/delegations", "serviceName"),
    (
        "virtualNetworks/virtualNetworkPeerings",
        "allowForwardedTraffic allowGatewayTransit allowVirtualNetworkAccess doNotVerifyRemoteGateways \
         enableOnlyIPv6Peering localAddressSpace localSubnetNames localVirtualNetworkAddressSpace \
         peerCompleteVnets peeringState peeringSyncLevel remoteAddressSpace remoteBgpCommunities \
         remoteSubnetNames remoteVirtualNetwork remoteVirtualNetworkAddressSpace useRemoteGateways",
    ),
];

/// Leaves in a body of `resource_type` what the service knows, at any depth of nested resources.
pub(crate) fn keep(resource_type: &str, body: &mut Value) {
    keep_below(resource_type.trim_start_matches("Microsoft.Network/"), body);
}

fn keep_below(path: &str, body: &mut Value) {
    let Some((_, known)) = SETTABLE.iter().find(|(of, _)| *of == path) else {
        return;
    };
    let Some(properties) = body.get_mut("properties").and_then(Value::as_object_mut) else {
        return;
    };
    properties.retain(|name, _| known.split(' ').any(|known| known == name));
    for (list, items) in properties.iter_mut() {
        let below = format!("{path}/{list}");
        items
            .as_array_mut()
            .into_iter()
            .flatten()
            .for_each(|item| keep_below(&below, item));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;
    use std::path::PathBuf;

    use serde_json::Map;

    use super::*;

    /// The files of the reference data, by name.
    struct Files(BTreeMap<String, Value>);

    impl Files {
        /// Follows a `$ref` that stands in `file`.
        fn resolve(&self, file: &str, schema: &Value) -> Option<(String, Value)> {
            let Some(reference) = schema["$ref"].as_str() else {
                return Some((file.to_owned(), schema.clone()));
            };
            let (other, pointer) = reference.split_once('#')?;
            let other = other.rsplit('/').next().filter(|name| !name.is_empty()).unwrap_or(file);
            let found = self.0.get(other)?.pointer(pointer)?;
            self.resolve(other, found)
        }

        /// The fields of a schema with those of what it is made of, each with its file.
        fn fields(&self, file: &str, schema: &Value) -> BTreeMap<String, (String, Value)> {
            let Some((file, schema)) = self.resolve(file, schema) else {
                return BTreeMap::new();
            };
            let mut fields = BTreeMap::new();
            for part in schema["allOf"].as_array().into_iter().flatten() {
                fields.extend(self.fields(&file, part));
            }
            let own = schema["properties"].as_object().cloned().unwrap_or_else(Map::new);
            fields.extend(own.into_iter().map(|(name, field)| (name, (file.clone(), field))));
            fields
        }

        /// What can be set of a nested resource or type, and the lists below it.
        fn settable(&self, file: &str, schema: &Value) -> Option<BTreeMap<String, (String, Value)>> {
            let (file, properties) = self.fields(file, schema).remove("properties")?;
            let mut fields = self.fields(&file, &properties);
            fields.retain(|name, (_, field)| {
                field["readOnly"] != Value::Bool(true)
                    && !["provisioningState", "resourceGuid"].contains(&name.as_str())
            });
            Some(fields)
        }
    }

    fn files() -> Option<Files> {
        let repository = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
        let root = std::env::var_os("HYPERLINK_REFERENCE_DATA").map_or(PathBuf::from(repository), PathBuf::from);
        let entries = std::fs::read_dir(root.join("azure-rest/network/2024-05-01")).ok()?;
        let read = |path: PathBuf| {
            let name = path.file_name()?.to_str()?.to_owned();
            Some((name, serde_json::from_slice(&std::fs::read(path).ok()?).ok()?))
        };
        let files: BTreeMap<String, Value> = entries.filter_map(|entry| read(entry.ok()?.path())).collect();
        Some(Files(files))
    }

    #[test]
    fn settable_properties_are_those_of_the_specs() {
        let Some(files) = files() else {
            eprintln!("SKIPPED: no specs of Azure at hand");
            return;
        };
        for (path, names) in SETTABLE {
            let mut words = path.split('/');
            let root = words.next().unwrap();
            // The type `loadBalancers` is defined as `LoadBalancer`.
            let singular = root
                .strip_suffix("es")
                .filter(|_| root.ends_with("sses"))
                .or(root.strip_suffix('s'));
            let defined = files.0.iter().find_map(|(file, text)| {
                let all = text["definitions"].as_object()?;
                let (_, schema) = all
                    .iter()
                    .find(|(name, _)| Some(name.to_lowercase()) == singular.map(str::to_lowercase))?;
                Some((file.clone(), schema.clone()))
            });
            let (mut file, mut schema) = defined.unwrap_or_else(|| panic!("{root}"));
            for list in words {
                let (in_file, field) = files.settable(&file, &schema).unwrap().remove(list).unwrap();
                let (in_file, field) = files.resolve(&in_file, &field).unwrap();
                (file, schema) = files.resolve(&in_file, &field["items"]).unwrap();
            }
            let known = files.settable(&file, &schema).unwrap();
            let known: Vec<&str> = known.keys().map(String::as_str).collect();
            assert_eq!(known.join(" "), *names, "{path}");
        }
    }
}
