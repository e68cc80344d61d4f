//! What a read did not find: checked before a custom resource is released, and before a resource that its status shows
//! is created again.

use tokio::time::Instant;

use crate::azure::arm::error::ArmError;
use crate::azure::arm::id::same;
use crate::azure::plan::Step;
use crate::controllers::azure::Decision;
use crate::controllers::context::Context;
use crate::controllers::reconciler::ServedResource;
use crate::engine::client::Reconcile;
use crate::engine::cloud::ResourceKind;
use crate::engine::plan::Verb;
use crate::engine::resource::MISSED;

/// Whether everything that is gone is so for certain; what is not certain is expedited. Called before a custom resource
/// is released, because after that nobody reads what is left.
///
/// While other resources are still there it checks only what others wait for.
pub(super) async fn surely_gone<R: ServedResource>(cx: &Context<R>, reconcile: Reconcile, decision: &Decision) -> bool {
    let reader = cx.arm.reader(reconcile);
    let all_gone = decision.nothing_left();
    let mut certain = true;
    // The last steps first: they prove what is gone of the earlier ones.
    for step in decision.steps.iter().rev() {
        let is_checked = step.gone() && (all_gone || step.kind.rules().proves_gone);
        if !is_checked || went_before(cx, step, decision) {
            continue;
        }
        let id = step.observed_at();
        reader.prove_gone(step.kind, &id).await;
        if !cx.arm.observations.surely_gone(&id) {
            let now = Instant::now();
            cx.arm
                .observations
                .expedite(&id, cx.arm.observations.certain_in(&id, now), now);
            certain = false;
        }
    }
    certain
}

/// Whether a resource that this process deleted is gone for certain because that is in which it lay, such as the subnet
/// of a Private Link Service: the cloud deletes nothing that is in use.
fn went_before<R: ServedResource>(cx: &Context<R>, step: &Step, decision: &Decision) -> bool {
    let observations = &cx.arm.observations;
    let around = step.kind.rules().lies_in.and_then(|kind| decision.step(kind));
    around
        .filter(|_| observations.is_deleted(&step.key))
        .is_some_and(|around| {
            around.gone() && observations.is_deleted(&around.key) && observations.surely_gone(&around.key)
        })
}

/// Holds back the PUT of a resource that the status shows and that one read did not find: the PUT would overwrite it.
/// Where Azure accepts a PUT on condition that the resource is new, as in private DNS, that is not needed.
pub(super) fn hold_back<R: ServedResource>(cx: &Context<R>, cr: &R, steps: &mut [Step], now: Instant) {
    let status = cr.status_fields();
    let ids = cx.role.spec().deleted_resources.iter();
    let recorded: Vec<&str> = ids.filter_map(|field| status[field].as_str()).collect();
    let overwrites = |step: &&mut Step| step.found.is_none() && !step.kind.rules().create_if_new;
    for step in steps.iter_mut().filter(overwrites) {
        let id = step.key.to_string();
        let puts = matches!(step.verb, Verb::Put(_)) && recorded.iter().any(|recorded| same(recorded, &id));
        if !puts || cx.arm.observations.is_deleted(&step.key) {
            continue;
        }
        let absent = cx.arm.observations.gone_for(&step.key, now).unwrap_or_default();
        if let Some(remaining) = MISSED.checked_sub(absent).filter(|remaining| !remaining.is_zero()) {
            cx.arm.observations.expedite(&step.key, remaining, now);
            *step = step.clone().unreadable(&ArmError::missing());
        }
    }
}
