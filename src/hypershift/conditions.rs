//! How conditions are built, merged, compared and summarised. Pure: the caller brings the time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Status};
use crate::engine::failure::Class;

/// A condition that was just decided; when it last changed is not known yet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewCondition {
    /// Which condition it is.
    pub kind: ConditionType,
    /// Whether it holds.
    pub status: Status,
    /// Why it holds or does not hold.
    pub reason: Reason,
    /// For people: short, and equal for equal causes; otherwise every reconcile would be a change.
    pub message: String,
    /// `metadata.generation` of the object that it was decided from.
    pub observed_generation: Option<i64>,
    /// The class of the Azure error that it reports; not stored.
    pub class: Option<Class>,
}

impl NewCondition {
    /// A condition that holds: reason `AzureSuccess`.
    pub fn holds(kind: ConditionType, message: impl Into<String>, generation: Option<i64>) -> Self {
        NewCondition {
            kind,
            status: Status::True,
            reason: Reason::AzureSuccess,
            message: message.into(),
            observed_generation: generation,
            class: None,
        }
    }

    /// A condition that does not hold, or not yet.
    pub fn fails(kind: ConditionType, reason: Reason, message: impl Into<String>, generation: Option<i64>) -> Self {
        NewCondition {
            kind,
            status: Status::False,
            reason,
            message: message.into(),
            observed_generation: generation,
            class: None,
        }
    }
}

/// The condition of type `kind`, if there is one.
pub fn get(conditions: &[Condition], kind: ConditionType) -> Option<&Condition> {
    conditions.iter().find(|condition| condition.type_ == kind.as_str())
}

/// When a condition got this status: as `current` says while it has the same one, else `now`.
pub fn last_transition(current: &[Condition], kind: ConditionType, status: &str, now: Timestamp) -> Time {
    let unchanged = get(current, kind).filter(|old| old.status == status);
    unchanged.map_or(Time(now), |old| old.last_transition_time.clone())
}

/// The conditions to store for `own`, with the time of their [`last_transition`]. Returns only the conditions of `own`,
/// which is what a server-side apply by their owner must carry.
pub fn merge(current: &[Condition], own: Vec<NewCondition>, now: Timestamp) -> Vec<Condition> {
    let dated = own.into_iter().map(|new| Condition {
        last_transition_time: last_transition(current, new.kind, new.status.as_str(), now),
        type_: new.kind.as_str().to_owned(),
        status: new.status.as_str().to_owned(),
        reason: new.reason.as_str().to_owned(),
        message: new.message,
        observed_generation: new.observed_generation,
    });
    dated.collect()
}

/// Whether two conditions differ in nothing but `lastTransitionTime`.
pub fn same_but_for_time(a: &Condition, b: &Condition) -> bool {
    a.type_ == b.type_
        && a.status == b.status
        && a.reason == b.reason
        && a.message == b.message
        && a.observed_generation == b.observed_generation
}

/// Whether `current` already has all of `own`, so that writing them would change nothing but times. Conditions of
/// others in `current` do not matter.
pub fn stands(current: &[Condition], own: &[Condition]) -> bool {
    own.iter()
        .all(|new| current.iter().any(|old| same_but_for_time(old, new)))
}

/// `AzurePrivateLinkServiceAvailable`, derived from the other four: those in `own` count as just decided, the others as
/// `current` has them. False with the reason of the first one that does not hold.
pub fn summary(current: &[Condition], own: &[NewCondition], generation: Option<i64>) -> NewCondition {
    const WHOLE: ConditionType = ConditionType::AzurePrivateLinkServiceAvailable;
    let parts = AzurePrivateLinkService::CONDITIONS
        .into_iter()
        .filter(|kind| *kind != WHOLE);
    match parts.filter_map(|kind| problem_of(kind, current, own)).next() {
        Some((reason, message)) => NewCondition::fails(WHOLE, reason, message, generation),
        None => NewCondition::holds(
            WHOLE,
            "All Azure Private Link Service resources are available",
            generation,
        ),
    }
}

/// From when the time to available is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Since {
    /// From the creation of the custom resource.
    Creation,
    /// From when it was last available. An old custom resource that was adopted counts here, too.
    Outage,
}

impl Since {
    /// Both starting points.
    pub const ALL: [Since; 2] = [Since::Creation, Since::Outage];

    /// Value of the metric label.
    pub fn label(self) -> &'static str {
        match self {
            Since::Creation => "creation",
            Since::Outage => "outage",
        }
    }
}

/// A custom resource that was not available this soon after its creation has never been available. Its first reconcile
/// publishes that; what it took counts from the creation then.
const FIRST_RECONCILE: Duration = Duration::from_secs(60);

/// From when, and how long it took, if the condition of this type holds in `own` and did not in `before`.
pub fn became_available(
    kind: ConditionType,
    before: &[Condition],
    own: &[Condition],
    created: Option<&Time>,
) -> Option<(Since, Duration)> {
    let old = get(before, kind);
    let new = get(own, kind)?;
    if !is_true(new) || old.is_some_and(is_true) {
        return None;
    }
    let now = new.last_transition_time.0;
    let created = created.map_or(now, |time| time.0);
    let since = old.map_or(created, |old| old.last_transition_time.0);
    Some(if between(created, since) <= FIRST_RECONCILE {
        (Since::Creation, between(created, now))
    } else {
        (Since::Outage, between(since, now))
    })
}

