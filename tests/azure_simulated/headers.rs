//! What each request carries, and what the headers of answers mean.

use std::collections::BTreeSet;
use std::time::{Duration, SystemTime};

use hyperlink::azure::arm::id::SubscriptionId;
use hyperlink::azure::arm::ports::CallVerb;
use hyperlink::azure::cloud::Arm;
use hyperlink::azure::kinds::Kind;
use hyperlink::azure::kinds::private_dns_zone::PrivateDnsZone;
use hyperlink::engine::client::Reconcile;
use hyperlink::engine::plan::ensure_present;
use hyperlink::engine::resource::Resource;
use jiff::Timestamp;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::{NET, SUB, endpoint, id, link_service, record, subnet, zone, zone_link};
use crate::seed::seed;
use crate::sim::{Sim, ensure_absent};

/// Everything is created and deleted once.
async fn whole_life(sim: &mut Sim) {
    let alias = sim.alias().await;
    let endpoint = endpoint(&alias);
    let all: [&dyn Resource<Arm>; 6] = [
        &subnet(),
        &link_service(),
        &endpoint,
        &zone(),
        &zone_link(),
        &record("api"),
    ];
    for desired in all {
        sim.until_present(desired).await;
    }
    sim.drift(&zone_link().id, "/properties/registrationEnabled", json!(true));
    sim.drift(&record("api").id, "/properties/ttl", json!(1));
    sleep(Duration::from_secs(7_200)).await;
    sim.until_present(&zone_link()).await;
    sim.until_present(&record("api")).await;
    for at in [5, 4, 3, 2, 1, 0] {
        sleep(Duration::from_secs(7_200)).await;
        sim.until_absent(all[at]).await;
    }
}

#[tokio::test(start_paused = true)]
async fn calls_of_one_reconcile_share_an_id_and_reconciles_differ() {
    let mut sim = Sim::new();
    let mut ids = BTreeSet::new();
    for _ in 0..3 {
        sim.forget_calls();
        sim.reconcile(ensure_present, &zone()).await;
        let of_reconcile = sim.correlation_ids();
        assert_eq!(of_reconcile.len(), 1);
        ids.extend(of_reconcile);
        sleep(Duration::from_secs(2)).await;
        sim.wait_until_due(&zone()).await;
    }
    assert_eq!(ids.len(), 3);
    assert!(ids.iter().all(|id| id.len() == 36));
}

#[tokio::test(start_paused = true)]
async fn requests_carry_their_kinds_version_and_dns_preconditions() {
    let mut sim = Sim::new();
    whole_life(&mut sim).await;
    let mut conditions = BTreeSet::new();
    for call in sim.azure.sent().iter() {
        let (path, query) = (call.request.uri().path(), call.request.uri().query().unwrap());
        let dns = path.contains("privateDns");
        let version = if dns { "2024-06-01" } else { "2024-05-01" };
        assert!(query.contains(&format!("api-version={version}")), "{path}?{query}");
        let (matches, none) = (call.header("if-match"), call.header("if-none-match"));
        assert!(dns || (matches, none) == (None, None), "{path}");
        if call.verb() == "PUT" && dns {
            conditions.insert((matches.is_some(), none == Some("*")));
        }
        assert_eq!(call.request.body().is_empty(), call.verb() != "PUT");
    }
    // A new resource, and a changed one; never both, never neither.
    assert_eq!(conditions, BTreeSet::from([(false, true), (true, false)]));
}

#[tokio::test(start_paused = true)]
async fn nothing_is_left_or_counted_as_under_way_after_a_whole_life() {
    let mut sim = Sim::new();
    let before = sim.azure.world().resources(sim.azure.now(), "").len();
    whole_life(&mut sim).await;
    assert_eq!(sim.azure.world().resources(sim.azure.now(), "").len(), before);
    assert_eq!(sim.in_flight(), 0);
    assert!(
        sim.counted
            .budgets
            .lock()
            .unwrap()
            .contains_key("subscription-resource-requests")
    );
    let calls = sim.counted.calls.lock().unwrap();
    assert_eq!(calls.len(), sim.azure.sent().len());
    let gone = calls.iter().filter(|call| call.class.is_some());
    assert!(
        gone.into_iter()
            .all(|call| call.status == 404 && call.verb == CallVerb::Get)
    );
}

#[tokio::test(start_paused = true)]
async fn record_that_changed_since_the_read_is_not_overwritten() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.until_present(&record("api")).await;
    sim.drift(&record("api").id, "/properties/ttl", json!(1));
    let observed = sim.shown(&record("api").id).unwrap();
    let step = ensure_present(&record("api"), &hyperlink::azure::cloud::Observed::Found(observed));
    sim.drift(&record("api").id, "/properties/ttl", json!(2));
    let outcomes = hyperlink::engine::execute::run(&[step], &sim.client, &sim.observations, Reconcile::begin()).await;
    assert!(
        matches!(&outcomes[0], hyperlink::azure::plan::Outcome::Failed(error) if error.status == 412),
        "{outcomes:?}"
    );
    assert_eq!(sim.shown(&record("api").id).unwrap()["properties"]["ttl"], 2);
}

