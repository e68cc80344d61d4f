use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::azure::plan::{Verb, Why};
use crate::controllers::samples::{ALIAS, cr, decided, guest, identity};

const ENDPOINT: &str = "privateEndpoints/private-router-pe";
const INTERNAL: &str = "privateDnsZones/example.hypershift.local";
const BASE: &str = "privateDnsZones/apps.example.com";

fn azure() -> AzurePlatform {
    let vnet = guest("virtualNetworks/v");
    serde_json::from_value(json!({"subscriptionID": crate::controllers::samples::GUEST, "resourceGroup": "Guest",
        "vnetID": vnet.to_uppercase().replace("/SUBSCRIPTIONS/", "/subscriptions/"), "subnetID": format!("{vnet}/subnets/default")}))
    .unwrap()
}

fn around() -> Surroundings {
    let control_plane = ControlPlane {
        identity: identity(),
        azure: azure(),
        deleting: false,
        held: true,
    };
    Surroundings {
        control_plane: Ok(control_plane),
        paused: None,
        refused: None,
    }
}

fn with_alias() -> AzurePrivateLinkService {
    cr(json!({"privateLinkServiceAlias": ALIAS}), json!({}))
}

fn run(cr: &AzurePrivateLinkService, world: &[(String, Value)]) -> (Decision, Vec<String>) {
    let ((decision, _), asked) = decided(Facts::default(), world, |facts| build(cr, &around(), facts));
    (decision, asked)
}

fn tear(cr: &AzurePrivateLinkService, around: &Surroundings, world: &[(String, Value)]) -> Decision {
    decided(Facts::default(), world, |facts| teardown(cr, around, facts)).0
}

fn marked(more: Value) -> Value {
    let mut body = json!({"tags": {"hypershift.openshift.io_cluster-id": "id"}});
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

fn endpoint(state: &str, alias: &str) -> (String, Value) {
    let connection =
        json!({"properties": {"privateLinkServiceId": alias, "privateLinkServiceConnectionState": {"status": state}}});
    let nic = json!({"properties": {"ipConfigurations": [{"properties": {"privateIPAddress": "10.0.0.5"}}]}});
    let properties = json!({"subnet": {"id": guest("virtualNetworks/v/subnets/default")},
        "manualPrivateLinkServiceConnections": [connection], "networkInterfaces": [nic]});
    (guest(ENDPOINT), marked(json!({"properties": properties})))
}

fn zones() -> Vec<(String, Value)> {
    [INTERNAL, BASE]
        .map(|zone| {
            (
                guest(zone),
                marked(json!({"properties": {"numberOfVirtualNetworkLinks": 0}})),
            )
        })
        .to_vec()
}

/// Everything as the first passes would have put it.
fn complete() -> Vec<(String, Value)> {
    let mut world: Vec<_> = zones().into_iter().chain([endpoint("Approved", ALIAS)]).collect();
    let (decision, _) = run(&with_alias(), &world);
    for step in decision.steps {
        if let Verb::Put(mut body) = step.verb {
            body["name"] = json!(step.id.name());
            body["type"] = json!("Microsoft.Network/privateDnsZones/A");
            world.push((step.id.to_string(), body));
        }
    }
    world
}

fn verb<'a>(decision: &'a Decision, name: &str) -> &'a Verb {
    &decision.steps.iter().find(|step| step.id.name() == name).unwrap().verb
}

