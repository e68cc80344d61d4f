//! What is removed from an existing service's lists before anything else is done, and while nothing else can be.

use super::*;
use crate::api::HostedCluster;
use crate::controllers::samples::{GUEST, guest};
use crate::hypershift::azure::names;

const REVOKED: &str = "44444444-4444-4444-8444-444444444444";

/// The inputs of a HostedCluster that lets only the guest connect.
fn revoking() -> PrivateLinkServiceInputs {
    let mut hosted = HostedCluster::default();
    let azure = json!({"subnetID": guest("virtualNetworks/v/subnets/default")});
    hosted.spec.platform.azure = serde_json::from_value(azure).unwrap();
    PrivateLinkServiceInputs {
        connecting: Connecting::of(&hosted),
        ..inputs()
    }
}

/// The service as it was before the revocation, with a field that others set.
fn open() -> (String, Value) {
    let (id, mut body) = service();
    for list in ["visibility", "autoApproval"] {
        body["properties"][list] = json!({"subscriptions": [GUEST, REVOKED]});
    }
    body["properties"]["fqdns"] = json!(["a.b"]);
    (id, body)
}

/// A service that is open to one who was revoked, with its custom resource and inputs.
struct Scene {
    custom: AzurePrivateLinkService,
    inputs: PrivateLinkServiceInputs,
    at: String,
    body: Value,
}

impl Scene {
    fn new() -> Self {
        let (at, body) = open();
        Self {
            custom: cr(Value::Null, json!({})),
            inputs: revoking(),
            at,
            body,
        }
    }

    fn run(&self) -> (Decision, Vec<String>) {
        run(
            &self.custom,
            &self.inputs,
            &[subnet(), (self.at.clone(), self.body.clone())],
        )
    }
}

#[rstest]
#[case::no_address(|scene: &mut Scene| scene.custom.spec.load_balancer_ip = None)]
#[case::objects_disagree(|scene: &mut Scene| scene.inputs.identity = Err(Problem::new(Reason::IdentityMismatch, "x")))]
#[case::invalid_field(|scene: &mut Scene| scene.custom.spec.guest_vnet_id = "x".to_owned())]
#[case::foreign_frontend(|scene: &mut Scene| scene.custom.spec.load_balancer_ip = Some("10.224.0.5".to_owned()))]
#[case::replacement_is_blocked(|scene: &mut Scene| scene.body["properties"]["loadBalancerFrontendIpConfigurations"] = json!([{"id": "x"}]))]
#[case::location_that_azure_refuses(|scene: &mut Scene| scene.custom.spec.location = "elsewhere".to_owned())]
#[case::waits_for_connections(|scene: &mut Scene| {
    scene.body["properties"]["loadBalancerFrontendIpConfigurations"] = json!([{"id": "x"}]);
    let id = format!("{}/privateEndpointConnections/c", scene.at);
    scene.body["properties"]["privateEndpointConnections"] = json!([{"id": id, "properties": {}}]);
    scene.custom.annotations_mut().insert(CPO_INTENT.to_owned(), "{}".to_owned());
})]
#[case::recorded_where_it_may_not_be(|scene: &mut Scene| {
    let elsewhere = management("privateLinkServices/pls-id").replace("/mgmt/", "/other/");
    scene.custom = cr(json!({"privateLinkServiceID": elsewhere}), json!({}));
})]
fn revoked_subscription_is_removed_before_all_else(#[case] stuck: fn(&mut Scene)) {
    let mut scene = Scene::new();
    stuck(&mut scene);
    let (decision, _) = scene.run();
    let services: Vec<_> = decision
        .steps
        .iter()
        .filter(|step| step.kind == Kind::PrivateLinkService)
        .collect();
    let [step] = services[..] else { panic!("{services:?}") };
    let Verb::Put(put) = &step.verb else { panic!("{step:?}") };
    let others: Vec<_> = decision
        .steps
        .iter()
        .filter(|other| other.key != step.key && other.writes())
        .collect();
    assert!(others.is_empty() && decision.intent.is_none(), "{others:?}");
    let mut expected = scene.body.clone();
    for list in ["visibility", "autoApproval"] {
        expected["properties"][list] = json!({"subscriptions": [GUEST]});
    }
    assert_eq!(*put, expected, "all else stays");
    scene.body = expected;
    let (again, _) = scene.run();
    let narrowed = again.step(Kind::PrivateLinkService).map(|step| &step.verb);
    assert!(narrowed != Some(&Verb::Put(scene.body)), "{:?}", again.steps);
}

#[test]
fn revoked_subscription_is_removed_though_the_subnet_fails() {
    let mut facts = facts();
    let refused = ArmError::from_json(403, &json!({"error": {"code": "AuthorizationFailed"}}), None);
    facts
        .reads
        .insert(id(&management(SUBNET)), Observed::WriteFailed(refused));
    let custom = cr(Value::Null, json!({}));
    let decide = |facts: &Facts| build(&custom, &revoking(), facts, &settings(), &[]);
    let ((decision, _), _) = decided(facts, &[open()], decide);
    let step = decision.step(Kind::PrivateLinkService).unwrap();
    assert!(matches!(step.verb, Verb::Put(_)), "{step:?}");
}

