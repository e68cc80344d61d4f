//! Answers that are not as they should be: endless lists, foreign addresses, pages of a proxy, half a body.

use hyperlink::azure::arm::error::ArmError;
use hyperlink::azure::arm::id::SubscriptionId;
use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::plan::Outcome;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::{Value, json};

use crate::desired::{GUEST_SUB, link_service, record, subnet, zone, zone_link};
use crate::sim::{Sim, ensure_absent};

async fn list(sim: &Sim, part: &str) -> Result<Vec<Value>, ArmError> {
    let subscription = SubscriptionId::parse(GUEST_SUB).unwrap();
    let path = format!("{}/{part}", zone().id);
    sim.client
        .list(Reconcile::begin(), Kind::RecordSet, &subscription, &path)
        .await
}

fn refused(result: Result<Vec<Value>, ArmError>) -> (Class, String) {
    let error = result.unwrap_err();
    (error.class, error.code)
}

fn only_own(sim: &Sim) -> bool {
    let sent = sim.azure.sent();
    sent.iter()
        .all(|call| call.request.uri().to_string().starts_with("https://arm.test/"))
}

async fn with_zone() -> Sim {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.forget_calls();
    sim
}

#[tokio::test(start_paused = true)]
async fn list_of_several_pages_is_read_to_its_end() {
    let sim = with_zone().await;
    for n in 0..250 {
        let name = format!("r{n}");
        sim.install(&record(&name).id, record(&name).body(None));
    }
    let names = |all: Vec<Value>| -> std::collections::BTreeSet<String> {
        all.iter()
            .map(|item| item["name"].as_str().unwrap().to_owned())
            .collect()
    };
    let all = list(&sim, "ALL").await.unwrap();
    assert_eq!((all.len(), names(all).len()), (251, 251), "and the SOA");
    assert_eq!(sim.calls(), "GET GET GET");
    assert_eq!(sim.correlation_ids().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn page_that_leads_to_itself_ends_the_list() {
    let sim = with_zone().await;
    sim.faults(&[(json!({"times": 2_000}), json!({"page_loop": true}))]);
    assert_eq!(refused(list(&sim, "ALL").await), (Class::Down, "EndlessList".into()));
    assert_eq!(sim.calls(), "GET");
}

#[tokio::test(start_paused = true)]
async fn pages_that_lead_to_each_other_end_the_list() {
    let sim = with_zone().await;
    let page = |next: &str| json!({"body": {"value": [], "nextLink": format!("https://arm.test{}/{next}?api-version=2024-06-01", zone().id)}});
    sim.faults(&[
        (json!({"path": "/ALL$", "times": 2_000}), page("A")),
        (json!({"path": "/A$", "times": 2_000}), page("ALL")),
    ]);
    assert_eq!(refused(list(&sim, "ALL").await), (Class::Down, "EndlessList".into()));
    assert_eq!(sim.calls(), "GET GET");
}

#[rstest]
#[case::of_many_items(json!(vec![json!({}); 9_000]), 3)]
#[case::of_large_items(json!(["x".repeat(6 << 20)]), 3)]
#[tokio::test(start_paused = true)]
async fn list_without_end_is_given_up_before_it_fills_the_memory(#[case] items: Value, #[case] calls: usize) {
    let sim = with_zone().await;
    let pages = ["ALL", "A", "AAAA", "CNAME", "MX", "TXT"];
    let page = |of: &[&str]| {
        let next = format!("https://arm.test{}/{}?api-version=2024-06-01", zone().id, of[1]);
        (
            json!({"path": format!("/{}$", of[0])}),
            json!({"body": {"value": items, "nextLink": next}}),
        )
    };
    sim.faults(&pages.windows(2).map(page).collect::<Vec<_>>());
    assert_eq!(refused(list(&sim, "ALL").await), (Class::Invalid, "ListTooLong".into()));
    assert_eq!(sim.azure.sent().len(), calls);
}

#[rstest]
#[case::other_host("https://evil.test/x")]
#[case::other_scheme("http://arm.test/x")]
#[case::other_port("https://arm.test:8443/x")]
#[case::our_host_as_user("https://arm.test@evil.test/x")]
#[case::our_host_as_prefix("https://arm.test.evil.test/x")]
#[case::user_on_our_host("https://user@arm.test/x")]
#[case::password_on_our_host("https://:secret@arm.test/x")]
#[case::longer_than_a_request_can_carry(&format!("https://arm.test/{}", "x".repeat(70_000)))]
#[case::no_scheme("//evil.test/x")]
#[case::no_address("evil")]
#[tokio::test(start_paused = true)]
async fn foreign_address_is_never_called(#[case] url: &str) {
    let mut sim = with_zone().await;
    sim.fault("GET", json!({"body": {"value": [], "nextLink": url}}));
    let (class, code) = refused(list(&sim, "ALL").await);
    assert_eq!(
        (class, code.as_str(), sim.calls()),
        (Class::Invalid, "ForeignHost", "GET".into())
    );
    // As the URL of an operation it is not polled, and the accepted write succeeds nevertheless.
    for desired in [&link_service() as &dyn Resource<Arm>, &zone_link()] {
        for (method, rule) in [("PUT", ensure_present as crate::sim::Rule), ("DELETE", ensure_absent)] {
            sim.fault(method, json!({"poll_url": url}));
            sim.until(rule, desired).await;
            tokio::time::sleep(std::time::Duration::from_secs(7_200)).await;
        }
    }
    assert!(only_own(&sim));
}

#[rstest]
#[case::page_of_a_proxy(json!({"body": "<html>Sign in</html>", "headers": {"content-type": "text/html"}}), "NotJson")]
#[case::half_a_body(json!({"cut_body_at": 30}), "NotJson")]
#[case::no_list(json!({"body": {"values": []}}), "NotAList")]
#[case::list_that_is_no_array(json!({"body": {"value": {}}}), "NotAList")]
#[case::bare_array(json!({"body": []}), "NotAList")]
#[case::nothing(json!({"body": ""}), "NotAList")]
#[tokio::test(start_paused = true)]
async fn list_that_is_none(#[case] action: Value, #[case] code: &str) {
    let sim = with_zone().await;
    sim.fault("GET", action);
    assert_eq!(refused(list(&sim, "ALL").await), (Class::Down, code.into()));
}

#[rstest]
#[case::page_of_a_proxy(json!("<html>Sign in</html>"))]
#[case::half_a_body(json!("{\"id\": \"/subscriptions/"))]
#[case::nothing(json!(""))]
#[case::null(json!("null"))]
#[case::array(json!([]))]
#[case::other_object(json!({"message": "please sign in"}))]
#[case::other_resource(json!({"id": "/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/x/y", "properties": {}}))]
#[tokio::test(start_paused = true)]
async fn resource_that_is_none_is_neither_kept_nor_written(#[case] body: Value) {
    let recorded = hyperlink::azure::kinds::private_dns_zone::PrivateDnsZone { proven: true, ..zone() };
    let all_desired: [&dyn Resource<Arm>; 3] = [&subnet(), &link_service(), &recorded];
    for desired in all_desired {
        for rule in [ensure_present, ensure_absent] {
            let mut sim = Sim::new();
            sim.fault("GET", json!({"status": 200, "body": body}));
            let (step, outcome) = sim.reconcile(rule, desired).await;
            assert_eq!((step.verb, outcome), (Verb::Wait, Outcome::Nothing), "{desired:?}");
            let Observed::ReadFailed(error) = sim.read(desired).await else {
                panic!("read");
            };
            assert_eq!(error.class, Class::Down);
        }
    }
}

#[rstest]
#[case::page_of_a_proxy(json!({"body": "<html>"}))]
#[case::no_status(json!({"body": {"state": "Succeeded"}}))]
#[case::server_fails(json!({"status": 500}))]
#[tokio::test(start_paused = true)]
async fn state_of_an_operation_that_is_none_is_asked_again(#[case] action: Value) {
    let mut sim = Sim::new();
    sim.faults(&[
        (json!({"method": "PUT"}), json!({"headers": {"retry-after": "1"}})),
        (json!({"path": "privateDnsOperation"}), action),
    ]);
    sim.until_present(&zone()).await;
    assert_eq!(sim.writes(), 1, "{}", sim.calls());
}

#[tokio::test(start_paused = true)]
async fn unknown_provisioning_states_mean_that_an_operation_runs() {
    let mut sim = Sim::new();
    sim.faults(&[
        (json!({"method": "PUT"}), json!({"headers": {"retry-after": "1"}})),
        (
            json!({"path": "privateDnsOperation"}),
            json!({"body": {"status": "Pondering"}}),
        ),
    ]);
    sim.until_present(&zone()).await;
    assert_eq!(sim.calls(), "GET PUT GET POLL GET");
}
