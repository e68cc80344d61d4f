//! Which api-versions show which fields: an answer in an older version has nothing that came later.
//!
//! From Microsoft's change logs of the templates' schemas and from recorded traffic in old versions; fields that neither
//! speaks of are shown in all versions.

use serde_json::{Value, json};

const ENDPOINT: &str = "Microsoft.Network/privateEndpoints";
const INTERFACE: &str = "Microsoft.Network/networkInterfaces";
const NETWORK: &str = "Microsoft.Network/virtualNetworks";

/// Type, field of its properties, first version.
static SINCE: &[(&str, &str, &str)] = &[
    (NETWORK, "privateEndpointVNetPolicies", "2024-03-01"),
    (ENDPOINT, "customDnsConfigs", "2020-03-01"),
    (ENDPOINT, "customNetworkInterfaceName", "2021-03-01"),
    (ENDPOINT, "ipConfigurations", "2021-03-01"),
    (ENDPOINT, "isIPv6EnabledPrivateEndpoint", "2024-03-01"),
    (
        "Microsoft.Network/privateLinkServices",
        "enableProxyProtocol",
        "2019-09-01",
    ),
    (
        "Microsoft.Network/privateLinkServices/privateEndpointConnections",
        "privateEndpointLocation",
        "2022-11-01",
    ),
    (INTERFACE, "vnetEncryptionSupported", "2021-05-01"),
    (INTERFACE, "auxiliaryMode", "2021-08-01"),
    (INTERFACE, "disableTcpStateTracking", "2022-05-01"),
    (INTERFACE, "auxiliarySku", "2022-11-01"),
    ("Microsoft.Network/publicIPAddresses", "ddosSettings", "2022-05-01"),
];

/// Type, field of its properties, its usual value, the first version without it.
static UNTIL: &[(&str, &str, bool, &str)] = &[(NETWORK, "enableVmProtection", false, "2020-11-01")];

/// The first version in which a resource group says what it is.
const TYPED_GROUP: (&str, &str) = ("Microsoft.Resources/resourceGroups", "2018-05-01");

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
            if kind == TYPED_GROUP.0 && api_version < TYPED_GROUP.1 {
                fields.remove("type");
            }
            let Some(properties) = fields.get_mut("properties").and_then(Value::as_object_mut) else {
                return;
            };
            for (_, field, _) in SINCE
                .iter()
                .filter(|(of, _, since)| *of == kind && api_version < *since)
            {
                properties.remove(*field);
            }
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