/// Whoever is revoked may have removed the record of the service's group.
#[rstest]
#[case::in_an_also_managed_group(Settings {
    also_manage: vec![management_scope("old").as_azure_scope()],
    ..settings()
})]
#[case::in_another_management_scope(Settings {
    other_scopes: vec![management_scope("old")],
    ..settings()
})]
fn revoked_subscription_is_removed_from_an_unrecorded_service(#[case] settings: Settings) {
    let mut scene = Scene::new();
    scene.custom.spec.load_balancer_ip = None;
    let old = scene.at.replace("/mgmt/", "/old/");
    let world = [subnet(), (old.clone(), scene.body.clone())];
    let decide = |facts: &Facts| build(&scene.custom, &scene.inputs, facts, &settings, &[]);
    let ((decision, _), _) = decided(facts(), &world, decide);
    let [step] = &decision.steps[..] else {
        panic!("{:?}", decision.steps)
    };
    assert!(matches!(step.verb, Verb::Put(_)) && step.key == id(&old), "{step:?}");
}

#[test]
fn further_group_is_read_only_where_no_service_is_found() {
    let group = AzureScope::parse(&format!("/subscriptions/{MANAGEMENT}/resourceGroups/old")).unwrap();
    let also = Settings {
        also_manage: vec![group],
        ..settings()
    };
    let mut scene = Scene::new();
    scene.custom.spec.load_balancer_ip = None;
    let old = id(&scene.at.replace("/mgmt/", "/old/"));
    let mut facts = facts();
    let gone = ArmError::from_json(403, &json!({"error": {"code": "SubscriptionNotFound"}}), None);
    facts.reads.insert(old.clone(), Observed::ReadFailed(gone));
    let decide = |facts: &Facts| build(&scene.custom, &scene.inputs, facts, &also, &[]);
    let ((decision, _), _) = decided(facts.clone(), &[subnet()], decide);
    assert_eq!(decision.steps, [], "it is not there");
    facts.reads.remove(&old);
    let ((_, _), asked) = decided(facts, &[subnet(), (scene.at.clone(), scene.body.clone())], decide);
    assert_eq!(asked, ["pls-id"], "it stands here");
}

#[test]
fn name_that_no_service_has_is_not_read() {
    let mut scene = Scene::new();
    scene.custom.spec.load_balancer_ip = None;
    scene.custom.metadata.name = Some("junk-1".to_owned());
    assert_eq!(scene.run().1, Vec::<String>::new());
}

#[rstest]
#[case::paused(|scene: &mut Scene| scene.inputs.paused = Some(Problem::new(Reason::Provisioning, "x")), false)]
#[case::paused_and_objects_disagree(|scene: &mut Scene| {
    let problem = Problem::new(Reason::IdentityMismatch, "x");
    (scene.inputs.paused, scene.inputs.identity) = (Some(problem.clone()), Err(problem));
}, false)]
#[case::id_of_an_older_cluster(|scene: &mut Scene| scene.inputs.own = None, false)]
#[case::owner_names_no_subnet(|scene: &mut Scene| scene.inputs.connecting = Connecting::default(), false)]
#[case::of_another_cluster(|scene: &mut Scene| scene.body["tags"][names::CLUSTER_ID_TAG] = json!("other"), true)]
#[case::of_another_management_cluster(|scene: &mut Scene| scene.body["tags"][names::MANAGEMENT_CLUSTER_TAG] = json!("other"), true)]
#[case::nobody_proves_it_owned(|scene: &mut Scene| scene.body["tags"] = json!({}), true)]
fn service_that_may_not_be_changed_is_not_written(#[case] more: fn(&mut Scene), #[case] is_read: bool) {
    let mut scene = Scene::new();
    scene.custom.spec.load_balancer_ip = None;
    scene.inputs.service = None;
    scene.body["properties"]["loadBalancerFrontendIpConfigurations"] = json!([{"id": "x"}]);
    more(&mut scene);
    let (decision, asked) = scene.run();
    assert_eq!(decision.steps, []);
    assert_eq!(asked.contains(&"pls-id".to_owned()), is_read, "{asked:?}");
}

#[test]
fn failed_service_is_put_only_to_remove_a_subscription() {
    let mut scene = Scene::new();
    scene.custom.spec.load_balancer_ip = None;
    scene.body["properties"]["provisioningState"] = json!("Failed");
    assert!(scene.run().0.steps.iter().any(Step::writes));
    for list in ["visibility", "autoApproval"] {
        scene.body["properties"][list] = json!({"subscriptions": [GUEST]});
    }
    assert_eq!(scene.run().0.steps, []);
}

#[test]
fn service_that_is_not_there_is_not_made_while_stuck() {
    let mut custom = cr(Value::Null, json!({}));
    custom.spec.load_balancer_ip = None;
    let (decision, asked) = run(&custom, &revoking(), &[subnet()]);
    assert_eq!((decision.steps, asked), (Vec::new(), vec!["pls-id".to_owned()]));
}