#[rstest]
#[case::seconds(json!("7"), Some(7))]
#[case::padded_seconds(json!(" 7 "), Some(7))]
#[case::more_than_an_hour_is_an_hour(json!("86400"), Some(3_600))]
#[case::zero(json!("0"), None)]
#[case::negative(json!("-3"), None)]
#[case::fraction(json!("1.5"), None)]
#[case::garbage(json!("soon"), None)]
#[case::beyond_all_numbers(json!("99999999999999999999999"), None)]
#[case::past_date(json!("Sun, 06 Nov 1994 08:49:37 GMT"), None)]
#[case::broken_date(json!("Sun, 99 Nov 2094 08:49:37 GMT"), None)]
#[tokio::test(start_paused = true)]
async fn retry_after(#[case] value: Value, #[case] seconds: Option<u64>) {
    let sim = Sim::new();
    sim.fault("PUT", json!({"headers": {"retry-after": value}}));
    let desired = zone();
    let condition = hyperlink::engine::client::Condition::Any;
    let answer = sim
        .client
        .put(
            Reconcile::begin(),
            Kind::PrivateDnsZone,
            &desired.id,
            &desired.body(None),
            &condition,
        )
        .await;
    assert_eq!(answer.unwrap().retry_after, seconds.map(Duration::from_secs));
}

#[tokio::test(start_paused = true)]
async fn retry_after_as_a_date_is_the_time_until_then() {
    let sim = Sim::new();
    // Dates are compared with the real clock, whose seconds cannot be stopped.
    let then = Timestamp::try_from(SystemTime::now() + Duration::from_secs(120)).unwrap();
    let date = then.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
    sim.fault("PUT", json!({"headers": {"retry-after": date}}));
    let desired = zone();
    let condition = hyperlink::engine::client::Condition::Any;
    let answer = sim
        .client
        .put(
            Reconcile::begin(),
            Kind::PrivateDnsZone,
            &desired.id,
            &desired.body(None),
            &condition,
        )
        .await;
    let wait = answer.unwrap().retry_after.unwrap();
    assert!((60..=120).contains(&wait.as_secs()), "{wait:?}");
}

#[tokio::test(start_paused = true)]
async fn what_azure_asks_to_wait_is_waited_while_an_operation_runs() {
    let mut sim = Sim::new();
    sim.fault("PUT", json!({"headers": {"retry-after": "123"}}));
    sim.reconcile(ensure_present, &link_service()).await;
    assert_eq!(sim.due_in(&link_service()), 60, "however long Azure asks for");
    sim.fault("DELETE", json!({"headers": {"retry-after": "45"}}));
    sim.wait_until_due(&link_service()).await;
    sim.reconcile(ensure_absent, &link_service()).await;
    assert_eq!(sim.due_in(&link_service()), 45);
}

#[tokio::test(start_paused = true)]
async fn group_in_any_script_is_reached_with_its_load_balancers() {
    let mut seed = seed();
    let group = format!("/subscriptions/{SUB}/resourceGroups/größe");
    let inside = |name: &str| format!("{group}/providers/Microsoft.Network/{name}");
    let subnet = json!({"id": format!("{NET}/virtualNetworks/hub/subnets/lb")});
    let frontends = json!([{"name": "router", "properties": {"subnet": subnet}}]);
    seed["resources"].as_array_mut().unwrap().extend([
        json!({"id": group, "location": "westus2"}),
        json!({"id": inside("loadBalancers/lb"), "location": "westus2", "sku": {"name": "Standard"},
            "properties": {"frontendIPConfigurations": frontends}}),
    ]);
    let mut sim = Sim::seeded(&seed);
    let zone = PrivateDnsZone {
        id: id(&inside("privateDnsZones/x.example")),
        ..zone()
    };
    sim.until_present(&zone).await;
    sim.until_absent(&zone).await;
    let sent: Vec<String> = sim
        .azure
        .sent()
        .iter()
        .map(|call| call.request.uri().path().to_owned())
        .collect();
    let mut of_zone = sent.iter().filter(|path| path.ends_with("/x.example"));
    assert!(
        of_zone.all(|path| path.contains("/resourceGroups/gr%C3%B6%C3%9Fe/")),
        "{sent:?}"
    );
    let subscription = SubscriptionId::parse(SUB).unwrap();
    for (within, count) in [(Some("größe"), 1), (None, 3)] {
        let found = sim
            .frontends
            .list(&sim.client, Reconcile::begin(), &subscription, within, Duration::ZERO);
        assert_eq!(found.await.1.unwrap().len(), count, "{within:?}");
    }
}
