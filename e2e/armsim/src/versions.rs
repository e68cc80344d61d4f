//! Which api-versions show which fields: an answer in an older version has nothing that came later.
//!
//! From Microsoft's change logs of the templates' schemas and from recorded traffic in old versions; fields that neither
//! speaks of are shown in all versions.

use serde_json::{Map, Value, json};

const ENDPOINT: &str = "Microsoft.Network/privateEndpoints";
const BALANCER: &str = "Microsoft.Network/loadBalancers";
const INTERFACE: &str = "Microsoft.Network/networkInterfaces";
const NETWORK: &str = "Microsoft.Network/virtualNetworks";

/// Type, path of a field, first version.
static SINCE: &[(&str, &str, &str)] = &[
    (NETWORK, "properties/privateEndpointVNetPolicies", "2024-03-01"),
    (ENDPOINT, "properties/customDnsConfigs", "2020-03-01"),
    (ENDPOINT, "properties/customNetworkInterfaceName", "2021-03-01"),
    (ENDPOINT, "properties/ipConfigurations", "2021-03-01"),
    (ENDPOINT, "properties/isIPv6EnabledPrivateEndpoint", "2024-03-01"),
    (
        "Microsoft.Network/privateLinkServices",
        "properties/enableProxyProtocol",
        "2019-09-01",
    ),
    (
        "Microsoft.Network/privateLinkServices/privateEndpointConnections",
        "properties/privateEndpointLocation",
        "2022-11-01",
    ),
    (INTERFACE, "kind", "2021-02-01"),
    (INTERFACE, "properties/allowPort25Out", "2021-02-01"),
    (INTERFACE, "properties/auxiliaryMode", "2021-08-01"),
    (INTERFACE, "properties/disableTcpStateTracking", "2022-05-01"),
    (INTERFACE, "properties/auxiliarySku", "2022-11-01"),
    (
        "Microsoft.Network/publicIPAddresses",
        "properties/ddosSettings",
        "2022-05-01",
    ),
    (
        "Microsoft.Network/loadBalancers/backendAddressPools",
        "properties/loadBalancerBackendAddresses",
        "2020-05-01",
    ),
    (
        "Microsoft.Network/loadBalancers/probes",
        "properties/probeThreshold",
        "2022-05-01",
    ),
    (
        "Microsoft.Network/loadBalancers/probes",
        "properties/noHealthyBackendsBehavior",
        "2023-11-01",
    ),
    (BALANCER, "sku/tier", "2020-08-01"),
    ("Microsoft.Network/publicIPAddresses", "sku/tier", "2020-08-01"),
    ("Microsoft.Resources/resourceGroups", "type", "2018-05-01"),
];

/// Type, field of its properties, its usual value, the first version without it.
static UNTIL: &[(&str, &str, bool, &str)] = &[(NETWORK, "enableVmProtection", false, "2020-11-01")];

/// Takes from an answer what its version does not know, and adds what later ones have dropped.
pub(crate) fn adapt(api_version: &str, body: &mut Value) {
    match body {
        Value::Array(items) => items.iter_mut().for_each(|item| adapt(api_version, item)),
        Value::Object(fields) => {
            fields.values_mut().for_each(|value| adapt(api_version, value));
            let kind = fields
                .get("type")
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned();
            for (_, path, _) in SINCE
                .iter()
                .filter(|(of, _, since)| *of == kind && api_version < *since)
            {
                remove(fields, path);
            }
            let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) else {
                return;
            };
            for (_, field, usual, _) in UNTIL
                .iter()
                .filter(|(of, _, _, until)| *of == kind && api_version < *until)
            {
                properties.entry(*field).or_insert(json!(usual));
            }
        }
        _ => {}
    }
}

/// Removes a field, or one of a part.
fn remove(fields: &mut Map<String, Value>, path: &str) {
    match path.split_once('/') {
        None => _ = fields.remove(path),
        Some((part, field)) => {
            if let Some(part) = fields.get_mut(part).and_then(Value::as_object_mut) {
                part.remove(field);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn old_versions_lack_what_is_new_and_show_what_went() {
        let link_service = json!({ "value": [{
            "type": "Microsoft.Network/privateLinkServices",
            "properties": { "enableProxyProtocol": false, "privateEndpointConnections": [{
                "type": "Microsoft.Network/privateLinkServices/privateEndpointConnections",
                "properties": { "privateEndpointLocation": "westus2", "linkIdentifier": "1" }
            }]}
        }]});
        for (version, location, proxy) in [
            ("2019-04-01", false, false),
            ("2022-09-01", false, true),
            ("2022-11-01", true, true),
        ] {
            let mut shown = link_service.clone();
            adapt(version, &mut shown);
            let properties = &shown["value"][0]["properties"];
            let connection = &properties["privateEndpointConnections"][0]["properties"];
            assert_eq!(
                connection.get("privateEndpointLocation").is_some(),
                location,
                "{version}"
            );
            assert_eq!(properties.get("enableProxyProtocol").is_some(), proxy, "{version}");
            assert_eq!(connection["linkIdentifier"], "1");
        }
        for (version, shown) in [("2019-08-01", true), ("2020-11-01", false)] {
            let mut network = json!({ "type": "Microsoft.Network/virtualNetworks", "properties": {} });
            adapt(version, &mut network);
            assert_eq!(
                network["properties"].get("enableVmProtection").is_some(),
                shown,
                "{version}"
            );
        }
    }
}