/// A custom resource on which the management side has said this much.
fn looked_at(reason: &str) -> AzurePrivateLinkService {
    let condition = json!({"type": "AzurePLSCreated", "status": "False", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    cr(json!({"conditions": [condition]}), json!({}))
}

#[rstest]
#[case::not_looked_at_yet(cr(Value::Null, json!({})), Reason::WaitingForPrivateLinkService)]
#[case::of_no_cluster(looked_at("HostedClusterNotFound"), Reason::HostedClusterNotFound)]
#[case::of_a_doubtful_cluster(looked_at("IdentityMismatch"), Reason::IdentityMismatch)]
#[case::unusable(looked_at("InvalidSpec"), Reason::InvalidSpec)]
fn what_the_management_side_does_not_vouch_for_is_left_without_a_call(
    #[case] resource: AzurePrivateLinkService,
    #[case] reason: Reason,
) {
    let (decision, asked) = run(&resource, &[]);
    assert_eq!(decision.problem.map(|p| p.reason), Some(reason));
    assert_eq!((decision.steps, asked), (vec![], vec![]));
}

#[test]
fn zones_start_before_there_is_an_alias() {
    let (decision, asked) = run(&looked_at("Provisioning"), &[]);
    assert_eq!(
        decision.steps[0].why,
        Why::Needs("the alias of the Private Link Service")
    );
    assert!(matches!(verb(&decision, "example.hypershift.local"), Verb::Put(_)));
    assert!(matches!(verb(&decision, "apps.example.com"), Verb::Put(_)));
    assert_eq!(asked, ["example.hypershift.local", "apps.example.com"]);
}

#[test]
fn links_start_before_the_endpoint_has_an_address_and_records_do_not() {
    let (decision, asked) = run(&with_alias(), &zones());
    assert!(matches!(verb(&decision, "private-router-vnet-link"), Verb::Put(_)));
    assert_eq!(*verb(&decision, "api"), Verb::Wait);
    assert!(!asked.contains(&"api".to_owned()), "{asked:?}");
}

#[test]
fn bodies_are_what_azure_and_hypershift_expect() {
    let world: Vec<_> = zones().into_iter().chain([endpoint("Approved", ALIAS)]).collect();
    let bodies = |decision: Decision| {
        let puts = decision.steps.into_iter().filter_map(|step| match step.verb {
            Verb::Put(body) => Some(json!({"id": step.id.to_string(), "body": body})),
            _ => None,
        });
        puts.collect::<Vec<_>>()
    };
    insta::assert_json_snapshot!("first_pass", bodies(run(&with_alias(), &[]).0));
    insta::assert_json_snapshot!("last_pass", bodies(run(&with_alias(), &world).0));
}

#[test]
fn what_is_as_wanted_is_kept() {
    let (decision, _) = run(&with_alias(), &complete());
    assert!(
        decision.steps.iter().all(|step| step.verb == Verb::Keep),
        "{:?}",
        decision.steps
    );
}

#[rstest]
#[case::pending_approval("Pending", ALIAS, Verb::Keep)]
#[case::service_is_gone("Disconnected", ALIAS, Verb::Delete)]
#[case::service_was_replaced(
    "Approved",
    "pls-id.00000000-0000-4000-8000-000000000000.eastus.azure.privatelinkservice",
    Verb::Delete
)]
fn endpoint_that_leads_nowhere_is_replaced(#[case] state: &str, #[case] alias: &str, #[case] expected: Verb) {
    let world: Vec<_> = zones().into_iter().chain([endpoint(state, alias)]).collect();
    let (decision, _) = run(&with_alias(), &world);
    assert_eq!(decision.steps[0].verb, expected);
    assert_eq!(
        *verb(&decision, "api"),
        Verb::Wait,
        "no record leads to an endpoint that does not carry traffic"
    );
}

#[test]
fn endpoint_is_left_alone_while_its_alias_is_unknown() {
    let known = cr(json!({"privateEndpointID": guest(ENDPOINT)}), json!({}));
    let (decision, _) = run(&known, &[endpoint("Disconnected", ALIAS)]);
    assert_eq!(decision.steps[0].verb, Verb::Wait);
}

#[test]
fn foreign_zone_is_refused_and_nothing_is_put_into_it() {
    let foreign = (guest(BASE), json!({"tags": {"owner": "customer"}, "properties": {}}));
    let (decision, _) = run(&with_alias(), &[foreign]);
    assert_eq!(*verb(&decision, "apps.example.com"), Verb::Refuse);
    assert_eq!(*verb(&decision, "private-router-basedomain-vnet-link"), Verb::Wait);
    assert!(matches!(verb(&decision, "example.hypershift.local"), Verb::Put(_)));
}

