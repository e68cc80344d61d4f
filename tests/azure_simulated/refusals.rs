//! Each refusal that can occur in a cluster's life: its class, its code, its delay, and that the write succeeds once
//! the cause is gone.

use std::time::Duration;

use hyperlink::azure::arm::error::ArmError;
use hyperlink::azure::cloud::{Arm, Observed};
use hyperlink::azure::plan::Outcome;
use hyperlink::engine::failure::Class;
use hyperlink::engine::plan::{Verb, ensure_present};
use hyperlink::engine::resource::Resource;
use rstest::rstest;
use serde_json::{Value, json};
use tokio::time::sleep;

use crate::desired::{GUEST, NET, SUB, endpoint, id, link_service, record, subnet, zone, zone_link};
use crate::seed::{PRINCIPAL, seed_with};
use crate::sim::{Rule, Sim, ensure_absent};

/// The next reconcile writes and is refused with this error; the next read is due in `delay` seconds.
pub(crate) async fn refused(
    sim: &mut Sim,
    rule: Rule,
    desired: &dyn Resource<Arm>,
    class: Class,
    code: &str,
    delay: u64,
) -> ArmError {
    let (step, outcome) = sim.reconcile(rule, desired).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{outcome:?} of {step:?}");
    };
    assert_eq!((error.class, error.code.as_str()), (class, code));
    assert_eq!(sim.due_in(desired), delay);
    error
}

/// A reconcile before that time sends nothing; the one after it executes the rule.
async fn waits_and_continues(sim: &mut Sim, rule: Rule, desired: &dyn Resource<Arm>) {
    let wait = sim.due_in(desired);
    sim.forget_calls();
    sleep(Duration::from_secs(wait - 1)).await;
    let (step, outcome) = sim.reconcile(rule, desired).await;
    assert!(step.why.error().is_some(), "{step:?}");
    assert_eq!(
        (step.verb, outcome, sim.calls()),
        (Verb::Wait, Outcome::Nothing, String::new())
    );
    sleep(Duration::from_secs(1)).await;
    sim.until(rule, desired).await;
}

fn wrapped(code: &str) -> Value {
    json!({"error": {"code": code, "message": "Azure's own words."}})
}

fn detailed(code: &str, detail: &str) -> Value {
    json!({"error": {"code": code, "message": "outer", "details": [{"code": detail, "message": "inner"}]}})
}

#[rstest]
#[case::other_is_updating(429, json!({}), detailed("RetryableError", "ReferencedResourceNotProvisioned"),
    Class::Busy, "ReferencedResourceNotProvisioned", 3)]
#[case::other_is_updating_old_form(400, json!({}), wrapped("ReferencedResourceNotProvisioned"), Class::Busy,
    "ReferencedResourceNotProvisioned", 3)]
#[case::locked_by_an_operation(429, json!({}), wrapped("RetryableErrorDueToAnotherOperation"), Class::Busy,
    "RetryableErrorDueToAnotherOperation", 3)]
#[case::second_write_into_a_network(409, json!({}), wrapped("AnotherOperationInProgress"), Class::Busy,
    "AnotherOperationInProgress", 3)]
#[case::etag_is_old(412, json!({}), detailed("PreconditionFailed", "PreconditionFailedEtagMismatch"), Class::Busy,
    "PreconditionFailedEtagMismatch", 3)]
#[case::throttled_with_a_time(429, json!({"retry-after": "17"}), wrapped("SubscriptionRequestsThrottled"), Class::Throttled,
    "SubscriptionRequestsThrottled", 17)]
#[case::throttled_without_a_time(429, json!({}), wrapped("TooManyRequests"), Class::Throttled, "TooManyRequests", 60)]
#[case::role_is_missing(403, json!({}), wrapped("AuthorizationFailed"), Class::Denied, "AuthorizationFailed", 60)]
#[case::linked_role_is_missing(403, json!({}), wrapped("LinkedAuthorizationFailed"), Class::Denied,
    "LinkedAuthorizationFailed", 60)]
#[case::scope_is_locked(409, json!({}), wrapped("ScopeLocked"), Class::Denied, "ScopeLocked", 60)]
#[case::provider_is_not_registered(409, json!({}), wrapped("MissingSubscriptionRegistration"), Class::Invalid,
    "MissingSubscriptionRegistration", 30)]
