use rstest::rstest;
use serde_json::{Value, json};

use super::super::plan::Vouched;
use super::super::samples::*;
use super::*;
use crate::azure::cloud::Observed;
use crate::azure::plan::Why;
use crate::controllers::samples::{cr, decided, guest, id as id_of, identity};
use crate::engine::failure::Class;
use crate::hypershift::problem::Problem;

mod elsewhere;

#[test]
fn teardown_needs_nothing_but_the_custom_resource() {
    let recorded = cr(Value::Null, intent());
    let decision = tear(&recorded, &headless(), &complete());
    assert_eq!(*verb(&decision, "private-router-pe"), Verb::Delete);
    assert_eq!(*verb(&decision, "private-router-vnet-link"), Verb::Delete);
    assert_eq!(*verb(&decision, "example.hypershift.local"), Verb::Wait);
    assert!(
        tear(&cr(Value::Null, json!({})), &headless(), &complete()).nothing_left(),
        "nothing recorded, nothing made"
    );
}

#[test]
fn zone_is_deleted_when_only_own_records_are_in_it() {
    let without_links = complete()
        .into_iter()
        .filter(|(id, _)| !id.contains("virtualNetworkLinks"))
        .collect::<Vec<_>>();
    let decision = tear(&with_alias(), &served_state(), &without_links);
    assert_eq!(*verb(&decision, "example.hypershift.local"), Verb::Delete);
    assert_eq!(*verb(&decision, "apps.example.com"), Verb::Delete);
}

#[test]
fn zone_with_records_of_others_loses_only_own_records() {
    let mut world = complete();
    world.retain(|(id, _)| !id.contains("virtualNetworkLinks"));
    let foreign = json!({"name": "www", "type": "Microsoft.Network/privateDnsZones/A", "properties": {}});
    world.push((format!("{}/A/www", guest(BASE)), foreign));
    let decision = tear(&with_alias(), &served_state(), &world);
    assert_eq!(*verb(&decision, "apps.example.com"), Verb::Refuse);
    assert_eq!(*verb(&decision, "api-example"), Verb::Delete);
    assert!(decision.steps.iter().all(|step| step.key.name() != "www"));
}

#[test]
fn zone_with_links_of_others_stays() {
    let mut world = zones();
    world[0].1["properties"]["numberOfVirtualNetworkLinks"] = json!(1);
    world.push((
        format!("{}/virtualNetworkLinks/other", guest(INTERNAL)),
        json!({"name": "other"}),
    ));
    assert_eq!(
        *verb(
            &tear(&with_alias(), &served_state(), &world),
            "example.hypershift.local"
        ),
        Verb::Refuse
    );
}

#[test]
fn own_link_that_appeared_after_the_read_is_deleted_first() {
    let link = crate::controllers::samples::id(&guest(&format!(
        "{INTERNAL}/virtualNetworkLinks/private-router-vnet-link"
    )));
    let remembered = Facts {
        reads: [(link, Observed::Absent)].into(),
        ..Facts::default()
    };
    let decision = decided(remembered, &complete(), |facts| {
        teardown(&with_alias(), &served_state(), facts)
    })
    .0;
    assert_eq!(*verb(&decision, "private-router-vnet-link"), Verb::Delete);
    assert_eq!(*verb(&decision, "example.hypershift.local"), Verb::Wait);
}

#[test]
fn foreign_resources_hold_up_no_deletion() {
    let foreign = |path: &str| (guest(path), json!({"tags": {"owner": "customer"}, "properties": {}}));
    let decision = tear(
        &with_alias(),
        &served_state(),
        &[foreign(ENDPOINT), foreign(INTERNAL), foreign(BASE)],
    );
    assert!(decision.nothing_left(), "{:?}", decision.steps);
}

/// The world without any link, as far as Azure counts them.
fn unlinked(mut world: Vec<(String, Value)>) -> Vec<(String, Value)> {
    world.retain(|(id, _)| !id.contains("virtualNetworkLinks"));
    for (_, zone) in world
        .iter_mut()
        .filter(|(id, _)| !id.contains("/A/") && id.contains("privateDnsZones"))
    {
        zone["properties"]["numberOfVirtualNetworkLinks"] = json!(0);
    }
    world
}

