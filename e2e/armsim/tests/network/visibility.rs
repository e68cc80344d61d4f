//! Who can see a private link service: the check by alias, and the services that approve a subscription by themselves.

use rstest::rstest;
use serde_json::{Value, json};

use crate::network_support::{GUEST_NET, GUEST_SUB, NET, SUB, Sim, pls};

/// Both forms of a call on a region, as the guest's subscription makes it.
fn forms(word: &str) -> [String; 2] {
    [
        format!("/subscriptions/{GUEST_SUB}/providers/Microsoft.Network/locations/westus2/{word}"),
        format!("{GUEST_NET}/locations/westus2/{word}"),
    ]
}

/// Creates a service that is open to `visible` and approves `approved`, and waits until it is ready; returns its alias.
fn service(sim: &mut Sim, visible: &Value, approved: &Value) -> String {
    let mut body = pls();
    body["properties"]["visibility"]["subscriptions"] = visible.clone();
    body["properties"]["autoApproval"]["subscriptions"] = approved.clone();
    let made = sim.make(&format!("{NET}/privateLinkServices/svc"), body);
    made["properties"]["alias"].as_str().unwrap().to_owned()
}

fn is_visible(sim: &mut Sim, path: &str, alias: &str) -> bool {
    let asked = sim.post(path, json!({"privateLinkServiceAlias": alias}));
    assert_eq!((asked.status, &asked.body), (202, &Value::Null), "{}", asked.body);
    let location = asked.header("location").to_owned();
    assert!(asked.header("azure-asyncoperation").contains("/operations/"));
    assert_eq!(sim.poll(&location).status, 202);
    sim.wait(2.0);
    let status = sim.poll(asked.header("azure-asyncoperation"));
    assert_eq!(status.body, json!({"status": "Succeeded"}));
    let answer = sim.poll(&location);
    assert_eq!(answer.status, 200);
    answer.body["visible"].as_bool().unwrap()
}

#[rstest]
#[case::everybody(json!(["*"]), true)]
#[case::by_name(json!([GUEST_SUB.to_uppercase()]), true)]
#[case::somebody_else(json!([SUB]), false)]
#[case::nobody(json!([]), false)]
fn alias_is_visible_to_whom_the_service_lists(#[case] visible: Value, #[case] expected: bool) {
    let mut sim = Sim::new();
    let alias = service(&mut sim, &visible, &json!([]));
    for path in forms("checkPrivateLinkServiceVisibility") {
        assert_eq!(is_visible(&mut sim, &path, &alias), expected, "{path}");
        assert!(!is_visible(
            &mut sim,
            &path,
            "svc.nothing.westus2.azure.privatelinkservice"
        ));
        let elsewhere = path.replace("westus2", "eastus");
        assert!(!is_visible(&mut sim, &elsewhere, &alias), "another region");
    }
}

#[test]
fn young_alias_is_not_visible_yet() {
    let mut sim = Sim::with_switches(json!({"alias_lag_s": 300}));
    let alias = service(&mut sim, &json!(["*"]), &json!([]));
    let [path, _] = forms("checkPrivateLinkServiceVisibility");
    assert!(!is_visible(&mut sim, &path, &alias));
    sim.wait(300.0);
    assert!(is_visible(&mut sim, &path, &alias));
}

#[test]
fn visibility_is_asked_with_an_alias() {
    let mut sim = Sim::new();
    for path in forms("checkPrivateLinkServiceVisibility") {
        assert_eq!(
            sim.post(&path, json!({})).refusal(),
            (400, "InvalidRequestContent", "gateway")
        );
    }
    let [path, _] = forms("somethingElse");
    assert_eq!(sim.post(&path, json!({})).status, 405);
}

#[rstest]
#[case::approved(json!([GUEST_SUB]), 1)]
#[case::everybody(json!(["*"]), 1)]
#[case::asked(json!([]), 0)]
fn services_that_approve_by_themselves_are_listed(#[case] approved: Value, #[case] count: usize) {
    let mut sim = Sim::new();
    service(&mut sim, &json!(["*"]), &approved);
    let id = format!("{NET}/privateLinkServices/svc");
    for path in forms("autoApprovedPrivateLinkServices") {
        let got = sim.get(&path);
        let expected = vec![json!({"privateLinkService": id}); count];
        assert_eq!((got.status, &got.body["value"]), (200, &json!(expected)), "{path}");
        let elsewhere = sim.get(&path.replace("westus2", "eastus"));
        assert_eq!(elsewhere.body["value"], json!([]));
    }
    let missing = format!(
        "/subscriptions/{GUEST_SUB}/resourceGroups/none/providers/Microsoft.Network/locations/westus2/autoApprovedPrivateLinkServices"
    );
    assert_eq!(sim.get(&missing).refusal(), (404, "ResourceGroupNotFound", "gateway"));
}

#[test]
fn endpoints_are_for_link_services() {
    let mut sim = Sim::new();
    for path in forms("availablePrivateEndpointTypes") {
        let got = sim.get(&path);
        let names: Vec<&Value> = got.body["value"]
            .as_array()
            .unwrap()
            .iter()
            .map(|item| &item["resourceName"])
            .collect();
        assert_eq!(names, ["Microsoft.Network/privateLinkServices"]);
    }
}