#[rstest]
#[case::subscription(|azure: &mut AzurePlatform| azure.subscription_id = Some("x".into()))]
#[case::group(|azure: &mut AzurePlatform| azure.resource_group = Some("other".into()))]
#[case::network(|azure: &mut AzurePlatform| azure.vnet_id = None)]
#[case::subnet(|azure: &mut AzurePlatform| azure.subnet_id = Some("x".into()))]
fn scope_that_the_control_plane_does_not_name_is_refused_without_a_call(#[case] change: fn(&mut AzurePlatform)) {
    let mut around = around();
    change(&mut around.control_plane.as_mut().unwrap().azure);
    let resource = with_alias();
    let ((decision, _), asked) = decided(Facts::default(), &[], |facts| build(&resource, &around, facts));
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::ScopeNotAllowed));
    assert_eq!((decision.steps, asked), (vec![], vec![]));
}

#[test]
fn custom_resource_that_is_not_allowed_is_neither_brought_about_nor_taken_away() {
    let problem = Problem::new(Reason::ScopeNotAllowed, "no entry");
    let around = Surroundings {
        refused: Some(problem.clone()),
        ..around()
    };
    let recorded = cr(
        json!({"privateLinkServiceAlias": ALIAS}),
        json!({CPO_INTENT: intent_of(&identity())}),
    );
    let ((built, _), asked) = decided(Facts::default(), &complete(), |facts| build(&recorded, &around, facts));
    assert_eq!(
        (built.problem, built.steps, asked),
        (Some(problem.clone()), vec![], vec![])
    );
    let (torn, asked) = decided(Facts::default(), &complete(), |facts| {
        teardown(&recorded, &around, facts)
    });
    assert!(!torn.nothing_left());
    assert_eq!((torn.problem, torn.steps, asked), (Some(problem), vec![], vec![]));
}

#[test]
fn teardown_needs_nothing_but_the_custom_resource() {
    let gone = Surroundings {
        control_plane: Err(Problem::new(Reason::HostedControlPlaneNotFound, "gone")),
        paused: None,
        refused: None,
    };
    let recorded = cr(Value::Null, json!({CPO_INTENT: intent_of(&identity())}));
    let decision = tear(&recorded, &gone, &complete());
    assert_eq!(*verb(&decision, "private-router-pe"), Verb::Delete);
    assert_eq!(*verb(&decision, "private-router-vnet-link"), Verb::Delete);
    assert_eq!(*verb(&decision, "example.hypershift.local"), Verb::Wait);
    assert!(
        tear(&cr(Value::Null, json!({})), &gone, &complete()).nothing_left(),
        "nothing recorded, nothing made"
    );
}

#[test]
fn zone_goes_when_only_ours_is_in_it() {
    let without_links = complete()
        .into_iter()
        .filter(|(id, _)| !id.contains("virtualNetworkLinks"))
        .collect::<Vec<_>>();
    let decision = tear(&with_alias(), &around(), &without_links);
    assert_eq!(*verb(&decision, "example.hypershift.local"), Verb::Delete);
    assert_eq!(*verb(&decision, "apps.example.com"), Verb::Delete);
}

#[test]
fn zone_with_records_of_others_stays_and_loses_only_ours() {
    let mut world = complete();
    world.retain(|(id, _)| !id.contains("virtualNetworkLinks"));
    let foreign = json!({"name": "www", "type": "Microsoft.Network/privateDnsZones/A", "properties": {}});
    world.push((format!("{}/A/www", guest(BASE)), foreign));
    let decision = tear(&with_alias(), &around(), &world);
    assert_eq!(*verb(&decision, "apps.example.com"), Verb::Refuse);
    assert_eq!(*verb(&decision, "api-example"), Verb::Delete);
    assert!(decision.steps.iter().all(|step| step.id.name() != "www"));
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
        *verb(&tear(&with_alias(), &around(), &world), "example.hypershift.local"),
        Verb::Refuse
    );
}

#[test]
fn foreign_resources_hold_up_no_deletion() {
    let foreign = |path: &str| (guest(path), json!({"tags": {"owner": "customer"}, "properties": {}}));
    let decision = tear(
        &with_alias(),
        &around(),
        &[foreign(ENDPOINT), foreign(INTERNAL), foreign(BASE)],
    );
    assert!(decision.nothing_left(), "{:?}", decision.steps);
}
