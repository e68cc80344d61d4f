//! What keeps a step from being complete, in the words of a condition. Pure.

use super::decision::Decision;
use crate::api::Reason;
use crate::engine::cloud::{Cloud, Key, ResourceKind};
use crate::engine::failure::{Class, Failure};
use crate::engine::plan::{Outcome, Step, Why};
use crate::hypershift::problem::Problem;

/// The problem of a step that is not complete; none if its resource is ready, or gone as desired. `failure` is the
/// reason if the step fails.
pub fn step_problem<C: Cloud>(step: &Step<C>, outcome: &Outcome<C>, failure: Reason) -> Option<Problem> {
    let kind = step.kind.label();
    let name = step.key.name();
    let subject = format!("{kind} {name}");
    let problem = match (outcome, &step.why) {
        (Outcome::Nothing, Why::InUse(_)) => return None,
        (Outcome::Nothing | Outcome::Reached(_), Why::UpToDate) => return None,
        (Outcome::Ready, why) if !matches!(why, Why::Replace(_)) => return None,
        (Outcome::Nothing, Why::Unread(error)) if error.class() == Class::Gone => missed(&subject, failure),
        (Outcome::Nothing, Why::Unread(error)) => Problem::unread(reason_of(error, failure), &subject, error),
        (Outcome::Failed(error), _) | (Outcome::Nothing, Why::Error(error)) => {
            Problem::error(reason_of(error, failure), &subject, error)
        }
        (Outcome::GateShut, _) => Problem::new(Reason::Provisioning, "another instance is taking over"),
        (Outcome::Nothing, Why::NotOurs) => Problem::new(
            Reason::NotOurs,
            format!("{subject} exists and does not belong to this cluster"),
        ),
        (Outcome::Nothing, Why::Needs(what) | Why::NeedsValue(_, what)) => {
            Problem::new(Reason::Provisioning, format!("{kind} {name} waits for {what}"))
        }
        (_, Why::Replace(fields)) => Problem::new(
            Reason::Provisioning,
            format!("{subject} is being replaced: {}", fields.join(", ")),
        ),
        (_, why) if deletes(why, failure) => Problem::new(Reason::Deleting, format!("{subject} is being deleted")),
        _ => Problem::new(Reason::Provisioning, format!("{subject} is being provisioned")),
    };
    Some(problem)
}

/// The problem of a resource that one read did not find, which is no proof yet.
fn missed(subject: &str, failure: Reason) -> Problem {
    let reason = match failure {
        Reason::DeletionFailed => Reason::Deleting,
        _ => Reason::Provisioning,
    };
    let text = format!("{subject} was not found, a second read confirms that");
    Problem {
        class: Some(Class::Gone),
        unread: true,
        ..Problem::new(reason, text)
    }
}

/// Whether a step that is not complete deletes its resource; `failure` is the reason if it fails.
fn deletes<C: Cloud>(why: &Why<C>, failure: Reason) -> bool {
    match why {
        Why::Unwanted | Why::PartUnwanted => true,
        Why::InProgress | Why::Unproven => failure == Reason::DeletionFailed,
        _ => false,
    }
}

/// What blocks a decision: its own problem, or the first problem of these steps. `failure` gives the reason if a step
/// fails.
pub fn blocking_problem<'a, C: Cloud>(
    decision: &Decision<C>,
    steps: impl IntoIterator<Item = (&'a Step<C>, &'a Outcome<C>)>,
    failure: impl Fn(&Step<C>) -> Reason,
) -> Option<Problem> {
    let problems = steps
        .into_iter()
        .filter_map(|(step, outcome)| Some((step, step_problem(step, outcome, failure(step))?)));
    decision.problem.clone().or_else(|| first_problem(None, problems))
}

/// The first of several problems. What could not be read just now comes last, and so does a step that waits for it;
/// `unread` is an earlier problem, which may be such a one.
pub fn first_problem<'a, C: Cloud>(
    unread: Option<&Problem>,
    problems: impl IntoIterator<Item = (&'a Step<C>, Problem)>,
) -> Option<Problem> {
    let mut unread = unread.filter(|problem| problem.unread).map(busy_class);
    let mut first = None;
    for (step, problem) in problems {
        if problem.unread {
            unread = Some(busy_class(&problem));
            first.get_or_insert(problem);
            continue;
        }
        let Some(class) = unread.filter(|_| step.why.waits_for_others()) else {
            return Some(problem);
        };
        let waiting = Problem {
            unread: true,
            class,
            ..problem
        };
        first.get_or_insert(waiting);
    }
    first
}

/// The class of a problem that is no failure; none for others.
fn busy_class(problem: &Problem) -> Option<Class> {
    problem.class.filter(|class| class.is_back_pressure())
}

fn reason_of(error: &impl Failure, failure: Reason) -> Reason {
    if error.class() == Class::Denied && error.is_lock() {
        Reason::ScopeLocked
    } else {
        failure
    }
}

