//! A process dies after every single effect, or loses its answer: the result is the same, and nothing is left.

use hyperlink::azure::cloud::Arm;
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::{Value, json};

use crate::desired::{endpoint, link_service, record, subnet, zone, zone_link};
use crate::sim::Sim;

/// What Azure has, without what differs from one run to the next.
pub(crate) fn state(sim: &Sim) -> Vec<Value> {
    let all = sim.azure.world().resources(sim.azure.now(), "");
    let known = |body: &Value| body["id"].as_str().unwrap().to_owned();
    let mut resources: Vec<(String, Value)> = all
        .iter()
        .map(|body| {
            let properties = &body["properties"];
            let compared = [
                "provisioningState",
                "virtualNetworkLinkState",
                "aRecords",
                "ttl",
                "addressPrefix",
                "visibility",
            ];
            let compared: Value = compared.iter().map(|name| properties[name].clone()).collect();
            // Interfaces and connections have random names.
            let id = known(body).split(".nic.").next().unwrap().to_owned();
            let id = id.split("private-router-pe.").next().unwrap().to_owned();
            (id, json!([body["tags"], compared]))
        })
        .collect();
    resources.sort_by(|a, b| a.0.cmp(&b.0));
    resources.into_iter().map(|(id, body)| json!([id, body])).collect()
}

async fn create_all(sim: &mut Sim) -> String {
    sim.until_present(&subnet()).await;
    let alias = sim.alias().await;
    let endpoint = endpoint(&alias);
    let more: [&dyn Resource<Arm>; 4] = [&endpoint, &zone(), &zone_link(), &record("api")];
    for desired in more {
        sim.until_present(desired).await;
    }
    alias
}

async fn delete_all(sim: &mut Sim, alias: &str) {
    let endpoint = endpoint(alias);
    let all: [&dyn Resource<Arm>; 6] = [
        &record("api"),
        &zone_link(),
        &zone(),
        &endpoint,
        &link_service(),
        &subnet(),
    ];
    for desired in all {
        sim.restart();
        sim.until_absent(desired).await;
    }
}

async fn undisturbed() -> (Vec<Value>, Vec<Value>) {
    let mut sim = Sim::new();
    let empty = state(&sim);
    let alias = create_all(&mut sim).await;
    let full = state(&sim);
    delete_all(&mut sim, &alias).await;
    assert_eq!(state(&sim), empty);
    (empty, full)
}

#[tokio::test(start_paused = true)]
async fn process_that_dies_after_every_effect() {
    let (empty, full) = undisturbed().await;
    let mut sim = Sim::new();
    sim.dies = true;
    let alias = create_all(&mut sim).await;
    assert_eq!(state(&sim), full);
    delete_all(&mut sim, &alias).await;
    assert_eq!(state(&sim), empty);
}

/// Any one write of the whole life fails, and the process dies with it or continues.
#[rstest]
#[case::answer_is_lost(json!({"drop": "after"}), false)]
#[case::answer_is_lost_and_all_memory(json!({"drop": "after"}), true)]
#[case::request_is_lost(json!({"drop": "before"}), false)]
#[case::timeout_though_applied(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}), false)]
#[tokio::test(start_paused = true)]
async fn any_one_write_fails(#[case] action: Value, #[case] dies: bool, #[values("PUT", "DELETE")] method: &str) {
    let (empty, full) = undisturbed().await;
    for nth in 1.. {
        let mut sim = Sim::new();
        sim.dies = dies;
        sim.faults(&[(json!({"method": method, "from": nth}), action.clone())]);
        let alias = create_all(&mut sim).await;
        assert_eq!(state(&sim), full, "{method} {nth}");
        delete_all(&mut sim, &alias).await;
        assert_eq!(state(&sim), empty, "{method} {nth}");
        if sim.azure.sent().iter().filter(|call| call.verb() == method).count() < nth {
            assert!(nth > 6, "the fault never came");
            return;
        }
    }
}
