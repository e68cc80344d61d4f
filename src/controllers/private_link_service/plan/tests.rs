use std::sync::Arc;
use std::time::Duration;

use ipnet::Ipv4Net;
use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::{SubscriptionId, lower};
use crate::azure::arm::scope::AzureScope;
use crate::azure::kinds::load_balancer::FrontendList;
use crate::controllers::azure::lists::Lists;
use crate::controllers::private_link_service::samples::{inputs, management_scope, settings};
use crate::controllers::samples::{MANAGEMENT, cr, decided, guest, id, identity, management};
use crate::engine::failure::Class;
use crate::hypershift::azure::names::FrontendMatch;

mod frontends;
mod limits;
mod recorded;
mod shared_subnet;
mod stuck;
mod unlisted;

const FRONTEND: &str = "loadBalancers/lb/frontendIPConfigurations/a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1";
const SUBNET: &str = "virtualNetworks/v/subnets/infra-pls-nat";

fn frontend() -> Frontend {
    Frontend {
        load_balancer: id(&management("loadBalancers/lb")),
        id: management(FRONTEND),
        name: FRONTEND.rsplit('/').next().unwrap().to_owned(),
        address: "10.224.0.4".parse().unwrap(),
        subnet: id(&management("virtualNetworks/v/subnets/lb")),
    }
}

fn facts() -> Facts {
    let scope = (settings().scope.subscription, Some("mgmt".to_owned()));
    Facts {
        lists: Lists {
            frontends: [(scope, Ok(vec![frontend()].into()))].into(),
            ..Lists::default()
        },
        ..Facts::default()
    }
}

fn network() -> (String, Value) {
    let body = json!({"properties": {"addressSpace": {"addressPrefixes": ["10.224.0.0/16"]}, "subnets": []}});
    (management("virtualNetworks/v"), body)
}

fn subnet() -> (String, Value) {
    let body = json!({"properties": {"privateLinkServiceNetworkPolicies": "Disabled"}});
    (management(SUBNET), body)
}

/// The service as Azure shows it once it was put.
fn service() -> (String, Value) {
    let (decision, _) = run(&cr(Value::Null, json!({})), &inputs(), &[subnet()]);
    match &decision.step(Kind::PrivateLinkService).unwrap().verb {
        Verb::Put(body) => (management("privateLinkServices/pls-id"), body.clone()),
        other => panic!("{other:?}"),
    }
}

fn run(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    world: &[(String, Value)],
) -> (Decision, Vec<String>) {
    run_with(cr, inputs, world, &settings())
}

fn run_with(
    cr: &AzurePrivateLinkService,
    inputs: &PrivateLinkServiceInputs,
    world: &[(String, Value)],
    settings: &Settings,
) -> (Decision, Vec<String>) {
    let ((decision, _), asked) = decided(facts(), world, |facts| build(cr, inputs, facts, settings, &[]));
    (decision, asked)
}

/// Why no frontend is found.
fn refusal(inputs: &PrivateLinkServiceInputs, facts: &Facts, settings: &Settings) -> Result<Option<Reason>, Needs> {
    let basis = Basis {
        cr: &cr(Value::Null, json!({})),
        inputs,
        facts,
        settings,
    };
    match frontend::find(basis) {
        Ok(_) => Ok(None),
        Err(Stop::Blocked(problem)) => Ok(Some(problem.reason)),
        Err(Stop::Needs(needs)) => Err(needs),
    }
}

fn intent_of(decision: &Decision) -> HoIntent {
    serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap()
}

fn verbs(decision: &Decision) -> Vec<(Kind, &Verb)> {
    decision.steps.iter().map(|step| (step.kind, &step.verb)).collect()
}

#[test]
fn subnet_comes_first_and_the_service_is_not_read() {
    let (decision, asked) = run(&cr(Value::Null, json!({})), &inputs(), &[network()]);
    let Verb::Put(body) = &decision.steps[0].verb else {
        panic!("{:?}", decision.steps)
    };
    let prefix: Ipv4Net = body["properties"]["addressPrefix"].as_str().unwrap().parse().unwrap();
    assert!("10.224.0.0/16".parse::<Ipv4Net>().unwrap().contains(&prefix));
    assert_eq!(decision.steps[1].why, Why::Needs("the NAT subnet"));
    assert_eq!(asked, ["infra-pls-nat", "v"]);
}

