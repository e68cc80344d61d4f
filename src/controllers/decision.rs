//! What a controller decides in one reconcile: steps, or a problem that prevents all steps. Data only.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use crate::api::{AzurePrivateLinkService, Reason, Role, held_by};
use crate::azure::arm::error::ArmError;
use crate::azure::kinds::Kind;
use crate::azure::plan::{Outcome, Step, Why};
use crate::engine::failure::Class;
use crate::hypershift::problem::{Problem, has_no_time};
use crate::runtime::requeue::Requeue;

/// Whether a custom resource is built, torn down or left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// The desired resources are created and repaired.
    Build,
    /// The owned resources are deleted.
    Teardown,
    /// The object is being deleted and does not have the role's finalizer.
    Nothing,
}

impl Lifecycle {
    /// The lifecycle of an object for `role`; `deleting` is whether the object, or what it belongs to, is being
    /// deleted.
    pub fn of(role: Role, cr: &AzurePrivateLinkService, deleting: bool) -> Self {
        match (deleting, held_by(cr, role.finalizer())) {
            (false, _) => Self::Build,
            (true, true) => Self::Teardown,
            (true, false) => Self::Nothing,
        }
    }

    /// The lifecycle in one word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Build => "build",
            Self::Teardown => "teardown",
            Self::Nothing => "nothing",
        }
    }
}

/// When an object was deleted, if it was: its deletion timestamp.
pub fn deleted_at(object: &impl ResourceExt) -> Option<Timestamp> {
    object.meta().deletion_timestamp.as_ref().map(|time| time.0)
}

/// What one reconcile is to do. Serialized as `hyperlink plan` prints it.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Decision {
    /// The steps, in the order in which they are sent.
    pub steps: Vec<Step>,
    /// What prevents all steps.
    pub problem: Option<Problem>,
    /// Whether nothing at all is to be touched, not even the status.
    pub paused: bool,
    /// What to record on the object before the first write.
    #[serde(skip)]
    pub intent: Option<String>,
    /// When to reconcile again, whatever the resources show.
    #[serde(skip)]
    pub requeue: Option<Requeue>,
    /// In a deletion: whether the cluster's other custom resource still uses a part, which therefore has no step.
    #[serde(skip)]
    pub shared: bool,
    /// In a deletion: a part that may be left and has no step, because nothing shows where it is.
    #[serde(skip)]
    pub not_found: Option<String>,
}

