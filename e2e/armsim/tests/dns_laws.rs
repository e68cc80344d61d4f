//! Laws of private DNS over random sequences of calls and waits.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod dns_support;

use std::collections::BTreeMap;

use dns_support::{Sim, a, link_to, seed, vnet, zone};
use proptest::prelude::*;
use serde_json::{Value, json};

/// One step of a caller. Numbers name zones, links, record sets and VNets.
#[derive(Clone, Debug)]
enum Step {
    PutZone(u8, u8),
    DeleteZone(u8),
    PutLink(u8, u8, u8),
    DeleteLink(u8, u8),
    PutRecord(u8, u8, u8),
    DeleteRecord(u8, u8),
    Wait(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => (0..2u8, any::<u8>()).prop_map(|(zone, tag)| Step::PutZone(zone, tag)),
        1 => (0..2u8).prop_map(Step::DeleteZone),
        3 => (0..2u8, 0..2u8, any::<u8>()).prop_map(|(zone, link, tag)| Step::PutLink(zone, link, tag)),
        2 => (0..2u8, 0..2u8).prop_map(|(zone, link)| Step::DeleteLink(zone, link)),
        3 => (0..2u8, 0..3u8, any::<u8>()).prop_map(|(zone, name, value)| Step::PutRecord(zone, name, value)),
        1 => (0..2u8, 0..3u8).prop_map(|(zone, name)| Step::DeleteRecord(zone, name)),
        4 => (0..60u8).prop_map(Step::Wait),
    ]
}

fn zone_path(number: u8) -> String {
    zone(&format!("z{number}.com"))
}

fn link_path(zone: u8, link: u8) -> String {
    format!("{}/virtualNetworkLinks/l{link}", zone_path(zone))
}

fn record_path(zone: u8, name: u8) -> String {
    format!("{}/A/n{name}", zone_path(zone))
}

/// An accepted operation and how often its end was seen.
struct Accepted {
    url: String,
    path: String,
    number: usize,
    /// Nothing for a deletion.
    wanted: Option<Value>,
    end: Option<Value>,
}

#[derive(Default)]
struct Run {
    accepted: Vec<Accepted>,
    records: BTreeMap<String, Value>,
}

impl Run {
    fn step(&mut self, sim: &mut Sim, step: &Step) {
        match step {
            Step::PutZone(zone, tag) => {
                let tags = json!({"t": tag.to_string()});
                self.write(
                    sim,
                    "PUT",
                    zone_path(*zone),
                    json!({"location": "global", "tags": tags}),
                );
            }
            Step::DeleteZone(zone) => self.write(sim, "DELETE", zone_path(*zone), Value::Null),
            Step::PutLink(zone, link, tag) => {
                let mut body = link_to(&vnet(&format!("vnet{}", link + 1)));
                body["tags"] = json!({"t": tag.to_string()});
                self.write(sim, "PUT", link_path(*zone, *link), body);
            }
            Step::DeleteLink(zone, link) => self.write(sim, "DELETE", link_path(*zone, *link), Value::Null),
            Step::PutRecord(zone, name, value) => {
                let path = record_path(*zone, *name);
                let got = sim.put(&path, a(&[&format!("10.0.0.{value}")]));
                if got.status != 404 {
                    self.records.insert(path, got.body);
                }
            }
            Step::DeleteRecord(zone, name) => {
                let path = record_path(*zone, *name);
                sim.delete(&path);
                self.records.remove(&path);
            }
            Step::Wait(seconds) => sim.wait(i64::from(*seconds)),
        }
    }

    fn write(&mut self, sim: &mut Sim, method: &str, path: String, body: Value) {
        let wanted = Some(body["tags"].clone()).filter(|_| method == "PUT");
        let got = sim.call(method, &path, body, &[]);
        if got.status != 202 {
            assert!(
                [204, 404, 409].contains(&got.status),
                "{method} {path}: {} {}",
                got.status,
                got.body
            );
            return;
        }
        let url = got.header("azure-asyncoperation").unwrap().to_owned();
        self.accepted.push(Accepted {
            url,
            path,
            number: self.accepted.len(),
            wanted,
            end: None,
        });
    }

    /// Polls everything: an end, once seen, never changes.
    fn poll(&mut self, sim: &mut Sim) {
        for accepted in &mut self.accepted {
            let poll = sim.get(&accepted.url);
            match (&accepted.end, poll.status) {
                (None, 202) => assert_eq!(poll.body["status"], "InProgress"),
                (None, 200) => accepted.end = Some(poll.body),
                (Some(end), 200) => assert_eq!(*end, poll.body, "an operation ends once"),
                (_, status) => panic!("{}: {status} {}", accepted.path, poll.body),
            }
        }
    }

