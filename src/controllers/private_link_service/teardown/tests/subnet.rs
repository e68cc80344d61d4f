//! The NAT subnet is deleted with the last custom resource, if the cluster owns it and nobody uses it.

use super::*;

fn reference_shape() -> Value {
    json!({"properties": {"addressPrefix": "10.224.7.0/24", "provisioningState": "Succeeded", "delegations": [],
        "privateLinkServiceNetworkPolicies": "Disabled", "privateEndpointNetworkPolicies": "Disabled"}})
}

fn used_by(id: &str) -> Value {
    let mut used = reference_shape();
    used["properties"]["ipConfigurations"] = json!([{"id": management(id)}]);
    used
}

fn subnet(body: Value) -> (String, Value) {
    (management(SUBNET), body)
}

/// The step for the subnet when the service is gone.
fn step(inputs: &PrivateLinkServiceInputs, recorded: Value, body: Value) -> Option<Step> {
    let decision = run(&deleting(recorded), inputs, &[subnet(body)], &settings());
    decision.step(Kind::Subnet).cloned()
}

fn not_made() -> Value {
    let recorded = HoIntent {
        nat_subnet: Some(management(SUBNET)),
        ..HoIntent::of(&cluster())
    };
    json!({HO_INTENT: intent::write(&recorded)})
}

#[test]
fn subnet_in_use_is_left_and_holds_up_nothing() {
    let used = subnet(used_by("networkInterfaces/vm/ipConfigurations/x"));
    let decision = run(
        &deleting(intent_with(&management(SUBNET))),
        &inputs(),
        &[used],
        &settings(),
    );
    assert_eq!(decision.steps[1].why, Why::InUse("ipConfigurations"));
    assert!(decision.nothing_left());
}

#[rstest]
#[case::of_another_name(management("virtualNetworks/v/subnets/production"))]
#[case::of_another_cluster(management("virtualNetworks/v/subnets/other-pls-nat"))]
#[case::in_another_subscription(crate::controllers::samples::guest(SUBNET))]
#[case::that_is_no_id("x".to_owned())]
fn forged_subnet_is_never_touched(#[case] subnet: String) {
    let names = ["production", "other-pls-nat"];
    let world = names.map(|name| {
        (
            management(&format!("virtualNetworks/v/subnets/{name}")),
            reference_shape(),
        )
    });
    let decision = run(&deleting(intent_with(&subnet)), &inputs(), &world, &settings());
    assert_eq!(decision.step(Kind::Subnet).map(|step| step.key.name()), None);
}

/// Without the HostedCluster only the cluster's own service proves the subnet.
#[rstest]
#[case::the_hosted_cluster_vouches(Some(cluster()), None, Verb::Delete)]
#[case::it_has_another_infra_id(Some(Identity { infra_id: "other".into(), ..cluster() }), None, Verb::Refuse)]
#[case::nobody_does(None, None, Verb::Refuse)]
#[case::our_service_was_in_it(None, Some(SUBNET), Verb::Delete)]
#[case::our_service_was_in_another(None, Some("virtualNetworks/w/subnets/infra-pls-nat"), Verb::Refuse)]
fn subnet_that_is_only_recorded_stays(#[case] own: Option<Identity>, #[case] shown: Option<&str>, #[case] verb: Verb) {
    let inputs = PrivateLinkServiceInputs {
        own,
        shown_subnet: shown.map(|path| crate::controllers::samples::id(&management(path))),
        ..inputs()
    };
    let step = step(&inputs, intent_with(&management(SUBNET)), reference_shape()).unwrap();
    assert_eq!(step.verb, verb);
}

#[test]
fn sibling_keeps_the_subnet() {
    let sibling = PrivateLinkServiceInputs {
        sibling_stays: true,
        ..inputs()
    };
    assert_eq!(
        step(&sibling, intent_with(&management(SUBNET)), reference_shape()),
        None
    );
}

