//! Azure at its worst: one odd answer at the wrong moment, and observations that are too old.

use std::time::Duration;

use hyperlink::azure::arm::id::ResourceId;
use hyperlink::azure::arm::scope::AzureScope;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::{GUEST, GUEST_SUB, NET, SUB, id};
use crate::restarts::state;
use crate::sim::Sim;
use crate::whole::Life;

const MINUTE: Duration = Duration::from_secs(60);

fn service() -> ResourceId {
    let name = hyperlink::hypershift::azure::names::link_service("private-router", "x-id");
    id(&format!("{NET}/privateLinkServices/{name}"))
}

/// The ids of what is there besides the seed.
fn left(sim: &Sim) -> Vec<String> {
    let empty = state(&Life::new().sim);
    let all = state(sim).into_iter().filter(|one| !empty.contains(one));
    all.map(|one| one[0].as_str().unwrap().to_ascii_lowercase()).collect()
}

fn alias(life: &Life) -> Option<String> {
    life.cr()?.status?.private_link_service_alias
}

/// The service of another management cluster, whose operator sets no stamp: for this cluster, so with the same name.
fn theirs(frontend: &str) -> Value {
    json!({"location": "westus2", "tags": {"hypershift.openshift.io_cluster-id": "x-id"}, "properties": {
        "loadBalancerFrontendIpConfigurations": [{"id": format!("{NET}/loadBalancers/lb/frontendIPConfigurations/{frontend}")}],
        "ipConfigurations": [{"name": "n", "properties": {"primary": true, "privateIPAllocationMethod": "Dynamic",
            "subnet": {"id": format!("{NET}/virtualNetworks/hub/subnets/given")}}}],
        "visibility": {"subscriptions": [GUEST_SUB]}, "autoApproval": {"subscriptions": [GUEST_SUB]}}})
}

/// Somebody deletes the service. Role `ho` creates another one, with another alias.
fn delete_service(life: &Life) {
    life.sim.remove(&service());
}

/// The endpoint's address does not change, so nothing is written after the endpoint leads to the new service.
#[rstest]
#[case::while_the_alias_is_not_known(false)]
#[case::before_the_guests_side_has_followed(true)]
#[tokio::test(start_paused = true)]
async fn cluster_with_a_twice_replaced_service_is_deleted(#[case] comes_again: bool) {
    let mut life = Life::new();
    life.until_available().await;
    let first = alias(&life);
    delete_service(&life);
    life.run_for(30 * MINUTE).await;
    let second = alias(&life);
    assert!(second.is_some() && first != second, "{first:?} {second:?}");
    delete_service(&life);
    for _ in 0..20 {
        let wait = life.reconcile_management().await;
        let now = alias(&life);
        if now != second && (!comes_again || now.is_some()) {
            break;
        }
        sleep(wait).await;
    }
    assert_ne!(alias(&life), second);
    life.delete_now();
    life.run_for(60 * MINUTE).await;
    assert!(!life.exists(), "{:#}", life.conditions());
    life.sim.let_operations_end().await;
    assert_eq!(left(&life.sim), [""; 0]);
}

/// An owned endpoint is shown once without its connection, like one whose creation failed.
#[tokio::test(start_paused = true)]
async fn endpoint_that_is_shown_without_a_connection_does_not_stay() {
    let mut life = Life::new();
    life.until_available().await;
    let endpoint = id(&format!("{GUEST}/privateEndpoints/private-router-pe"));
    let mut body = life.sim.shown(&endpoint).unwrap();
    body["properties"]["manualPrivateLinkServiceConnections"] = json!([]);
    life.sim.faults(&[(
        json!({"method": "GET", "path": "/private-router-pe$"}),
        json!({"status": 200, "body": body}),
    )]);
    life.delete_cluster().await;
    assert_eq!(left(&life.sim), [""; 0]);
}