#[test]
fn service_is_put_when_the_subnet_is_there() {
    let (decision, asked) = run(&cr(Value::Null, json!({})), &inputs(), &[subnet()]);
    assert!(matches!(
        verbs(&decision)[..],
        [(Kind::Subnet, Verb::Keep), (Kind::PrivateLinkService, Verb::Put(_))]
    ));
    assert_eq!(asked, ["infra-pls-nat", "pls-id"]);
    insta::assert_json_snapshot!("link_service", service().1);
    let intent = intent_of(&decision);
    assert_eq!(
        (intent.nat_subnet, intent.nat_subnet_made, intent.link_service),
        (Some(management(SUBNET)), false, Some(service().0))
    );
}

#[test]
fn what_is_up_to_date_is_kept() {
    let (decision, _) = run(&cr(Value::Null, json!({})), &inputs(), &[subnet(), service()]);
    assert!(
        decision.steps.iter().all(|step| step.verb == Verb::Keep),
        "{:?}",
        decision.steps
    );
}

#[rstest]
#[case::theirs_is_connected(json!({}), "private-router-pe", None)]
#[case::theirs_leads_elsewhere(json!({}), "another-pe", Some(Reason::EndpointNotConnected))]
#[case::own_controller_will(json!({CPO_INTENT: "{}"}), "another-pe", None)]
fn endpoint_that_hypershift_keeps_is_missed(
    #[case] annotations: Value,
    #[case] connected: &str,
    #[case] problem: Option<Reason>,
) {
    let (at, mut service) = service();
    let endpoint = |name: &str| guest(&format!("privateEndpoints/{name}"));
    service["properties"]["privateEndpointConnections"] =
        json!([{"properties": {"privateEndpoint": {"id": endpoint(connected).to_uppercase()}}}]);
    let named = cr(
        json!({"privateEndpointID": endpoint("private-router-pe")}),
        annotations.clone(),
    );
    let world = [subnet(), (at, service)];
    let (decision, _) = run(&named, &inputs(), &world);
    assert_eq!(decision.problem.map(|p| p.reason), problem);
    assert!(
        decision.steps.iter().all(|step| step.verb == Verb::Keep),
        "{:?}",
        decision.steps
    );
    let (decision, _) = run(&cr(Value::Null, annotations), &inputs(), &world);
    assert_eq!(decision.problem, None, "no endpoint is known");
}

