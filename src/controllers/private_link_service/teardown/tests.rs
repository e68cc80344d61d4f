use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::HostedCluster;
use crate::azure::arm::error::ArmError;
use crate::azure::arm::scope::AzureScope;
use crate::controllers::azure::lists::Lists;
use crate::controllers::private_link_service::connecting::Connecting;
use crate::controllers::private_link_service::frontend::FrontendMatch;
use crate::controllers::private_link_service::samples::{self, alone, management_scope, settings};
use crate::controllers::samples::{GUEST, MANAGEMENT, cr, decided, guest, management};
use crate::engine::failure::Class;

mod revoked;
mod scopes;
mod subnet;

const SERVICE: &str = "privateLinkServices/pls-id";
const SUBNET: &str = "virtualNetworks/v/subnets/infra-pls-nat";

fn cluster() -> Identity {
    crate::controllers::samples::identity()
}

/// The cluster's own objects are gone.
fn inputs() -> PrivateLinkServiceInputs {
    let gone = Problem::new(Reason::HostedClusterNotFound, "gone");
    PrivateLinkServiceInputs {
        identity: Err(gone),
        deleted_cluster: DeletedCluster::Of(cluster()),
        ..alone()
    }
}

fn intent_with(subnet: &str) -> Value {
    let recorded = HoIntent {
        link_service: Some(management(SERVICE)),
        nat_subnet: Some(subnet.to_owned()),
        nat_subnet_made: true,
        ..HoIntent::of(&cluster())
    };
    json!({HO_INTENT: intent::write(&recorded)})
}

/// A custom resource under deletion, with this intent.
fn deleting(intent: Value) -> AzurePrivateLinkService {
    let mut deleting = cr(Value::Null, intent);
    deleting.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    deleting
}

fn run(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    world: &[(String, Value)],
    settings: &Settings,
) -> Decision {
    let now = "2026-01-01T00:00:10Z".parse().unwrap();
    decided(Facts::default(), world, |facts| {
        teardown(cr, inputs, facts, settings, now)
    })
    .0
}

fn tags() -> Value {
    json!({"hypershift.openshift.io_cluster-id": "id",
        "hypershift.openshift.io_management-cluster-id": settings().management_cluster})
}

fn service(connections: Value) -> (String, Value) {
    let tags = tags();
    (
        management(SERVICE),
        json!({"tags": tags, "properties": {"privateEndpointConnections": connections}}),
    )
}

fn verbs(decision: &Decision) -> Vec<(Kind, Verb)> {
    decision
        .steps
        .iter()
        .map(|step| (step.kind, step.verb.clone()))
        .collect()
}

#[test]
fn connections_service_and_subnet_are_deleted_in_this_order() {
    let connection = json!([{"id": management(&format!("{SERVICE}/privateEndpointConnections/pe.guid"))}]);
    let subnet = (management(SUBNET), json!({"properties": {}}));
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[service(connection), subnet.clone()],
        &settings(),
    );
    assert_eq!(
        verbs(&decision),
        [
            (Kind::PrivateEndpointConnection, Verb::Delete),
            (Kind::PrivateLinkService, Verb::Wait),
            (Kind::Subnet, Verb::Wait)
        ]
    );
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[service(json!([])), subnet.clone()],
        &settings(),
    );
    assert_eq!(
        verbs(&decision),
        [(Kind::PrivateLinkService, Verb::Delete), (Kind::Subnet, Verb::Wait)]
    );
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[subnet],
        &settings(),
    );
    assert_eq!(
        verbs(&decision),
        [(Kind::PrivateLinkService, Verb::Keep), (Kind::Subnet, Verb::Delete)]
    );
    let decision = run(&deleting(intent_with(&management(SUBNET))), &inputs(), &[], &settings());
    assert!(decision.nothing_left());
}

