//! What follows the steps of a teardown: the custom resource is released, or why not yet. Pure.

use super::decision::Decision;
use super::event;
use crate::engine::cloud::Cloud;
use crate::runtime::event::Event;
use crate::runtime::requeue::Requeue;

/// What follows the steps of a teardown.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Conclusion {
    /// The role's finalizer is removed, and these Events say what became of the resources.
    Release(Vec<Event>),
    /// Nothing is left, but something may still appear.
    Wait(Requeue),
    /// Something is left, or it is not certain yet that nothing is: the status reports that.
    Report,
}

/// What is known about the end of a teardown beside its steps.
#[derive(Debug, Clone, Default)]
pub struct Findings {
    /// Whether everything that is gone is so for certain.
    pub certain: bool,
    /// That the custom resource may be released although something stays.
    pub abandoned: Option<Event>,
    /// Until when something may still appear.
    pub may_appear: Option<Requeue>,
    /// The Events if nothing is left.
    pub last_events: Vec<Event>,
}

/// What follows the steps of `decision`.
pub fn conclude<C: Cloud>(decision: &Decision<C>, findings: Findings) -> Conclusion {
    if let Some(event) = findings.abandoned {
        let mut events = vec![event];
        events.extend(event::left(decision));
        return Conclusion::Release(events);
    }
    if !(decision.nothing_left() && findings.certain) {
        return Conclusion::Report;
    }
    match findings.may_appear {
        Some(requeue) => Conclusion::Wait(requeue),
        None => Conclusion::Release(findings.last_events),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::azure::cloud::Arm;
    use crate::hypershift::problem::Problem;
    use crate::runtime::event::What;

    fn certain() -> Findings {
        Findings {
            certain: true,
            ..Findings::default()
        }
    }

    #[test]
    fn teardown_without_anything_left_releases() {
        assert_eq!(
            conclude(&Decision::<Arm>::default(), certain()),
            Conclusion::Release(Vec::new())
        );
    }

    #[test]
    fn absence_that_is_not_certain_does_not_release() {
        let findings = Findings::default();
        assert_eq!(conclude(&Decision::<Arm>::default(), findings), Conclusion::Report);
    }

    #[test]
    fn what_may_still_appear_is_waited_for() {
        let requeue = Requeue::new(Duration::from_secs(40), Requeue::POLL);
        let findings = Findings {
            may_appear: Some(requeue),
            ..certain()
        };
        assert_eq!(
            conclude(&Decision::<Arm>::default(), findings),
            Conclusion::Wait(requeue)
        );
    }

    #[test]
    fn permission_releases_whatever_is_left_or_may_appear() {
        let problem = Problem::new(crate::api::Reason::ScopeNotAllowed, "x");
        let abandoned = Event::new(What::Abandoned, "abandoned");
        let findings = Findings {
            abandoned: Some(abandoned.clone()),
            may_appear: Some(Requeue::new(Duration::from_secs(40), Requeue::POLL)),
            ..Findings::default()
        };
        assert_eq!(
            conclude(&Decision::<Arm>::stuck(problem), findings),
            Conclusion::Release(vec![abandoned])
        );
    }
}
