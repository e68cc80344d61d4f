//! Which Events a reconcile emits: one for each change, none if nothing changes. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{ConditionType, Reason, Status};
use crate::controllers::decision::{Decision, error_of};
use crate::engine::cloud::{Cloud, ResourceKind};
use crate::engine::failure::{CALL_BUDGET_EXHAUSTED, Class, Failure};
use crate::engine::plan::{Change, Outcome, Step, Why};
use crate::hypershift::conditions::NewCondition;
use crate::runtime::event::{Event, ProblemsByTopic, What};

/// The Event for a resource that is as desired after a change.
pub fn changed<C: Cloud>(Step { kind, key: id, .. }: &Step<C>, change: &Change) -> Event {
    let label = kind.label();
    match change {
        Change::Created => Event::new(What::Created, format!("{label} {id} is created")),
        Change::Repaired(fields) => Event::new(
            What::Repaired,
            format!("{label} {id} is repaired: {}", fields.join(", ")),
        ),
        Change::Replaced(fields) => Event::new(
            What::Replaced,
            format!("{label} {id} is replaced: {}", fields.join(", ")),
        ),
    }
}

/// The Event for a resource that was called too often, as the steps and outcomes show.
pub fn call_budget_exhausted<C: Cloud>(steps: &[Step<C>], outcomes: &[Outcome<C>]) -> Option<Event> {
    for (step, outcome) in steps.iter().zip(outcomes) {
        if error_of(step, outcome).is_some_and(|error| error.code() == CALL_BUDGET_EXHAUSTED) {
            let note = format!(
                "{} {} was called too often and is left alone for a while: somebody changes it without end, or else it is a \
                 defect of Hyperlink, please report it",
                step.kind.label(),
                step.key
            );
            return Some(Event::new(What::CallBudgetExhausted, note));
        }
    }
    None
}

/// The Event for a custom resource without our intent of which a resource that shows a predecessor is there as desired.
pub fn adopted<C: Cloud>(steps: &[Step<C>]) -> Option<Event> {
    let mut adoptable = steps.iter().filter(|step| step.kind.rules().shows_predecessor);
    let found = adoptable.find(|step| step.ready().is_some())?;
    let note = format!("{} {} is there already and taken over", found.kind.label(), found.key);
    Some(Event::new(What::Adopted, note))
}

/// The Events for the end of a custom resource: nothing owned is left, or what is. Without a step nothing was read.
pub fn released<C: Cloud>(decision: &Decision<C>) -> Vec<Event> {
    if decision.steps.is_empty() {
        return vec![not_read::<C>("nothing tells what was made for it")];
    }
    let remaining = left(decision);
    if !remaining.is_empty() {
        return remaining;
    }
    let but = if decision.shared {
        " but what the cluster's other custom resource uses"
    } else {
        ""
    };
    let note = format!("nothing of ours is left in {}{but}", C::NAME);
    vec![Event::new(What::Gone, note)]
}

/// The Events for what is left in the cloud under our names, and why.
pub fn left<C: Cloud>(decision: &Decision<C>) -> Vec<Event> {
    let stays = decision.steps.iter().filter(|step| step.left()).map(|step| {
        let why = match &step.why {
            Why::InUse(users) => format!("used by {users}"),
            _ => "nothing proves that it is this cluster's".to_owned(),
        };
        format!("{} {} stays: {why}", step.kind.label(), step.key)
    });
    let left_out = decision.left_out.iter().cloned();
    let not_found = decision.not_found.iter();
    let not_found = not_found.map(|what| format!("{what} may be left: nothing tells where it is"));
    stays
        .chain(not_found)
        .chain(left_out)
        .map(|note| Event::new(What::Released, note))
        .collect()
}

/// The Event that it is not known whether anything is left, for this reason.
pub fn not_read<C: Cloud>(why: &str) -> Event {
    Event::new(What::Released, format!("{why}; nothing was looked at in {}", C::NAME))
}

/// The Events for new problems, but for what the condition `summary` sums up. `stored` are the conditions as they were before, the other role's too: an earlier
/// process or the other role has published what they report.
///
/// A problem ends when its condition holds. Waiting in between, as for another try, does not end it.
pub fn troubles(
    standing: &mut ProblemsByTopic,
    summary: Option<ConditionType>,
    stored: &[Condition],
    own: &[NewCondition],
) -> Vec<Event> {
    let parts = own.iter().filter(|new| Some(new.kind) != summary);
    let mut events: Vec<Event> = Vec::new();
    for new in parts {
        if new.status == Status::True {
            standing.remove(new.kind.as_str());
            continue;
        }
        let Some(what) = trouble(new) else { continue };
        // A cloud throttles call by call, and the message differs for each call.
        let topic = if what == What::Throttled {
            what.reason()
        } else {
            &new.message
        };
        let before = standing.insert(new.kind.as_str(), topic.to_owned());
        let is_repeated = before.as_deref() == Some(topic)
            || stored
                .iter()
                .any(|old| old.status == Status::False.as_str() && old.message == new.message)
            || events.iter().any(|event| event.note == new.message);
        if !is_repeated {
            events.push(Event::new(what, new.message.clone()));
        }
    }
    events
}

/// Which Event the problem in a condition needs; none where time alone helps.
fn trouble(condition: &NewCondition) -> Option<What> {
    match (condition.reason, condition.class) {
        (Reason::ScopeLocked, _) | (_, Some(Class::Invalid)) => Some(What::Refused),
        (_, Some(Class::Denied)) => Some(What::Denied),
        (_, Some(Class::Throttled)) => Some(What::Throttled),
        (
            Reason::AzureError
            | Reason::InvalidSpec
            | Reason::NATSubnetCreationFailed
            | Reason::PLSCreationFailed
            | Reason::HostedClusterNotFound
            | Reason::HostedControlPlaneNotFound
            | Reason::IdentityMismatch
            | Reason::DuplicateIdentity
            | Reason::HostNameClaimed
            | Reason::CloudMismatch
            | Reason::NotOurs
            | Reason::ScopeNotAllowed
            | Reason::AmbiguousLoadBalancer
            | Reason::ReplacementBlocked
            | Reason::EndpointNotConnected
            | Reason::ConfigurationChanged
            | Reason::VNetLinkedToOtherZone,
            None,
        ) => Some(What::Refused),
        _ => None,
    }
}

/// The Event about what is left out, if anything is.
pub fn left_out(reasons: &[String]) -> Option<Event> {
    (!reasons.is_empty()).then(|| Event::new(What::Refused, reasons.join("; ")))
}

#[cfg(test)]
mod tests;
