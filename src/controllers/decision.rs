//! What a controller decides in one reconcile: steps, or a problem that prevents all steps. Data only.

use k8s_openapi::jiff::Timestamp;
use kube::ResourceExt;
use serde::Serialize;

use crate::api::Role;
use crate::controllers::custom_resource::CustomResource;
use crate::engine::cloud::Cloud;
use crate::engine::failure::Failure;
use crate::engine::plan::{Outcome, Step, Why};
use crate::hypershift::intent::OwnFields;
use crate::hypershift::problem::Problem;
use crate::runtime::event::Event;
use crate::runtime::requeue::Requeue;

/// Whether a custom resource is built, torn down or left alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Lifecycle {
    /// The desired resources are created and repaired.
    Build,
    /// The owned resources are deleted.
    Teardown,
    /// The object is being deleted, and the role has nothing to tear down.
    Nothing,
}

impl Lifecycle {
    /// The lifecycle of an object for `role`; `deleting` is whether the object, or what it belongs to, is being
    /// deleted.
    pub fn of(role: Role, cr: &impl CustomResource, deleting: bool) -> Self {
        match (deleting, cr.is_torn_down_by(role)) {
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
#[serde(bound = "")]
pub struct Decision<C: Cloud> {
    /// The steps, in the order in which they are sent.
    pub steps: Vec<Step<C>>,
    /// What prevents all steps.
    pub problem: Option<Problem>,
    /// What is left out of it, and why, in words.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub left_out: Vec<String>,
    /// What stands, and what is over, by topic, for Events. Nothing is known now of a topic that is not named.
    #[serde(skip)]
    pub standing: Vec<(&'static str, Option<Event>)>,
    /// Whether what is recorded names something that is gone: the intent is recorded again, though nothing is written.
    #[serde(skip)]
    pub forgets: bool,
    /// Whether nothing at all is to be touched, not even the status.
    pub paused: bool,
    /// What to record on the object before the first write.
    #[serde(skip)]
    pub intent: Option<String>,
    /// What to write on the object itself because it differs.
    #[serde(skip)]
    pub own_fields: OwnFields,
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

impl<C: Cloud> Decision<C> {
    /// A decision that can do nothing because of a problem.
    pub fn stuck(problem: Problem) -> Self {
        Self {
            requeue: problem.requeue(),
            problem: Some(problem),
            ..Self::default()
        }
    }

    /// A decision that is not to do anything yet, nor to report it: the cluster is paused, say.
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

    /// Whether all that was read is as desired, and only reads are missing.
    pub fn is_as_desired(&self) -> bool {
        let holds = |step: &Step<C>| {
            step.ready().is_some() || step.why.waits_for_others() || matches!(step.why, Why::Unread(_))
        };
        self.problem.as_ref().is_none_or(|problem| problem.unread)
            && self.own_fields.is_empty()
            && self.steps.iter().all(holds)
    }

    /// Whether an error of the cloud, as last observed, is in the way. That it is throttling or busy does not count.
    pub fn fails(&self) -> bool {
        let of_steps = self.steps.iter().filter_map(|step| Some(step.why.error()?.class()));
        let of_all = self.problem.as_ref().and_then(|problem| problem.class);
        let mut classes = of_steps.chain(of_all);
        classes.any(|class| !class.is_back_pressure())
    }

    /// The first step for a kind.
    pub fn step(&self, kind: C::Kind) -> Option<&Step<C>> {
        self.steps.iter().find(|step| step.kind == kind)
    }
}

/// The error that came of a step, or that is the reason why nothing was sent.
pub fn error_of<'a, C: Cloud>(step: &'a Step<C>, outcome: &'a Outcome<C>) -> Option<&'a C::Error> {
    match outcome {
        Outcome::Failed(error) => Some(error),
        Outcome::Nothing => step.why.error(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;
    use crate::api::Reason;
    use crate::azure::arm::error::ArmError;
    use crate::azure::cloud::Arm;
    use crate::azure::plan::Why;
    use crate::controllers::step_problem::tests::{denied, step};
    use crate::engine::failure::Class;

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
        assert!(Decision::<Arm>::stuck(unread).fails());
        assert!(!Decision::<Arm>::stuck(Problem::new(Reason::HostedClusterNotFound, "x")).fails());
    }
}