impl Decision {
    /// A decision that can do nothing because of a problem.
    pub fn stuck(problem: Problem) -> Self {
        Self {
            requeue: problem.requeue(),
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// A decision that is not to do anything, because the cluster is paused.
    pub fn paused(problem: Problem) -> Self {
        Self {
            paused: true,
            ..Self::stuck(problem)
        }
    }

    /// Whether nothing owned is left: everything is gone or left to others.
    pub fn nothing_left(&self) -> bool {
        self.problem.is_none() && self.steps.iter().all(|step| step.gone() || step.left())
    }

    /// Whether an Azure error, as last observed, is in the way. That Azure is throttling or busy does not count.
    pub fn fails(&self) -> bool {
        let of_steps = self.steps.iter().filter_map(|step| Some(step.why.error()?.class));
        let of_all = self.problem.as_ref().and_then(|problem| problem.class);
        let mut classes = of_steps.chain(of_all);
        classes.any(|class| !has_no_time(class))
    }

    /// The first step for a kind.
    pub fn step(&self, kind: Kind) -> Option<&Step> {
        self.steps.iter().find(|step| step.kind == kind)
    }
}

/// The problem of a step that is not complete; none if its resource is ready, or gone as desired. `failure` is the
/// reason if the step fails.
pub fn step_problem(step: &Step, outcome: &Outcome, failure: Reason) -> Option<Problem> {
    let kind = step.kind.label();
    let name = step.key.name();
    let subject = format!("{kind} {name}");
    let problem = match (outcome, &step.why) {
        (Outcome::Nothing, Why::InUse(_)) => return None,
        (Outcome::Nothing | Outcome::Reached(_), Why::UpToDate) => return None,
        (Outcome::Ready, why) if !matches!(why, Why::Replace(_)) => return None,
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
        (_, Why::Replace(_)) => Problem::new(Reason::Provisioning, format!("{subject} is being replaced")),
        (_, why) if deletes(why, failure) => Problem::new(Reason::Deleting, format!("{subject} is being deleted")),
        _ => Problem::new(Reason::Provisioning, format!("{subject} is being provisioned")),
    };
    Some(problem)
}

/// Whether a step that is not complete deletes its resource; `failure` is the reason if it fails.
fn deletes(why: &Why, failure: Reason) -> bool {
    match why {
        Why::Unwanted => true,
        Why::InProgress | Why::Unproven => failure == Reason::DeletionFailed,
        _ => false,
    }
}

/// The Azure error that came of a step, or that is the reason why nothing was sent.
pub fn error_of<'a>(step: &'a Step, outcome: &'a Outcome) -> Option<&'a ArmError> {
    match outcome {
        Outcome::Failed(error) => Some(error),
        Outcome::Nothing => step.why.error(),
        _ => None,
    }
}

/// What blocks a decision: its own problem, or the first problem of these steps. `failure` gives the reason if a step
/// fails.
pub fn blocking_problem<'a>(
    decision: &Decision,
    steps: impl IntoIterator<Item = (&'a Step, &'a Outcome)>,
    failure: impl Fn(&Step) -> Reason,
) -> Option<Problem> {
    let problems = steps
        .into_iter()
        .filter_map(|(step, outcome)| Some((step, step_problem(step, outcome, failure(step))?)));
    decision.problem.clone().or_else(|| first_problem(None, problems))
}

/// The first of several problems. What could not be read just now comes last, and so does a step that waits for it;
/// `unread` is an earlier problem, which may be such a one.
pub fn first_problem<'a>(
    unread: Option<&Problem>,
    problems: impl IntoIterator<Item = (&'a Step, Problem)>,
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
    problem.class.filter(|class| has_no_time(*class))
}

fn reason_of(error: &ArmError, failure: Reason) -> Reason {
    if error.class == Class::Denied && error.code.eq_ignore_ascii_case("ScopeLocked") {
        Reason::ScopeLocked
    } else {
        failure
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::azure::arm::id::ResourceId;
    use crate::azure::kinds::Kind;
    use crate::engine::plan::Verb;

    fn step(why: Why) -> Step {
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

    fn denied() -> ArmError {
        ArmError::from_json(
            403,
            &json!({"error": {"code": "AuthorizationFailed", "message": "client abc"}}),
            None,
        )
    }

    #[rstest]
    #[case::ready(Why::Absent, Outcome::Ready, None)]
    #[case::up_to_date(Why::UpToDate, Outcome::Nothing, None)]
    #[case::under_way(Why::Absent, Outcome::Accepted, Some((Reason::Provisioning, "private_endpoint pe is being provisioned")))]
    #[case::refused_by_azure(Why::Absent, Outcome::Failed(denied()), Some((Reason::PrivateEndpointCreationFailed, "private_endpoint pe: AuthorizationFailed: check the role assignments of the identity")))]
    #[case::unreadable(Why::Error(denied()), Outcome::Nothing, Some((Reason::PrivateEndpointCreationFailed, "private_endpoint pe: AuthorizationFailed: check the role assignments of the identity")))]
    #[case::foreign(Why::NotOurs, Outcome::Nothing, Some((Reason::NotOurs, "private_endpoint pe exists and does not belong to this cluster")))]
    #[case::used_by_others(Why::InUse("links of others"), Outcome::Nothing, None)]
    #[case::old_one_deleted(Why::Replace(vec!["x"]), Outcome::Ready, Some((Reason::Provisioning, "private_endpoint pe is being replaced")))]
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

    #[rstest]
    #[case::unreadable(Why::Unread(ArmError::own(Class::Down, "X")), true)]
    #[case::refused_and_waited_out(Why::Error(denied()), true)]
    #[case::no_time_for_a_read(Why::Unread(ArmError::own(Class::Throttled, "X")), false)]
    #[case::sibling_changes(Why::Error(ArmError::own(Class::Busy, "X")), false)]
    #[case::under_way(Why::InProgress, false)]
    fn azure_error_fails_a_reconcile_and_a_busy_azure_does_not(#[case] why: Why, #[case] fails: bool) {
        let decision = Decision {
            steps: vec![step(Why::UpToDate), step(why)],
            ..Decision::default()
        };
        assert_eq!(decision.fails(), fails);
    }

    #[test]
    fn reconcile_without_steps_fails_only_by_an_azure_error() {
        let unread = Problem::unread(Reason::NATSubnetCreationFailed, "subnet s", &denied());
        assert!(Decision::stuck(unread).fails());
        assert!(!Decision::stuck(Problem::new(Reason::HostedClusterNotFound, "x")).fails());
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
