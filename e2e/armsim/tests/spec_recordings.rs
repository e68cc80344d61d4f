//! Recorded traffic of Azure against the specs: what the checker finds there is where spec and service disagree, and
//! nothing else. Every known disagreement is met, so none is listed in vain.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod spec_support;

use armsim::Specs;
use serde_json::{Value, json};
use spec_support::Exchange;

const NET: &str = "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network";

/// How many disagreements no recording at hand shows.
const WITHOUT_RECORDING: usize = 12;

/// Made-up exchanges that show those.
fn made_up_exchanges() -> Vec<Exchange> {
    let decided = json!({"properties": {"privateLinkServiceConnectionState": {"status": "Approved"}}});
    let decision = Exchange::new(
        "PUT",
        format!("{NET}/privateLinkServices/p/privateEndpointConnections/c"),
        "2024-05-01",
        decided,
        200,
        json!({"name": "c", "properties": {"provisioningState": "Updating"}}),
    );
    let no_record = json!({"code": "NotFound", "message": "The resource record 'r' does not exist."});
    let record = format!("{NET}/privateDnsZones/z/A/r");
    let subnet = format!("{NET}/virtualNetworks/v/subnets/n");
    let superseded = json!({"name": "n", "properties": {"provisioningState": "Canceled"}});
    let ready = json!({"name": "n", "properties": {"provisioningState": "Succeeded"}});
    let body = json!({"properties": {"addressPrefix": "10.0.0.0/24"}});
    let rule = json!({"name": "r", "properties": {"protocol": "Tcp", "frontendPort": 80, "allowBackendPortConflict": false, "enableDestinationServiceEndpoint": false}});
    let address = json!({"name": "a", "id": "/a", "type": "t", "etag": "e", "properties": {"ipAddress": "10.0.0.9", "provisioningState": "Succeeded"}});
    let pool = json!({"name": "p", "properties": {"loadBalancerBackendAddresses": [address]}});
    let balancer = json!({"name": "b", "properties": {"loadBalancingRules": [rule], "backendAddressPools": [pool]}});
    let balancer = Exchange::new(
        "GET",
        format!("{NET}/loadBalancers/b"),
        "2024-05-01",
        Value::Null,
        200,
        balancer,
    );
    let fixed = json!({"name": "i", "id": "i", "properties": {"privateIPAddress": "10.0.0.9", "provisioningState": "Succeeded"}});
    let endpoint = Exchange::new(
        "GET",
        format!("{NET}/privateEndpoints/e"),
        "2024-05-01",
        Value::Null,
        200,
        json!({"name": "e", "properties": {"ipConfigurations": [fixed]}}),
    );
    let mut conditional = Exchange::new("PUT", subnet.clone(), "2024-05-01", body, 200, ready);
    conditional.headers.insert("if-match", "W/\"1\"".parse().unwrap());
    vec![
        decision.with("azure-asyncoperation"),
        Exchange::new("GET", record, "2024-06-01", Value::Null, 404, no_record),
        Exchange::new("GET", subnet, "2024-05-01", Value::Null, 200, superseded),
        conditional,
        balancer,
        endpoint,
    ]
}

fn never_met(specs: &Specs) -> Vec<String> {
    let counts = specs.tally().disagreements.into_iter();
    counts.filter(|(_, times)| *times == 0).map(|(name, _)| name).collect()
}

#[test]
fn recorded_traffic_keeps_to_the_specs_but_for_what_is_listed() {
    let Some(specs) = spec_support::specs() else { return };
    let mut found = Vec::new();
    let mut exchanges = 0;
    for folder in ["aso", "cloud-provider-azure"] {
        let dir = spec_support::reference().unwrap().join("recordings").join(folder);
        for file in std::fs::read_dir(dir).unwrap() {
            let path = file.unwrap().path();
            for (request, response) in spec_support::cassette(&path) {
                exchanges += 1;
                let violations = specs.check(&request, &response);
                let findings = violations
                    .iter()
                    .map(|violation| format!("{}: {violation}", path.display()));
                found.extend(findings);
            }
        }
    }
    assert!(found.is_empty(), "{} findings\n{}", found.len(), found.join("\n"));
    assert_eq!(never_met(&specs).len(), WITHOUT_RECORDING, "{:#?}", never_met(&specs));
    for exchange in made_up_exchanges() {
        assert_eq!(exchange.check(&specs), [], "{} {}", exchange.method, exchange.path);
    }
    assert!(never_met(&specs).is_empty(), "{:#?}", never_met(&specs));
    let tally = specs.tally();
    let unknown: u64 = tally.not_in_specs.values().sum();
    println!(
        "{exchanges} recorded exchanges, {unknown} of them not in the specs: {:#?}",
        tally.not_in_specs
    );
    println!("where the service departs from its specs: {:#?}", tally.disagreements);
}