#[test]
fn last_custom_resource_waits_for_a_sibling_under_deletion() {
    let sibling = PrivateLinkServiceInputs {
        sibling_deleting: true,
        ..inputs()
    };
    let step = step(&sibling, intent_with(&management(SUBNET)), reference_shape()).unwrap();
    assert_eq!(step.why, Why::Needs("the cluster's other custom resource to go"));
}

#[test]
fn adopted_subnet_is_deleted_only_in_the_reference_shape() {
    let verb = |body| step(&inputs(), not_made(), body).unwrap().verb;
    assert_eq!(verb(reference_shape()), Verb::Delete);
    let mut small = reference_shape();
    small["properties"]["addressPrefix"] = json!("10.224.7.0/28");
    assert_eq!(verb(small.clone()), Verb::Refuse);
    let made = step(&inputs(), intent_with(&management(SUBNET)), small).unwrap();
    assert_eq!(made.verb, Verb::Delete, "what we made goes in any shape");
}

#[test]
fn subnet_that_clusters_share_stays_whatever_its_name_is() {
    let shared = Settings {
        nat_subnet: Some(crate::controllers::samples::id(&management(SUBNET))),
        ..settings()
    };
    let world = [subnet(reference_shape())];
    let decision = run(&deleting(intent_with(&management(SUBNET))), &inputs(), &world, &shared);
    assert!(decision.step(Kind::Subnet).is_none(), "{:?}", decision.steps);
}

#[test]
fn subnet_that_somebody_gives_stays() {
    let given = PrivateLinkServiceInputs {
        given_subnets: vec![management(SUBNET).to_ascii_lowercase()],
        ..inputs()
    };
    let step = step(&given, intent_with(&management(SUBNET)), reference_shape()).unwrap();
    assert_eq!(step.why, Why::InUse("natSubnetID of a cluster"));
}

/// Why the subnet stays when it shows addresses of the service, the deletion began two hours ago, and the two services
/// are gone for so long.
fn why_kept(service: Duration, sibling: Duration) -> Why {
    let own = subnet(used_by(&format!("{SERVICE}/ipConfigurations/pls-nat-ip")));
    let recorded = deleting(intent_with(&management(SUBNET)));
    let gone = [
        (SERVICE, service),
        ("privateLinkServices/pls-oauth-openshift-id", sibling),
    ];
    let facts = Facts {
        gone_for: gone
            .into_iter()
            .map(|(path, gone)| (crate::controllers::samples::id(&management(path)), gone))
            .collect(),
        ..Facts::default()
    };
    let now = "2026-01-01T02:00:00Z".parse().unwrap();
    let decide = |facts: &Facts| teardown(&recorded, &inputs(), facts, &settings(), now);
    decided(facts, std::slice::from_ref(&own), decide).0.steps[1]
        .why
        .clone()
}

#[test]
fn subnet_is_not_left_because_the_service_was_slow() {
    let (soon, late) = (Duration::from_secs(10), Duration::from_secs(600));
    let waits = Why::Needs("the service's addresses to go");
    assert_eq!(why_kept(soon, late), waits);
    assert_eq!(why_kept(late, soon), waits, "the sibling's may have been the last");
    assert_eq!(why_kept(late, late), Why::InUse("ipConfigurations"));
}

#[test]
fn services_gone_before_the_deletion_are_waited_for_too() {
    let own = subnet(used_by(&format!("{SERVICE}/ipConfigurations/pls-nat-ip")));
    let recorded = deleting(intent_with(&management(SUBNET)));
    let decision = run(&recorded, &inputs(), &[own], &settings());
    assert_eq!(decision.steps[1].why, Why::Needs("the service's addresses to go"));
}

