//! Differences that have an explanation.

use super::*;

#[rstest]
#[case::approved("Approved")]
#[case::left_to_the_provider("Pending")]
fn alias_of_a_service_of_others_is_stood_in_for(#[case] state: &str) {
    let alias = "svc.5d6a4c3b-7e0a-4d51-b7a5-0c6f2b0f6d11.eastus.azure.privatelinkservice";
    let id = format!("{GROUP}/providers/Microsoft.Network/privateEndpoints/pe");
    let connection = |status: &str| {
        json!({"name": "c", "properties": {"privateLinkServiceId": alias,
            "privateLinkServiceConnectionState": {"status": status}}})
    };
    let sent = json!({"location": "eastus", "properties": {
        "subnet": {"id": format!("{GROUP}/providers/Microsoft.Network/virtualNetworks/net/subnets/ends")},
        "manualPrivateLinkServiceConnections": [{"name": "c", "properties": {"privateLinkServiceId": alias}}]}});
    let got = |status: &str, provisioning: &str| {
        json!({"id": id, "name": "pe", "properties": {"provisioningState": provisioning,
            "manualPrivateLinkServiceConnections": [connection(status)]}})
    };
    let lines = play(&cassette(&[
        exchange("PUT", &id, &sent, (201, &got("Pending", "Updating"))),
        exchange("GET", &id, &Value::Null, (200, &got(state, "Succeeded"))),
    ]));
    let service = "/resourceGroups/elsewhere/providers/Microsoft.Network/privateLinkServices/svc";
    assert!(
        lines[0].seeded.iter().any(|id| id.ends_with(service)),
        "{:?}",
        lines[0].seeded
    );
    assert_eq!((lines[0].simulated, lines[1].simulated), (Some(201), Some(200)));
    let printed = lines[1].to_string();
    assert!(!printed.contains("ConnectionState.status: "), "{printed}");
}

#[rstest]
#[case::over_at_once("Succeeded", Verdict::Same)]
#[case::takes_its_time("Updating", Verdict::Same)]
#[case::neither("Failed", Verdict::Differs)]
fn how_long_a_write_took_is_a_note(#[case] state: &str, #[case] verdict: Verdict) {
    let id = format!("{GROUP}/providers/Microsoft.Network/natGateways/nat");
    let (etag, guid) = (
        "W/\"5d6a4c3b-7e0a-4d51-b7a5-0c6f2b0f6d12\"",
        "5d6a4c3b-7e0a-4d51-b7a5-0c6f2b0f6d13",
    );
    let got = json!({"id": id, "name": "nat", "type": "Microsoft.Network/natGateways", "location": "eastus",
        "etag": etag, "sku": {"name": "Standard"},
        "properties": {"provisioningState": state, "resourceGuid": guid, "idleTimeoutInMinutes": 4}});
    let sent = json!({"location": "eastus", "sku": {"name": "Standard"}});
    let lines = play(&cassette(&[exchange("PUT", &id, &sent, (201, &got))]));
    assert_eq!(lines[0].verdict, verdict, "{}", lines[0]);
    assert_eq!(
        lines[0].to_string().contains("text: recorded Succeeded, ours Updating"),
        state == "Succeeded"
    );
}

#[test]
fn what_a_call_of_another_service_adds_is_explained() {
    let id = format!("{GROUP}/providers/Microsoft.Network/natGateways/nat");
    let machine = format!("{GROUP}/providers/Microsoft.Compute/virtualMachines/vm");
    let got = json!({"id": id, "properties": {"subnets": [{"id": machine}]}});
    let create = exchange(
        "PUT",
        &machine,
        &json!({"properties": {"uses": {"id": id}}}),
        (200, &json!({})),
    );
    let read = exchange("GET", &id, &Value::Null, (200, &got));
    for (exchanges, explained) in [(vec![create, read.clone()], true), (vec![read], false)] {
        let lines = play(&cassette(&exchanges));
        let printed = lines.last().unwrap().to_string();
        assert!(printed.contains("properties.subnets: missing"), "{printed}");
        let reason = "explained: a call that is not played has changed the resource";
        assert_eq!(printed.contains(reason), explained, "{printed}");
    }
}
