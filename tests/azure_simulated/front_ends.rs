//! Answers of a front end of Azure that is behind: what is there is not found, and what is accepted is lost. This lasts
//! seconds, or long; after it Azure answers correctly.

use std::time::Duration;

use hyperlink::azure::arm::id::ResourceId;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::desired::{GUEST, NET, id};
use crate::restarts::state;
use crate::sim::Sim;
use crate::whole::Life;

const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

/// What a cluster has in Azure; a zone stands for what is in it too.
fn own_resources() -> [ResourceId; 5] {
    [
        format!("{NET}/privateLinkServices/pls-x-id"),
        format!("{NET}/virtualNetworks/hub/subnets/x-pls-nat"),
        format!("{GUEST}/privateEndpoints/private-router-pe"),
        format!("{GUEST}/privateDnsZones/example.hypershift.local"),
        format!("{GUEST}/privateDnsZones/apps.example.com"),
    ]
    .map(|text| id(&text))
}

fn path(which: usize) -> String {
    own_resources()[which].to_string().to_lowercase()
}

/// The ids of what is there besides the seed.
fn left(sim: &Sim) -> Vec<String> {
    let empty = state(&Life::new().sim);
    let all = state(sim).into_iter().filter(|one| !empty.contains(one));
    all.map(|one| one[0].as_str().unwrap().to_ascii_lowercase()).collect()
}

fn available(life: &Life) -> bool {
    let conditions = life.conditions();
    let mut all = conditions.as_array().into_iter().flatten();
    all.any(|one| one["type"] == "AzurePrivateLinkServiceAvailable" && one["status"] == "True")
}

fn gone() -> Value {
    json!({"status": 404, "code": "ResourceNotFound", "message": "x"})
}

/// An answer to a DELETE that Azure does not execute.
fn lost(status: u16) -> Value {
    let operation = "https://arm.test/subscriptions/33333333-3333-3333-3333-333333333333/providers/Microsoft.Network/locations/westus2/operations/77777777-7777-7777-7777-777777777777?api-version=2024-05-01";
    match status {
        202 => json!({"status": 202, "body": "", "headers": {"azure-asyncoperation": operation, "retry-after": "10"}}),
        404 => gone(),
        status => json!({"status": status, "body": ""}),
    }
}

/// Whether the condition is met within that time.
async fn within(life: &mut Life, time: Duration, condition: impl Fn(&Life) -> bool) -> bool {
    let began = Instant::now();
    while !condition(life) && began.elapsed() < time {
        life.run_for(Duration::from_secs(1)).await;
    }
    condition(life)
}

async fn available_cluster() -> Life {
    let mut life = Life::new();
    life.until_available().await;
    life.run_for(10 * MINUTE).await;
    life
}

/// The cluster is deleted, and nothing of it is left when its custom resource is gone.
async fn is_deleted_without_remains(life: &mut Life) {
    life.delete_long_ago();
    assert!(
        within(life, HOUR, |life| !life.exists()).await,
        "{:#}",
        life.conditions()
    );
    assert_eq!(left(&life.sim), [""; 0], "{}", life.last_calls(25));
}

#[rstest]
#[case::service(0)]
#[case::subnet(1)]
#[case::endpoint(2)]
#[case::internal_zone(3)]
#[case::base_zone(4)]
#[tokio::test(start_paused = true)]
async fn resource_that_a_front_end_does_not_know_is_deleted(
    #[case] which: usize,
    #[values(404, 204, 200)] status: u16,
) {
    let mut life = available_cluster().await;
    let mut since: Option<Instant> = None;
    life.sim.azure.follow(move |verb, called| {
        if called != path(which) {
            return None;
        }
        if verb == "DELETE" && since.is_none() {
            since = Some(Instant::now());
            return Some(lost(status));
        }
        since.filter(|at| at.elapsed() < Duration::from_secs(3)).map(|_| gone())
    });
    is_deleted_without_remains(&mut life).await;
}

#[rstest]
#[case::service(0)]
#[case::subnet(1)]
#[case::endpoint(2)]
#[case::internal_zone(3)]
#[tokio::test(start_paused = true)]
async fn delete_that_is_taken_and_lost_is_sent_again(#[case] which: usize) {
    let mut life = available_cluster().await;
    let (mut deletes, mut reads) = (0, 0);
    life.sim.azure.follow(move |verb, called| match verb {
        "DELETE" if called == path(which) => {
            deletes += 1;
            (deletes == 1).then(|| lost(202))
        }
        "GET" if called == path(which) && deletes == 1 => {
            reads += 1;
            (reads == 1).then(gone)
        }
        _ => None,
    });
    is_deleted_without_remains(&mut life).await;
}

