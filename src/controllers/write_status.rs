//! Writes what a reconcile reports on its custom resource, and emits Events about the problems in it.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use kube::api::Patch;
use tokio::time::Instant;

use super::context::Context;
use super::driver::{TRIES, api, event_targets, reread_after_conflict};
use super::event;
use super::reconciler::ServedResource;
use super::report::{Report, conditions_patch, fields_patch};
use crate::hypershift::conditions;
use crate::metrics::KubeVerb;
use crate::runtime::call::{ReconcileError, changing};
use crate::runtime::event::{Event, What};

/// Writes what differs, if anything but time does: plain fields by a guarded merge patch, conditions by a guarded
/// apply, unless another writer has to be left alone. Events about problems in it are written on the custom resource
/// and on `also`.
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
    let report = write_fields(cx, cr, report.clone()).await?;
    let mut published = cx.published.of(&uid);
    let now = Instant::now().into_std();
    let own = conditions::merge(&before, report.conditions.clone(), stamp);
    let due = published.to_be_written(&before, &own, now);
    if due && let Some(patch) = conditions_patch(cr, &published.to_write(&before, &own, now)) {
        let params = cx.runtime.patch_params().force();
        *cr = changing(api(cx, cr).patch_status(&cr.name_any(), &params, &Patch::Apply(&patch))).await?;
        cx.runtime.metrics.kube_write(R::STATUS_WRITES, KubeVerb::Patch);
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

/// Writes the plain fields that differ. A field that the API server rejects is left out, or it would hold up all
/// others; the returned report has a condition about it.
async fn write_fields<R: ServedResource>(
    cx: &Context<R>,
    cr: &mut R,
    mut report: Report,
) -> Result<Report, ReconcileError> {
    let params = cx.runtime.patch_params();
    while let Some(patch) = fields_patch(cr, &report) {
        let write = api(cx, cr);
        match changing(write.patch_status(&cr.name_any(), &params, &Patch::Merge(&patch))).await {
            Ok(written) => {
                cx.runtime.metrics.kube_write(R::STATUS_WRITES, KubeVerb::Patch);
                *cr = written;
                break;
            }
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
