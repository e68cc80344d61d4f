//! Clusters that HyperShift's own operator made, and resources of others under our names.

use rstest::rstest;
use serde_json::{Value, json};

use super::super::super::samples::*;
use super::*;
use crate::azure::arm::error::ArmError;
use crate::azure::cloud::Observed;
use crate::controllers::azure::Need;
use crate::engine::failure::Class;

fn ready(decision: &Decision) -> bool {
    decision.steps.iter().all(|step| step.ready().is_some())
}

#[test]
fn cluster_of_go_is_adopted_without_a_write_or_a_further_read() {
    let (decision, mut asked) = run(&of_go(json!({})), &unmarked());
    assert!(ready(&decision), "{:?}", decision.steps);
    asked.sort();
    let names = [
        "*.apps",
        "api",
        "api-example",
        "apps.example.com",
        "example.hypershift.local",
        "oauth-example",
        "private-router-basedomain-vnet-link",
        "private-router-pe",
        "private-router-vnet-link",
    ];
    assert_eq!(asked, names, "each resource once");
}

/// HyperShift's own operator writes zones and links without end, and wipes our owner tags with each PUT.
#[rstest]
#[case::without_our_mark(unmarked(), true)]
#[case::with_it(complete(), false)]
fn names_are_right_while_others_write_the_same(#[case] mut world: Vec<(String, Value)>, #[case] right: bool) {
    let dns = |id: &str| id.contains("/privateDnsZones/") && !id.contains("/A/");
    for (_, body) in world.iter_mut().filter(|(id, _)| dns(id)) {
        body["properties"]["provisioningState"] = json!("Updating");
    }
    let (decision, _) = run(&of_go(json!({})), &world);
    assert_eq!(ready(&decision), right, "{:?}", decision.steps);
    assert_eq!(written(&decision), [""; 0]);
}

#[test]
fn zone_without_a_status_is_proven_by_own_link_and_record() {
    let unnamed = of_go(json!({"privateDNSZoneID": null, "baseDomainDNSZoneID": null}));
    assert!(ready(&run(&unnamed, &unmarked()).0));
}

#[rstest]
#[case::without_our_link(|world: &mut Vec<(String, Value)>| world.retain(|(id, _)| !id.ends_with("basedomain-vnet-link")))]
#[case::whose_link_leads_elsewhere(|world: &mut Vec<(String, Value)>| {
    let link = world.iter_mut().find(|(id, _)| id.ends_with("basedomain-vnet-link")).unwrap();
    link.1["properties"]["virtualNetwork"]["id"] = json!(guest("virtualNetworks/other"));
})]
#[case::whose_records_hold_other_addresses(|world: &mut Vec<(String, Value)>| {
    for (_, record) in world.iter_mut().filter(|(id, _)| id.ends_with("-example")) {
        record["properties"]["aRecords"] = json!([{"ipv4Address": "10.0.0.6"}]);
    }
})]
fn zone_is_refused(#[case] change: fn(&mut Vec<(String, Value)>)) {
    let mut world = unmarked();
    change(&mut world);
    let (decision, _) = run(&of_go(json!({"baseDomainDNSZoneID": null})), &world);
    assert_eq!(step(&decision, "apps.example.com").why, Why::NotOurs);
    assert_eq!(written(&decision), [""; 0]);
}

/// A tenant can write the whole status.
#[test]
fn zone_that_only_the_status_names_is_refused() {
    let world = unmarked();
    let records = |(id, _): &(String, Value)| !id.contains("/A/");
    let without_records: Vec<_> = world.into_iter().filter(records).collect();
    let (decision, _) = run(&of_go(json!({})), &without_records);
    assert_eq!(step(&decision, "apps.example.com").why, Why::NotOurs);
    assert_eq!(written(&decision), [""; 0]);
}

