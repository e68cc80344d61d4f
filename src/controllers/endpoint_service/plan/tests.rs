use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::aws::api::error::AwsError;
use crate::controllers::endpoint_service::samples::{
    CLUSTER_ID, NAME, PRINCIPAL, SERVICE_ID, SERVICE_NAME, Sample, account, arn, endpoint_service, load_balancer,
    service,
};
use crate::controllers::facts::Need;
use crate::engine::failure::Class;
use crate::engine::plan::Why;
use crate::hypershift::identity::IDENTITY_RETRY;

fn balancer() -> Slot {
    Slot::load_balancer(&account(), NAME)
}

fn reason(decision: &Decision) -> Option<Reason> {
    decision.problem.as_ref().map(|problem| problem.reason)
}

/// The intent that the decision would record.
fn intent_of(decision: &Decision) -> HoIntent {
    serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap()
}

/// The body of the put of a kind.
fn put(decision: &Decision, kind: Kind) -> Value {
    match &decision.step(kind).unwrap().verb {
        Verb::Put(body) => body.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn load_balancer_of_a_new_cluster_is_read_and_nothing_else() {
    let sample = Sample::new();
    let needs = build(sample.basis()).unwrap_err();
    assert_eq!(needs, [Need::Read(Kind::LoadBalancer, balancer())]);
}

#[rstest]
#[case::provisioning(Observed::Found(load_balancer("provisioning")), Reason::LoadBalancerNotActive)]
#[case::failed(Observed::Found(load_balancer("failed")), Reason::LoadBalancerNotActive)]
#[case::unknown_state(Observed::Found(load_balancer("new-state")), Reason::LoadBalancerNotActive)]
#[case::gone(Observed::Absent, Reason::LoadBalancerNotActive)]
#[case::unread(Observed::ReadFailed(AwsError::own(Class::Down, "X")), Reason::LoadBalancerNotActive)]
fn service_waits_for_an_active_load_balancer(#[case] observed: Observed, #[case] expected: Reason) {
    let mut sample = Sample::new();
    sample.observes(balancer(), observed);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), Some(expected));
    assert!(!decision.steps.iter().any(Step::writes) && decision.intent.is_none());
}

/// Else its next read would not count, and the custom resource wait for the resync.
#[test]
fn load_balancer_that_cannot_be_read_is_due_by_itself() {
    let mut sample = Sample::new();
    sample.observes(balancer(), Observed::ReadFailed(AwsError::own(Class::Down, "X")));
    let decision = build(sample.basis()).unwrap();
    assert!(!decision.step(Kind::LoadBalancer).unwrap().why.waits_for_others());
}

#[test]
fn load_balancer_with_another_host_name_is_not_the_services() {
    let mut sample = Sample::new();
    let mut body = load_balancer("active");
    body["DNSName"] = json!(format!("{NAME}-ffffffffffffffff.elb.us-east-1.amazonaws.com"));
    sample.shows(balancer(), body);
    let decision = build(sample.basis()).unwrap();
    assert!(reason(&decision).is_some() && !decision.steps.iter().any(Step::writes));
}

#[rstest]
#[case("active")]
#[case("active_impaired")]
fn service_is_created_once_the_load_balancer_carries_traffic(#[case] state: &str) {
    let mut sample = Sample::new();
    sample.shows(balancer(), load_balancer(state));
    sample.observes(service(), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    let body = put(&decision, Kind::EndpointService);
    assert_eq!(body["NetworkLoadBalancerArns"], json!([arn(NAME)]));
    assert_eq!(body["AcceptanceRequired"], json!(false));
    assert_eq!(body["Tags"]["kubernetes.io/cluster/mgmt"], json!("owned"));
    assert_eq!(body["Tags"]["team"], json!("x"));
    let principals = decision.step(Kind::AllowedPrincipals).unwrap();
    assert_eq!(principals.why, Why::Needs("the endpoint service"));
    assert_eq!(intent_of(&decision).load_balancer, NAME);
}

#[rstest]
#[case::impaired(
    "active_impaired",
    Some("load balancer aa1b2c3d4e5f60718293a4b5c6d7e8f9 is active_impaired: it does not carry all traffic")
)]
#[case::active("active", None)]
fn state_of_a_load_balancer_stands_as_it_was_read(#[case] state: &str, #[case] expected: Option<&str>) {
    let mut sample = Sample::ready();
    let stands = |sample: &Sample| {
        let standing = build(sample.basis()).unwrap().standing.into_iter();
        let mut of_balancer = standing.filter(|(topic, _)| *topic == "load balancer");
        of_balancer.next().map(|(_, event)| event.map(|event| event.note))
    };
    assert_eq!(stands(&sample), None, "it was not read: nothing is over");
    sample.shows(balancer(), load_balancer(state));
    assert_eq!(stands(&sample), Some(expected.map(str::to_owned)));
}

