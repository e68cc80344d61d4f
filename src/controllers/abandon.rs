//! When a deleted custom resource is released although something of its cluster stays in the cloud: a lock forbids
//! its removal, the cloud has refused it for long, or access is denied and a person has allowed it. Pure.

use std::time::Duration;

use kube::ResourceExt;

use super::custom_resource::CustomResource;
use super::decision::{Decision, error_of};
use crate::api::markers::ABANDON;
use crate::api::{Reason, Role};
use crate::engine::cloud::{Cloud, ResourceKind};
use crate::engine::failure::{Class, Failure};
use crate::engine::plan::{Outcome, Step};
use crate::hypershift::problem::Problem;
use crate::runtime::event::{Event, What};

/// The Event if the custom resource may be released now; none if it may not.
///
/// A failure that time can solve does not release it: at least one failure has to be a denial, and a person has to
/// allow it. What has been locked, or refused as in use, for [`LEFT_AFTER`] needs no permission: whoever set the lock
/// keeps what is locked, and everything else is gone by then. `failing` gives how long each step has failed.
pub fn permission<R: CustomResource>(
    cr: &R,
    role: Role,
    decision: &Decision<R::Cloud>,
    outcomes: &[Outcome<R::Cloud>],
    failing: &dyn Fn(&Step<R::Cloud>) -> Duration,
) -> Option<Event> {
    let steps = decision.steps.iter().zip(outcomes);
    let steps = steps.filter(|(step, _)| !step.gone() && !step.left());
    let remaining = steps.map(|(step, outcome)| Remaining {
        step,
        error: error_of(step, outcome),
        is_overdue: failing(step) >= LEFT_AFTER,
    });
    let remaining: Vec<Remaining<'_, R::Cloud>> = remaining.collect();
    let only_waits = remaining
        .iter()
        .all(|one| one.stays() || one.step.why.waits_for_others());
    if decision.problem.is_none() && only_waits && remaining.iter().any(Remaining::stays) {
        let why = if remaining.iter().any(Remaining::is_refused) {
            format!("{} refuses its removal", R::Cloud::NAME)
        } else {
            "a lock forbids its removal".to_owned()
        };
        let note = format!("{} stays: {why}", listed(cr, role, &remaining));
        return Some(Event::new(What::Released, note));
    }
    let mut errors = remaining.iter().filter_map(|one| one.error);
    let denied = errors.any(|error| error.class() == Class::Denied);
    let outside = decision
        .problem
        .as_ref()
        .is_some_and(|problem| problem.reason == Reason::ScopeNotAllowed);
    let reason = abandon_reason(cr, role)?.ok().filter(|_| denied || outside)?;
    let note = format!(
        "abandoned in {} ({reason}): {}{}",
        R::Cloud::NAME,
        listed(cr, role, &remaining),
        R::part(role).map_or("", |part| part.abandoned)
    );
    Some(Event::new(What::Abandoned, note))
}

/// A step of a deletion whose resource is still there.
struct Remaining<'a, C: Cloud> {
    step: &'a Step<C>,
    error: Option<&'a C::Error>,
    is_overdue: bool,
}

impl<C: Cloud> Remaining<'_, C> {
    /// Whether the cloud refuses the deletion because the resource is in use, or seems to be.
    fn is_refused(&self) -> bool {
        let code = self.step.kind.rules().in_use;
        let refused = self.error.zip(code);
        refused.is_some_and(|(error, code)| error.code().eq_ignore_ascii_case(code))
    }

    /// Whether the resource need not be waited for any longer.
    fn stays(&self) -> bool {
        self.is_overdue && (self.error.is_some_and(Failure::is_lock) || self.is_refused())
    }
}

/// The steps of a deletion that a lock forbids.
pub fn locked<'a, C: Cloud>(
    decision: &'a Decision<C>,
    outcomes: &'a [Outcome<C>],
) -> impl Iterator<Item = &'a Step<C>> {
    let steps = decision.steps.iter().zip(outcomes);
    let locked = steps.filter(|(step, outcome)| error_of(step, outcome).is_some_and(Failure::is_lock));
    locked.map(|(step, _)| step)
}

/// How long a deletion waits for what is locked, or is or seems to be in use, when everything else is gone. After that
/// it is left there.
///
/// Rule: D3 in `docs/compatibility.md`.
pub const LEFT_AFTER: Duration = Duration::from_secs(600);

/// The ids that stay. What only its parent shows stays with it; where nothing could be read, what the status shows.
fn listed<R: CustomResource>(cr: &R, role: Role, remaining: &[Remaining<'_, R::Cloud>]) -> String {
    let steps = remaining.iter().map(|one| one.step);
    let steps = steps.filter(|step| !step.kind.rules().shown_by_parent);
    let mut ids: Vec<String> = steps.map(|step| cr.named(&step.key)).collect();
    if ids.is_empty() {
        ids = cr.recorded_ids(role);
    }
    ids.join(", ")
}

/// The reason in the annotation, if it is there and for this role; or why it does not count.
fn abandon_reason<R: CustomResource>(cr: &R, role: Role) -> Option<Result<&str, &'static str>> {
    let text = cr.annotations().get(ABANDON)?;
    let mut parts = text.splitn(3, '/');
    let uid = parts.next();
    let named = parts.next();
    let reason = parts.next();
    let other = R::PARTS
        .iter()
        .any(|part| part.role != role && Some(part.role.as_str()) == named);
    if uid != cr.meta().uid.as_deref() {
        Some(Err("it does not begin with the uid of this object"))
    } else if other {
        None
    } else if named != Some(role.as_str()) {
        Some(Err("it names no role, ho or cpo"))
    } else {
        let reason = reason.map(str::trim).filter(|reason| !reason.is_empty());
        Some(reason.ok_or("it gives no reason"))
    }
}

/// What happens to a locked resource, for people.
pub const LOCKED_STAYS: &str = "what is locked is left if the lock stays for 10 minutes";

/// The problem that blocks a deletion, with how a lock ends and what is wrong with the annotation that allows to
/// abandon.
pub fn noted(cr: &impl CustomResource, role: Role, mut problem: Problem) -> Problem {
    if problem.reason == Reason::ScopeLocked {
        problem.message = format!("{}; {LOCKED_STAYS}", problem.message);
    }
    match abandon_reason(cr, role) {
        Some(Err(wrong)) => Problem {
            message: format!("{}; the annotation {ABANDON} does not count: {wrong}", problem.message),
            ..problem
        },
        _ => problem,
    }
}

#[cfg(test)]
mod tests;