#[case::subnet_is_full(400, json!({}), wrapped("SubnetIsFull"), Class::Invalid, "SubnetIsFull", 30)]
#[case::malformed_prefix(400, json!({}), wrapped("InvalidAddressPrefixFormat"), Class::Invalid, "InvalidAddressPrefixFormat", 30)]
#[case::provider_was_silent(504, json!({}), wrapped("GatewayTimeout"), Class::Down, "GatewayTimeout", 5)]
#[case::server_is_down(503, json!({"retry-after": "40"}), json!("<html>"), Class::Down, "Http503", 40)]
#[case::server_fails(500, json!({}), wrapped("InternalServerError"), Class::Down, "InternalServerError", 5)]
#[case::unwrapped(400, json!({}), json!({"code": "BadRequest", "message": "x"}), Class::Invalid, "BadRequest", 30)]
#[case::token_is_refused(401, json!({}), wrapped("ExpiredAuthenticationToken"), Class::Denied, "ExpiredAuthenticationToken", 60)]
#[tokio::test(start_paused = true)]
async fn refused_writes_are_waited_out_and_repeated(
    #[case] status: u16,
    #[case] headers: Value,
    #[case] body: Value,
    #[case] class: Class,
    #[case] code: &str,
    #[case] delay: u64,
    #[values("PUT", "DELETE")] method: &str,
) {
    let mut sim = Sim::new();
    let rule = if method == "PUT" { ensure_present } else { ensure_absent };
    if method == "DELETE" {
        sim.until_present(&subnet()).await;
        sleep(Duration::from_secs(3_600)).await;
    }
    let action = json!({"status": status, "headers": headers, "body": body});
    sim.fault(method, action);
    refused(&mut sim, rule, &subnet(), class, code, delay).await;
    waits_and_continues(&mut sim, rule, &subnet()).await;
    assert_eq!(sim.writes(), 1);
}

#[tokio::test(start_paused = true)]
async fn refusals_in_a_row_wait_longer() {
    let mut sim = Sim::new();
    let busy = json!({"status": 409, "code": "AnotherOperationInProgress"});
    sim.faults(&[(json!({"method": "PUT", "times": 6}), busy)]);
    let mut waits = Vec::new();
    for _ in 0..6 {
        sim.reconcile(ensure_present, &subnet()).await;
        waits.push(sim.due_in(&subnet()));
        sim.wait_until_due(&subnet()).await;
    }
    assert_eq!(waits, [3, 6, 12, 24, 30, 30]);
    sim.until_present(&subnet()).await;
    assert_eq!(sim.writes(), 7);
}

#[tokio::test(start_paused = true)]
async fn two_subnets_at_once_in_one_network() {
    for (busy, code, waits) in [
        ("409", "AnotherOperationInProgress", 3..=3),
        ("429", "RetryableErrorDueToAnotherOperation", 11..=14),
    ] {
        let mut sim = Sim::seeded(&seed_with("switches", json!({"vnet_busy": busy})));
        let mut second = subnet();
        second.id = id(&format!("{NET}/virtualNetworks/hub/subnets/y-pls-nat"));
        second.prefix = "10.0.1.16/28".parse().ok();
        sim.reconcile(ensure_present, &subnet()).await;
        // Another process, which does not know of it.
        sim.restart();
        let (step, outcome) = sim.reconcile(ensure_present, &second).await;
        let Outcome::Failed(error) = outcome else {
            panic!("{step:?}");
        };
        assert_eq!((error.class, error.code.as_str()), (Class::Busy, code));
        assert!(waits.contains(&sim.due_in(&second)), "{}", sim.due_in(&second));
        waits_and_continues(&mut sim, ensure_present, &second).await;
        sim.until_present(&subnet()).await;
    }
}

#[tokio::test(start_paused = true)]
async fn link_service_whose_subnet_is_still_updating() {
    let mut sim = Sim::new();
    let desired = hyperlink::azure::kinds::private_link_service::PrivateLinkService {
        nat_subnet: subnet().id,
        ..link_service()
    };
    sim.reconcile(ensure_present, &subnet()).await;
    let code = "ReferencedResourceNotProvisioned";
    refused(&mut sim, ensure_present, &desired, Class::Busy, code, 3).await;
    waits_and_continues(&mut sim, ensure_present, &desired).await;
}