#[test]
fn role_is_allowed_without_its_path() {
    let mut sample = Sample::ready();
    let slot = Slot::allowed_principals(&service());
    sample.shows(
        slot,
        json!({"AllowedPrincipals": ["arn:aws:iam::444455556666:role/foreign"]}),
    );
    let decision = build(sample.basis()).unwrap();
    assert_eq!(
        put(&decision, Kind::AllowedPrincipals),
        json!({"AllowedPrincipals": [PRINCIPAL]})
    );
}

#[test]
fn take_over_of_hypershifts_own_service_writes_nothing_to_aws() {
    let sample = Sample::ready();
    let decision = build(sample.basis()).unwrap();
    assert!(decision.problem.is_none() && !decision.steps.iter().any(Step::writes));
    assert_eq!(intent_of(&decision).endpoint_service_id.as_deref(), Some(SERVICE_ID));
    assert!(
        !sample.facts.reads.contains_key(&balancer()),
        "the load balancer is known by its service"
    );
}

#[test]
fn subnets_cluster_and_zones_are_written_on_the_custom_resource() {
    let mut sample = Sample::ready();
    let fields = build(sample.basis()).unwrap().own_fields;
    let annotations = json!(fields.annotations);
    assert_eq!(
        annotations,
        json!({CLUSTER_ANNOTATION: "clusters/example", SERVICE_ZONES: "use1-az1,use1-az2"})
    );
    assert_eq!(
        json!(fields.spec),
        json!({"subnetIDs": ["subnet-0000000a", "subnet-0000000b"]})
    );
    let annotations = serde_json::from_value(annotations).unwrap();
    sample.cr.metadata.annotations = Some(annotations);
    sample.cr.spec.subnet_ids = vec!["subnet-0000000a".into(), "subnet-0000000b".into()];
    assert!(build(sample.basis()).unwrap().own_fields.is_empty());
}

#[test]
fn last_subnets_stay_when_all_node_pools_are_gone() {
    let mut sample = Sample::ready();
    sample.cr.spec.subnet_ids = vec!["subnet-0000000c".into()];
    sample.inputs.node_pools.clear();
    assert!(build(sample.basis()).unwrap().own_fields.spec.is_empty());
}

#[test]
fn same_service_is_asked_for_until_one_is_known_to_be_gone() {
    let token = |sample: &Sample| put(&build(sample.basis()).unwrap(), Kind::EndpointService)["ClientToken"].clone();
    let mut sample = Sample::new();
    sample.shows(balancer(), load_balancer("active"));
    sample.observes(service(), Observed::Absent);
    let first = token(&sample);
    assert_eq!(token(&sample), first);
    sample.cr.status = serde_json::from_value(json!({"endpointServiceName": SERVICE_NAME})).unwrap();
    let second = token(&sample);
    assert_ne!(second, first);
    // The status is cleared, and the intent keeps the new token.
    let recorded = build(sample.basis()).unwrap().intent.unwrap();
    sample.cr.status = None;
    sample.cr.annotations_mut().insert(HO_INTENT.to_owned(), recorded);
    assert_eq!(token(&sample), second);
}

/// A custom resource whose intent names another load balancer, and the endpoint service of that one.
fn sample_with_former() -> (Sample, Slot) {
    let mut sample = Sample::ready();
    let old = HoIntent {
        load_balancer: "aold".to_owned(),
        ..HoIntent::of(sample.inputs.identity.as_ref().unwrap())
    };
    sample
        .cr
        .annotations_mut()
        .insert(HO_INTENT.to_owned(), intent::write(&old));
    (sample, Slot::endpoint_service(&account(), "aold"))
}

#[test]
fn service_of_a_load_balancer_of_before_is_deleted() {
    let (mut sample, former) = sample_with_former();
    let mut body = endpoint_service("aold");
    body["Tags"]["hypershift.openshift.io/cluster-id"] = json!(CLUSTER_ID);
    sample.shows(former.clone(), body);
    sample.observes(Slot::endpoint_connections(&former), Observed::Absent);
    let decision = build(sample.basis()).unwrap();
    let deleted: Vec<&Slot> = decision
        .steps
        .iter()
        .filter(|step| step.verb == Verb::Delete)
        .map(|step| &step.key)
        .collect();
    assert_eq!(deleted, [&former]);
    assert_eq!(intent_of(&decision).former_load_balancers, ["aold"]);
}

