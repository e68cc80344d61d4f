//! Writes what a reconcile reports on its custom resource, and emits Events about the problems in it.

use std::fmt::Debug;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::Condition;
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde::Serialize;
use tokio::time::Instant;

use super::context::Context;
use super::driver::{TRIES, api, event_targets, reread_after_conflict};
use super::event;
use super::reconciler::ServedResource;
use super::report::{Report, conditions_patch, fields_patch, status_patch};
use crate::hypershift::conditions;
use crate::metrics::KubeVerb;
use crate::runtime::call::{ReconcileError, changing};
use crate::runtime::event::{Event, What};

/// Writes what differs, if anything but time does: plain fields and conditions in one guarded JSON patch, or what alone
/// differs by a guarded merge patch or apply, unless another writer has to be left alone. Events about problems in it
/// are written on the custom resource and on `also`.
pub async fn write_status<R: ServedResource>(
    cx: &Context<R>,
    mut cr: R,
    also: Option<&ObjectReference>,
    report: &Report,
) -> Result<R, ReconcileError> {
    for _ in 1..TRIES {
        match write_once(cx, &mut cr, also, report).await {
            Err(error) if error.conflict() => cr = reread_after_conflict(cx, &cr, error).await?,
            written => return written.map(|()| cr),
        }
    }
    write_once(cx, &mut cr, also, report).await.map(|()| cr)
}

/// Whether [`write_status`] would write nothing, which is then remembered as it would be there.
pub fn is_written<R: ServedResource>(cx: &Context<R>, cr: &R, report: &Report) -> bool {
    let uid = cr.uid().unwrap_or_default();
    let (stored, now) = (cr.conditions(), Instant::now().into_std());
    let own = conditions::merge(stored, report.conditions.clone(), Timestamp::now());
    let mut published = cx.published.of(&uid);
    if published.to_be_written(stored, &own, now) || fields_patch(cr, report).is_some() {
        return false;
    }
    published.unchanged(stored, &own, now);
    cx.published.keep(&uid, published);
    true
}

/// Tries [`write_status`] once. `cr` becomes what was written last, even if a later write is refused.
async fn write_once<R: ServedResource>(
    cx: &Context<R>,
    cr: &mut R,
    also: Option<&ObjectReference>,
    report: &Report,
) -> Result<(), ReconcileError> {
    let before = cr.conditions().to_vec();
    let uid = cr.uid().unwrap_or_default();
    let stamp = Timestamp::now();
    let contested = cr.other_writer(cx.role, stamp, cx.runtime.resync).map(|other| {
        let note = format!("{other} writes this status too: let only one controller serve the cluster");
        Event::new(What::Contested, note)
    });
    cx.runtime
        .events
        .stands(&cr.object_ref(&()), "other writer", contested)
        .await;
    let mut published = cx.published.of(&uid);
    let now = Instant::now().into_std();
    let dated = |report: &Report| conditions::merge(&before, report.conditions.clone(), stamp);
    let due = |report: &Report| {
        let own = dated(report);
        let is_due = published.to_be_written(&before, &own, now);
        is_due.then(|| published.to_write(&before, &own, now))
    };
    let mut report = report.clone();
    let mut is_written = write_at_once(cx, cr, &report, due(&report)).await?;
    if !is_written {
        report = write_fields(cx, cr, report).await?;
        is_written = apply_conditions(cx, cr, due(&report)).await?;
    }
    let own = dated(&report);
    if is_written {
        log_conditions(cr, &report);
        let created = cr.meta().creation_timestamp.as_ref();
        if let Some((since, duration)) = conditions::became_available(R::PLATFORM, &before, &own, created) {
            cx.runtime.metrics.available_after(R::PLATFORM, since, duration);
        }
        published.written(&before, &own, now);
    } else {
        published.unchanged(&before, &own, now);
    }
    cx.published.keep(&uid, published);
    let targets = event_targets(cr, also);
    let events = &cx.runtime.events;
    events
        .emit_new(&targets, |standing| {
            event::troubles(standing, R::summary_kind(), &before, &report.conditions)
        })
        .await;
    Ok(())
}

/// Writes fields and the conditions that are due at once, if both differ; returns whether it did. Where the API server
/// rejects one of them, each is to be tried alone.
async fn write_at_once<R: ServedResource>(
    cx: &Context<R>,
    cr: &mut R,
    report: &Report,
    due: Option<Vec<Condition>>,
) -> Result<bool, ReconcileError> {
    let patch = due.and_then(|own| status_patch(cr, report, &own));
    let Some(patch) = patch.and_then(|patch| serde_json::from_value(patch).ok()) else {
        return Ok(false);
    };
    match patch_status(cx, cr, &cx.runtime.patch_params(), &Patch::Json::<()>(patch)).await {
        Err(error) if error.invalid() => Ok(false),
        written => written.map(|()| true),
    }
}

/// Applies the conditions that are due, if more than time differs; returns whether it did.
async fn apply_conditions<R: ServedResource>(
    cx: &Context<R>,
    cr: &mut R,
    due: Option<Vec<Condition>>,
) -> Result<bool, ReconcileError> {
    let Some(patch) = due.and_then(|own| conditions_patch(cr, &own)) else {
        return Ok(false);
    };
    let params = cx.runtime.patch_params().force();
    patch_status(cx, cr, &params, &Patch::Apply(&patch)).await?;
    Ok(true)
}

/// Writes the plain fields that differ. A field that the API server rejects is left out, or it would hold up all
/// others; the returned report has a condition about it.
async fn write_fields<R: ServedResource>(
    cx: &Context<R>,
    cr: &mut R,
    mut report: Report,
) -> Result<Report, ReconcileError> {
    let params = cx.runtime.patch_params();
    while let Some(patch) = fields_patch(cr, &report) {
        match patch_status(cx, cr, &params, &Patch::Merge(&patch)).await {
            Ok(()) => break,
            Err(error)
                if error
                    .invalid_fields()
                    .iter()
                    .any(|name| report.fields.contains_key(*name)) =>
            {
                report = report.without(&error.invalid_fields(), cr);
            }
            Err(error) => return Err(error),
        }
    }
    Ok(report)
}

/// Patches the status; `cr` becomes what was written.
async fn patch_status<R: ServedResource, P: Serialize + Debug>(
    cx: &Context<R>,
    cr: &mut R,
    params: &PatchParams,
    patch: &Patch<P>,
) -> Result<(), ReconcileError> {
    *cr = changing(api(cx, cr).patch_status(&cr.name_any(), params, patch)).await?;
    cx.runtime.metrics.kube_write(R::STATUS_WRITES, KubeVerb::Patch);
    Ok(())
}

fn log_conditions<R: ServedResource>(cr: &R, report: &Report) {
    for condition in &report.conditions {
        tracing::info!(
            namespace = cr.namespace(),
            name = cr.name_any(),
            condition = condition.kind.as_str(),
            holds = condition.status.as_str(),
            reason = condition.reason.as_str(),
            "{}",
            condition.message
        );
    }
}

#[cfg(test)]
mod tests;