/// The address on record is that of the foreign record, and our endpoint has another one.
#[test]
fn forged_status_proves_no_zone_and_deletes_none() {
    let world: Vec<_> = unmarked()
        .into_iter()
        .map(|(id, mut body)| {
            if id.contains("/A/") {
                body["properties"]["aRecords"] = json!([{"ipv4Address": "10.9.9.9"}]);
            }
            (id, body)
        })
        .collect();
    let forged = of_go(json!({"privateEndpointIP": "10.9.9.9"}));
    assert_eq!(written(&run(&forged, &world).0), [""; 0]);
    let gone: Vec<_> = world
        .iter()
        .filter(|(id, _)| !id.ends_with(ENDPOINT))
        .cloned()
        .collect();
    for world in [world, gone] {
        let deleted = tear(&forged, &served_state(), &world);
        assert!(
            written(&deleted).iter().all(|name| *name == "private-router-pe"),
            "{:?}",
            deleted.steps
        );
    }
}

#[rstest]
#[case::endpoint("private-router-pe", "private-router-pe")]
#[case::zone("apps.example.com", "apps.example.com")]
#[case::link("private-router-vnet-link", "example.hypershift.local")]
fn owner_tags_of_another_cluster_outweigh_structure(#[case] name: &str, #[case] refused: &str) {
    let theirs = json!({"hypershift.openshift.io_cluster-id": "neighbour"});
    let world = changed(unmarked(), name, |body| body["tags"] = theirs);
    let (decision, _) = run(&of_go(json!({})), &world);
    assert_eq!(step(&decision, refused).why, Why::NotOurs);
    let decision = run_after_proof(&of_go(json!({})), &world);
    assert_eq!(step(&decision, name).why, Why::NotOurs);
}

#[test]
fn record_with_metadata_of_another_cluster_is_refused() {
    let theirs = json!({"hypershift.openshift.io_cluster-id": "neighbour"});
    let world = changed(unmarked(), "api-example", |body| {
        body["properties"]["metadata"] = theirs
    });
    assert_eq!(step(&run(&of_go(json!({})), &world).0, "api-example").why, Why::NotOurs);
}

#[test]
fn zone_with_no_room_for_owner_tags_is_no_error() {
    let tags: serde_json::Map<String, Value> = (0..15).map(|n| (format!("t{n}"), json!("x"))).collect();
    let full = |body: &mut Value| body["tags"] = Value::Object(tags.clone());
    let world = changed(
        changed(unmarked(), "apps.example.com", full),
        "example.hypershift.local",
        full,
    );
    assert!(ready(&run(&of_go(json!({})), &world).0));
    let moved = changed(world, "private-router-vnet-link", |body| {
        full(body);
        body["properties"]["registrationEnabled"] = json!(true);
    });
    let (decision, _) = run(&of_go(json!({})), &moved);
    let Verb::Put(body) = verb(&decision, "private-router-vnet-link") else {
        panic!("{:?}", decision.steps)
    };
    assert_eq!(body["tags"], Value::Object(tags.clone()));
}

/// The alias that is new once the Private Link Service was made again.
const NEW: &str = "pls-id.00000000-0000-4000-8000-000000000000.eastus.azure.privatelinkservice";

#[test]
fn dead_endpoint_of_go_is_replaced_once_there_is_a_new_alias() {
    let world = changed(unmarked(), "private-router-pe", |body| {
        *body = json!({"properties": endpoint("Disconnected", ALIAS).1["properties"]});
    });
    let resource = of_go(json!({"privateLinkServiceAlias": NEW}));
    let decision = run_after_proof(&resource, &world);
    assert_eq!(step(&decision, "private-router-pe").verb, Verb::Delete);
    // Neither status nor intent proves that it was ours.
    let intent =
        json!({"cluster": "example", "clusterID": "id", "infraID": "infra", "privateLinkServiceAliases": [ALIAS]});
    let mut recorded = resource;
    recorded.metadata.annotations = Some([(CPO_INTENT.to_owned(), intent.to_string())].into());
    let (decision, _) = run(&recorded, &world);
    assert_eq!(step(&decision, "private-router-pe").why, Why::NotOurs);
    assert_eq!(
        aliases_in(&decision),
        [ALIAS, NEW],
        "until there is one that leads to the new"
    );
}

fn aliases_in(decision: &Decision) -> Vec<String> {
    let intent: CpoIntent = intent::read(decision.intent.as_ref()).unwrap();
    intent.aliases
}

