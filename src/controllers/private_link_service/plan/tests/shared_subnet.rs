//! One NAT subnet for all clusters of a network, as the operator may give it.

use super::*;
use crate::controllers::samples::guest;

const SHARED: &str = "virtualNetworks/v/subnets/shared";

/// What is decided, and what is asked of Azure.
fn run_shared(shared: &str, own: Option<String>, world: &[(String, Value)]) -> (Decision, Vec<String>) {
    let mut cr = cr(Value::Null, json!({}));
    cr.spec.nat_subnet_id = own;
    let settings = Settings {
        nat_subnet: Some(id(shared)),
        ..settings()
    };
    let decide = |facts: &Facts| build(&cr, &inputs(), facts, &settings, &[]);
    let ((decision, _), asked) = decided(facts(), world, decide);
    (decision, asked)
}

/// A subnet that a service can be put into.
fn open(path: &str) -> (String, Value) {
    let (_, body) = subnet();
    (management(path), body)
}

fn put_subnet(decision: &Decision) -> Option<String> {
    let step = decision.step(Kind::PrivateLinkService)?;
    let Verb::Put(body) = &step.verb else { return None };
    let subnet = body.pointer("/properties/ipConfigurations/0/properties/subnet/id")?;
    subnet.as_str().map(str::to_owned)
}

#[test]
fn new_service_uses_the_shared_subnet_without_a_write_to_it() {
    let (decision, asked) = run_shared(&management(SHARED), None, &[open(SHARED)]);
    assert_eq!(put_subnet(&decision), Some(management(SHARED)));
    assert!(
        decision.steps.iter().all(|step| step.kind == Kind::PrivateLinkService),
        "{:?}",
        decision.steps
    );
    assert!(!asked.contains(&"infra-pls-nat".to_owned()), "{asked:?}");
    let recorded: HoIntent = intent::read(decision.intent.as_ref()).unwrap();
    assert_eq!(recorded.nat_subnet, None, "it does not go with the cluster");
}

#[test]
fn service_that_stands_in_its_own_subnet_stays_there() {
    let (decision, _) = run_shared(&management(SHARED), None, &[open(SHARED), subnet(), service()]);
    assert!(
        decision.steps.iter().all(|step| step.verb == Verb::Keep),
        "{:?}",
        decision.steps
    );
}

#[rstest]
#[case::the_owner_gives_another(management(SHARED), Some(management("virtualNetworks/v/subnets/owners")))]
#[case::it_is_in_another_network(management("virtualNetworks/w/subnets/shared"), None)]
#[case::it_is_in_another_subscription(guest(SHARED), None)]
fn shared_subnet_is_not_for_this_cluster(#[case] shared: String, #[case] own: Option<String>) {
    let world = [
        open("virtualNetworks/v/subnets/owners"),
        subnet(),
        (shared.clone(), subnet().1),
    ];
    let (decision, _) = run_shared(&shared, own.clone(), &world);
    assert_eq!(put_subnet(&decision), Some(own.unwrap_or_else(|| management(SUBNET))));
}

#[test]
fn missing_shared_subnet_is_reported_as_the_operators_setting() {
    let (decision, _) = run_shared(&management(SHARED), None, &[]);
    let problem = decision.problem.unwrap();
    assert_eq!(problem.message, "--nat-subnet-id does not exist");
}
