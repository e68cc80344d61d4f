//! Two custom resources of one control plane: who writes which record, and whose link serves both.

use rstest::rstest;
use serde_json::json;

use super::super::super::samples::*;
use super::*;
use crate::azure::arm::error::ArmError;
use crate::azure::cloud::Observed;
use crate::azure::kinds::private_dns_zone::links;
use crate::controllers::samples::{decided, id};
use crate::engine::failure::Class;

const OAUTH_LINK: &str = "oauth-openshift-basedomain-vnet-link";
const ROUTER_LINK: &str = "private-router-basedomain-vnet-link";

/// The endpoint of OAuth, approved.
fn oauth_endpoint() -> (String, Value) {
    let (_, mut body) = endpoint("Approved", ALIAS);
    let nics = json!([{"properties": {"ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.7"}}]}}]);
    body["properties"]["networkInterfaces"] = nics;
    (guest("privateEndpoints/oauth-openshift-pe"), body)
}

fn both() -> Vec<(String, Value)> {
    complete().into_iter().chain([oauth_endpoint()]).collect()
}

#[test]
fn oauth_has_its_own_endpoint_and_record_and_no_internal_zone() {
    let (decision, asked) = run_in(&oauth(), &beside(&[with_alias()]), &both());
    assert_eq!(written(&decision), ["oauth-example"]);
    let Verb::Put(body) = verb(&decision, "oauth-example") else {
        panic!("{:?}", decision.steps)
    };
    assert_eq!(body["properties"]["aRecords"], json!([{"ipv4Address": "10.0.0.7"}]));
    assert!(
        !asked
            .iter()
            .any(|name| name.contains("hypershift.local") || name == "api"),
        "{asked:?}"
    );
    assert_eq!(step(&decision, ROUTER_LINK).verb, Verb::Keep, "one link serves both");
}

#[test]
fn record_of_oauth_is_handed_over_to_the_sibling_and_back() {
    let theirs = |body: &mut Value| body["properties"]["aRecords"] = json!([{"ipv4Address": "10.0.0.7"}]);
    let world = changed(both(), "oauth-example", theirs);
    let (decision, asked) = run_in(&with_alias(), &beside(&[oauth()]), &world);
    assert_eq!(
        (written(&decision).len(), asked.contains(&"oauth-example".to_owned())),
        (0, false)
    );
    let mut deleting = oauth();
    deleting.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    let (decision, _) = run_in(&with_alias(), &beside(&[deleting]), &world);
    assert_eq!(written(&decision), ["oauth-example"]);
}

#[rstest]
#[case::first(vec![], OAUTH_LINK, true)]
#[case::after_private_router_began(vec![with_alias()], OAUTH_LINK, false)]
fn link_is_made_by_one(#[case] siblings: Vec<AzurePrivateLinkService>, #[case] link: &str, #[case] made: bool) {
    let mut world = both();
    world.retain(|(id, _)| !id.ends_with(ROUTER_LINK));
    let world = changed(world, "apps.example.com", |zone| {
        zone["properties"]["numberOfVirtualNetworkLinks"] = json!(0);
    });
    let (decision, _) = run_in(&oauth(), &beside(&siblings), &world);
    assert_eq!(matches!(verb(&decision, link), Verb::Put(_)), made);
    let (decision, _) = run_in(&with_alias(), &beside(&[oauth()]), &world);
    assert!(
        matches!(verb(&decision, ROUTER_LINK), Verb::Put(_)),
        "private-router waits for nobody"
    );
}

#[test]
fn link_of_a_sibling_that_is_gone_serves_on() {
    let (decision, asked) = run_in(&oauth(), &served_state(), &both());
    assert_eq!(step(&decision, ROUTER_LINK).verb, Verb::Keep);
    assert!(!asked.contains(&"inside apps.example.com".to_owned()), "{asked:?}");
}

#[test]
fn link_of_an_administrator_is_enough_and_stays() {
    let mut world = complete();
    let link = world.iter_mut().find(|(id, _)| id.ends_with(ROUTER_LINK)).unwrap();
    link.1["tags"] = json!({});
    link.0 = format!("{}/virtualNetworkLinks/administrators", guest(BASE));
    link.1["name"] = json!("administrators");
    let (decision, _) = run(&of_go(json!({})), &world);
    assert_eq!(written(&decision), [""; 0]);
    assert_eq!(step(&decision, "administrators").verb, Verb::Keep);
    let when_deleted = tear(&of_go(json!({})), &served_state(), &world);
    assert!(
        when_deleted
            .steps
            .iter()
            .all(|step| step.key.name() != "administrators" || step.left())
    );
    assert_eq!(
        step(&when_deleted, "apps.example.com").why,
        Why::InUse("links of others")
    );
}

#[rstest]
#[case::linked_in_this_zone_meanwhile(true, Verb::Keep)]
#[case::linked_to_a_zone_of_this_name_elsewhere(false, Verb::Wait)]
fn refused_link_is_explained_by_the_links_that_are_there(#[case] here: bool, #[case] expected: Verb) {
    let mut world = complete();
    let link = world.iter_mut().find(|(id, _)| id.ends_with(ROUTER_LINK)).unwrap();
    let mut body = std::mem::take(&mut link.1);
    body["name"] = json!("administrators");
    link.0 = if here {
        format!("{}/virtualNetworkLinks/administrators", guest(BASE))
    } else {
        guest("privateDnsZones/other.example.com/virtualNetworkLinks/administrators")
    };
    link.1 = body;
    let world = changed(world, "apps.example.com", |zone| {
        zone["properties"]["numberOfVirtualNetworkLinks"] = json!(0);
        assert_eq!(links(zone), Some(0));
    });
    let mut facts = Facts::default();
    let refused = ArmError::own(Class::Invalid, "BadRequest");
    let own = id(&format!("{}/virtualNetworkLinks/{ROUTER_LINK}", guest(BASE)));
    facts.reads.insert(own, Observed::WriteFailed(refused));
    let resource = with_alias();
    let ((decision, _), _) = decided(facts, &world, |facts| build(&resource, &served_state(), facts));
    let link = decision
        .steps
        .iter()
        .rfind(|step| step.kind == Kind::VirtualNetworkLink)
        .unwrap();
    assert_eq!(link.verb, expected);
}