#[tokio::test(start_paused = true)]
async fn link_service_in_a_closed_or_missing_subnet() {
    let mut sim = Sim::new();
    let desired = hyperlink::azure::kinds::private_link_service::PrivateLinkService {
        nat_subnet: subnet().id,
        ..link_service()
    };
    let (step, outcome) = sim.reconcile(ensure_present, &desired).await;
    let Outcome::Failed(error) = outcome else {
        panic!("{step:?}");
    };
    assert_eq!(error.class, Class::Invalid, "{error:?}");
    sim.until_present(&subnet()).await;
    sim.drift(
        &subnet().id,
        "/properties/privateLinkServiceNetworkPolicies",
        json!("Enabled"),
    );
    sim.wait_until_due(&desired).await;
    let code = "PrivateLinkServiceCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled";
    refused(&mut sim, ensure_present, &desired, Class::Invalid, code, 60).await;
    sim.drift(
        &subnet().id,
        "/properties/privateLinkServiceNetworkPolicies",
        json!("Disabled"),
    );
    waits_and_continues(&mut sim, ensure_present, &desired).await;
}

#[tokio::test(start_paused = true)]
async fn endpoint_whose_alias_is_too_new() {
    let mut sim = Sim::seeded(&seed_with("switches", json!({"alias_lag_s": 8})));
    let desired = endpoint(&sim.alias().await);
    let code = "InvalidPrivateLinkServiceId";
    refused(&mut sim, ensure_present, &desired, Class::Busy, code, 3).await;
    waits_and_continues(&mut sim, ensure_present, &desired).await;
}

#[rstest]
#[case::is_delegated("delegations", json!([{"name": "d", "properties": {"serviceName": "Microsoft.Sql/managedInstances"}}]),
    "PrivateEndpointCreationNotAllowedAsSubnetIsDelegated")]
#[case::has_policies("privateEndpointNetworkPolicies", json!("Enabled"),
    "PrivateEndpointCannotBeCreatedInSubnetThatHasNetworkPoliciesEnabled")]
#[tokio::test(start_paused = true)]
async fn endpoint_in_a_subnet_that(#[case] field: &str, #[case] value: Value, #[case] code: &str) {
    let mut sim = Sim::new();
    let desired = endpoint(&sim.alias().await);
    let open = sim.shown(&desired.subnet).unwrap();
    sim.drift(&desired.subnet, &format!("/properties/{field}"), value);
    refused(&mut sim, ensure_present, &desired, Class::Invalid, code, 30).await;
    sim.install(&desired.subnet, open);
    waits_and_continues(&mut sim, ensure_present, &desired).await;
}

#[tokio::test(start_paused = true)]
async fn subnet_that_is_in_use() {
    let mut sim = Sim::new();
    let service = hyperlink::azure::kinds::private_link_service::PrivateLinkService {
        nat_subnet: subnet().id,
        ..link_service()
    };
    sim.until_present(&subnet()).await;
    sim.until_present(&service).await;
    sleep(Duration::from_secs(3_600)).await;
    let code = "InUseSubnetCannotBeDeleted";
    refused(&mut sim, ensure_absent, &subnet(), Class::Busy, code, 3).await;
    sim.remove(&service.owned.id);
    waits_and_continues(&mut sim, ensure_absent, &subnet()).await;
}

#[tokio::test(start_paused = true)]
async fn prefix_that_overlaps() {
    let mut sim = Sim::new();
    let desired = hyperlink::azure::kinds::subnet::NatSubnet {
        prefix: "10.0.0.16/28".parse().ok(),
        ..subnet()
    };
    let code = "NetcfgSubnetRangesOverlap";
    refused(&mut sim, ensure_present, &desired, Class::Invalid, code, 30).await;
}

#[tokio::test(start_paused = true)]
async fn zone_that_still_has_links() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sim.until_present(&zone_link()).await;
    sleep(Duration::from_secs(3_600)).await;
    refused(&mut sim, ensure_absent, &zone(), Class::Busy, "CannotDeleteResource", 3).await;
    sim.until_absent(&zone_link()).await;
    sim.wait_until_due(&zone()).await;
    sim.until_absent(&zone()).await;
}

#[tokio::test(start_paused = true)]
async fn record_in_a_missing_zone() {
    let mut sim = Sim::new();
    let desired = record("api");
    refused(
        &mut sim,
        ensure_present,
        &desired,
        Class::Gone,
        "ParentResourceNotFound",
        3,
    )
    .await;
    sim.until_present(&zone()).await;
    sim.until_present(&desired).await;
    sim.remove(&zone().id);
    sleep(Duration::from_secs(7_200)).await;
    sim.until_absent(&desired).await;
}