    /// What the newest write of a path that took effect left there.
    fn last_writes(&self) -> BTreeMap<&str, &Accepted> {
        let succeeded = |accepted: &&Accepted| accepted.end.as_ref().unwrap()["status"] == "Succeeded";
        self.accepted
            .iter()
            .filter(succeeded)
            .map(|accepted| (accepted.path.as_str(), accepted))
            .collect()
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_get_shows_the_last_write_and_every_operation_ends_once(steps in prop::collection::vec(step(), 1..60)) {
        let mut sim = Sim::new();
        let mut run = Run::default();
        for step in &steps {
            run.step(&mut sim, step);
            if matches!(step, Step::Wait(_)) {
                run.poll(&mut sim);
            }
        }
        sim.wait(120);
        run.poll(&mut sim);
        let now = sim.now;
        prop_assert!(sim.world.operations_in_flight(now).is_empty());
        prop_assert!(run.accepted.iter().all(|accepted| accepted.end.is_some()));
        for (path, last) in run.last_writes() {
            let shown = sim.get(path);
            match &last.wanted {
                None => prop_assert_eq!(shown.status, 404, "{} after operation {}", path, last.number),
                Some(tags) if shown.status == 200 => prop_assert_eq!(&shown.body["tags"], tags),
                // Only a zone takes others with it.
                Some(_) => prop_assert!(path.contains("virtualNetworkLinks"), "{} is gone", path),
            }
        }
        check_children(&mut sim)?;
    }

    #[test]
    fn a_record_set_shows_its_last_write_while_its_zone_stays(steps in prop::collection::vec(step(), 1..60)) {
        let mut sim = Sim::new();
        sim.make_zone("z0.com");
        sim.make_zone("z1.com");
        let mut run = Run::default();
        for step in steps.iter().filter(|step| !matches!(step, Step::DeleteZone(_))) {
            run.step(&mut sim, step);
            for zone in 0..2 {
                for name in 0..3 {
                    let path = record_path(zone, name);
                    let shown = sim.get(&path);
                    match run.records.get(&path) {
                        Some(written) => prop_assert_eq!(&shown.body, written),
                        None => prop_assert_eq!(shown.status, 404),
                    }
                }
            }
        }
    }

    #[test]
    fn a_world_that_was_saved_goes_on_as_it_would_have(
        before in prop::collection::vec(step(), 1..30),
        after in prop::collection::vec(step(), 1..30),
    ) {
        let mut sim = Sim::with(seed());
        let mut run = Run::default();
        for step in &before {
            run.step(&mut sim, step);
        }
        let mut loaded = Sim::with(seed());
        loaded.world = serde_json::from_value(serde_json::to_value(&sim.world).unwrap()).unwrap();
        loaded.now = sim.now;
        let mut again = Run::default();
        for step in &after {
            run.step(&mut sim, step);
            again.step(&mut loaded, step);
        }
        let now = sim.now;
        prop_assert_eq!(sim.world.resources(now, "/"), loaded.world.resources(now, "/"));
        prop_assert_eq!(serde_json::to_value(&sim.world).unwrap(), serde_json::to_value(&loaded.world).unwrap());
    }
}

/// A zone that is gone has left nothing, and no two zones of one name share a VNet.
fn check_children(sim: &mut Sim) -> Result<(), TestCaseError> {
    let now = sim.now;
    let all = sim.world.resources(now, "/");
    let ids: Vec<&str> = all.iter().filter_map(|resource| resource["id"].as_str()).collect();
    for id in ids.iter().filter(|id| id.contains("/privateDnsZones/")) {
        let zone = id.split('/').take(9).collect::<Vec<_>>().join("/");
        prop_assert!(ids.contains(&zone.as_str()), "{} without its zone", id);
    }
    for zone in all
        .iter()
        .filter(|resource| resource["type"] == "Microsoft.Network/privateDnsZones")
    {
        let below = format!("{}/", zone["id"].as_str().unwrap());
        let nested: Vec<&&str> = ids.iter().filter(|id| id.starts_with(&below)).collect();
        let links = nested.iter().filter(|id| id.contains("/virtualNetworkLinks/")).count();
        prop_assert_eq!(&zone["properties"]["numberOfVirtualNetworkLinks"], &json!(links));
        prop_assert_eq!(&zone["properties"]["numberOfRecordSets"], &json!(nested.len() - links));
        prop_assert_eq!(&zone["properties"]["provisioningState"], "Succeeded");
    }
    Ok(())
}