/// It was observed just before, and nobody has deleted it.
#[rstest]
#[case::subnet(1)]
#[case::endpoint(2)]
#[case::base_zone(4)]
#[tokio::test(start_paused = true)]
async fn what_is_not_found_for_forty_seconds_does_not_stay(#[case] which: usize) {
    let mut life = available_cluster().await;
    let mut since: Option<Instant> = None;
    life.sim.azure.follow(move |verb, called| {
        if verb != "GET" || called != path(which) {
            return None;
        }
        let since = *since.get_or_insert(Instant::now());
        (since.elapsed() < Duration::from_secs(40)).then(gone)
    });
    is_deleted_without_remains(&mut life).await;
}

/// Reads of the NAT subnet find nothing for a while, then they find it. Later the cluster is deleted.
#[rstest]
#[tokio::test(start_paused = true)]
async fn cluster_whose_subnet_was_shown_late_is_deleted(
    #[values(300, 600, 900, 1_800)] late: u64,
    #[values(0, 600, 3_600, 7_200)] later: u64,
) {
    let mut life = Life::new();
    let end = Instant::now() + Duration::from_secs(late);
    life.sim
        .azure
        .follow(move |verb, called| (verb == "GET" && called == path(1) && Instant::now() < end).then(gone));
    let is_available = within(&mut life, Duration::from_secs(late + 700), available).await;
    assert!(is_available, "{}", life.last_calls(40));
    life.run_for(Duration::from_secs(later)).await;
    life.delete_now();
    let is_gone = within(&mut life, 15 * MINUTE, |life| !life.exists()).await;
    assert!(is_gone, "{:?}\n{}", life.exhausted(), life.last_calls(40));
}

/// The operation of the resource has ended long before.
#[rstest]
#[case::service("/privatelinkservices/pls-x-id")]
#[case::subnet("/subnets/x-pls-nat")]
#[case::endpoint("/private-router-pe")]
#[case::zone("/example.hypershift.local")]
#[case::link("/private-router-vnet-link")]
#[case::record("/example.hypershift.local/a/api")]
#[tokio::test(start_paused = true)]
async fn what_is_shown_late_is_read_calmly(#[case] end: &'static str, #[values(20, 60, 300, 900)] late: u64) {
    let mut life = Life::new();
    let mut put: Option<Instant> = None;
    life.sim.azure.follow(move |verb, called| {
        if !called.ends_with(end) {
            return None;
        }
        if verb == "PUT" {
            put.get_or_insert(Instant::now());
        }
        let late = put.filter(|at| verb == "GET" && at.elapsed() < Duration::from_secs(late));
        late.map(|_| gone())
    });
    let is_available = within(&mut life, Duration::from_secs(late + 700), available).await;
    assert_eq!(
        (is_available, life.exhausted()),
        (true, vec![]),
        "{}",
        life.last_calls(40)
    );
}

#[tokio::test(start_paused = true)]
async fn record_that_is_missing_and_unreadable_by_turns_is_calm() {
    let mut life = available_cluster().await;
    let mut reads = 0;
    life.sim.azure.follow(move |verb, called| {
        if verb != "GET" || !called.ends_with(".hypershift.local/a/api") {
            return None;
        }
        reads += 1;
        let busy = json!({"status": 429, "code": "RetryableError", "message": "x"});
        Some(if reads % 2 == 1 { gone() } else { busy })
    });
    life.restart_both();
    life.run_for(10 * MINUTE).await;
    assert_eq!(life.exhausted(), [""; 0], "{}", life.last_calls(40));
}

#[tokio::test(start_paused = true)]
async fn zone_and_list_of_it_that_fail_by_turns_are_read_calmly() {
    let mut life = available_cluster().await;
    let mut reads = 0;
    life.sim.azure.follow(move |verb, called| {
        let busy = json!({"status": 409, "code": "AnotherOperationInProgress", "message": "x"});
        if verb == "GET" && called == format!("{}/all", path(4)) {
            return Some(busy);
        }
        let of_zone = verb == "GET" && called == path(4);
        reads += u32::from(of_zone);
        (of_zone && reads % 3 == 0).then_some(busy)
    });
    life.delete_now();
    life.run_for(15 * MINUTE).await;
    assert_eq!(life.exhausted(), [""; 0], "{}", life.last_calls(40));
}

/// Others have added a field or a tag of their own.
#[rstest]
#[case::service(0)]
#[case::subnet(1)]
#[case::endpoint(2)]
#[case::zone(3)]
#[tokio::test(start_paused = true)]
async fn what_is_not_found_for_seconds_at_rest_is_not_written(#[case] which: usize) {
    let mut life = available_cluster().await;
    let resource = &own_resources()[which];
    let mut body = life.sim.shown(resource).unwrap();
    if which == 1 {
        body["properties"]["serviceEndpoints"] = json!([{"service": "Microsoft.Storage"}]);
    } else {
        body["tags"]["cost-center"] = json!("42");
    }
    life.sim.install(resource, body);
    life.run_for(HOUR).await;
    let before = life.sim.shown(resource);
    life.sim.forget_calls();
    let mut since: Option<Instant> = None;
    life.sim.azure.follow(move |verb, called| {
        if verb != "GET" || called != path(which) {
            return None;
        }
        let since = *since.get_or_insert(Instant::now());
        (since.elapsed() < Duration::from_secs(3)).then(gone)
    });
    let end = Instant::now() + 20 * MINUTE;
    while Instant::now() < end {
        life.run_for(Duration::from_secs(1)).await;
        assert!(available(&life), "{:#}", life.conditions());
    }
    assert_eq!(life.writes("PUT").len(), 0, "{}", life.last_calls(40));
    assert_eq!(life.sim.shown(resource), before);
}