#[rstest]
#[case::nobody_knows_the_cluster(DeletedCluster::Unknown)]
#[case::its_ids_are_those_of_another(DeletedCluster::OfAnother)]
fn custom_resource_without_a_cluster_is_released_without_a_call(#[case] deleted_cluster: DeletedCluster) {
    let inputs = PrivateLinkServiceInputs {
        deleted_cluster,
        ..inputs()
    };
    let recorded = deleting(intent_with(&management(SUBNET)));
    let now = "2026-01-01T00:00:10Z".parse().unwrap();
    let (decision, asked) = decided(Facts::default(), &[service(json!([]))], |facts| {
        teardown(&recorded, &inputs, facts, &settings(), now)
    });
    assert!(decision.nothing_left());
    assert_eq!(asked, Vec::<String>::new());
}

#[test]
fn foreign_service_is_left_and_holds_up_nothing() {
    let foreign = (
        management(SERVICE),
        json!({"tags": {"owner": "someone"}, "properties": {}}),
    );
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[foreign],
        &settings(),
    );
    assert_eq!(decision.steps[0].verb, Verb::Refuse);
    assert!(decision.nothing_left());
}

#[test]
fn the_clusters_own_objects_count_more_than_what_was_recorded() {
    let other = Identity {
        cluster_id: "true-id".into(),
        ..cluster()
    };
    let known = PrivateLinkServiceInputs {
        identity: Ok(other.clone()),
        deleted_cluster: DeletedCluster::Of(other),
        ..inputs()
    };
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &known,
        &[service(json!([]))],
        &settings(),
    );
    assert_eq!(decision.steps[0].key.name(), "pls-true-id");
}

#[test]
fn the_other_roles_finalizer_is_waited_for_but_not_for_ever() {
    let mut held = deleting(intent_with(&management(SUBNET)));
    held.metadata.finalizers = Some(vec![CPO_FINALIZER.to_owned()]);
    let decision = run(&held, &inputs(), &[service(json!([]))], &settings());
    assert_eq!(
        decision.requeue.map(|requeue| requeue.after),
        Some(Duration::from_secs(290))
    );
    let late = "2026-01-01T00:05:00Z".parse().unwrap();
    let world = [service(json!([]))];
    let decision = decided(Facts::default(), &world, |facts| {
        teardown(&held, &inputs(), facts, &settings(), late)
    })
    .0;
    assert_eq!(decision.steps[0].verb, Verb::Delete);
}

#[test]
fn configuration_that_points_elsewhere_is_not_a_leak() {
    let moved = Settings {
        scope: management_scope("new"),
        ..settings()
    };
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[service(json!([]))],
        &moved,
    );
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::ConfigurationChanged));
    let allowed = Settings {
        also_manage: vec![AzureScope::parse(&format!("/subscriptions/{MANAGEMENT}/resourceGroups/mgmt")).unwrap()],
        ..moved
    };
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[service(json!([]))],
        &allowed,
    );
    assert_eq!(
        (decision.steps[0].key.group(), &decision.steps[0].verb),
        ("mgmt", &Verb::Delete)
    );
}

fn unmarked(frontend: &str) -> (String, Value) {
    let body = json!({"tags": {"hypershift.openshift.io_resource-type": "private-link-service"}, "properties": {
        "alias": crate::controllers::samples::ALIAS, "loadBalancerFrontendIpConfigurations": [{"id": frontend}]}});
    (management(SERVICE), body)
}

#[rstest]
#[case::its_own(Ok(cluster()), management(FRONTEND), Verb::Delete)]
#[case::its_own_when_the_cluster_is_gone(inputs().identity, management(FRONTEND), Verb::Delete)]
#[case::anothers(
    Ok(cluster()),
    management("loadBalancers/lb/frontendIPConfigurations/other"),
    Verb::Refuse
)]
fn service_without_owner_tags_is_proven_by_its_frontend(
    #[case] identity: Result<Identity, Problem>,
    #[case] frontend: String,
    #[case] verb: Verb,
) {
    let service = crate::controllers::private_link_service::frontend::ServiceFacts {
        uid: "5f2c6c2e-8a3c-4a7e-9a0e-0d6b3c1f7a11".into(),
        owned: false,
        addresses: Vec::new(),
    };
    let known = PrivateLinkServiceInputs {
        identity,
        service: Some(service),
        ..inputs()
    };
    let decision = run(&deleting(json!({})), &known, &[unmarked(&frontend)], &settings());
    assert_eq!(decision.steps[0].verb, verb);
}