#[rstest]
#[case::nobody_would_reconnect(json!({}), Some(Reason::ReplacementBlocked), &[Verb::Keep, Verb::Wait])]
#[case::our_cpo_serves_it(json!({CPO_INTENT: "{}"}), None, &[Verb::Keep, Verb::Delete])]
#[case::the_operator_allows_it(json!({ALLOW_REPLACE: ""}), None, &[Verb::Keep, Verb::Delete])]
fn service_is_replaced_only_if_somebody_reconnects_the_guest(
    #[case] annotations: Value,
    #[case] problem: Option<Reason>,
    #[case] expected: &[Verb],
) {
    let (at, mut moved) = service();
    moved["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = json!("old");
    let (decision, _) = run(&cr(Value::Null, annotations), &inputs(), &[subnet(), (at, moved)]);
    assert_eq!(decision.problem.as_ref().map(|p| p.reason), problem);
    assert_eq!(
        decision.steps.iter().map(|s| s.verb.clone()).collect::<Vec<_>>(),
        expected
    );
}

#[test]
fn connections_go_before_a_service_is_replaced() {
    let (at, mut moved) = service();
    moved["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = json!("old");
    moved["properties"]["privateEndpointConnections"] =
        json!([{"id": format!("{at}/privateEndpointConnections/pe.guid")}]);
    let (decision, _) = run(
        &cr(Value::Null, json!({CPO_INTENT: "{}"})),
        &inputs(),
        &[subnet(), (at, moved)],
    );
    let expected = [
        (Kind::Subnet, &Verb::Keep),
        (Kind::PrivateEndpointConnection, &Verb::Delete),
        (Kind::PrivateLinkService, &Verb::Wait),
    ];
    assert_eq!(verbs(&decision), expected);
}

#[test]
fn own_subnet_that_an_older_cluster_gives_is_not_used() {
    let taken = PrivateLinkServiceInputs {
        subnets_of_older: vec![lower(&management(SUBNET))],
        ..inputs()
    };
    let (decision, _) = run(&cr(Value::Null, json!({})), &taken, &[]);
    let problem = decision.problem.expect("it is refused");
    assert_eq!(problem.reason, Reason::NATSubnetCreationFailed);
    assert_eq!(
        problem.message,
        "subnet infra-pls-nat is the natSubnetID of an older HostedCluster"
    );
    assert!(decision.steps.is_empty() && problem.requeue_after.is_some());
}

#[test]
fn given_subnet_is_checked_and_never_written() {
    let mut given = cr(Value::Null, json!({}));
    given.spec.nat_subnet_id = Some(management("virtualNetworks/v/subnets/given"));
    let closed = (
        management("virtualNetworks/v/subnets/given"),
        json!({"properties": {"privateLinkServiceNetworkPolicies": "Enabled"}}),
    );
    let (decision, _) = run(&given, &inputs(), &[closed]);
    assert_eq!(
        decision.problem.map(|p| p.reason),
        Some(Reason::NATSubnetCreationFailed)
    );
    assert_eq!(decision.steps, []);
    given.spec.nat_subnet_id = Some(management("virtualNetworks/other/subnets/given"));
    assert_eq!(
        run(&given, &inputs(), &[]).0.problem.map(|p| p.reason),
        Some(Reason::NATSubnetCreationFailed)
    );
}

#[rstest]
#[case::identity(PrivateLinkServiceInputs { identity: Err(Problem::new(Reason::IdentityMismatch, "x")), ..inputs() }, Reason::IdentityMismatch)]
#[case::service(PrivateLinkServiceInputs { service: None, ..inputs() }, Reason::WaitingForLoadBalancer)]
fn without_a_proven_cluster_azure_is_not_even_asked(#[case] inputs: PrivateLinkServiceInputs, #[case] reason: Reason) {
    let (decision, asked) = run(&cr(Value::Null, json!({})), &inputs, &[]);
    assert_eq!(decision.problem.map(|p| p.reason), Some(reason));
    assert_eq!(asked, Vec::<String>::new());
}

#[test]
fn paused_cluster_is_left_as_it_is_and_azure_is_not_asked() {
    let paused = PrivateLinkServiceInputs {
        paused: Some(Problem::new(Reason::Provisioning, "the cluster is paused")),
        ..inputs()
    };
    let (decision, asked) = run(&cr(Value::Null, json!({})), &paused, &[network()]);
    assert!(decision.paused);
    assert_eq!((decision.steps, decision.intent, asked), (Vec::new(), None, Vec::new()));
}

#[test]
fn region_is_sent_as_azure_spells_it() {
    let mut spelt = cr(Value::Null, json!({}));
    spelt.spec.location = "East US".into();
    let (decision, _) = run(&spelt, &inputs(), &[subnet()]);
    match &decision.step(Kind::PrivateLinkService).unwrap().verb {
        Verb::Put(body) => assert_eq!(body["location"], "eastus"),
        other => panic!("{other:?}"),
    }
}

#[test]
fn name_over_80_characters_is_a_problem_and_no_call() {
    let long = Identity {
        cluster_id: "x".repeat(77),
        ..identity()
    };
    let (decision, asked) = run(
        &cr(Value::Null, json!({})),
        &PrivateLinkServiceInputs {
            identity: Ok(long),
            ..inputs()
        },
        &[],
    );
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::InvalidSpec));
    assert_eq!(asked, Vec::<String>::new());
}

#[test]
fn group_with_letters_of_any_script_is_used() {
    let settings = Settings {
        scope: management_scope("größe"),
        ..settings()
    };
    let facts = Facts {
        lists: Lists {
            frontends: [(
                (settings.scope.subscription.clone(), Some("größe".to_owned())),
                Ok(vec![frontend()].into()),
            )]
            .into(),
            ..Lists::default()
        },
        ..Facts::default()
    };
    let resource = cr(Value::Null, json!({}));
    let ((decision, _), _) = decided(facts, &[subnet()], |facts| {
        build(&resource, &inputs(), facts, &settings, &[])
    });
    let step = decision.step(Kind::PrivateLinkService);
    assert_eq!(
        step.map(|step| step.key.group()),
        Some("größe"),
        "{:?}",
        decision.problem
    );
}