#[rstest]
#[case::of_private_router("private-router", "pls-oauth-openshift-id")]
#[case::of_oauth("oauth-openshift", "pls-id")]
fn addresses_of_the_sibling_that_just_went_are_waited_for(#[case] last: &str, #[case] sibling: &str) {
    let mut recorded = deleting(intent_with(&management(SUBNET)));
    recorded.metadata.name = Some(last.to_owned());
    let users = [
        format!("privateLinkServices/{sibling}/ipConfigurations/pls-nat-ip"),
        format!("networkInterfaces/{sibling}.nic.0a1b/ipConfigurations/pls-nat-ip"),
    ];
    for user in users {
        let decision = run(&recorded, &inputs(), &[subnet(used_by(&user))], &settings());
        let step = decision.step(Kind::Subnet).unwrap();
        assert_eq!(step.why, Why::Needs("the service's addresses to go"), "{user}");
    }
}

/// A cluster that HyperShift's operator made and of which nothing was recorded.
fn unrecorded() -> AzurePrivateLinkService {
    let mut unrecorded = deleting(json!({}));
    let shown = json!({"privateLinkServiceID": management(SERVICE),
        "privateLinkServiceAlias": crate::controllers::samples::ALIAS,
        "internalLoadBalancerID": management("loadBalancers/lb")});
    unrecorded.status = serde_json::from_value(shown).unwrap();
    unrecorded
}

#[test]
fn subnet_of_an_unrecorded_service_is_recorded_before_deletion() {
    let service = json!({"tags": tags(), "properties": {"ipConfigurations": [
        {"properties": {"primary": true, "subnet": {"id": management(SUBNET)}}}]}});
    let world = [(management(SERVICE), service), subnet(reference_shape())];
    let decision = run(&unrecorded(), &inputs(), &world, &settings());
    assert_eq!(
        verbs(&decision),
        [(Kind::PrivateLinkService, Verb::Delete), (Kind::Subnet, Verb::Wait)]
    );
    let recorded: HoIntent = serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap();
    assert_eq!(
        (recorded.nat_subnet, recorded.nat_subnet_made),
        (Some(management(SUBNET)), false)
    );
}

/// The load balancer, with a frontend in each of these networks.
fn balancer(networks: &[&str]) -> (String, Value) {
    let frontend = |network: &&str| {
        json!({"id": management("loadBalancers/lb/frontendIPConfigurations/f"), "name": "f", "properties": {
            "privateIPAddress": "10.224.0.4", "subnet": {"id": management(&format!("virtualNetworks/{network}/subnets/nodes"))}}})
    };
    let frontends: Vec<Value> = networks.iter().map(frontend).collect();
    let at = management("loadBalancers/lb");
    (
        at.clone(),
        json!({"id": at, "properties": {"frontendIPConfigurations": frontends}}),
    )
}

/// What is asked of Azure, and the step for the subnet, when the service is gone and nothing was recorded.
fn beside(cr: &AzurePrivateLinkService, identity: Identity, networks: &[&str]) -> (Vec<String>, Option<Verb>) {
    let inputs = PrivateLinkServiceInputs {
        deleted_cluster: DeletedCluster::Of(identity),
        ..inputs()
    };
    let world = [balancer(networks), subnet(reference_shape())];
    let now = "2026-01-01T00:00:10Z".parse().unwrap();
    let decide = |facts: &Facts| teardown(cr, &inputs, facts, &settings(), now);
    let (decision, asked) = decided(Facts::default(), &world, decide);
    (asked, decision.step(Kind::Subnet).map(|step| step.verb.clone()))
}

#[test]
fn load_balancer_in_two_networks_does_not_tell_the_subnet() {
    assert_eq!(beside(&unrecorded(), cluster(), &["v", "v"]).1, Some(Verb::Delete));
    assert_eq!(beside(&unrecorded(), cluster(), &["v", "w"]).1, None);
}

#[test]
fn load_balancer_is_read_only_if_it_can_show_the_subnet() {
    let asked = |cr: &AzurePrivateLinkService, identity| beside(cr, identity, &["v"]).0;
    assert_eq!(asked(&unrecorded(), cluster()), ["pls-id", "lb", "infra-pls-nat"]);
    let unnamed = Identity {
        infra_id: String::new(),
        ..cluster()
    };
    assert_eq!(asked(&unrecorded(), unnamed), ["pls-id"], "no infra id, no name");
    let mut given = unrecorded();
    given.spec.nat_subnet_id = Some(management("virtualNetworks/v/subnets/given"));
    assert_eq!(asked(&given, cluster()), ["pls-id"], "another subnet was given");
    let mut forged = unrecorded();
    let foreign = crate::controllers::samples::guest("loadBalancers/lb");
    forged.status.as_mut().unwrap().internal_load_balancer_id = Some(foreign);
    assert_eq!(asked(&forged, cluster()), ["pls-id"], "another subscription");
}

