use rstest::rstest;
use serde_json::{Value, json};

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::azure::arm::error::ArmError;
use crate::azure::kinds::Kind;
use crate::azure::plan::{Outcome, Step, Why};
use crate::controllers::azure::Decision;
use crate::controllers::samples::{cr, id, management};
use crate::engine::plan::Verb;

fn step(kind: Kind, path: &str, verb: Verb, why: Why) -> Step {
    Step {
        kind,
        key: id(&management(path)),
        verb,
        why,
        found: Some(Value::Null),
    }
}

fn service(verb: Verb, why: Why) -> Step {
    step(Kind::PrivateLinkService, "privateLinkServices/pls-id", verb, why)
}

fn subnet() -> Step {
    let path = "virtualNetworks/v/subnets/infra-pls-nat";
    step(
        Kind::Subnet,
        path,
        Verb::Wait,
        Why::Needs("the Private Link Service to go"),
    )
}

fn subnet_in_use() -> Step {
    step(
        Kind::Subnet,
        "virtualNetworks/v/subnets/infra-pls-nat",
        Verb::Delete,
        Why::Unwanted,
    )
}

/// Like [`super::permission`], while nothing has been refused for long.
fn permission(cr: &AzurePrivateLinkService, role: Role, decision: &Decision, outcomes: &[Outcome]) -> Option<Event> {
    super::permission(cr, role, decision, outcomes, &|_| Duration::ZERO)
}

fn error(class: Class, code: &'static str) -> ArmError {
    ArmError::own(class, code)
}

/// The Event when the service could not be deleted because of `error`, which is new.
fn event_after(annotation: Option<&str>, error: ArmError) -> Option<Event> {
    event_after_failing(Duration::ZERO, annotation, error)
}

fn event_after_failing(failing: Duration, annotation: Option<&str>, error: ArmError) -> Option<Event> {
    let annotations = annotation.map_or_else(|| json!({}), |text| json!({ABANDON: text}));
    let decision = Decision {
        steps: vec![service(Verb::Delete, Why::Unwanted), subnet()],
        ..Decision::default()
    };
    let outcomes = [Outcome::Failed(error), Outcome::Nothing];
    super::permission(&cr(Value::Null, annotations), Role::Ho, &decision, &outcomes, &|_| {
        failing
    })
}

#[rstest]
#[case::role_was_taken_away(Class::Denied, "AuthorizationFailed", true)]
#[case::credentials_are_dead(Class::Denied, "TokenRefused", true)]
#[case::subscription_is_gone(Class::Denied, "SubscriptionNotFound", true)]
#[case::throttled(Class::Throttled, "SubscriptionRequestsThrottled", false)]
#[case::busy(Class::Busy, "AnotherOperationInProgress", false)]
#[case::no_answer(Class::Down, "Timeout", false)]
#[case::refused(Class::Invalid, "BadRequest", false)]
fn only_a_denial_with_an_annotation_releases(
    #[case] class: Class,
    #[case] code: &'static str,
    #[case] is_released: bool,
) {
    assert_eq!(event_after(None, error(class, code)), None, "never by itself");
    assert_eq!(
        event_after(Some("u/ho/ticket 7"), error(class, code)).is_some(),
        is_released
    );
}

#[test]
fn annotation_alone_does_not_release_what_is_being_deleted() {
    let decision = Decision {
        steps: vec![service(Verb::Delete, Why::Unwanted)],
        ..Decision::default()
    };
    let annotated = cr(Value::Null, json!({ABANDON: "u/ho/ticket"}));
    assert_eq!(permission(&annotated, Role::Ho, &decision, &[Outcome::Accepted]), None);
}

#[test]
fn what_could_not_even_be_read_may_be_abandoned() {
    let denied = Why::Error(error(Class::Denied, "AuthorizationFailed"));
    let decision = Decision {
        steps: vec![service(Verb::Wait, denied)],
        ..Decision::default()
    };
    let annotated = cr(Value::Null, json!({ABANDON: "u/ho/ticket"}));
    assert!(permission(&annotated, Role::Ho, &decision, &[Outcome::Nothing]).is_some());
}