/// The status names an endpoint that belongs to another cluster. The first read of a process does not find it.
#[tokio::test(start_paused = true)]
async fn endpoint_not_found_once_by_a_new_process_is_not_written() {
    let mut life = available_cluster().await;
    let mut body = life.sim.shown(&own_resources()[2]).unwrap();
    life.sim.remove(&own_resources()[2]);
    body["tags"] = json!({"hypershift.openshift.io_cluster-id": "another"});
    let connection = &mut body["properties"]["manualPrivateLinkServiceConnections"][0]["properties"];
    connection["privateLinkServiceId"] =
        json!("theirs.11111111-2222-4333-8444-555555555555.westus2.azure.privatelinkservice");
    life.sim.install(&own_resources()[2], body);
    let before = life.sim.shown(&own_resources()[2]);
    life.restart_both();
    life.sim.forget_calls();
    let mut reads = 0;
    life.sim.azure.follow(move |verb, called| {
        let read = verb == "GET" && called == path(2);
        reads += u32::from(read);
        (read && reads == 1).then(gone)
    });
    life.run_for(30 * MINUTE).await;
    assert_eq!(life.writes("PUT").len(), 0, "{}", life.last_calls(40));
    assert_eq!(life.sim.shown(&own_resources()[2]), before);
}

#[tokio::test(start_paused = true)]
async fn record_whose_put_is_answered_and_lost_is_soon_missed() {
    let mut life = Life::new();
    let record = own_resources()[3]
        .child(hyperlink::azure::kinds::Kind::RecordSet, "api")
        .unwrap();
    let (shown, mut puts) = (record.to_string(), 0);
    life.sim.azure.follow(move |verb, called| {
        if verb != "PUT" || called != shown.to_lowercase() {
            return None;
        }
        puts += 1;
        let properties =
            json!({"ttl": 300, "aRecords": [{"ipv4Address": "10.1.0.4"}], "provisioningState": "Succeeded"});
        let body = json!({"id": shown, "etag": "lost", "properties": properties});
        (puts == 1).then(|| json!({"status": 200, "body": body}))
    });
    life.until_available().await;
    assert_eq!(life.sim.shown(&record), None);
    let is_back = within(&mut life, 10 * MINUTE, |life| life.sim.shown(&record).is_some()).await;
    assert!(is_back, "{}", life.last_calls(40));
}

/// Azure accepts a call, and asks to wait for a day.
#[rstest]
#[case::put("PUT")]
#[case::delete("DELETE")]
#[case::poll("POLL")]
#[tokio::test(start_paused = true)]
async fn day_that_azure_asks_for_is_not_waited(#[case] which: &'static str) {
    let mut life = Life::new();
    let day = || json!({"headers": {"retry-after": "86400"}});
    life.sim.azure.follow(move |verb, _| (verb == which).then(day));
    assert!(
        within(&mut life, 10 * MINUTE, available).await,
        "{}",
        life.last_calls(40)
    );
    life.delete_now();
    assert!(
        within(&mut life, 15 * MINUTE, |life| !life.exists()).await,
        "{}",
        life.last_calls(40)
    );
}

/// Azure counts requests only when it throttles.
#[rstest]
#[case::down(503, "ServiceUnavailable", 700)]
#[case::busy(409, "AnotherOperationInProgress", 700)]
#[case::other_network(429, "RetryableError", 700)]
#[case::throttled(429, "SubscriptionRequestsThrottled", 3_700)]
#[tokio::test(start_paused = true)]
async fn refusal_that_asks_for_a_day_holds_only_so_long(
    #[case] status: u16,
    #[case] code: &'static str,
    #[case] longest: u64,
    #[values("GET", "PUT")] which: &'static str,
) {
    let mut life = Life::new();
    let refusal = json!({"status": status, "code": code, "message": "x", "headers": {"retry-after": "86400"}});
    let mut once = Some(refusal);
    life.sim.azure.follow(move |verb, called| {
        let hit = verb == which && called == path(0);
        once.take_if(|_| hit)
    });
    assert!(
        within(&mut life, Duration::from_secs(longest), available).await,
        "{}",
        life.last_calls(40)
    );
}