#[rstest]
#[case::surely_gone(true, &[])]
#[case::not_found_once(false, &["aold"])]
fn load_balancer_of_before_is_forgotten_once_its_service_is_gone(#[case] surely: bool, #[case] expected: &[&str]) {
    let (mut sample, former) = sample_with_former();
    sample.observes(former.clone(), Observed::Absent);
    if surely {
        sample.facts.surely_gone.insert(former);
    }
    let decision = build(sample.basis()).unwrap();
    assert_eq!(intent_of(&decision).former_load_balancers, expected);
    assert_eq!(decision.forgets, surely);
}

#[test]
fn forged_load_balancer_of_before_is_left_to_its_owner() {
    let mut sample = Sample::ready();
    let forged = HoIntent {
        load_balancer: "victim".to_owned(),
        ..HoIntent::of(sample.inputs.identity.as_ref().unwrap())
    };
    sample
        .cr
        .annotations_mut()
        .insert(HO_INTENT.to_owned(), intent::write(&forged));
    sample.shows(Slot::endpoint_service(&account(), "victim"), endpoint_service("victim"));
    let decision = build(sample.basis()).unwrap();
    assert!(!decision.steps.iter().any(Step::writes), "{:?}", decision.steps);
    assert!(decision.forgets && intent_of(&decision).former_load_balancers.is_empty());
    let standing = decision.standing.iter();
    let events: Vec<_> = standing.filter_map(|(_, event)| event.as_ref()).collect();
    assert!(events[0].note.contains("load balancer victim stays"), "{events:?}");
}

#[test]
fn failed_service_is_replaced_once_its_connections_are_gone() {
    let mut sample = Sample::ready();
    let mut body = endpoint_service(NAME);
    body["State"] = json!("Failed");
    sample.shows(service(), body);
    let connections = Slot::endpoint_connections(&service());
    sample.shows(connections.clone(), json!({"EndpointIds": ["vpce-1"]}));
    let verbs = |sample: &Sample| {
        let decision = build(sample.basis()).unwrap();
        [Kind::EndpointConnections, Kind::EndpointService].map(|kind| decision.step(kind).unwrap().verb.clone())
    };
    assert_eq!(verbs(&sample), [Verb::Delete, Verb::Wait]);
    sample.observes(connections, Observed::Absent);
    assert_eq!(verbs(&sample), [Verb::Keep, Verb::Delete]);
}

#[rstest]
#[case::no_cluster(|s: &mut Sample| s.inputs.identity = Err(Problem::new(Reason::IdentityMismatch, "x").requeue_after(IDENTITY_RETRY)), Reason::IdentityMismatch)]
#[case::bad_role(|s: &mut Sample| s.inputs.principals = Err(Problem::new(Reason::InvalidSpec, "x")), Reason::InvalidSpec)]
#[case::claimed(|s: &mut Sample| s.inputs.load_balancer_claimed = true, Reason::AmbiguousLoadBalancer)]
#[case::load_balancer_of_another(|s: &mut Sample| s.cr.spec.network_load_balancer_name = "victim".into(), Reason::WaitingForLoadBalancer)]
#[case::forged_service(|s: &mut Sample| s.inputs.service.as_mut().unwrap().owned = false, Reason::NotOurs)]
#[case::no_service(|s: &mut Sample| s.inputs.service = None, Reason::WaitingForLoadBalancer)]
fn nothing_is_read_of_aws_without_a_proof(#[case] change: fn(&mut Sample), #[case] expected: Reason) {
    let mut sample = Sample::new();
    change(&mut sample);
    let decision = build(sample.basis()).unwrap();
    assert_eq!(reason(&decision), Some(expected));
    assert!(decision.steps.is_empty());
}

#[test]
fn paused_cluster_is_not_touched() {
    let mut sample = Sample::ready();
    sample.inputs.paused = Some(Problem::new(Reason::Provisioning, "the cluster is paused"));
    let decision = build(sample.basis()).unwrap();
    assert!(decision.paused && decision.steps.is_empty() && decision.own_fields.is_empty());
}

#[test]
fn service_name_is_that_of_the_ready_service() {
    assert_eq!(
        service_id(SERVICE_NAME, &Sample::new().settings.region),
        Some(SERVICE_ID)
    );
}
