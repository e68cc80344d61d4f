//! A process that dies after every single effect, or never hears of it: the end is the same, and nothing is left.

use hyperlink::azure::resource::Resource;
use rstest::rstest;
use serde_json::{Value, json};

use crate::desired::{endpoint, link_service, record, subnet, zone, zone_link};
use crate::sim::Sim;

/// What Azure has, without what differs from time to time.
pub(crate) fn state(sim: &Sim) -> Vec<Value> {
    let all = sim.azure.world().resources(sim.azure.now(), "");
    let known = |body: &Value| body["id"].as_str().unwrap().to_owned();
    let mut observed: Vec<(String, Value)> = all
        .iter()
        .map(|body| {
            let properties = &body["properties"];
            let confirm = [
                "provisioningState",
                "virtualNetworkLinkState",
                "aRecords",
                "ttl",
                "addressPrefix",
                "visibility",
            ];
            let confirm: Value = confirm.iter().map(|name| properties[name].clone()).collect();
            // Interfaces and connections have random names.
            let id = known(body).split(".nic.").next().unwrap().to_owned();
            let id = id.split("private-router-pe.").next().unwrap().to_owned();
            (id, json!([body["tags"], confirm]))
        })
        .collect();
    observed.sort_by(|a, b| a.0.cmp(&b.0));
    observed.into_iter().map(|(id, body)| json!([id, body])).collect()
}

async fn come(sim: &mut Sim) -> String {
    sim.bring(&subnet()).await;
    let alias = sim.alias().await;
    let endpoint = endpoint(&alias);
    let rest: [&dyn Resource; 4] = [&endpoint, &zone(), &zone_link(), &record("api")];
    for desired in rest {
        sim.bring(desired).await;
    }
    alias
}

async fn go(sim: &mut Sim, alias: &str) {
    let endpoint = endpoint(alias);
    let all: [&dyn Resource; 6] = [
        &record("api"),
        &zone_link(),
        &zone(),
        &endpoint,
        &link_service(),
        &subnet(),
    ];
    for desired in all {
        sim.restart();
        sim.take_away(desired).await;
    }
}

async fn undisturbed() -> (Vec<Value>, Vec<Value>) {
    let mut sim = Sim::new();
    let empty = state(&sim);
    let alias = come(&mut sim).await;
    let full = state(&sim);
    go(&mut sim, &alias).await;
    assert_eq!(state(&sim), empty);
    (empty, full)
}

#[tokio::test(start_paused = true)]
async fn process_that_dies_after_every_effect() {
    let (empty, full) = undisturbed().await;
    let mut sim = Sim::new();
    sim.dies = true;
    let alias = come(&mut sim).await;
    assert_eq!(state(&sim), full);
    go(&mut sim, &alias).await;
    assert_eq!(state(&sim), empty);
}

/// One write of the whole life, whichever it is, goes wrong, and the process dies with it or lives on.
#[rstest]
#[case::answer_is_lost(json!({"drop": "after"}), false)]
#[case::answer_is_lost_and_all_memory(json!({"drop": "after"}), true)]
#[case::request_is_lost(json!({"drop": "before"}), false)]
#[case::timeout_though_applied(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"}), false)]
#[tokio::test(start_paused = true)]
async fn any_one_write_goes_wrong(#[case] action: Value, #[case] dies: bool, #[values("PUT", "DELETE")] method: &str) {
    let (empty, full) = undisturbed().await;
    for nth in 1.. {
        let mut sim = Sim::new();
        sim.dies = dies;
        sim.faults(&[(json!({"method": method, "from": nth}), action.clone())]);
        let alias = come(&mut sim).await;
        assert_eq!(state(&sim), full, "{method} {nth}");
        go(&mut sim, &alias).await;
        assert_eq!(state(&sim), empty, "{method} {nth}");
        if sim.azure.sent().iter().filter(|call| call.verb() == method).count() < nth {
            assert!(nth > 6, "the fault never came");
            return;
        }
    }
}