#[rstest]
#[case::with_its_control_plane(served_state())]
#[case::without(headless())]
fn cluster_of_go_is_deleted_as_a_whole(#[case] state: ControlPlaneState) {
    let mut resource = of_go(json!({}));
    if state.control_plane.is_err() {
        resource.metadata.owner_references = None;
    }
    let decision = tear(&resource, &state, &unmarked());
    // The endpoint's address is what proves the rest, so it goes last.
    let links = ["private-router-vnet-link", "private-router-basedomain-vnet-link"];
    assert_eq!(written(&decision), links);
    let decision = tear(&resource, &state, &unlinked(unmarked()));
    assert_eq!(written(&decision), ["example.hypershift.local", "apps.example.com"]);
    let without_zones: Vec<_> = unmarked()
        .into_iter()
        .filter(|(id, _)| id.ends_with(ENDPOINT))
        .collect();
    assert_eq!(written(&tear(&resource, &state, &without_zones)), ["private-router-pe"]);
}

#[test]
fn names_that_go_did_not_record_are_taken_from_the_owner() {
    let mut resource = of_go(json!({"privateDNSZoneID": null, "dnsZoneName": null, "baseDomainDNSZoneID": null}));
    assert!(
        tear(&resource, &headless(), &unmarked()).nothing_left(),
        "nothing tells the cluster's name"
    );
    let owner = json!([{"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedControlPlane", "name": "example", "uid": "h"}]);
    resource.metadata.owner_references = serde_json::from_value(owner).unwrap();
    assert_eq!(
        written(&tear(&resource, &headless(), &unmarked())).len(),
        2,
        "its links"
    );
}

/// The control plane is gone, and somebody removed the intent.
#[rstest]
#[case::its_own("pls-id", 3)]
#[case::of_another_cluster("pls-other", 0)]
fn own_tag_is_known_by_the_name_of_the_service(#[case] service: &str, #[case] taken: usize) {
    let named = crate::controllers::samples::management(&format!("privateLinkServices/{service}"));
    let resource = of_go(json!({"privateLinkServiceID": named}));
    let decision = tear(&resource, &headless(), &complete());
    assert_eq!(written(&decision).len(), taken, "{:?}", decision.steps);
    let events = crate::controllers::event::released(&decision);
    assert_eq!(
        events.len(),
        if taken == 0 { 3 } else { 1 },
        "what is left is named: {events:?}"
    );
}

#[rstest]
#[case::damaged("{")]
#[case::of_a_cluster_that_cannot_live_here(r#"{"cluster":"neighbour","clusterID":"id","infraID":"i"}"#)]
fn intent_that_cannot_be_valid_counts_for_nothing(#[case] intent: &str) {
    let resource = cr(Value::Null, json!({CPO_INTENT: intent}));
    let decision = tear(&resource, &headless(), &complete());
    assert!(decision.nothing_left() && written(&decision).is_empty());
}

#[rstest]
#[case::whose_id_another_cluster_has(true, "id")]
#[case::of_another_id(false, "other")]
fn intent_with_the_id_of_another_cluster_deletes_nothing(#[case] claimed: bool, #[case] id: &str) {
    let intent = json!({"cluster": "example", "clusterID": id, "infraID": "infra"}).to_string();
    let forged = of_go(json!({}));
    let mut forged = AzurePrivateLinkService {
        spec: forged.spec,
        ..cr(json!(forged.status), json!({CPO_INTENT: intent}))
    };
    forged.metadata.owner_references = None;
    let mut state = vouched(Vouched {
        claimed_elsewhere: claimed,
        ..Vouched::default()
    });
    state.control_plane = headless().control_plane;
    let decision = tear(&forged, &state, &complete());
    assert!(decision.nothing_left(), "{:?}", decision.steps);
    assert_eq!(written(&decision), [""; 0]);
}

