//! How a reconcile of a custom resource counts, by what was decided and what came of it. Pure.

use super::decision::Decision;
use super::report::Report;
use crate::api::Status;
use crate::engine::cloud::Cloud;
use crate::engine::plan::{Outcome, Step};
use crate::metrics::ReconcileResult;
use crate::runtime::reconcile::ReconcileOutcome;
use crate::runtime::requeue::Requeue;

/// The outcome of a reconcile that builds, by its report. A condition that is still True while the cloud fails to
/// answer does not make it a success.
pub fn reported<R, C: Cloud>(
    cr: R,
    requeue: Requeue,
    report: &Report,
    decision: &Decision<C>,
    outcomes: &[Outcome<C>],
) -> ReconcileOutcome<R> {
    let all_hold = report.conditions.iter().all(|one| one.status == Status::True);
    if all_hold && !decision.fails() {
        ReconcileOutcome::new(cr, requeue, ReconcileResult::Ready)
    } else {
        not_ready(cr, requeue, decision, outcomes)
    }
}

/// The outcome of a reconcile after which something is not as desired yet.
pub fn not_ready<R, C: Cloud>(
    cr: R,
    requeue: Requeue,
    decision: &Decision<C>,
    outcomes: &[Outcome<C>],
) -> ReconcileOutcome<R> {
    let failed = decision.fails() || outcomes.iter().any(|outcome| matches!(outcome, Outcome::Failed(_)));
    let problem = decision.problem.as_ref();
    let only_a_change_helps = problem.is_some_and(|problem| problem.requeue_after.is_none());
    let result = if failed {
        ReconcileResult::Failed
    } else if only_a_change_helps || decision.steps.iter().any(Step::left) {
        ReconcileResult::Refused
    } else {
        ReconcileResult::Waiting
    };
    ReconcileOutcome::new(cr, requeue, result)
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api::ConditionType;
    use crate::azure::arm::error::ArmError;
    use crate::azure::kinds::Kind;
    use crate::azure::plan::Why;
    use crate::controllers::samples;
    use crate::engine::failure::Class;
    use crate::engine::plan::Verb;
    use crate::hypershift::conditions::NewCondition;

    #[rstest]
    #[case::out_of_reach(Class::Down, ReconcileResult::Failed)]
    #[case::no_time(Class::Throttled, ReconcileResult::Ready)]
    fn failed_read_is_no_success_though_all_conditions_are_true(
        #[case] class: Class,
        #[case] expected: ReconcileResult,
    ) {
        let step = Step {
            kind: Kind::PrivateLinkService,
            key: samples::id(&samples::management("privateLinkServices/pls-id")),
            verb: Verb::Wait,
            why: Why::Unread(ArmError::own(class, "X")),
            found: None,
        };
        let decision = Decision {
            steps: vec![step],
            ..Decision::default()
        };
        let report = Report {
            conditions: vec![NewCondition::holds(ConditionType::AzurePLSCreated, "fine", None)],
            ..Report::default()
        };
        let cr = samples::cr(json!({}), json!({}));
        let requeue = Requeue::new(Duration::ZERO, Requeue::RESYNC);
        let outcome = reported(cr, requeue, &report, &decision, &[Outcome::Nothing]);
        assert_eq!(outcome.result, expected);
    }
}