#[cfg(test)]
pub(super) mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::azure::arm::error::ArmError;
    use crate::azure::arm::id::ResourceId;
    use crate::azure::kinds::Kind;
    use crate::azure::plan::{Outcome, Step, Why};
    use crate::engine::plan::Verb;

    pub(in crate::controllers) fn step(why: Why) -> Step {
        let id = ResourceId::parse("/subscriptions/s/resourceGroups/g/providers/Microsoft.Network/privateEndpoints/pe")
            .unwrap();
        Step {
            kind: Kind::PrivateEndpoint,
            key: id,
            verb: Verb::Wait,
            why,
            found: None,
        }
    }

    pub(in crate::controllers) fn denied() -> ArmError {
        ArmError::from_json(
            403,
            &json!({"error": {"code": "AuthorizationFailed", "message": "client abc"}}),
            None,
        )
    }

    fn gone() -> ArmError {
        ArmError::from_json(404, &json!({"error": {"code": "ResourceNotFound"}}), None)
    }

    #[rstest]
    #[case::ready(Why::Absent, Outcome::Ready, None)]
    #[case::up_to_date(Why::UpToDate, Outcome::Nothing, None)]
    #[case::under_way(Why::Absent, Outcome::Accepted, Some((Reason::Provisioning, "private_endpoint pe is being provisioned")))]
    #[case::refused_by_azure(Why::Absent, Outcome::Failed(denied()), Some((Reason::PrivateEndpointCreationFailed, "private_endpoint pe: AuthorizationFailed: check the role assignments of the identity")))]
    #[case::unreadable(Why::Error(denied()), Outcome::Nothing, Some((Reason::PrivateEndpointCreationFailed, "private_endpoint pe: AuthorizationFailed: check the role assignments of the identity")))]
    #[case::missed(Why::Unread(gone()), Outcome::Nothing, Some((Reason::Provisioning, "private_endpoint pe was not found, a second read confirms that")))]
    #[case::foreign(Why::NotOurs, Outcome::Nothing, Some((Reason::NotOurs, "private_endpoint pe exists and does not belong to this cluster")))]
    #[case::used_by_others(Why::InUse("links of others"), Outcome::Nothing, None)]
    #[case::old_one_deleted(Why::Replace(vec!["x"]), Outcome::Ready, Some((Reason::Provisioning, "private_endpoint pe is being replaced: x")))]
    #[case::deleting(Why::Unwanted, Outcome::Accepted, Some((Reason::Deleting, "private_endpoint pe is being deleted")))]
    fn every_unfinished_step_has_a_reason(
        #[case] why: Why,
        #[case] outcome: Outcome,
        #[case] expected: Option<(Reason, &str)>,
    ) {
        let actual = step_problem(&step(why), &outcome, Reason::PrivateEndpointCreationFailed);
        assert_eq!(
            actual.map(|p| (p.reason, p.message)),
            expected.map(|(r, m)| (r, m.to_owned()))
        );
    }

    #[rstest]
    #[case::lock(409, "ScopeLocked", Reason::ScopeLocked)]
    #[case::conflict(409, "AnotherOperationInProgress", Reason::DeletionFailed)]
    fn lock_has_a_reason_of_its_own(#[case] status: u16, #[case] code: &str, #[case] reason: Reason) {
        let error = ArmError::from_json(status, &json!({"error": {"code": code, "message": "x"}}), None);
        let actual = step_problem(&step(Why::Unwanted), &Outcome::Failed(error), Reason::DeletionFailed);
        assert_eq!(actual.map(|p| p.reason), Some(reason));
    }

    #[test]
    fn resource_in_progress_during_a_teardown_is_being_deleted() {
        let actual = step_problem(&step(Why::InProgress), &Outcome::Nothing, Reason::DeletionFailed);
        assert_eq!(actual.map(|p| p.reason), Some(Reason::Deleting));
        let actual = step_problem(&step(Why::InProgress), &Outcome::Nothing, Reason::PLSCreationFailed);
        assert_eq!(actual.map(|p| p.reason), Some(Reason::Provisioning));
    }

    proptest! {
        /// A condition or Event has Azure's code and our own text, whatever Azure writes beside them.
        #[test]
        fn no_text_of_azures_reaches_a_person(
            status in 400_u16..600,
            code in prop_oneof!["[A-Z][a-z]{3,12}", Just("AuthorizationFailed".to_owned()), Just("RetryableError".to_owned())],
            text in "\\PC{0,40}",
        ) {
            let marked = format!("<<{text}>>");
            let body = json!({"error": {"code": code, "message": marked, "details": [{"code": code, "message": marked}]}});
            let error = ArmError::from_json(status, &body, None);
            let of_step = [
                step_problem(&step(Why::Absent), &Outcome::Failed(error.clone()), Reason::PLSCreationFailed),
                step_problem(&step(Why::Error(error.clone())), &Outcome::Nothing, Reason::DeletionFailed),
                Some(Problem::error(Reason::ILBLookupFailed, "load balancers", &error)),
            ];
            for problem in of_step.into_iter().flatten() {
                prop_assert!(!problem.message.contains("<<"), "{}", problem.message);
                prop_assert!(problem.message.contains(&code) || problem.reason == Reason::ScopeLocked, "{}", problem.message);
            }
        }
    }
}