/// Between two reads the own service was deleted, and another management cluster created one under its name.
#[tokio::test(start_paused = true)]
async fn foreign_service_in_the_place_of_an_own_one_stays() {
    let mut life = Life::new();
    life.until_available().await;
    life.run_for(10 * MINUTE).await;
    life.sim.remove(&service());
    life.sim.install(&service(), theirs("stranger"));
    let before = life.sim.shown(&service());
    life.delete_now();
    life.run_for(60 * MINUTE).await;
    assert!(!life.exists(), "{:#}", life.conditions());
    assert_eq!(
        life.sim.shown(&service()).is_some(),
        before.is_some(),
        "{}",
        life.last_calls(20)
    );
}

/// One read does not find the resource, though it is there.
#[rstest]
#[case::service("/privateLinkServices/[^/]+$")]
#[case::endpoint("/privateEndpoints/[^/]+$")]
#[case::zone("/privateDnsZones/[^/]+$")]
#[case::link("/virtualNetworkLinks/[^/]+$")]
#[case::subnet("/subnets/x-pls-nat$")]
#[tokio::test(start_paused = true)]
async fn resource_not_found_once_during_deletion_does_not_stay(
    #[case] path: &str,
    #[values(1, 2, 3, 4)] from: u32,
    #[values(false, true)] restarts: bool,
) {
    let mut life = Life::new();
    life.until_available().await;
    sleep(60 * MINUTE).await;
    if restarts {
        life.restart_both();
    }
    let missing = json!({"status": 404, "code": "ResourceNotFound", "message": "x"});
    life.sim
        .faults(&[(json!({"method": "GET", "path": path, "from": from}), missing)]);
    life.delete_now();
    life.run_for(180 * MINUTE).await;
    assert!(!life.exists(), "{:#}", life.conditions());
    life.sim.let_operations_end().await;
    assert_eq!(left(&life.sim), [""; 0], "{}", life.last_calls(12));
}

/// The service has another management cluster's stamp, and one read does not find it.
#[tokio::test(start_paused = true)]
async fn service_of_others_that_is_not_found_once_is_not_written() {
    let mut life = Life::new();
    let mut body = theirs("stranger");
    body["tags"][hyperlink::hypershift::azure::names::MANAGEMENT_CLUSTER_TAG] = json!("theirs");
    life.sim.install(&service(), body);
    let before = life.sim.shown(&service());
    let missing = json!({"status": 404, "code": "ResourceNotFound", "message": "x"});
    life.sim
        .faults(&[(json!({"method": "GET", "path": "/privateLinkServices/[^/]+$"}), missing)]);
    life.run_management_for(60 * MINUTE).await;
    assert_eq!(life.sim.shown(&service()), before, "{}", life.last_calls(20));
}

/// Services are created in another group now, and one read does not find the recorded one.
#[tokio::test(start_paused = true)]
async fn service_in_the_former_group_not_found_once_does_not_stay() {
    let mut life = Life::new();
    life.until_available().await;
    life.restart_both();
    let now = life.sim.azure.now();
    let group = format!("/subscriptions/{SUB}/resourceGroups/other");
    life.sim
        .azure
        .world()
        .put_resource(now, &group, json!({"location": "westus2"}))
        .unwrap();
    life.service_groups = (
        "other",
        vec![AzureScope::parse(&format!("/subscriptions/{SUB}/resourceGroups/mgmt")).unwrap()],
    );
    let missing = json!({"status": 404, "code": "ResourceNotFound", "message": "x"});
    life.sim.faults(&[(
        json!({"method": "GET", "path": "/mgmt/.*/privateLinkServices/[^/]+$"}),
        missing,
    )]);
    life.run_for(60 * MINUTE).await;
    life.delete_now();
    life.run_for(60 * MINUTE).await;
    assert!(!life.exists(), "{:#}", life.conditions());
    let mut left = left(&life.sim);
    left.retain(|id| !id.ends_with("resourcegroups/other"));
    assert_eq!(left, [""; 0]);
}