#[test]
fn event_lists_what_is_left_and_that_it_still_forwards() {
    let event = event_after(Some("u/ho/see ticket a/b"), error(Class::Denied, "AuthorizationFailed")).unwrap();
    assert_eq!(event.what, What::Abandoned);
    let (service, subnet) = (service(Verb::Keep, Why::UpToDate), subnet());
    assert_eq!(
        event.note,
        format!(
            "abandoned in Azure (see ticket a/b): {}, {}; a Private Link Service that is abandoned still forwards",
            service.key, subnet.key
        )
    );
}

#[rstest]
#[case::of_another_object("other/ho/ticket", "it does not begin with the uid of this object")]
#[case::without_a_role("u", "it names no role, ho or cpo")]
#[case::with_another_word("u/admin/ticket", "it names no role, ho or cpo")]
#[case::without_a_reason("u/ho/", "it gives no reason")]
#[case::with_a_blank_reason("u/ho/ ", "it gives no reason")]
fn invalid_abandon_annotation_is_ignored_and_reported(#[case] text: &str, #[case] wrong: &str) {
    assert_eq!(
        event_after(Some(text), error(Class::Denied, "AuthorizationFailed")),
        None
    );
    let annotated = cr(Value::Null, json!({ABANDON: text}));
    let problem = noted(&annotated, Role::Ho, Problem::new(Reason::DeletionFailed, "denied"));
    assert_eq!(
        problem.message,
        format!("denied; the annotation {ABANDON} does not count: {wrong}")
    );
}

#[test]
fn abandon_annotation_for_the_other_role_is_ignored() {
    assert_eq!(
        event_after(Some("u/cpo/ticket"), error(Class::Denied, "AuthorizationFailed")),
        None
    );
    let annotated = cr(Value::Null, json!({ABANDON: "u/cpo/ticket"}));
    let problem = Problem::new(Reason::DeletionFailed, "denied");
    assert_eq!(noted(&annotated, Role::Ho, problem.clone()), problem);
}

#[test]
fn lock_releases_by_itself_after_ten_minutes_with_an_event() {
    let locked = |seconds| event_after_failing(Duration::from_secs(seconds), None, error(Class::Denied, "ScopeLocked"));
    assert_eq!(locked(0), None, "somebody may take it away");
    assert_eq!(locked(599), None);
    let event = locked(600).unwrap();
    assert_eq!(event.what, What::Released);
    assert!(
        event.note.ends_with("infra-pls-nat stays: a lock forbids its removal"),
        "{}",
        event.note
    );
}

#[test]
fn resource_in_use_for_long_is_left_with_an_event() {
    let zone = step(Kind::PrivateDnsZone, "privateDnsZones/x", Verb::Delete, Why::Unwanted);
    let event_for = |steps: &[&Step], code, seconds| {
        let decision = Decision {
            steps: steps.iter().map(|step| (*step).clone()).collect(),
            ..Decision::default()
        };
        let outcomes = vec![Outcome::Failed(error(Class::Busy, code)); steps.len()];
        let failing = |_: &Step| Duration::from_secs(seconds);
        super::permission(&cr(Value::Null, json!({})), Role::Cpo, &decision, &outcomes, &failing)
    };
    assert_eq!(event_for(&[&zone], "CannotDeleteResource", 599), None);
    let event = event_for(&[&zone], "CannotDeleteResource", 600).unwrap();
    assert_eq!(event.what, What::Released);
    assert_eq!(event.note, format!("{} stays: Azure refuses its removal", zone.key));
    assert!(event_for(&[&subnet_in_use()], "InUseSubnetCannotBeDeleted", 600).is_some());
    assert_eq!(event_for(&[&zone], "AnotherOperationInProgress", 600), None);
    let endpoint = step(
        Kind::PrivateEndpoint,
        "privateEndpoints/pe",
        Verb::Delete,
        Why::Unwanted,
    );
    assert_eq!(event_for(&[&zone, &endpoint], "CannotDeleteResource", 600), None);
}

