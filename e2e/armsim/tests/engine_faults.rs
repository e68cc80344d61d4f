//! Fault rules and budgets: what a caller sees when things go wrong on purpose.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use std::time::Duration;

use armsim::{DropWhen, Preset};
use network_support::{NET, SUB, Sim, pls, seed};
use serde_json::{Value, json};

fn service() -> String {
    format!("{NET}/privateLinkServices/svc")
}

fn rule(action: Value) -> Value {
    json!([{"match": {"method": "PUT", "path": "/privatelinkservices/"}, "do": action}])
}

#[test]
fn status_takes_the_place_of_the_call() {
    let mut sim = Sim::new();
    sim.faults(rule(
        json!({"status": 503, "code": "ServerBusy", "message": "later", "headers": {"Retry-After": 7}}),
    ));
    let got = sim.put(&service(), pls());
    assert_eq!(
        (got.refusal(), got.message(), got.header("retry-after")),
        ((503, "ServerBusy", "service"), "later", "7")
    );
    assert_eq!(sim.get(&service()).status, 404);
    assert_eq!(sim.put(&service(), pls()).status, 201, "the rule was for one call");
    assert_eq!(sim.azure.journal(0)[0].code.as_deref(), Some("ServerBusy"));
}

#[test]
fn gateway_timeout_may_hide_a_write() {
    let mut sim = Sim::new();
    sim.faults(rule(json!({"status": 504, "code": "GatewayTimeout", "drop": "after"})));
    let got = sim.put(&service(), pls());
    assert_eq!((got.status, got.code(), got.wire.drop), (504, "GatewayTimeout", None));
    assert_eq!(got.header("azure-asyncoperation"), "");
    assert_eq!(sim.get(&service()).state(), "Updating");
    assert!(sim.azure.journal(0)[0].changed);
}

#[test]
fn dropped_connection_before_or_after_the_effect() {
    let mut sim = Sim::new();
    sim.faults(rule(json!({"drop": "before"})));
    assert_eq!(sim.put(&service(), pls()).wire.drop, Some(DropWhen::Before));
    assert_eq!(sim.get(&service()).status, 404);
    sim.faults(rule(json!({"drop": "after", "delay_ms": 50})));
    let wire = sim.put(&service(), pls()).wire;
    assert_eq!(
        (wire.drop, wire.delay),
        (Some(DropWhen::After), Some(Duration::from_millis(50)))
    );
    assert_eq!(sim.get(&service()).status, 200);
}

#[test]
fn body_can_be_anything() {
    let mut sim = Sim::new();
    sim.faults(json!([{"match": {"times": 2}, "do": {"status": 200, "body": "<html>", "headers": {"content-type": "text/html"}, "cut_body_at": 3, "content_length": 99}}]));
    let got = sim.get(&service());
    assert_eq!(
        (got.status, got.header("content-type"), &got.body),
        (200, "text/html", &Value::Null)
    );
    assert_eq!((got.wire.cut_body_at, got.wire.content_length), (Some(3), Some(99)));
    sim.faults(json!([{"match": {}, "do": {"status": 409, "body": {"code": "X", "message": "unwrapped"}}}]));
    assert_eq!(sim.get(&service()).body, json!({"code": "X", "message": "unwrapped"}));
}

#[test]
fn operation_fails_with_the_given_error() {
    let mut sim = Sim::new();
    sim.faults(rule(json!({"operation": "fail", "operation_error": {"code": "SubnetIsFull", "message": "m", "details": [{"code": "D", "message": "n"}]}})));
    let put = sim.put(&service(), pls());
    assert_eq!((put.status, put.state()), (201, "Updating"));
    sim.wait(12.0);
    let poll = sim.poll(put.header("azure-asyncoperation"));
    assert_eq!(
        (poll.status, &poll.body["status"], poll.code(), poll.detail()),
        (200, &json!("Failed"), "SubnetIsFull", "D")
    );
    assert_eq!(sim.get(&service()).state(), "Failed");
    // The same PUT again is a real one and heals it.
    assert_eq!(sim.put(&service(), pls()).state(), "Updating");
    sim.wait(12.0);
    assert_eq!(sim.get(&service()).state(), "Succeeded");
}

#[test]
fn operation_is_superseded_hangs_or_is_lost() {
    let mut sim = Sim::new();
    sim.faults(rule(json!({"operation": "cancel"})));
    let put = sim.put(&service(), pls());
    sim.wait(12.0);
    let poll = sim.poll(put.header("azure-asyncoperation"));
    assert_eq!(
        (&poll.body["status"], poll.detail()),
        (&json!("Canceled"), "CanceledAndSupersededDueToAnotherOperation")
    );

    let mut sim = Sim::new();
    sim.faults(rule(json!({"operation": "hang"})));
    let put = sim.put(&service(), pls());
    sim.wait(1e6);
    assert_eq!(
        sim.poll(put.header("azure-asyncoperation")).body,
        json!({"status": "InProgress"})
    );
    assert_eq!(sim.get(&service()).state(), "Updating");
    assert_eq!(sim.azure.operations_in_flight(sim.now).len(), 1);

    let mut sim = Sim::new();
    sim.faults(rule(json!({"operation": "lost"})));
    let put = sim.put(&service(), pls());
    assert_eq!(sim.poll(put.header("azure-asyncoperation")).status, 404);
    sim.wait(12.0);
    assert_eq!(sim.get(&service()).state(), "Succeeded");
}

