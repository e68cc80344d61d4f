//! The condition that sums up all others of an `AzurePrivateLinkService`. Pure.

use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;

use crate::api::{AzurePrivateLinkService, ConditionType, Reason, Status};
use crate::hypershift::conditions::{NewCondition, get, is_true};

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
    use jiff::Timestamp;
    use k8s_openapi::apimachinery::pkg::apis::meta::v1::Time;

    use super::*;
    use crate::hypershift::conditions::merge;
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
        let parts = &AzurePrivateLinkService::CONDITIONS[..4];
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
        let current = stored(AzurePrivateLinkService::CONDITIONS.map(good));
        let whole = summary(&current, &[bad(AzurePrivateDNSAvailable)], None);
        assert_eq!(whole.status, Status::False);
    }

    #[test]
    fn a_part_that_nobody_reported_keeps_the_summary_false() {
        for missing in &AzurePrivateLinkService::CONDITIONS[1..4] {
            let others = AzurePrivateLinkService::CONDITIONS
                .into_iter()
                .filter(|kind| kind != missing);
            let whole = summary(&stored(others.map(good)), &[], None);
            assert_eq!(whole.status, Status::False, "{missing:?}");
            assert_eq!(whole.message, format!("{}: not reported yet", missing.as_str()));
        }
        assert_eq!(summary(&[], &[], None).reason, Reason::WaitingForLoadBalancer);
    }

    #[test]
    fn working_link_service_implies_an_unreported_load_balancer() {
        let current = stored(AzurePrivateLinkService::CONDITIONS[1..4].iter().copied().map(good));
        assert_eq!(summary(&current, &[], None).status, Status::True);
    }

    #[test]
    fn link_service_implies_a_load_balancer_that_failed_before() {
        let mut current = stored(AzurePrivateLinkService::CONDITIONS.map(good));
        current[0].status = "False".into();
        assert_eq!(summary(&current, &[], None).status, Status::False, "of the same time");
        current[1].last_transition_time = Time(NOW);
        assert_eq!(summary(&current, &[], None).status, Status::True);
        current[1].status = "False".into();
        assert_eq!(summary(&current, &[], None).status, Status::False);
    }

    #[test]
    fn foreign_reason_or_status_keeps_the_summary_false() {
        let mut current = stored(AzurePrivateLinkService::CONDITIONS.map(good));
        current[1].status = "Unknown".into();
        current[1].reason = "Whatever".into();
        let whole = summary(&current, &[], None);
        assert_eq!((whole.status, whole.reason), (Status::False, Reason::AzureError));
    }
}
