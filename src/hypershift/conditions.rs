//! How conditions are built, merged and compared. Pure: the caller brings the time.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{Condition, Time};

use crate::api::{ConditionType, Platform, Reason, Status};
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
    /// The class of the cloud's error that it reports; not stored.
    pub class: Option<Class>,
}

impl NewCondition {
    /// A condition that holds.
    pub fn holds(kind: ConditionType, message: impl Into<String>, generation: Option<i64>) -> Self {
        NewCondition {
            kind,
            status: Status::True,
            reason: kind.success(),
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

/// From when, and how long it took, if all decisive conditions of a custom resource of this platform hold once `own` is
/// stored, and did not all hold in `before`.
pub fn became_available(
    platform: Platform,
    before: &[Condition],
    own: &[Condition],
    created: Option<&Time>,
) -> Option<(Since, Duration)> {
    let kinds = ConditionType::of(platform).iter().filter(|kind| kind.is_decisive());
    let pairs = kinds.map(|kind| (get(before, *kind), get(own, *kind).or_else(|| get(before, *kind))));
    let pairs: Vec<(Option<&Condition>, &Condition)> =
        pairs.map(|(old, new)| Some((old, new?))).collect::<Option<_>>()?;
    if !pairs.iter().all(|(_, new)| is_true(new)) {
        return None;
    }
    let now = pairs.iter().map(|(_, new)| new.last_transition_time.0).max()?;
    let created = created.map_or(now, |time| time.0);
    let missing = pairs.iter().filter(|(old, _)| !old.is_some_and(is_true));
    let since = missing.map(|(old, _)| old.map_or(created, |old| old.last_transition_time.0));
    let since = since.min()?;
    Some(if between(created, since) <= FIRST_RECONCILE {
        (Since::Creation, between(created, now))
    } else {
        (Since::Outage, between(since, now))
    })
}

/// Whether the condition holds.
pub fn is_true(condition: &Condition) -> bool {
    condition.status == Status::True.as_str()
}

fn between(from: Timestamp, to: Timestamp) -> Duration {
    Duration::try_from(to.duration_since(from)).unwrap_or_default()
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
            became_available(Platform::Azure, before, &own, Some(&created))
                .map(|(since, duration)| (since, duration.as_secs()))
        };
        assert_eq!(duration(&[], 1_900), Some((Since::Creation, 100)));
        // THEN was the first reconcile, soon after the creation.
        assert_eq!(duration(&stored([bad(whole)]), 990), Some((Since::Creation, 1_010)));
        assert_eq!(duration(&stored([bad(whole)]), 10), Some((Since::Outage, 1_000)));
        assert_eq!(duration(&stored([good(whole)]), 990), None);
        let still = merge(&[], vec![bad(whole), good(AzurePLSCreated)], NOW);
        assert_eq!(became_available(Platform::Azure, &[], &still, None), None);
    }

    #[test]
    fn path_on_aws_is_available_when_the_last_of_both_conditions_holds() {
        let (service, endpoint) = (AWSEndpointServiceAvailable, AWSEndpointAvailable);
        let at = |new: NewCondition, seconds: i64| merge(&[], vec![new], Timestamp::constant(seconds, 0)).remove(0);
        let created = Time(Timestamp::constant(990, 0));
        let duration = |before: &[Condition], own: Condition| {
            let found = became_available(Platform::Aws, before, &[own], Some(&created));
            found.map(|(since, duration)| (since, duration.as_secs()))
        };
        let waiting = at(bad(endpoint), 1_000);
        assert_eq!(
            duration(&[at(bad(service), 1_000), waiting.clone()], at(good(service), 1_500)),
            None
        );
        let half = [at(good(service), 1_500), waiting.clone()];
        assert_eq!(
            duration(&half, at(good(endpoint), 2_000)),
            Some((Since::Creation, 1_010))
        );
        assert_eq!(
            duration(&half[..1], at(good(endpoint), 2_000)),
            Some((Since::Creation, 1_010))
        );
        assert_eq!(
            duration(&[waiting], at(good(endpoint), 2_000)),
            None,
            "the other one is missing"
        );
        let whole = [at(good(service), 1_500), at(good(endpoint), 2_000)];
        assert_eq!(duration(&whole, at(good(endpoint), 2_000)), None, "it was already");
        let outage = [at(bad(service), 5_000), at(good(endpoint), 2_000)];
        assert_eq!(duration(&outage, at(good(service), 5_300)), Some((Since::Outage, 300)));
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
}
