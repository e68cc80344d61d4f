//! Where the frontend is looked for.

use super::*;

#[test]
fn subscription_is_searched_if_the_group_lacks_the_frontend() {
    let empty = Facts {
        lists: Lists {
            frontends: [(
                (settings().scope.subscription, Some("mgmt".to_owned())),
                Ok(Arc::default()),
            )]
            .into(),
            ..Lists::default()
        },
        ..Facts::default()
    };
    let resource = cr(Value::Null, json!({}));
    let ((decision, _), asked) = decided(empty, &[], |facts| build(&resource, &inputs(), facts, &settings(), &[]));
    let expected = ["new frontends mgmt", "frontends everywhere", "new frontends everywhere"];
    assert_eq!(asked, expected);
    assert_eq!(decision.problem.map(|p| p.reason), Some(Reason::WaitingForLoadBalancer));
}

#[rstest]
#[case::of_this_reconcile(false, 10)]
#[case::of_a_moment_before(true, 1)]
fn list_that_is_older_than_the_reconcile_is_read_again_at_once(#[case] older: bool, #[case] seconds: u64) {
    let facts = Facts {
        lists: Lists {
            older_frontends: older,
            ..Lists::default()
        },
        ..Facts::default()
    };
    let resource = cr(Value::Null, json!({}));
    let ((decision, _), _) = decided(facts, &[], |facts| build(&resource, &inputs(), facts, &settings(), &[]));
    let again = decision.problem.and_then(|problem| problem.requeue_after);
    assert_eq!(again, Some(Duration::from_secs(seconds)));
}

#[rstest]
#[case::that_has_it(Ok(vec![frontend()].into()), None, &[])]
#[case::that_does_not_have_it(Ok(Arc::default()), Some(Reason::WaitingForLoadBalancer),
    &["new frontends nodes", "frontends everywhere", "new frontends everywhere"])]
#[case::that_is_not_to_be_read(Err(ArmError::own(Class::Denied, "AuthorizationFailed")), Some(Reason::WaitingForLoadBalancer),
    &["frontends everywhere", "new frontends everywhere"])]
fn also_managed_group_is_searched_before_the_subscription(
    #[case] nodes: FrontendList,
    #[case] reason: Option<Reason>,
    #[case] expected: &[&str],
) {
    let settings = Settings {
        also_manage: [
            "/subscriptions/99999999-9999-4999-8999-999999999999/resourceGroups/elsewhere",
            &format!("/subscriptions/{MANAGEMENT}"),
            &format!("/subscriptions/{MANAGEMENT}/resourceGroups/MGMT"),
            &format!("/Subscriptions/{MANAGEMENT}/resourcegroups/nodes"),
        ]
        .map(|scope| AzureScope::parse(scope).unwrap())
        .into(),
        ..settings()
    };
    let subscription = || settings.scope.subscription.clone();
    let facts = Facts {
        lists: Lists {
            frontends: [
                ((subscription(), Some("mgmt".to_owned())), Ok(Arc::default())),
                ((subscription(), Some("nodes".to_owned())), nodes),
            ]
            .into(),
            new_frontends: [(subscription(), Some("mgmt".to_owned()))].into(),
            ..Lists::default()
        },
        ..Facts::default()
    };
    let (refused, asked) = decided(facts, &[], |facts| refusal(&inputs(), facts, &settings));
    assert_eq!(asked, expected);
    assert_eq!(refused, reason);
}

#[rstest]
#[case::by_address(FrontendMatch::Address, Some(Reason::AmbiguousLoadBalancer))]
#[case::by_name(FrontendMatch::Name, None)]
fn address_that_an_older_custom_resource_has_proves_no_frontend(
    #[case] frontend_match: FrontendMatch,
    #[case] refused: Option<Reason>,
) {
    let inputs = PrivateLinkServiceInputs {
        address_claimed: true,
        ..inputs()
    };
    let settings = Settings {
        frontend_match,
        ..settings()
    };
    assert_eq!(refusal(&inputs, &facts(), &settings).unwrap(), refused);
}