#[test]
fn control_plane_outranks_the_intent() {
    let intent = json!({"cluster": "example", "clusterID": "neighbour", "infraID": "infra"}).to_string();
    let decision = tear(
        &cr(Value::Null, json!({CPO_INTENT: intent})),
        &served_state(),
        &complete(),
    );
    assert_eq!(written(&decision).len(), 3);
}

/// The custom resource when the HO role refuses its cluster.
fn refused_for(reason: &str) -> AzurePrivateLinkService {
    let refused = json!([{"type": "AzurePLSCreated", "status": "False", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"}]);
    of_go(json!({"conditions": refused}))
}

#[test]
fn duplicate_cluster_deletes_nothing_with_owner_tags() {
    let decision = tear(&refused_for("DuplicateIdentity"), &served_state(), &complete());
    assert_eq!(written(&decision), [""; 0]);
}

#[test]
fn cluster_whose_host_name_is_claimed_deletes_its_own() {
    let decision = tear(&refused_for("HostNameClaimed"), &served_state(), &complete());
    assert_eq!(written(&decision).len(), 3);
}

#[test]
fn hosted_cluster_outranks_forged_control_plane_and_conditions() {
    let other = Identity {
        cluster_id: "neighbour".into(),
        ..identity()
    };
    let mut state = vouched(Vouched {
        identity: Some(identity()),
        azure: Some(azure()),
        ..Vouched::default()
    });
    state.control_plane.as_mut().unwrap().identity = other;
    let decision = tear(&refused_for("DuplicateIdentity"), &state, &complete());
    assert_eq!(written(&decision).len(), 3, "it takes its own along");
}

#[test]
fn scope_that_the_control_plane_does_not_name_is_not_touched() {
    let mut state = served_state();
    state.control_plane.as_mut().unwrap().azure.resource_group = Some("other".into());
    let decision = tear(&cr(Value::Null, json!({})), &state, &complete());
    assert!(decision.nothing_left() && decision.steps.is_empty());
}

#[rstest]
#[case::recorded(cr(Value::Null, intent()))]
#[case::with_an_endpoint(of_go(json!({})))]
fn changed_scope_of_the_control_plane_stops_the_deletion(#[case] cr: AzurePrivateLinkService) {
    let mut state = served_state();
    state.control_plane.as_mut().unwrap().azure.resource_group = Some("other".into());
    let decision = tear(&cr, &state, &complete());
    assert!(decision.steps.is_empty() && !decision.nothing_left());
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::ScopeNotAllowed));
}

#[test]
fn link_in_a_foreign_zone_is_not_touched() {
    let world = changed(complete(), "apps.example.com", |zone| {
        zone["tags"] = json!({"owner": "customer"})
    });
    let world = changed(world, "private-router-basedomain-vnet-link", |link| {
        link["tags"] = json!({})
    });
    let world = changed(world, "api-example", |record| {
        record["properties"]["aRecords"] = json!([])
    });
    let world = changed(world, "oauth-example", |record| {
        record["properties"]["aRecords"] = json!([])
    });
    let decision = tear(&with_alias(), &served_state(), &world);
    assert_eq!(step(&decision, "apps.example.com").why, Why::NotOurs);
    assert!(!written(&decision).contains(&"private-router-basedomain-vnet-link"));
}

#[test]
fn contents_are_listed_only_when_a_fresh_read_counts_some() {
    let asked = |world: &[(String, Value)]| {
        let ask = |facts: &Facts| teardown(&with_alias(), &served_state(), facts);
        let (_, asked) = decided(Facts::default(), world, ask);
        let about = asked
            .into_iter()
            .filter(|asked| asked.contains(' ') && asked.ends_with("apps.example.com"));
        about.collect::<Vec<_>>()
    };
    assert_eq!(asked(&complete()), [""; 0], "its link comes first");
    let list = "inside apps.example.com";
    assert_eq!(
        asked(&unlinked(complete())),
        ["new apps.example.com", list],
        "records alone"
    );
    let linked = changed(unlinked(complete()), "apps.example.com", |zone| {
        zone["properties"]["numberOfVirtualNetworkLinks"] = json!(1);
    });
    assert_eq!(
        asked(&linked),
        ["new apps.example.com", list, list],
        "links, then records"
    );
}

#[test]
fn custom_resource_that_is_not_allowed_is_not_torn_down() {
    let problem = Problem::new(Reason::ScopeNotAllowed, "no entry");
    let state = ControlPlaneState {
        refused: Some(problem.clone()),
        ..served_state()
    };
    let torn = tear(&cr(Value::Null, intent()), &state, &complete());
    assert!(!torn.nothing_left());
    assert_eq!((torn.problem, torn.steps), (Some(problem), vec![]));
}

/// Azure does not answer one kind of read just now. What HyperShift made has no owner tags.
#[rstest]
#[case::links("virtualNetworkLinks")]
#[case::records("/A/")]
fn unread_proof_leaves_nothing_and_deletes_nothing(#[case] unread: &str) {
    let world = unmarked();
    let failed = || Observed::ReadFailed(ArmError::own(Class::Down, "ServiceUnavailable"));
    let ids = world.iter().map(|(id, _)| id).filter(|id| id.contains(unread));
    let facts = Facts {
        reads: ids.map(|id| (id_of(id), failed())).collect(),
        ..Facts::default()
    };
    let decision = decided(facts, &world, |facts| {
        teardown(&of_go(json!({})), &served_state(), facts)
    })
    .0;
    let left = decision.steps.iter().filter(|step| step.left());
    assert_eq!(left.map(|step| step.key.name()).collect::<Vec<_>>(), [""; 0]);
    assert_eq!(written(&decision), [""; 0]);
}

mod with_a_sibling {
    use rstest::rstest;

    use super::*;
    use crate::engine::plan::Verb;

    #[test]
    fn oauth_takes_only_its_own_endpoint_while_private_router_stays() {
        let decision = tear(&oauth(), &beside(&[with_alias()]), &complete());
        assert!(decision.nothing_left(), "{:?}", decision.steps);
        let endpoint = (
            guest("privateEndpoints/oauth-openshift-pe"),
            endpoint("Approved", crate::controllers::samples::ALIAS).1,
        );
        let decision = tear(&oauth(), &beside(&[with_alias()]), &[endpoint]);
        assert_eq!(written(&decision), ["oauth-openshift-pe"]);
    }

    #[test]
    fn private_router_leaves_zone_link_and_the_name_of_oauth_to_it() {
        let decision = tear(&with_alias(), &beside(&[oauth()]), &complete());
        assert_eq!(
            written(&decision),
            ["private-router-pe", "private-router-vnet-link", "api-example"]
        );
    }

    #[rstest]
    #[case::oauth_after_private_router(oauth(), vec![])]
    #[case::private_router_after_oauth(with_alias(), vec![])]
    #[case::oauth_while_private_router_is_deleted_too(oauth(), vec![with_alias()])]
    #[case::private_router_while_oauth_is_deleted_too(with_alias(), vec![oauth()])]
    fn last_takes_what_both_used(#[case] last: AzurePrivateLinkService, #[case] others: Vec<AzurePrivateLinkService>) {
        let mut state = beside(&others);
        state.siblings.iter_mut().for_each(|one| one.stays = false);
        let decision = tear(&last, &state, &complete());
        assert!(
            written(&decision).contains(&"private-router-basedomain-vnet-link"),
            "{:?}",
            decision.steps
        );
        let world = changed(unlinked(complete()), "oauth-example", |record| {
            record["properties"]["aRecords"] = json!([{"ipv4Address": "10.0.0.7"}]);
        });
        assert_eq!(*verb(&tear(&last, &state, &world), "apps.example.com"), Verb::Delete);
    }

    #[test]
    fn both_go_with_their_control_plane() {
        let sibling = beside(&[oauth()]).siblings;
        assert!(sibling[0].stays);
        let mut held = oauth();
        held.metadata.finalizers = Some(vec![crate::api::markers::CPO_FINALIZER.to_owned()]);
        assert!(!super::super::super::siblings::Sibling::of(&held, true).stays);
    }
}
