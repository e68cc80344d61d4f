//! What a read did not find: checked before a custom resource is released, and before a resource that its status shows
//! is created again.

use tokio::time::Instant;

use crate::controllers::cloud::ServedCloud;
use crate::controllers::context::Context;
use crate::controllers::decision::Decision;
use crate::controllers::reconciler::ServedResource;
use crate::engine::client::Reconcile;
use crate::engine::cloud::{Cloud, ResourceKind};
use crate::engine::failure::Failure;
use crate::engine::plan::{Step, Verb};

/// Whether everything that is gone is so for certain; what is not certain is expedited. Called before a custom resource
/// is released, because after that nobody reads what is left.
///
/// While other resources are still there it checks only what others wait for.
pub(super) async fn surely_gone<R: ServedResource>(
    cx: &Context<R>,
    reconcile: Reconcile,
    decision: &Decision<R::Cloud>,
) -> bool {
    let reader = cx.cloud.reader(reconcile);
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
        if !cx.cloud.observations.surely_gone(&id) {
            let now = Instant::now();
            cx.cloud
                .observations
                .expedite(&id, cx.cloud.observations.certain_in(&id, now), now);
            certain = false;
        }
    }
    certain
}

/// Whether a resource that this process deleted is gone for certain because that is in which it lay, such as the subnet
/// of a Private Link Service: the cloud deletes nothing that is in use.
fn went_before<R: ServedResource>(cx: &Context<R>, step: &Step<R::Cloud>, decision: &Decision<R::Cloud>) -> bool {
    let observations = &cx.cloud.observations;
    let around = step.kind.rules().lies_in.and_then(|kind| decision.step(kind));
    around
        .filter(|_| observations.is_deleted(&step.key))
        .is_some_and(|around| {
            around.gone() && observations.is_deleted(&around.key) && observations.surely_gone(&around.key)
        })
}

/// Holds back the PUT of a resource that the status shows and that one read did not find: the PUT would overwrite it.
/// That is not needed where the cloud accepts a PUT on condition that the resource is new, and where every absence is
/// confirmed by a second read: there the cloud itself gives the ids, so that none is that of a slot.
pub(super) fn hold_back<R: ServedResource>(cx: &Context<R>, cr: &R, steps: &mut [Step<R::Cloud>], now: Instant) {
    let recorded = cr.recorded_ids(cx.role);
    let overwrites = |step: &&mut Step<R::Cloud>| {
        let rules = step.kind.rules();
        step.found.is_none() && !rules.create_if_new && !rules.confirms_absence
    };
    for step in steps.iter_mut().filter(overwrites) {
        let id = step.key.to_string();
        let puts =
            matches!(step.verb, Verb::Put(_)) && recorded.iter().any(|recorded| R::Cloud::is_same(recorded, &id));
        if !puts || cx.cloud.observations.is_deleted(&step.key) {
            continue;
        }
        let absent = cx.cloud.observations.gone_for(&step.key, now).unwrap_or_default();
        if let Some(remaining) = R::Cloud::MISSED
            .checked_sub(absent)
            .filter(|remaining| !remaining.is_zero())
        {
            cx.cloud.observations.expedite(&step.key, remaining, now);
            *step = step.clone().unreadable(&<R::Cloud as Cloud>::Error::missing());
        }
    }
}