#[test]
fn locked_connection_lets_go_of_its_service() {
    let connection = step(
        Kind::PrivateEndpointConnection,
        "privateLinkServices/pls-id/privateEndpointConnections/pe.1",
        Verb::Delete,
        Why::Unwanted,
    );
    let decision = Decision {
        steps: vec![
            connection,
            service(Verb::Wait, Why::Needs("its connections to go")),
            subnet(),
        ],
        ..Decision::default()
    };
    let locked = Outcome::Failed(error(Class::Denied, "ScopeLocked"));
    let outcomes = [locked, Outcome::Nothing, Outcome::Nothing];
    let none = cr(Value::Null, json!({}));
    let event = super::permission(&none, Role::Ho, &decision, &outcomes, &|_| LEFT_AFTER).unwrap();
    assert!(!event.note.contains("privateEndpointConnections"), "{}", event.note);
    let ids: Vec<_> = super::locked(&decision, &outcomes).map(|step| step.kind).collect();
    assert_eq!(ids, [Kind::PrivateEndpointConnection]);
}

#[test]
fn lock_is_reported_with_what_happens_next() {
    let annotated = cr(Value::Null, json!({}));
    let problem = noted(
        &annotated,
        Role::Cpo,
        Problem::new(Reason::ScopeLocked, "private_dns_zone z: locked"),
    );
    let text = "private_dns_zone z: locked; what is locked is left if the lock stays for 10 minutes";
    assert_eq!(problem.message, text);
}

#[test]
fn lock_does_not_release_while_something_else_is_deleted() {
    let decision = Decision {
        steps: vec![
            service(Verb::Delete, Why::Unwanted),
            service(Verb::Delete, Why::Unwanted),
        ],
        ..Decision::default()
    };
    let locked = Outcome::Failed(error(Class::Denied, "ScopeLocked"));
    let gone = cr(Value::Null, json!({}));
    let permission = super::permission(&gone, Role::Ho, &decision, &[locked, Outcome::Accepted], &|_| {
        LEFT_AFTER
    });
    assert_eq!(permission, None);
}

#[test]
fn scope_that_is_no_longer_allowed_may_be_abandoned() {
    let decision = Decision::stuck(Problem::new(Reason::ScopeNotAllowed, "x"));
    let endpoint = management("privateEndpoints/private-router-pe");
    let status = json!({"privateEndpointID": endpoint});
    let annotated = cr(status.clone(), json!({ABANDON: "u/cpo/moved"}));
    let event = permission(&annotated, Role::Cpo, &decision, &[]).unwrap();
    assert_eq!(event.note, format!("abandoned in Azure (moved): {endpoint}"));
    assert_eq!(permission(&cr(status, json!({})), Role::Cpo, &decision, &[]), None);
    let other = Decision::stuck(Problem::new(Reason::ConfigurationChanged, "x"));
    assert_eq!(permission(&annotated, Role::Cpo, &other, &[]), None);
}

#[test]
fn lock_does_not_release_while_a_problem_prevents_reads() {
    let decision = Decision {
        steps: vec![service(Verb::Delete, Why::Unwanted)],
        problem: Some(Problem::new(Reason::ScopeNotAllowed, "x")),
        ..Decision::default()
    };
    let locked = Outcome::Failed(error(Class::Denied, "ScopeLocked"));
    let none = cr(Value::Null, json!({}));
    let permission = super::permission(&none, Role::Ho, &decision, &[locked], &|_| LEFT_AFTER);
    assert_eq!(permission, None);
}

#[test]
fn what_is_gone_or_others_is_not_listed_as_abandoned() {
    let others = subnet().leave("ipConfigurations");
    let gone = Step {
        found: None,
        ..step(
            Kind::Subnet,
            "virtualNetworks/w/subnets/infra-pls-nat",
            Verb::Keep,
            Why::UpToDate,
        )
    };
    let decision = Decision {
        steps: vec![service(Verb::Delete, Why::Unwanted), others, gone],
        ..Decision::default()
    };
    let denied = Outcome::Failed(error(Class::Denied, "AuthorizationFailed"));
    let annotated = cr(Value::Null, json!({ABANDON: "u/ho/ticket"}));
    let event = permission(
        &annotated,
        Role::Ho,
        &decision,
        &[denied, Outcome::Nothing, Outcome::Nothing],
    )
    .unwrap();
    assert!(!event.note.contains("subnets"), "{}", event.note);
}
