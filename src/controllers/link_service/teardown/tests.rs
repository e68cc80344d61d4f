use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::controllers::link_service::frontend::FrontendMatch;
use crate::controllers::link_service::nat_subnet::NatSubnetRules;
use crate::controllers::samples::{MANAGEMENT, cr, decided, identity as cluster, management};

const SERVICE: &str = "privateLinkServices/pls-id";
const SUBNET: &str = "virtualNetworks/v/subnets/infra-pls-nat";

fn settings() -> Settings {
    Settings {
        subscription: crate::azure::id::SubscriptionId::parse(MANAGEMENT).unwrap(),
        resource_group: "mgmt".into(),
        nat: NatSubnetRules {
            prefix_length: 28,
            pool: None,
        },
        frontend_match: FrontendMatch::Name,
        also_manage: Vec::new(),
    }
}

fn around() -> Surroundings {
    let gone = Problem::new(Reason::HostedClusterNotFound, "gone");
    Surroundings {
        identity: Err(gone),
        hosted_cluster: None,
        paused: None,
        service: None,
        sibling_stays: false,
        claimed_elsewhere: false,
    }
}

fn intent_with(subnet: &str) -> Value {
    let recorded = HoIntent {
        cluster: "example".into(),
        cluster_id: "id".into(),
        infra_id: "infra".into(),
        link_service: management(SERVICE),
        frontend: "f".into(),
        nat_subnet: Some(subnet.to_owned()),
    };
    json!({HO_INTENT: intent::write(&recorded)})
}

/// A custom resource that is going, as recorded.
fn going(intent: Value) -> AzurePrivateLinkService {
    let mut going = cr(Value::Null, intent);
    going.metadata.deletion_timestamp = serde_json::from_value(json!("2026-01-01T00:00:00Z")).unwrap();
    going
}

fn run(
    cr: &AzurePrivateLinkService,
    around: &Surroundings,
    world: &[(String, Value)],
    settings: &Settings,
) -> Decision {
    let now = "2026-01-01T00:00:10Z".parse().unwrap();
    decided(Facts::default(), world, |facts| {
        teardown(cr, around, facts, settings, now)
    })
    .0
}

fn service(connections: Value) -> (String, Value) {
    let tags = json!({"hypershift.openshift.io_cluster-id": "id"});
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
fn connections_go_before_the_service_and_the_service_before_the_subnet() {
    let connection = json!([{"id": management(&format!("{SERVICE}/privateEndpointConnections/pe.guid"))}]);
    let subnet = (management(SUBNET), json!({"properties": {}}));
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[service(connection), subnet.clone()],
        &settings(),
    );
    assert_eq!(
        verbs(&decision),
        [
            (Kind::Connection, Verb::Delete),
            (Kind::LinkService, Verb::Wait),
            (Kind::Subnet, Verb::Wait)
        ]
    );
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[service(json!([])), subnet.clone()],
        &settings(),
    );
    assert_eq!(
        verbs(&decision),
        [(Kind::LinkService, Verb::Delete), (Kind::Subnet, Verb::Wait)]
    );
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[subnet],
        &settings(),
    );
    assert_eq!(
        verbs(&decision),
        [(Kind::LinkService, Verb::Keep), (Kind::Subnet, Verb::Delete)]
    );
    let decision = run(&going(intent_with(&management(SUBNET))), &around(), &[], &settings());
    assert!(decision.nothing_left());
}

#[test]
fn nothing_recorded_and_no_cluster_means_nothing_was_made() {
    assert!(run(&going(json!({})), &around(), &[], &settings()).nothing_left());
}

#[test]
fn foreign_service_is_left_and_holds_up_nothing() {
    let foreign = (
        management(SERVICE),
        json!({"tags": {"owner": "someone"}, "properties": {}}),
    );
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[foreign],
        &settings(),
    );
    assert_eq!(decision.steps[0].verb, Verb::Refuse);
    assert!(decision.nothing_left());
}

#[test]
fn subnet_in_use_is_left_and_holds_up_nothing() {
    let used = (
        management(SUBNET),
        json!({"properties": {"ipConfigurations": [{"id": "x"}]}}),
    );
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[used],
        &settings(),
    );
    assert_eq!(decision.steps[1].why, Why::InUse("ipConfigurations"));
    assert!(decision.nothing_left());
}

#[rstest]
#[case::of_another_name(management("virtualNetworks/v/subnets/production"))]
#[case::in_another_subscription(crate::controllers::samples::guest(SUBNET))]
#[case::that_is_no_id("x".to_owned())]
fn forged_subnet_is_never_touched(#[case] subnet: String) {
    let world = [(
        management("virtualNetworks/v/subnets/production"),
        json!({"properties": {}}),
    )];
    let decision = run(&going(intent_with(&subnet)), &around(), &world, &settings());
    assert!(
        decision.steps.iter().all(|step| step.kind != Kind::Subnet),
        "{:?}",
        decision.steps
    );
}

#[test]
fn forged_cluster_id_of_a_living_cluster_is_refused() {
    let claimed = Surroundings {
        claimed_elsewhere: true,
        ..around()
    };
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &claimed,
        &[service(json!([]))],
        &settings(),
    );
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::DuplicateIdentity));
    assert_eq!(decision.steps, []);
}

#[test]
fn the_clusters_own_objects_count_more_than_what_was_recorded() {
    let other = Identity {
        cluster_id: "true-id".into(),
        ..cluster()
    };
    let known = Surroundings {
        identity: Ok(other),
        ..around()
    };
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &known,
        &[service(json!([]))],
        &settings(),
    );
    assert_eq!(decision.steps[0].id.name(), "pls-true-id");
}

#[test]
fn sibling_keeps_the_subnet() {
    let sibling = Surroundings {
        sibling_stays: true,
        ..around()
    };
    let world = [(management(SUBNET), json!({"properties": {}}))];
    let decision = run(&going(intent_with(&management(SUBNET))), &sibling, &world, &settings());
    assert!(decision.steps.iter().all(|step| step.kind != Kind::Subnet));
}

#[test]
fn the_other_roles_finalizer_is_waited_for_but_not_for_ever() {
    let mut held = going(intent_with(&management(SUBNET)));
    held.metadata.finalizers = Some(vec![CPO_FINALIZER.to_owned()]);
    let decision = run(&held, &around(), &[service(json!([]))], &settings());
    assert_eq!(decision.again, Some(Duration::from_secs(290)));
    let late = "2026-01-01T00:05:00Z".parse().unwrap();
    let world = [service(json!([]))];
    let decision = decided(Facts::default(), &world, |facts| {
        teardown(&held, &around(), facts, &settings(), late)
    })
    .0;
    assert_eq!(decision.steps[0].verb, Verb::Delete);
}

#[test]
fn configuration_that_points_elsewhere_is_not_a_leak() {
    let moved = Settings {
        resource_group: "new".into(),
        ..settings()
    };
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[service(json!([]))],
        &moved,
    );
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::ConfigurationChanged));
    let allowed = Settings {
        also_manage: vec![format!("/subscriptions/{MANAGEMENT}/resourceGroups/mgmt")],
        ..moved
    };
    let decision = run(
        &going(intent_with(&management(SUBNET))),
        &around(),
        &[service(json!([]))],
        &allowed,
    );
    assert_eq!(
        (decision.steps[0].id.group(), &decision.steps[0].verb),
        ("mgmt", &Verb::Delete)
    );
}
