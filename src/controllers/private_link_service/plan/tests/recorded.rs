//! What exists already: made by HyperShift's operator, or recorded in another scope.

use super::*;
use crate::controllers::samples::ALIAS;
use crate::engine::resource::MISSED;

const SERVICE: &str = "privateLinkServices/pls-id";
const GUID: &str = "0c7a5d3e-1b2f-4a86-9d70-5e4f3c2b1a09";

/// The service as HyperShift's operator puts it and Azure shows it: without owner tags, with other casing and fields.
fn reference_service() -> (String, Value) {
    let (at, mut body) = service();
    body["tags"] = json!({"kubernetes.io_cluster_example": "owned",
        "hypershift.openshift.io_resource-type": "private-link-service"});
    let properties = &mut body["properties"];
    let guest = crate::controllers::samples::GUEST.to_ascii_uppercase();
    properties["visibility"] = json!({"subscriptions": [guest]});
    properties["loadBalancerFrontendIpConfigurations"] =
        json!([{"id": management(FRONTEND).replace("frontendIP", "FrontendIp")}]);
    properties["resourceGuid"] = json!(GUID);
    properties["alias"] = json!(ALIAS);
    properties["provisioningState"] = json!("Succeeded");
    properties["privateEndpointConnections"] = json!([{"id": format!("{at}/privateEndpointConnections/pe.1")}]);
    (at, body)
}

fn reference_subnet() -> (String, Value) {
    let body = json!({"properties": {"addressPrefix": "10.224.7.0/24", "provisioningState": "Succeeded",
        "privateLinkServiceNetworkPolicies": "Disabled", "privateEndpointNetworkPolicies": "Disabled"}});
    (management(SUBNET), body)
}

fn status() -> Value {
    json!({"privateLinkServiceID": management(SERVICE), "privateLinkServiceAlias": ALIAS})
}

fn recorded(change: impl FnOnce(&mut HoIntent)) -> Value {
    let mut recorded = HoIntent::of(&identity());
    change(&mut recorded);
    json!({HO_INTENT: intent::write(&recorded)})
}

#[test]
fn cluster_of_the_reference_is_adopted_without_a_write() {
    let world = [reference_subnet(), reference_service()];
    let (decision, _) = run(&cr(status(), json!({})), &inputs(), &world);
    let expected = [(Kind::Subnet, &Verb::Keep), (Kind::PrivateLinkService, &Verb::Keep)];
    assert_eq!(verbs(&decision), expected, "{:?}", decision.steps);
    let intent = intent_of(&decision);
    assert_eq!(
        (intent.nat_subnet, intent.nat_subnet_made),
        (Some(management(SUBNET)), false)
    );
}

#[test]
fn revoked_subscription_of_an_adopted_cluster_is_removed() {
    let (at, mut body) = reference_service();
    body["properties"]["autoApproval"]["subscriptions"] = json!([crate::controllers::samples::GUEST, MANAGEMENT]);
    let (decision, _) = run(&cr(status(), json!({})), &inputs(), &[reference_subnet(), (at, body)]);
    let Verb::Put(put) = &decision.steps[1].verb else {
        panic!("{:?}", decision.steps)
    };
    let lists = ["visibility", "autoApproval"].map(|list| put["properties"][list]["subscriptions"].clone());
    assert_eq!(
        lists,
        [
            json!([crate::controllers::samples::GUEST]),
            json!([crate::controllers::samples::GUEST])
        ]
    );
    assert_eq!(put["tags"]["kubernetes.io_cluster_example"], "owned");
}