/// The cluster has moved: another management cluster connected the endpoint and uses the names. One read of the
/// endpoint gets an odd answer.
#[rstest]
#[case::well(json!({}))]
#[case::fails(json!({"status": 500, "code": "InternalServerError", "message": "x"}))]
#[case::no_time(json!({"status": 429, "code": "TooManyRequests", "message": "x", "headers": {"retry-after": "1"}}))]
#[case::denied(json!({"status": 403, "code": "AuthorizationFailed", "message": "x"}))]
#[case::no_answer(json!({"drop": "before"}))]
#[case::not_found(json!({"status": 404, "code": "ResourceNotFound", "message": "x"}))]
#[tokio::test(start_paused = true)]
async fn names_of_a_cluster_that_lives_elsewhere_stay(#[case] odd: Value) {
    let mut life = Life::new();
    life.until_available().await;
    let endpoint = id(&format!("{GUEST}/privateEndpoints/private-router-pe"));
    let theirs = json!("pls-x-id.11111111-2222-4333-8444-555555555555.westus2.azure.privatelinkservice");
    life.sim.drift(
        &endpoint,
        "/properties/manualPrivateLinkServiceConnections/0/properties/privateLinkServiceId",
        theirs.clone(),
    );
    let shown = life.sim.shown(&endpoint).unwrap();
    assert_eq!(
        shown["properties"]["manualPrivateLinkServiceConnections"][0]["properties"]["privateLinkServiceId"],
        theirs
    );
    let before = left(&life.sim);
    life.sim.forget_calls();
    if odd != json!({}) {
        life.sim
            .faults(&[(json!({"method": "GET", "path": "/private-router-pe$"}), odd)]);
    }
    life.delete_now();
    life.run_for(60 * MINUTE).await;
    life.sim.let_operations_end().await;
    assert!(!life.exists(), "{:#}", life.conditions());
    let guest = |all: &[String]| {
        all.iter()
            .filter(|id| id.contains(GUEST_SUB))
            .cloned()
            .collect::<Vec<_>>()
    };
    assert_eq!(guest(&left(&life.sim)), guest(&before), "{:?}", life.writes("DELETE"));
}

/// One read does not find a ready resource, though it is there, with a tag of somebody else.
#[rstest]
#[case::service("/privateLinkServices/[^/]+$", &format!("{NET}/privateLinkServices/pls-x-id"))]
#[case::endpoint("/privateEndpoints/[^/]+$", &format!("{GUEST}/privateEndpoints/private-router-pe"))]
#[case::zone("/privateDnsZones/example.hypershift.local$", &format!("{GUEST}/privateDnsZones/example.hypershift.local"))]
#[case::subnet("/subnets/x-pls-nat$", &format!("{NET}/virtualNetworks/hub/subnets/x-pls-nat"))]
#[tokio::test(start_paused = true)]
async fn what_is_not_found_once_at_rest_is_not_written(#[case] path: &str, #[case] name: &str) {
    let mut life = Life::new();
    life.until_available().await;
    life.run_for(60 * MINUTE).await;
    let mut body = life.sim.shown(&id(name)).unwrap();
    if name.contains("/subnets/") {
        body["properties"]["serviceEndpoints"] = json!([{"service": "Microsoft.Storage"}]);
    } else {
        body["tags"]["cost-center"] = json!("42");
    }
    life.sim.install(&id(name), body);
    life.run_for(60 * MINUTE).await;
    let before = life.sim.shown(&id(name)).unwrap();
    life.sim.forget_calls();
    let missing = json!({"status": 404, "code": "ResourceNotFound", "message": "x"});
    life.sim.faults(&[(json!({"method": "GET", "path": path}), missing)]);
    let mut outages = Vec::new();
    for _ in 0..60 {
        life.run_for(MINUTE).await;
        let now = life.conditions();
        let down: Vec<String> = now
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| one["status"] != "True")
            .map(|one| {
                format!(
                    "{}: {}",
                    one["type"].as_str().unwrap(),
                    one["message"].as_str().unwrap()
                )
            })
            .collect();
        if !down.is_empty() {
            outages.push(down.join("; "));
        }
    }
    let now = life.sim.shown(&id(name)).unwrap();
    assert_eq!(
        (&now["tags"], &now["properties"]["serviceEndpoints"]),
        (&before["tags"], &before["properties"]["serviceEndpoints"])
    );
    assert!(outages.len() <= 2, "{outages:?}");
}