#[test]
fn polling_urls_and_pages_can_lie() {
    let mut sim = Sim::new();
    sim.faults(rule(json!({"poll_url": "https://evil.test/x"})));
    assert_eq!(
        sim.put(&service(), pls()).header("azure-asyncoperation"),
        "https://evil.test/x"
    );
    sim.faults(json!([{"match": {"times": 9}, "do": {"page_loop": true}}]));
    let page = sim.get(&format!("{NET}/privateLinkServices"));
    assert_eq!(page.body["value"].as_array().unwrap().len(), 1);
    let next = page.body["nextLink"].as_str().unwrap().to_owned();
    assert_eq!(sim.poll(&next).body, page.body);
}

#[test]
fn rules_of_one_principal_do_not_touch_another() {
    let mut sim = Sim::new();
    sim.faults(json!([{"match": {"principal": "somebody"}, "do": {"status": 500}}]));
    assert_eq!(sim.get(&service()).status, 404);
    let client = sim.caller.client_id.to_uppercase();
    sim.faults(json!([{"match": {"principal": client}, "do": {"status": 500}}]));
    assert_eq!(sim.get(&service()).status, 500);
    sim.faults(json!([{"match": {"times": 9}, "do": {"status": 500}}]));
    sim.azure.clear_faults();
    assert_eq!(sim.get(&service()).status, 404);
}

#[test]
fn too_many_reads_are_throttled_until_tokens_are_back() {
    let mut json = seed();
    json["throttle"] = json!({"reads": {"bucket": 5, "per_s": 1}});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let list = format!("{NET}/privateLinkServices");
    for left in ["4", "3", "2", "1", "0"] {
        let got = sim.get(&list);
        assert_eq!(got.header("x-ms-ratelimit-remaining-subscription-reads"), left);
        assert!(
            !got.header("x-ms-ratelimit-remaining-subscription-global-reads")
                .is_empty()
        );
    }
    let refused = sim.get(&list);
    assert_eq!(refused.refusal(), (429, "SubscriptionRequestsThrottled", "gateway"));
    assert_eq!(refused.header("retry-after"), "1");
    assert!(
        refused
            .message()
            .contains(&format!("Number of 'read' requests for subscription '{SUB}' actor")),
        "{}",
        refused.message()
    );
    // Coming back too early starts the wait again.
    sim.wait(0.6);
    assert_eq!(sim.get(&list).status, 429);
    sim.wait(0.6);
    assert_eq!(sim.get(&list).status, 429);
    sim.wait(1.0);
    assert_eq!(sim.get(&list).status, 200);
    // Writes have a bucket of their own.
    assert_eq!(
        sim.put(&service(), pls())
            .header("x-ms-ratelimit-remaining-subscription-writes"),
        "199"
    );
}

#[test]
fn another_principal_has_its_own_bucket() {
    let mut json = seed();
    json["throttle"] = json!({"reads": {"bucket": 1, "per_s": 1}});
    json["roles"]
        .as_array_mut()
        .unwrap()
        .push(json!({"object_id": "two", "scope": "/", "actions": ["*/read"]}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let list = format!("{NET}/privateLinkServices");
    assert_eq!((sim.get(&list).status, sim.get(&list).status), (200, 429));
    sim.caller = network_support::caller("two");
    assert_eq!(sim.get(&list).status, 200);
}

#[test]
fn network_budget_is_five_minutes_long() {
    let mut json = seed();
    json["throttle"] = json!({"network_writes_5min": 2});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    assert_eq!(
        (sim.put(&service(), pls()).status, sim.put(&service(), pls()).status),
        (201, 200)
    );
    sim.wait(100.0);
    let refused = sim.put(&service(), pls());
    assert_eq!(
        (refused.refusal(), refused.header("retry-after")),
        ((429, "TooManyRequests", "service"), "200")
    );
    assert_eq!(sim.get(&service()).status, 200);
    sim.wait(200.0);
    assert_eq!(sim.put(&service(), pls()).status, 200);
}

#[test]
fn dns_budget_takes_the_place_of_arms_header() {
    let mut json = seed();
    json["throttle"] = json!({"dns_reads_5min": 2});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let list = format!("{NET}/privateDnsZones");
    let got = sim.get(&list);
    assert_eq!(
        got.header("x-ms-ratelimit-remaining-subscription-resource-requests"),
        "1"
    );
    assert_eq!(got.header("x-ms-ratelimit-remaining-subscription-reads"), "");
    assert_eq!(
        got.header("x-ms-ratelimit-remaining-subscription-resource-entities-read"),
        "60000"
    );
    sim.get(&list);
    assert_eq!(sim.get(&list).refusal(), (429, "TooManyRequests", "service"));
}

#[test]
fn disabled_throttling_still_counts() {
    let mut json = seed();
    json["throttle"] = json!({"enabled": false, "reads": {"bucket": 1, "per_s": 0.001}, "network_reads_5min": 1});
    let mut sim = Sim::seeded(json, Preset::Recorded);
    for _ in 0..5 {
        let got = sim.get(&format!("{NET}/privateLinkServices"));
        assert_eq!(
            (got.status, got.header("x-ms-ratelimit-remaining-subscription-reads")),
            (200, "0")
        );
    }
}

#[test]
fn fast_preset_differs_in_time_only() {
    let mut sim = Sim::seeded(seed(), Preset::Fast);
    let put = sim.put(&service(), pls());
    assert_eq!(
        (put.status, put.state(), put.header("retry-after")),
        (201, "Updating", "1")
    );
    let same = |sim: &mut Sim| sim.get(&service()).state().to_owned();
    assert_eq!(same(&mut sim), "Updating");
    sim.wait(0.1);
    assert_eq!(sim.poll(put.header("azure-asyncoperation")).header("retry-after"), "1");
    sim.wait(0.9);
    assert_eq!(same(&mut sim), "Succeeded");
    let done = sim.poll(put.header("azure-asyncoperation"));
    assert_eq!(
        (&done.body, done.header("retry-after")),
        (&json!({"status": "Succeeded"}), "")
    );
}