#[rstest]
#[case::whatever_was_recorded(status(), recorded(|r| r.link_service = Some(management(SERVICE))), false, false)]
#[case::by_the_tags_of_the_reference(Value::Null, json!({}), false, false)]
#[case::that_was_proven(status(), json!({}), true, true)]
fn unmarked_service_with_an_old_frontend(
    #[case] status: Value,
    #[case] annotations: Value,
    #[case] observed_before: bool,
    #[case] is_own: bool,
) {
    let (at, mut body) = reference_service();
    body["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = json!("old");
    let mut facts = facts();
    if observed_before {
        facts.proven.insert(id(&at));
    }
    let resource = cr(status, annotations);
    let decide = |facts: &Facts| build(&resource, &inputs(), facts, &settings(), &[]);
    let ((decision, _), asked) = decided(facts, &[reference_subnet(), (at, body)], decide);
    assert_eq!(asked, ["infra-pls-nat", "pls-id"], "nothing is read for proof alone");
    let step = decision.step(Kind::PrivateLinkService).unwrap();
    assert_eq!(step.why != Why::NotOurs, is_own, "{step:?}");
    assert_eq!(
        intent_of(&decision).link_service.is_some(),
        is_own,
        "a refusal clears the intent"
    );
}

#[rstest]
#[case::another(None, Some("77777777-7777-4777-8777-777777777777"), false)]
#[case::the_one_that_it_came_from(Some(GUID), Some(GUID), true)]
#[case::one_without_a_stamp_before_it_came(Some(GUID), None, true)]
#[case::one_without_a_stamp(None, None, false)]
fn service_of_another_management_cluster(
    #[case] from: Option<&str>,
    #[case] stamp: Option<&str>,
    #[case] is_own: bool,
) {
    let (at, mut body) = service();
    body["tags"]["hypershift.openshift.io_management-cluster-id"] = json!(stamp);
    let there = management("loadBalancers/there/frontendIPConfigurations/there");
    body["properties"]["loadBalancerFrontendIpConfigurations"][0]["id"] = json!(there);
    let inputs = PrivateLinkServiceInputs {
        adopt_from: from.map(str::to_owned),
        ..inputs()
    };
    let world = [subnet(), (at, body)];
    let (decision, _) = run(&cr(Value::Null, json!({CPO_INTENT: "{}"})), &inputs, &world);
    let expected = if is_own { Verb::Delete } else { Verb::Refuse };
    assert_eq!(decision.step(Kind::PrivateLinkService).unwrap().verb, expected);
}

#[rstest]
#[case::made_in_another_group(recorded(|r| r.link_service = Some(management(SERVICE).replace("/mgmt/", "/old/"))), Value::Null)]
#[case::made_in_another_subscription(recorded(|r| r.link_service = Some(crate::controllers::samples::guest(SERVICE))), Value::Null)]
#[case::made_in_another_subscription_in_a_group_of_this_name(recorded(|r| r.link_service = Some(management(SERVICE).replace(MANAGEMENT, crate::controllers::samples::GUEST))), Value::Null)]
#[case::shown_in_another_group(json!({}), json!({"privateLinkServiceID": management(SERVICE).replace("/mgmt/", "/old/")}))]
fn service_in_another_scope_is_not_made_twice(#[case] annotations: Value, #[case] status: Value) {
    let (decision, asked) = run(&cr(status, annotations), &inputs(), &[subnet()]);
    let problem = decision.problem.unwrap();
    assert_eq!(problem.reason, Reason::ConfigurationChanged);
    assert!(
        problem.message.ends_with("allow it with --also-manage"),
        "{}",
        problem.message
    );
    assert_eq!((decision.steps, asked), (Vec::new(), Vec::new()));
}

#[test]
fn recorded_service_that_is_not_found_once_is_not_made_twice() {
    let old = management(SERVICE).replace("/mgmt/", "/old/");
    let mut facts = facts();
    facts.reads.insert(id(&old), Observed::Absent);
    facts.fresh_reads.insert(id(&old));
    let resource = cr(json!({"privateLinkServiceID": old}), json!({}));
    let settings = also(format!("/subscriptions/{MANAGEMENT}/resourceGroups/old"));
    let decide = |facts: &Facts| build(&resource, &inputs(), facts, &settings, &[]);
    let ((decision, _), _) = decided(facts, &[subnet()], decide);
    assert_eq!(decision.steps, []);
    assert_eq!(decision.requeue.map(|requeue| requeue.after), Some(MISSED * 2));
}

fn also(scope: String) -> Settings {
    Settings {
        also_manage: vec![AzureScope::parse(&scope).unwrap()],
        ..settings()
    }
}

#[rstest]
#[case::it_is_there(true, "old")]
#[case::it_is_gone(false, "mgmt")]
fn recorded_service_in_an_also_managed_scope_is_used_if(#[case] there: bool, #[case] group: &str) {
    let moved = |text: String| text.replace("/mgmt/", "/old/");
    let status = json!({"privateLinkServiceID": moved(management(SERVICE))});
    let old = (moved(management(SERVICE)), service().1);
    let world = [vec![subnet()], if there { vec![old] } else { Vec::new() }].concat();
    let settings = also(format!("/subscriptions/{MANAGEMENT}/resourceGroups/OLD"));
    let (decision, _) = run_with(&cr(status, json!({})), &inputs(), &world, &settings);
    let step = decision.step(Kind::PrivateLinkService).unwrap();
    assert_eq!((step.key.group(), step.verb == Verb::Keep), (group, there));
}

#[rstest]
#[case::now(json!({}), false, &[network()], true)]
#[case::before(recorded(|r| (r.nat_subnet, r.nat_subnet_made) = (Some(management(SUBNET)), true)), false, &[subnet()], true)]
#[case::for_a_sibling(json!({}), true, &[subnet()], true)]
#[case::in_another_network(recorded(|r| (r.nat_subnet, r.nat_subnet_made) = (Some(management("virtualNetworks/w/subnets/infra-pls-nat")), true)), false, &[subnet()], false)]
#[case::by_somebody_else(json!({}), false, &[subnet()], false)]
fn subnet_that_was_made_is_recorded_so(
    #[case] annotations: Value,
    #[case] sibling_made_subnet: bool,
    #[case] world: &[(String, Value)],
    #[case] made: bool,
) {
    let inputs = PrivateLinkServiceInputs {
        sibling_made_subnet,
        ..inputs()
    };
    let (decision, _) = run(&cr(Value::Null, annotations), &inputs, world);
    assert_eq!(intent_of(&decision).nat_subnet_made, made);
}

#[test]
fn subnet_that_was_made_is_not_forgotten_when_another_is_given() {
    let made = recorded(|r| (r.nat_subnet, r.nat_subnet_made) = (Some(management(SUBNET)), true));
    let mut given = cr(Value::Null, made);
    given.spec.nat_subnet_id = Some(management("virtualNetworks/v/subnets/given"));
    let body = subnet().1;
    let (decision, _) = run(
        &given,
        &inputs(),
        &[(management("virtualNetworks/v/subnets/given"), body)],
    );
    let intent = intent_of(&decision);
    assert_eq!(
        (intent.nat_subnet, intent.nat_subnet_made),
        (Some(management(SUBNET)), true)
    );
}

#[rstest]
#[case::nothing(Vec::new(), false)]
#[case::its_group(vec![format!("/subscriptions/{MANAGEMENT}/resourcegroups/Old")], true)]
#[case::its_subscription(vec![format!("/subscriptions/{MANAGEMENT}")], true)]
#[case::another_group_of_the_subscription(vec![format!("/subscriptions/{MANAGEMENT}/resourceGroups/older")], false)]
#[case::a_group_of_the_name_elsewhere(vec![format!("/subscriptions/{GUID}/resourceGroups/old")], false)]
fn scope_that_is_also_managed_is_a_group_or_a_subscription(#[case] scopes: Vec<String>, #[case] allowed: bool) {
    let also_manage = scopes.iter().map(|scope| AzureScope::parse(scope).unwrap()).collect();
    let elsewhere = Settings {
        scope: ManagementScope {
            subscription: SubscriptionId::parse(crate::controllers::samples::GUEST).unwrap(),
            resource_group: "mgmt".into(),
        },
        also_manage,
        ..settings()
    };
    let there = |path: &str| id(&management(path).replace("/mgmt/", "/old/"));
    assert_eq!(elsewhere.allows(&there(SERVICE)), allowed);
    assert_eq!(elsewhere.allows_subnet(&there(SUBNET)), allowed);
}

#[test]
fn cluster_that_is_moved_to_another_scope_is_refused() {
    let moved = Settings {
        scope: management_scope("new"),
        other_scopes: vec![management_scope("mgmt")],
        ..settings()
    };
    let shown = cr(json!({"privateLinkServiceID": management(SERVICE)}), json!({}));
    let facts = Facts {
        lists: Lists {
            frontends: [(
                (moved.scope.subscription.clone(), Some("new".to_owned())),
                Ok(vec![frontend()].into()),
            )]
            .into(),
            ..Lists::default()
        },
        ..Facts::default()
    };
    let world = [subnet(), service()];
    let ((decision, _), _) = decided(facts, &world, |facts| build(&shown, &inputs(), facts, &moved, &[]));
    let problem = decision.problem.unwrap();
    assert_eq!(problem.reason, Reason::ConfigurationChanged);
    let why = format!(
        "the Private Link Service was made in /subscriptions/{MANAGEMENT}/resourceGroups/mgmt; put the cluster into that \
         management scope again"
    );
    assert_eq!(problem.message, why);
    assert!(!decision.steps.iter().any(Step::writes), "{:?}", decision.steps);
}