fn is_true(condition: &Condition) -> bool {
    condition.status == Status::True.as_str()
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
}

/// Whether `old` is a load balancer condition that is out of date, because the Private Link Service was created later.
/// HyperShift's own operator does not report the load balancer when the service exists, and no service exists without
/// its frontend.
pub fn is_overtaken(old: &Condition, all: &[Condition]) -> bool {
    old.type_ == ConditionType::AzureInternalLoadBalancerAvailable.as_str()
        && get(all, ConditionType::AzurePLSCreated)
            .is_some_and(|created| is_true(created) && created.last_transition_time.0 > old.last_transition_time.0)
}

/// Why this condition keeps the path from being available; `None` if it does not.
fn problem_of(kind: ConditionType, current: &[Condition], own: &[NewCondition]) -> Option<(Reason, String)> {
    let name = kind.as_str();
    if let Some(new) = own.iter().find(|new| new.kind == kind) {
        return (new.status == Status::False).then(|| (new.reason, format!("{name}: {}", new.message)));
    }
    match get(current, kind) {
        Some(old) if old.status == Status::True.as_str() || is_overtaken(old, current) => None,
        Some(old) => {
            let reason = Reason::parse(&old.reason).unwrap_or(Reason::AzureError);
            Some((reason, format!("{name}: {}", old.message)))
        }
        // HyperShift's own operator does not report the load balancer when the Private Link Service exists; the service
        // cannot exist without its frontend.
        None if kind == ConditionType::AzureInternalLoadBalancerAvailable
            && get(current, ConditionType::AzurePLSCreated)
                .is_some_and(|created| created.status == Status::True.as_str()) =>
        {
            None
        }
        None => {
            let reason = match kind {
                ConditionType::AzureInternalLoadBalancerAvailable => Reason::WaitingForLoadBalancer,
                ConditionType::AzurePLSCreated => Reason::WaitingForPrivateLinkService,
                _ => Reason::WaitingForPrivateEndpoint,
            };
            Some((reason, format!("{name}: not reported yet")))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ConditionType::*;

    const THEN: Timestamp = Timestamp::constant(1_000, 0);
    const NOW: Timestamp = Timestamp::constant(2_000, 0);

    fn good(kind: ConditionType) -> NewCondition {
        NewCondition::holds(kind, "fine", Some(1))
    }

    fn bad(kind: ConditionType) -> NewCondition {
        NewCondition::fails(kind, Reason::Provisioning, "at work", Some(1))
    }

    fn stored(own: impl IntoIterator<Item = NewCondition>) -> Vec<Condition> {
        merge(&[], own.into_iter().collect(), THEN)
    }

    #[test]
    fn a_first_condition_changes_now() {
        let merged = merge(&[], vec![good(AzurePLSCreated)], NOW);
        let expected = Condition {
            type_: "AzurePLSCreated".into(),
            status: "True".into(),
            reason: "AzureSuccess".into(),
            message: "fine".into(),
            observed_generation: Some(1),
            last_transition_time: Time(NOW),
        };
        assert_eq!(merged, [expected]);
    }

    #[test]
    fn the_time_is_kept_while_the_status_is_the_same() {
        let current = stored([bad(AzurePLSCreated)]);
        let other = NewCondition::fails(AzurePLSCreated, Reason::PLSCreationFailed, "refused", Some(2));
        let merged = merge(&current, vec![other], NOW);
        assert_eq!(merged[0].reason, "PLSCreationFailed");
        assert_eq!(merged[0].observed_generation, Some(2));
        assert_eq!(merged[0].last_transition_time, Time(THEN));
    }

    #[test]
    fn the_time_is_new_when_the_status_changes() {
        let current = stored([bad(AzurePLSCreated)]);
        let merged = merge(&current, vec![good(AzurePLSCreated)], NOW);
        assert_eq!(merged[0].last_transition_time, Time(NOW));
    }

    #[test]
    fn time_to_available_counts_from_creation_or_from_the_outage() {
        let whole = AzurePrivateLinkServiceAvailable;
        let own = merge(&[], vec![good(whole)], NOW);
        let duration = |before: &[Condition], created: i64| {
            let created = Time(Timestamp::constant(created, 0));
            became_available(whole, before, &own, Some(&created)).map(|(since, duration)| (since, duration.as_secs()))
        };
        assert_eq!(duration(&[], 1_900), Some((Since::Creation, 100)));
        // THEN was the first reconcile, soon after the creation.
        assert_eq!(duration(&stored([bad(whole)]), 990), Some((Since::Creation, 1_010)));
        assert_eq!(duration(&stored([bad(whole)]), 10), Some((Since::Outage, 1_000)));
        assert_eq!(duration(&stored([good(whole)]), 990), None);
        let still = merge(&[], vec![bad(whole), good(AzurePLSCreated)], NOW);
        assert_eq!(became_available(whole, &[], &still, None), None);
    }

    #[test]
    fn conditions_of_the_other_role_are_not_returned() {
        let current = stored([good(AzurePLSCreated), good(AzurePrivateDNSAvailable)]);
        let merged = merge(&current, vec![good(AzurePrivateDNSAvailable)], NOW);
        assert_eq!(merged.len(), 1);
    }

    #[test]
    fn only_time_may_differ_for_two_conditions_to_be_the_same() {
        let one = &stored([good(AzurePLSCreated)])[0];
        let changed = |change: fn(&mut Condition)| {
            let mut other = one.clone();
            change(&mut other);
            other
        };
        assert!(same_but_for_time(one, &changed(|c| c.last_transition_time = Time(NOW))));
        assert!(!same_but_for_time(
            one,
            &changed(|c| c.type_ = "AzurePrivateDNSAvailable".into())
        ));
        assert!(!same_but_for_time(one, &changed(|c| c.status = "False".into())));
        assert!(!same_but_for_time(one, &changed(|c| c.reason = "AzureError".into())));
        assert!(!same_but_for_time(one, &changed(|c| c.message = String::new())));
        assert!(!same_but_for_time(one, &changed(|c| c.observed_generation = None)));
    }

    #[test]
    fn what_stands_already_need_not_be_written() {
        let current = stored([good(AzurePLSCreated), good(AzurePrivateDNSAvailable)]);
        let own = merge(&[], vec![good(AzurePrivateDNSAvailable)], NOW);
        assert!(stands(&current, &own));
        let own = merge(&[], vec![good(AzurePrivateDNSAvailable), bad(AzurePLSCreated)], NOW);
        assert!(!stands(&current, &own));
        let own = merge(&[], vec![good(AzurePrivateEndpointAvailable)], NOW);
        assert!(!stands(&current, &own));
    }

    #[test]
    fn the_summary_holds_when_all_parts_do() {
        let current = stored([good(AzureInternalLoadBalancerAvailable), good(AzurePLSCreated)]);
        let own = [good(AzurePrivateEndpointAvailable), good(AzurePrivateDNSAvailable)];
        let whole = summary(&current, &own, Some(3));
        assert_eq!(
            (whole.kind, whole.status),
            (AzurePrivateLinkServiceAvailable, Status::True)
        );
        assert_eq!(whole.observed_generation, Some(3));
    }

    #[test]
    fn the_summary_names_the_first_part_that_does_not_hold() {
        let parts = &ConditionType::ALL[..4];
        for first in 0..parts.len() {
            let all: Vec<_> = parts
                .iter()
                .enumerate()
                .map(|(i, kind)| if i < first { good(*kind) } else { bad(*kind) })
                .collect();
            let expected = format!("{}: at work", parts[first].as_str());
            for (current, own) in [(stored(all.clone()), vec![]), (vec![], all.clone())] {
                let whole = summary(&current, &own, None);
                assert_eq!(whole.status, Status::False);
                assert_eq!(whole.reason, Reason::Provisioning);
                assert_eq!(whole.message, expected);
            }
        }
    }

    #[test]
    fn what_was_just_decided_outweighs_what_is_stored() {
        let current = stored(ConditionType::ALL.map(good));
        let whole = summary(&current, &[bad(AzurePrivateDNSAvailable)], None);
        assert_eq!(whole.status, Status::False);
    }

    #[test]
    fn a_part_that_nobody_reported_keeps_the_summary_false() {
        for missing in &ConditionType::ALL[1..4] {
            let others = ConditionType::ALL.into_iter().filter(|kind| kind != missing);
            let whole = summary(&stored(others.map(good)), &[], None);
            assert_eq!(whole.status, Status::False, "{missing:?}");
            assert_eq!(whole.message, format!("{}: not reported yet", missing.as_str()));
        }
        assert_eq!(summary(&[], &[], None).reason, Reason::WaitingForLoadBalancer);
    }

    #[test]
    fn working_link_service_implies_an_unreported_load_balancer() {
        let current = stored(ConditionType::ALL[1..4].iter().copied().map(good));
        assert_eq!(summary(&current, &[], None).status, Status::True);
    }

    #[test]
    fn link_service_implies_a_load_balancer_that_failed_before() {
        let mut current = stored(ConditionType::ALL.map(good));
        current[0].status = "False".into();
        assert_eq!(summary(&current, &[], None).status, Status::False, "of the same time");
        current[1].last_transition_time = Time(NOW);
        assert_eq!(summary(&current, &[], None).status, Status::True);
        current[1].status = "False".into();
        assert_eq!(summary(&current, &[], None).status, Status::False);
    }

    #[test]
    fn foreign_reason_or_status_keeps_the_summary_false() {
        let mut current = stored(ConditionType::ALL.map(good));
        current[1].status = "Unknown".into();
        current[1].reason = "Whatever".into();
        let whole = summary(&current, &[], None);
        assert_eq!((whole.status, whole.reason), (Status::False, Reason::AzureError));
    }
}