#[test]
fn aliases_on_record_are_those_that_the_endpoint_may_lead_to() {
    assert_eq!(
        aliases_in(&run(&with_alias(), &[]).0),
        [ALIAS],
        "before the first write"
    );
    let new = cr(
        json!({"privateLinkServiceAlias": NEW}),
        json!({CPO_INTENT: json!({"cluster": "example",
        "clusterID": "id", "infraID": "infra", "privateLinkServiceAliases": [ALIAS]}).to_string()}),
    );
    assert_eq!(aliases_in(&run(&new, &[]).0), [ALIAS, NEW]);
    assert_eq!(aliases_in(&run(&new, &[endpoint("Approved", NEW)]).0), [NEW]);
}

#[test]
fn second_cluster_in_the_group_is_refused_the_endpoint() {
    let other = changed(complete(), "private-router-pe", |body| {
        *body = endpoint("Approved", NEW).1;
        body["tags"] = json!({"hypershift.openshift.io_cluster-id": "neighbour"});
    });
    let (decision, _) = run(&with_alias(), &other);
    assert_eq!(step(&decision, "private-router-pe").why, Why::NotOurs);
    assert!(written(&decision).is_empty(), "{:?}", decision.steps);
}

#[test]
fn foreign_values_are_removed_and_foreign_record_sets_stay() {
    let two = json!([{"ipv4Address": "10.0.0.5"}, {"ipv4Address": "6.6.6.6"}]);
    let mut world = changed(unmarked(), "api-example", |body| body["properties"]["aRecords"] = two);
    world.push((format!("{}/A/www", guest(BASE)), json!({"properties": {"ttl": 1}})));
    let (decision, asked) = run(&of_go(json!({})), &world);
    assert_eq!(written(&decision), ["api-example"]);
    let Verb::Put(body) = verb(&decision, "api-example") else {
        panic!("{:?}", decision.steps)
    };
    assert_eq!(body["properties"]["aRecords"], json!([{"ipv4Address": "10.0.0.5"}]));
    assert_eq!(body["properties"]["ttl"], 300);
    assert!(!asked.contains(&"www".to_owned()));
}

#[test]
fn record_that_a_machine_registered_is_foreign() {
    let world = changed(complete(), "api-example", |body| {
        body["properties"]["isAutoRegistered"] = json!(true)
    });
    assert_eq!(step(&run(&with_alias(), &world).0, "api-example").why, Why::NotOurs);
}

#[test]
fn records_follow_the_endpoint_though_none_of_them_is_marked() {
    let world = changed(unmarked(), "private-router-pe", |body| {
        let nics = json!([{"properties": {"ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.9"}}]}}]);
        body["properties"]["networkInterfaces"] = nics;
    });
    let decision = run_after_proof(&of_go(json!({})), &world);
    assert_eq!(written(&decision), ["api", "*.apps", "api-example", "oauth-example"]);
}

/// A process that begins beside many clusters reads these later, and Azure may not answer just now.
#[rstest]
#[case::all(&["private-router-pe", "vnet-link", "/A/"])]
#[case::links_and_records(&["vnet-link", "/A/"])]
#[case::links(&["vnet-link"])]
#[case::records(&["/A/"])]
fn unmarked_zone_whose_proof_is_not_read_is_not_of_others(#[case] unread: &[&str]) {
    let (world, cr) = (unmarked(), of_go(json!({})));
    let mut facts = Facts::default();
    let decision = loop {
        let needs = match build(&cr, &served_state(), &facts) {
            Ok((decision, _)) => break decision,
            Err(needs) => needs,
        };
        for need in needs {
            let Need::Read(_, id) = need else { panic!("{need:?}") };
            let text = id.to_string();
            let known = world.iter().find(|(known, _)| *known == text);
            let observed = match known {
                _ if unread.iter().any(|part| text.contains(part)) => {
                    Observed::ReadFailed(ArmError::own(Class::Throttled, "NotReadYet"))
                }
                Some((_, body)) => Observed::Found(body.clone()),
                None => Observed::Absent,
            };
            facts.reads.insert(id, observed);
        }
    };
    assert!(
        decision.steps.iter().all(|step| !step.left() && !step.writes()),
        "{:#?}",
        decision.steps
    );
    let recorded = decision.intent.unwrap();
    assert!(recorded.contains("privateDnsZones"), "{recorded}");
}