#[test]
fn cluster_without_an_infra_id_has_no_subnet() {
    let unnamed = Identity {
        infra_id: String::new(),
        ..cluster()
    };
    let inputs = PrivateLinkServiceInputs {
        deleted_cluster: DeletedCluster::Of(unnamed),
        ..inputs()
    };
    let other = management("virtualNetworks/v/subnets/-pls-nat");
    let world = [(other.clone(), reference_shape())];
    let decision = run(&deleting(intent_with(&other)), &inputs, &world, &settings());
    assert_eq!(decision.step(Kind::Subnet), None);
}

#[test]
fn foreign_service_does_not_tell_the_subnet() {
    let shown = json!({"properties": {"ipConfigurations": [
        {"properties": {"primary": true, "subnet": {"id": management(SUBNET)}}}]}});
    let world = [(management(SERVICE), shown), subnet(reference_shape())];
    let decision = run(&deleting(json!({})), &inputs(), &world, &settings());
    assert_eq!(verbs(&decision), [(Kind::PrivateLinkService, Verb::Refuse)]);
}

#[rstest]
fn subnet_that_others_use_stays_in_any_provisioning_state(#[values("Updating", "Failed", "Succeeded")] state: &str) {
    let in_state = |mut body: Value| {
        body["properties"]["provisioningState"] = json!(state);
        body
    };
    let mut small = reference_shape();
    small["properties"]["addressPrefix"] = json!("10.224.7.0/28");
    let of_others = step(&inputs(), not_made(), in_state(small)).unwrap();
    assert_eq!(of_others.why, Why::InUse("whoever made it"));
    let used = used_by("networkInterfaces/vm/ipConfigurations/x");
    let used = step(&inputs(), intent_with(&management(SUBNET)), in_state(used)).unwrap();
    assert_eq!(used.why, Why::InUse("ipConfigurations"));
    let given = PrivateLinkServiceInputs {
        given_subnets: vec![management(SUBNET).to_ascii_lowercase()],
        ..inputs()
    };
    let given = step(&given, intent_with(&management(SUBNET)), in_state(reference_shape())).unwrap();
    assert_eq!(given.why, Why::InUse("natSubnetID of a cluster"));
}

#[test]
fn subnet_of_a_deleted_service_is_found_by_the_load_balancer() {
    let world = [balancer(&["v"]), subnet(reference_shape())];
    let decision = run(&unrecorded(), &inputs(), &world, &settings());
    assert_eq!(
        verbs(&decision),
        [(Kind::PrivateLinkService, Verb::Keep), (Kind::Subnet, Verb::Delete)]
    );
}

#[test]
fn end_tells_of_a_subnet_that_a_sibling_keeps_or_nothing_shows() {
    let sibling = PrivateLinkServiceInputs {
        sibling_stays: true,
        ..inputs()
    };
    let recorded = deleting(intent_with(&management(SUBNET)));
    let decision = run(&recorded, &sibling, &[], &settings());
    assert_eq!((decision.shared, decision.not_found), (true, None));
    let stripped = deleting(json!({}));
    let decision = run(&stripped, &inputs(), &[], &settings());
    let expected = "subnet infra-pls-nat".to_owned();
    assert_eq!((decision.shared, decision.not_found), (false, Some(expected)));
    let mut given = deleting(json!({}));
    given.spec.nat_subnet_id = Some(management("virtualNetworks/v/subnets/given"));
    let decision = run(&given, &inputs(), &[], &settings());
    assert_eq!((decision.shared, decision.not_found), (false, None));
}
