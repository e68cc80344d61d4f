//! Whether somebody waits for a reconcile, by the custom resource alone. Pure.

use kube::ResourceExt;

use super::custom_resource::CustomResource;
use super::decision::Lifecycle;
use crate::api::{ConditionType, Role, Status};
use crate::engine::urgency::Urgency;
use crate::hypershift::conditions;

/// Whether somebody waits for a reconcile of `cr` by `role`, in a process that serves so many objects.
///
/// Nobody does while everything is as desired: the role has recorded what it made, and all its conditions are True and
/// about the present specification. Whoever forges that only delays that his own resources are verified. It is new as
/// long as the role has recorded nothing at all.
pub fn urgency<R: CustomResource>(cr: &R, role: Role, lifecycle: Lifecycle, served: usize) -> Urgency {
    let recorded = [
        cr.annotations().contains_key(role.intent_annotation()),
        cr.is_held_by(role),
    ];
    let generation = cr.condition_generation();
    let holds = |kind: ConditionType| {
        conditions::get(cr.conditions(), kind).is_some_and(|condition| {
            condition.status == Status::True.as_str() && condition.observed_generation == generation
        })
    };
    match recorded {
        [true, true] if lifecycle == Lifecycle::Build && R::conditions_of(role).all(holds) => {
            Urgency::Routine { served }
        }
        [false, false] if lifecycle == Lifecycle::Build => Urgency::New,
        _ => Urgency::Awaited,
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::AzurePrivateLinkService;
    use crate::api::markers::HO_FINALIZER;
    use crate::controllers::samples;

    /// A custom resource of which these conditions of role `ho` are as given.
    fn as_desired(status: &str, generation: i64) -> AzurePrivateLinkService {
        let condition = |kind: &str, status: &str| {
            json!({"type": kind, "status": status, "reason": "AzureSuccess", "message": "m",
                "observedGeneration": generation, "lastTransitionTime": "2026-01-01T00:00:00Z"})
        };
        let conditions = [
            condition("AzureInternalLoadBalancerAvailable", "True"),
            condition("AzurePLSCreated", status),
            condition("AzurePrivateDNSAvailable", "False"),
        ];
        let mut cr = samples::cr(
            json!({"conditions": conditions}),
            json!({Role::Ho.intent_annotation(): "{}"}),
        );
        cr.metadata.generation = Some(1);
        cr.finalizers_mut().push(HO_FINALIZER.to_owned());
        cr
    }

    #[rstest]
    #[case::as_desired("True", 1, Urgency::Routine { served: 7 })]
    #[case::broken("False", 1, Urgency::Awaited)]
    #[case::changed("True", 0, Urgency::Awaited)]
    fn nobody_waits_while_the_roles_own_conditions_hold(
        #[case] status: &str,
        #[case] generation: i64,
        #[case] expected: Urgency,
    ) {
        let cr = as_desired(status, generation);
        assert_eq!(urgency(&cr, Role::Ho, Lifecycle::Build, 7), expected);
    }

    #[test]
    fn new_and_deleted_ones_are_waited_for() {
        let cr = as_desired("True", 1);
        assert_eq!(urgency(&cr, Role::Ho, Lifecycle::Teardown, 7), Urgency::Awaited);
        let without_intent = {
            let mut cr = cr.clone();
            cr.annotations_mut().clear();
            cr
        };
        assert_eq!(
            urgency(&without_intent, Role::Ho, Lifecycle::Build, 7),
            Urgency::Awaited
        );
        let new = samples::cr(Value::Null, json!({}));
        assert_eq!(urgency(&new, Role::Ho, Lifecycle::Build, 7), Urgency::New);
        assert_eq!(urgency(&new, Role::Ho, Lifecycle::Teardown, 7), Urgency::Awaited);
    }
}
