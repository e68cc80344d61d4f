//! Laws that hold after any sequence of calls and any passing of time.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::collections::{BTreeMap, BTreeSet};

use armsim::World;
use jiff::Timestamp;
use network_support::{GUEST_NET, NET, Sim, pe, pls};
use proptest::prelude::*;
use serde_json::{Value, json};

#[derive(Clone, Debug)]
enum Step {
    PutService(u8, u8),
    DeleteService(u8),
    PutEndpoint(u8, u8),
    DeleteEndpoint(u8),
    Decide(u8, bool),
    Disconnect(u8),
    PutSubnet(u8),
    DeleteSubnet(u8),
    RemoveBehindTheBack(u8, bool),
    Wait(u16),
}

fn step() -> impl Strategy<Value = Step> {
    let few = 0..4u8;
    prop_oneof![
        3 => (few.clone(), 0..3u8).prop_map(|(at, tag)| Step::PutService(at, tag)),
        1 => few.clone().prop_map(Step::DeleteService),
        4 => (few.clone(), few.clone()).prop_map(|(at, service)| Step::PutEndpoint(at, service)),
        1 => few.clone().prop_map(Step::DeleteEndpoint),
        1 => (few.clone(), any::<bool>()).prop_map(|(at, yes)| Step::Decide(at, yes)),
        1 => few.clone().prop_map(Step::Disconnect),
        1 => few.clone().prop_map(Step::PutSubnet),
        1 => few.clone().prop_map(Step::DeleteSubnet),
        1 => (few, any::<bool>()).prop_map(|(at, service)| Step::RemoveBehindTheBack(at, service)),
        4 => (1..800u16).prop_map(Step::Wait),
    ]
}

fn service(at: u8) -> String {
    format!("{NET}/privateLinkServices/svc{at}")
}

fn endpoint(at: u8) -> String {
    format!("{GUEST_NET}/privateEndpoints/pe{at}")
}

fn subnet(at: u8) -> String {
    format!("{NET}/virtualNetworks/vnet/subnets/s{at}")
}

fn first_connection(sim: &mut Sim, at: u8) -> Option<String> {
    let got = sim.get(&service(at));
    let id = &got.body["properties"]["privateEndpointConnections"][0]["id"];
    id.as_str().map(str::to_owned)
}

/// Carries out a step; answers the tag that a successful PUT of a service has left.
fn carry_out(sim: &mut Sim, step: &Step) -> Option<(String, Value)> {
    match *step {
        Step::PutService(at, tag) => {
            let mut body = pls();
            body["tags"] = json!({"n": tag.to_string()});
            body["properties"]["enableProxyProtocol"] = json!(tag == 2);
            let put = sim.put(&service(at), body);
            return (put.status < 300).then(|| (service(at), json!(tag.to_string())));
        }
        Step::DeleteService(at) => drop(sim.delete(&service(at))),
        Step::PutEndpoint(at, of) => {
            let alias = sim.get(&service(of)).body["properties"]["alias"]
                .as_str()
                .map(str::to_owned);
            sim.put(&endpoint(at), pe(&alias.unwrap_or_else(|| "none".into())));
        }
        Step::DeleteEndpoint(at) => drop(sim.delete(&endpoint(at))),
        Step::Decide(at, yes) => {
            if let Some(id) = first_connection(sim, at) {
                let status = if yes { "Approved" } else { "Rejected" };
                sim.put(
                    &id,
                    json!({"properties": {"privateLinkServiceConnectionState": {"status": status}}}),
                );
            }
        }
        Step::Disconnect(at) => {
            if let Some(id) = first_connection(sim, at) {
                sim.delete(&id);
            }
        }
        Step::PutSubnet(at) => drop(sim.put(
            &subnet(at),
            json!({"properties": {"addressPrefix": format!("10.0.2{at}.0/24")}}),
        )),
        Step::DeleteSubnet(at) => drop(sim.delete(&subnet(at))),
        Step::RemoveBehindTheBack(at, true) => {
            let _ = sim.world.delete_resource(sim.now, &service(at)).unwrap();
        }
        Step::RemoveBehindTheBack(at, false) => {
            let _ = sim.world.delete_resource(sim.now, &endpoint(at)).unwrap();
        }
        Step::Wait(seconds) => sim.wait(f64::from(seconds) / 10.0),
    }
    None
}

fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_ascii_lowercase()
}

fn check(sim: &mut Sim) -> Result<(), TestCaseError> {
    let all = sim.world.resources(sim.now, "");
    let by_id: BTreeMap<String, &Value> = all.iter().map(|resource| (text(&resource["id"]), resource)).collect();
    let running = sim.world.operations_in_flight(sim.now);
    let mut targets = BTreeSet::new();
    for operation in &running {
        prop_assert!(
            targets.insert(operation.resource.to_ascii_lowercase()),
            "two operations on {}",
            operation.resource
        );
        prop_assert!(
            operation
                .ends
                .as_ref()
                .is_some_and(|ends| ends.parse::<Timestamp>().unwrap() > sim.now),
            "{operation:?} is over"
        );
    }
    let mut addresses = BTreeSet::new();
    for (id, resource) in &by_id {
        let state = text(&resource["properties"]["provisioningState"]);
        let moving = ["updating", "deleting"].contains(&state.as_str());
        prop_assert_eq!(moving, targets.contains(id), "{} is {}", id, state);
        let parent = id.rsplitn(3, '/').nth(2).unwrap_or_default();
        if parent.contains("/providers/") && parent.split('/').count() > 8 {
            prop_assert!(by_id.contains_key(parent), "{id} has no parent");
        }
        if id.contains("/networkinterfaces/") {
            prop_assert!(
                by_id.contains_key(&text(&resource["managedBy"])),
                "{id} belongs to nobody"
            );
        }
        let made_by = text(&resource["properties"]["privateEndpoint"]["id"]);
        if id.contains("/privateendpointconnections/") {
            prop_assert!(by_id.contains_key(&made_by), "{id} is of a gone endpoint");
        }
        for list in ["ipConfigurations", "frontendIPConfigurations"] {
            for item in resource["properties"][list].as_array().into_iter().flatten() {
                let place = (
                    text(&item["properties"]["subnet"]["id"]),
                    text(&item["properties"]["privateIPAddress"]),
                );
                if !place.1.is_empty() {
                    prop_assert!(addresses.insert(place.clone()), "{place:?} is given twice");
                }
            }
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_after_every_step(steps in prop::collection::vec(step(), 1..60)) {
        let mut sim = Sim::with_switches(json!({"rejected_connections_block_delete": false}));
        for step in &steps {
            let written = carry_out(&mut sim, step);
            check(&mut sim)?;
            if let Some((path, tag)) = written {
                prop_assert_eq!(&sim.get(&path).body["tags"]["n"], &tag);
            }
        }
        // Everything that began has ended in the end.
        sim.wait(10_000.0);
        check(&mut sim)?;
        prop_assert!(sim.world.operations_in_flight(sim.now).is_empty());
    }

    #[test]
    fn saved_world_answers_alike(before in prop::collection::vec(step(), 1..20), after in prop::collection::vec(step(), 1..20)) {
        let mut sim = Sim::new();
        before.iter().for_each(|step| drop(carry_out(&mut sim, step)));
        let saved = serde_json::to_string(&sim.world).unwrap();
        let loaded: World = serde_json::from_str(&saved).unwrap();
        let mut other = Sim { world: loaded, now: sim.now, caller: sim.caller.clone() };
        for step in &after {
            carry_out(&mut sim, step);
            carry_out(&mut other, step);
        }
        prop_assert_eq!(serde_json::to_string(&sim.world).unwrap(), serde_json::to_string(&other.world).unwrap());
    }
}
