//! What a read did not find: before a custom resource is let go, and before what it tells of is made anew.

use tokio::time::Instant;

use crate::api::AzurePrivateLinkService;
use crate::azure::client::Reconcile;
use crate::azure::error::ArmError;
use crate::azure::id::same;
use crate::azure::plan::{Step, Verb};
use crate::azure::resource::{Kind, MISSED};
use crate::controllers::context::Context;
use crate::controllers::decision::Decision;
use crate::controllers::observe::looker;

/// Whether everything that is gone is so for certain; what is not is read again in time. Asked before a custom resource is let
/// go: nobody would look for what is left then.
///
/// Before all else is gone only the endpoint is asked about: names wait for it.
pub async fn surely_gone(cx: &Context, reconcile: Reconcile, decision: &Decision) -> bool {
    let (all, looker) = (decision.nothing_left(), looker(cx, reconcile));
    let asked = |step: &&Step| step.gone() && (all || step.kind == Kind::PrivateEndpoint);
    let mut certain = true;
    // The last ones first, as they tell of those before.
    for step in decision.steps.iter().rev().filter(asked) {
        let id = step.observed_at();
        if shown_by_its_subnet(cx, step, decision) {
            continue;
        }
        looker.prove_gone(step.kind, &id).await;
        if !cx.observations.surely_gone(&id) {
            let now = Instant::now();
            cx.observations.expedite(&id, cx.observations.certain_in(&id, now), now);
            certain = false;
        }
    }
    certain
}

/// Whether a service that this process deleted is gone for certain because its subnet is: Azure deletes none that is used.
fn shown_by_its_subnet(cx: &Context, step: &Step, decision: &Decision) -> bool {
    let went = |subnet: &Step| {
        subnet.gone() && cx.observations.is_deleted(&subnet.id) && cx.observations.surely_gone(&subnet.id)
    };
    let subnet = decision
        .step(Kind::Subnet)
        .filter(|_| step.kind == Kind::PrivateLinkService);
    cx.observations.is_deleted(&step.id) && subnet.is_some_and(went)
}

/// Holds back the PUT of what the status says is there, and one read of this process did not find: it would be written over. Only
/// private DNS takes a PUT that holds for nothing but a new resource.
pub(super) fn hold_back(cx: &Context, cr: &AzurePrivateLinkService, steps: &mut [Step], now: Instant) {
    let status = cr.status.as_ref();
    let told = status.map(|status| [&status.private_link_service_id, &status.private_endpoint_id]);
    let told: Vec<&str> = told.into_iter().flatten().filter_map(|id| id.as_deref()).collect();
    for step in steps.iter_mut().filter(|step| step.found.is_none()) {
        let id = step.id.to_string();
        let puts = matches!(step.verb, Verb::Put(_)) && told.iter().any(|told| same(told, &id));
        if !puts || cx.observations.is_deleted(&step.id) {
            continue;
        }
        let absent = cx.observations.gone_for(&step.id, now).unwrap_or_default();
        if let Some(rest) = MISSED.checked_sub(absent).filter(|rest| !rest.is_zero()) {
            cx.observations.expedite(&step.id, rest, now);
            *step = step.clone().unreadable(&ArmError::missing());
        }
    }
}