#[tokio::test(start_paused = true)]
async fn record_that_another_one_made_meanwhile() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    // A record in a zone of this process is not read before its create; somebody else was quicker.
    let theirs = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "10.9.9.9"}]}});
    sim.install(&record("api").id, theirs);
    let error = refused(
        &mut sim,
        ensure_present,
        &record("api"),
        Class::Busy,
        "PreconditionFailed",
        3,
    )
    .await;
    assert_eq!(error.status, 412);
    waits_and_continues(&mut sim, ensure_present, &record("api")).await;
}

#[tokio::test(start_paused = true)]
async fn missing_group_holds_nothing_owned() {
    let mut sim = Sim::new();
    let mut desired = zone();
    desired.id = id(&desired
        .id
        .to_string()
        .replace("/resourceGroups/guest/", "/resourceGroups/gone/"));
    sim.until_absent(&desired).await;
    assert_eq!(sim.calls(), "GET");
    sleep(Duration::from_secs(3_600)).await;
    refused(
        &mut sim,
        ensure_present,
        &desired,
        Class::Gone,
        "ResourceGroupNotFound",
        3,
    )
    .await;
}

#[tokio::test(start_paused = true)]
async fn group_that_is_deleted_meanwhile() {
    let mut sim = Sim::new();
    sim.until_present(&zone()).await;
    sleep(Duration::from_secs(3_600)).await;
    let gone = json!({"status": 404, "code": "ResourceGroupNotFound"});
    sim.fault("DELETE", gone);
    let (_, outcome) = sim.reconcile(ensure_absent, &zone()).await;
    assert_eq!(outcome, Outcome::Ready);
}

#[rstest]
#[case::on_the_target(json!([{"object_id": PRINCIPAL, "scope": format!("/subscriptions/{SUB}"), "actions": ["*/read"]}]),
    "AuthorizationFailed")]
#[case::on_a_linked_scope(json!([
    {"object_id": PRINCIPAL, "scope": format!("/subscriptions/{SUB}"), "actions": ["*/read", "*/write"]}]), "LinkedAuthorizationFailed")]
#[tokio::test(start_paused = true)]
async fn role_is_missing(#[case] roles: Value, #[case] code: &str) {
    let mut sim = Sim::seeded(&seed_with("roles", roles));
    let error = refused(&mut sim, ensure_present, &link_service(), Class::Denied, code, 60).await;
    assert_eq!(error.status, 403);
    assert!(
        error.text.contains(PRINCIPAL) && !error.to_string().contains(PRINCIPAL),
        "ids are for the log only"
    );
}

#[tokio::test(start_paused = true)]
async fn resource_that_may_not_be_read_is_not_written() {
    let mut sim = Sim::seeded(&seed_with("roles", json!([])));
    let (step, outcome) = sim.reconcile(ensure_present, &link_service()).await;
    assert!(
        step.why.error().is_some_and(|error| error.class == Class::Denied),
        "{step:?}"
    );
    assert_eq!(
        (outcome, sim.calls(), sim.due_in(&link_service())),
        (Outcome::Nothing, "GET".into(), 60)
    );
}

#[tokio::test(start_paused = true)]
async fn foreign_zone_of_the_same_name_on_our_network() {
    let mut sim = Sim::new();
    let theirs = id(&format!(
        "{}/privateDnsZones/x.hypershift.local",
        GUEST.replace("/guest/", "/other/")
    ));
    let their_link = id(&format!("{theirs}/virtualNetworkLinks/theirs"));
    sim.install(&theirs, json!({"location": "global"}));
    sim.install(&their_link, zone_link().body(None));
    sim.until_present(&zone()).await;
    let (_, outcome) = sim.reconcile(ensure_present, &zone_link()).await;
    assert_eq!(outcome, Outcome::Accepted, "refused only when the operation ends");
    sim.wait_until_due(&zone_link()).await;
    let Observed::WriteFailed(error) = sim.read(&zone_link()).await else {
        panic!("linked twice");
    };
    assert_eq!(
        (error.class, error.code.as_str(), error.status),
        (Class::Invalid, "BadRequest", 200)
    );
    assert!(error.text.contains("overlapping namespaces"), "{}", error.text);
    assert_eq!(sim.due_in(&zone_link()), 30);
    sim.remove(&their_link);
    waits_and_continues(&mut sim, ensure_present, &zone_link()).await;
}