#[test]
fn service_of_another_management_cluster_is_refused() {
    let (at, mut body) = service(json!([]));
    body["tags"]["hypershift.openshift.io_management-cluster-id"] = json!("another");
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[(at, body)],
        &settings(),
    );
    assert_eq!(decision.steps[0].verb, Verb::Refuse);
}

const FRONTEND: &str = "loadBalancers/lb/frontendIPConfigurations/a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1";

#[rstest]
#[case::of_a_third_party("Approved")]
#[case::that_nobody_approved("Pending")]
#[case::that_was_rejected("Rejected")]
fn every_connection_is_deleted_and_none_rejected(#[case] status: &str) {
    let state = json!({"privateLinkServiceConnectionState": {"status": status}});
    let id = management(&format!("{SERVICE}/privateEndpointConnections/theirs.guid"));
    let connections = json!([{"id": id, "properties": state}]);
    let held = deleting(intent_with(&management(SUBNET)));
    let decision = run(&held, &inputs(), &[service(connections)], &settings());
    assert_eq!(
        verbs(&decision)[..2],
        [
            (Kind::PrivateEndpointConnection, Verb::Delete),
            (Kind::PrivateLinkService, Verb::Wait)
        ]
    );
}

#[test]
fn deleted_duplicate_keeps_its_refusal_for_the_other_role() {
    let mut cr = deleting(json!({}));
    cr.metadata.finalizers = Some(vec![CPO_FINALIZER.to_owned()]);
    let inputs = PrivateLinkServiceInputs {
        identity: Err(Problem::new(Reason::DuplicateIdentity, "taken")),
        deleted_cluster: DeletedCluster::OfAnother,
        ..inputs()
    };
    let decision = run(&cr, &inputs, &[], &settings());
    assert!(
        decision.nothing_left() && decision.steps.is_empty(),
        "no condition is written over it"
    );
}

#[test]
fn name_that_nothing_is_made_for_asks_nothing_of_azure() {
    let named = |name: &str, intent: Value| {
        let mut cr = deleting(intent);
        cr.metadata.name = Some(name.to_owned());
        let now = "2026-01-01T00:00:10Z".parse().unwrap();
        let (_, asked) = decided(Facts::default(), &[], |facts| {
            teardown(&cr, &inputs(), facts, &settings(), now).map(|decision| (decision, ()))
        });
        !asked.is_empty()
    };
    assert!(!named("junk", json!({})));
    assert!(named("junk", intent_with(&management(SUBNET))), "it was recorded");
    assert!(named("oauth-openshift", json!({})), "its own record may have been lost");
}

/// HyperShift's own operator wrote no owner tags, so the frontend is the proof.
#[test]
fn service_whose_proof_cannot_be_read_is_not_left() {
    let inputs = samples::inputs();
    let settings = Settings {
        frontend_match: FrontendMatch::Address,
        ..settings()
    };
    let frontend = management("loadBalancers/kubernetes-internal/frontendIPConfigurations/one");
    let properties = json!({"loadBalancerFrontendIpConfigurations": [{"id": frontend}]});
    let world = [(management(SERVICE), json!({"properties": properties}))];
    let down = || Err(ArmError::own(Class::Down, "ServiceUnavailable"));
    let scopes = [Some("mgmt".to_owned()), None].map(|group| (settings.scope.subscription.clone(), group));
    let facts = Facts {
        lists: Lists {
            frontends: scopes.map(|scope| (scope, down())).into(),
            ..Lists::default()
        },
        ..Facts::default()
    };
    let now = "2026-01-01T00:00:10Z".parse().unwrap();
    let decision = decided(facts, &world, |facts| {
        teardown(&deleting(intent_with(&guest(SUBNET))), &inputs, facts, &settings, now)
    })
    .0;
    assert_eq!(
        decision.problem.map(|problem| problem.reason),
        Some(Reason::ILBLookupFailed)
    );
    assert_eq!(decision.steps, []);
}
