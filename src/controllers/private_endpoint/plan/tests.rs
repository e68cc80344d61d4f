use rstest::rstest;
use serde_json::{Value, json};

use super::super::samples::{
    BASE, ENDPOINT, azure, complete, endpoint, run, run_in, served_state, verb, vouched, with_alias, zones,
};
use super::*;
use crate::api::Reason;
use crate::controllers::samples::{ALIAS, cr, guest};
use crate::engine::plan::Verb;

mod adoption;
mod oauth;

/// A custom resource on which the HO role has reported this reason.
fn reported_by_ho(reason: &str) -> AzurePrivateLinkService {
    let condition = json!({"type": "AzurePLSCreated", "status": "False", "reason": reason, "message": "m",
        "lastTransitionTime": "2026-01-01T00:00:00Z"});
    cr(json!({"conditions": [condition]}), json!({}))
}

#[rstest]
#[case::not_read_yet(cr(Value::Null, json!({})), Reason::WaitingForPrivateLinkService)]
#[case::of_no_cluster(reported_by_ho("HostedClusterNotFound"), Reason::HostedClusterNotFound)]
#[case::of_a_doubtful_cluster(reported_by_ho("IdentityMismatch"), Reason::IdentityMismatch)]
#[case::whose_host_name_is_claimed(reported_by_ho("HostNameClaimed"), Reason::HostNameClaimed)]
#[case::unusable(reported_by_ho("InvalidSpec"), Reason::InvalidSpec)]
fn cluster_that_ho_does_not_vouch_for_is_left_without_a_call(
    #[case] resource: AzurePrivateLinkService,
    #[case] reason: Reason,
) {
    let (decision, asked) = run(&resource, &[]);
    assert_eq!(decision.problem.map(|p| p.reason), Some(reason));
    assert_eq!((decision.steps, asked), (vec![], vec![]));
}

#[test]
fn zones_start_before_there_is_an_alias() {
    let (decision, asked) = run(&reported_by_ho("Provisioning"), &[]);
    assert_eq!(
        decision.steps[0].why,
        Why::NeedsValue(Kind::PrivateLinkService, "the alias of the Private Link Service")
    );
    assert!(matches!(verb(&decision, "example.hypershift.local"), Verb::Put(_)));
    assert!(matches!(verb(&decision, "apps.example.com"), Verb::Put(_)));
    assert_eq!(asked, ["example.hypershift.local", "apps.example.com"]);
}

#[test]
fn links_start_without_an_address_and_records_do_not() {
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
            Verb::Put(body) => Some(json!({"id": step.key.to_string(), "body": body})),
            _ => None,
        });
        puts.collect::<Vec<_>>()
    };
    insta::assert_json_snapshot!("first_pass", bodies(run(&with_alias(), &[]).0));
    insta::assert_json_snapshot!("last_pass", bodies(run(&with_alias(), &world).0));
}

#[test]
fn what_is_up_to_date_is_kept() {
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
fn scope_unknown_to_the_control_plane_is_refused_without_a_call(#[case] change: fn(&mut AzurePlatform)) {
    let mut state = served_state();
    change(&mut state.control_plane.as_mut().unwrap().azure);
    let resource = with_alias();
    let (decision, asked) = run_in(&resource, &state, &[]);
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::ScopeNotAllowed));
    assert_eq!((decision.steps, asked), (vec![], vec![]));
}

#[test]
fn custom_resource_that_is_not_allowed_is_not_built() {
    let problem = Problem::new(Reason::ScopeNotAllowed, "no entry");
    let state = ControlPlaneState {
        refused: Some(problem.clone()),
        ..served_state()
    };
    let (built, asked) = run_in(&with_alias(), &state, &complete());
    assert_eq!((built.problem, built.steps, asked), (Some(problem), vec![], vec![]));
}

#[test]
fn forged_conditions_approve_nothing_without_a_hosted_cluster() {
    let state = vouched(Vouched {
        refusal: Some(Problem::new(Reason::HostedClusterNotFound, "none")),
        ..Vouched::default()
    });
    let (built, asked) = run_in(&with_alias(), &state, &complete());
    assert_eq!(built.problem.map(|p| p.reason), Some(Reason::HostedClusterNotFound));
    assert_eq!((built.steps, asked), (vec![], vec![]));
}

#[test]
fn forged_conditions_refuse_nothing_that_a_cluster_vouches_for() {
    let state = vouched(Vouched {
        azure: Some(azure()),
        ..Vouched::default()
    });
    for resource in [reported_by_ho("IdentityMismatch"), cr(Value::Null, json!({}))] {
        let (built, _) = run_in(&resource, &state, &[]);
        assert_eq!(built.problem, None);
        assert!(matches!(verb(&built, "example.hypershift.local"), Verb::Put(_)));
    }
}

#[test]
fn scope_that_only_the_control_plane_names_is_refused() {
    let state = vouched(Vouched {
        azure: Some(AzurePlatform {
            subnet_id: Some("another".into()),
            ..azure()
        }),
        ..Vouched::default()
    });
    let (built, asked) = run_in(&with_alias(), &state, &complete());
    let expected = Problem::new(
        Reason::ScopeNotAllowed,
        "guestSubnetID is not that of the HostedCluster",
    );
    assert_eq!((built.problem, built.steps, asked), (Some(expected), vec![], vec![]));
}

#[rstest]
#[case::nat_subnet_elsewhere("NATSubnetCreationFailed")]
#[case::more_subscriptions_than_azure_takes("PLSCreationFailed")]
fn problem_of_the_ho_role_alone_does_not_stop_the_cpo_role(#[case] reason: &str) {
    let (decision, _) = run(&reported_by_ho(reason), &[]);
    assert!(matches!(verb(&decision, "example.hypershift.local"), Verb::Put(_)));
}

#[test]
fn stale_refusal_ends_when_the_service_is_made() {
    let condition = |kind: &str, status: &str, reason: &str, second: u8| {
        json!({"type": kind, "status": status, "reason": reason, "message": "m",
            "lastTransitionTime": format!("2026-01-01T00:00:0{second}Z")})
    };
    let resource = |refused: u8| {
        let balancer = condition(
            "AzureInternalLoadBalancerAvailable",
            "False",
            "IdentityMismatch",
            refused,
        );
        let made = condition("AzurePLSCreated", "True", "AzureSuccess", 5);
        cr(
            json!({"privateLinkServiceAlias": ALIAS, "conditions": [balancer, made]}),
            json!({}),
        )
    };
    let problem = |refused| run(&resource(refused), &complete()).0.problem.map(|p| p.reason);
    assert_eq!(problem(4), None);
    assert_eq!(problem(6), Some(Reason::IdentityMismatch));
}

#[test]
fn intent_names_what_is_about_to_be_created_and_nothing_refused() {
    let named = |world: &[(String, Value)]| {
        let (decision, _) = run(&with_alias(), world);
        let intent: CpoIntent = serde_json::from_str(decision.intent.as_deref().unwrap()).unwrap();
        intent.resources
    };
    let all = named(&[]);
    let (decision, _) = run(&with_alias(), &[]);
    let steps: Vec<_> = decision.steps.iter().map(|step| step.key.to_string()).collect();
    assert_eq!(all, steps, "each of them is made, now or later");
    assert_eq!(named(&complete()), all, "and the list stays the same");
    let foreign = (guest(BASE), json!({"tags": {"owner": "customer"}, "properties": {}}));
    let left = named(&[foreign]);
    assert!(
        !left.is_empty() && left.iter().all(|id| !id.contains("apps.example.com")),
        "{left:?}"
    );
}
