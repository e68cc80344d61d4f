//! Polling URLs: whose they are, what signs them, how long they are known.
#![allow(clippy::unwrap_used, missing_docs, reason = "tests")]

mod network_support;

use armsim::Preset;
use network_support::{CONSUMER, GUEST_SUB, NET, SUB, Sim, caller, pls, seed};
use rstest::rstest;
use serde_json::json;

#[test]
fn polling_urls_of_others_are_unknown() {
    let mut sim = Sim::new();
    let url = sim
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    assert_eq!(
        sim.poll(&url.replace(SUB, GUEST_SUB)).refusal(),
        (404, "NotFound", "service")
    );
    assert_eq!(sim.poll(&url).status, 200);
    sim.caller = caller(CONSUMER);
    assert_eq!(sim.poll(&url).status, 200, "the URL is signed");
    let mut strict = Sim::with_switches(json!({"network_poll_needs_role": true}));
    let url = strict
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    strict.caller = caller(CONSUMER);
    assert_eq!(strict.poll(&url).code(), "AuthorizationFailed");
}

#[test]
fn a_scope_is_not_its_prefix() {
    let mut json = seed();
    json["resources"]
        .as_array_mut()
        .unwrap()
        .push(json!({"id": format!("/subscriptions/{SUB}/resourceGroups/r"), "location": "westus2"}));
    let mut sim = Sim::seeded(json, Preset::Recorded);
    let put = sim.call(
        "PUT",
        &format!("{NET}/privateDnsZones/z.com"),
        &[],
        Some(json!({"location": "global"})),
    );
    let url = put.header("azure-asyncoperation").to_owned();
    assert_eq!(sim.poll(&url).status, 202);
    assert_eq!(
        sim.poll(&url.replace("/resourceGroups/rg/", "/resourceGroups/r/"))
            .status,
        404
    );
}

#[rstest]
#[case::as_given("", "", 200, "")]
#[case::changed("&s=", "&s=x", 403, "AuthorizationFailed")]
#[case::older("t=", "t=1", 403, "AuthorizationFailed")]
#[case::without_hash("&h=", "&x=", 403, "AuthorizationFailed")]
fn the_signature_of_a_polling_url_is_checked(
    #[case] of: &str,
    #[case] by: &str,
    #[case] status: u16,
    #[case] code: &str,
) {
    for kind in ["privateLinkServices/svc", "privateDnsZones/z.com", ""] {
        let mut sim = Sim::new();
        let url = match kind {
            "" => sim
                .delete(NET.split("/providers").next().unwrap())
                .header("location")
                .to_owned(),
            _ if kind.starts_with("privateDns") => {
                let body = json!({"location": "global"});
                sim.put(&format!("{NET}/{kind}"), body)
                    .header("azure-asyncoperation")
                    .to_owned()
            }
            _ => sim
                .put(&format!("{NET}/{kind}"), pls())
                .header("azure-asyncoperation")
                .to_owned(),
        };
        let got = sim.poll(&url.replacen(of, by, 1));
        let polled = if status == 200 && !kind.starts_with("privateLink") {
            202
        } else {
            status
        };
        assert_eq!((got.status, got.code()), (polled, code), "{kind}");
        let mut lax = Sim::with_switches(json!({"changed_signature_is_refused": false}));
        let url = lax
            .put(&format!("{NET}/privateLinkServices/svc"), pls())
            .header("azure-asyncoperation")
            .to_owned();
        assert_eq!(lax.poll(&url.replacen(of, by, 1)).status, 200);
    }
}

#[test]
fn a_polling_url_without_signature_needs_the_role() {
    let mut sim = Sim::new();
    let url = sim
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    let (bare, _) = url.split_once("&t=").unwrap();
    assert_eq!(sim.poll(bare).status, 200);
    sim.caller = caller(CONSUMER);
    assert_eq!(sim.poll(&url).status, 200, "signed");
    let refused = sim.poll(bare);
    assert_eq!(refused.code(), "AuthorizationFailed");
    assert!(
        refused.message().contains("locations/operations/read"),
        "{}",
        refused.message()
    );
}

#[test]
fn an_operation_is_forgotten_a_day_after_its_end() {
    let mut sim = Sim::new();
    let url = sim
        .put(&format!("{NET}/privateLinkServices/svc"), pls())
        .header("azure-asyncoperation")
        .to_owned();
    sim.wait(60.0);
    assert_eq!(sim.poll(&url).body["status"], json!("Succeeded"));
    sim.wait(23.0 * 3600.0);
    sim.link_service("b");
    assert_eq!(sim.poll(&url).body["status"], json!("Succeeded"));
    sim.wait(2.0 * 3600.0);
    sim.link_service("c");
    assert_eq!(sim.poll(&url).refusal(), (404, "NotFound", "service"));
}
