//! What surrounds every reconcile: its span in the log, its count, and the wait that an error or a panic becomes.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use kube::ResourceExt;
use kube::runtime::controller::Action;
use tracing::{Instrument, Span};

use super::Runtime;
use super::call::ReconcileError;
use super::failures::Retry;
use super::requeue::Requeue;
use crate::metrics::{Controller, ReconcileResult};

/// Runs a reconcile of the object with this UID inside `span`. A panic that is not caught would end the whole
/// controller.
///
/// # Errors
/// The reconcile panicked, which is logged and counted.
pub async fn catch_panic<T>(
    runtime: &Runtime,
    controller: Controller,
    uid: &str,
    span: Span,
    reconcile: impl Future<Output = T>,
) -> Result<T, Retry> {
    let ended = AssertUnwindSafe(reconcile)
        .catch_unwind()
        .instrument(span.clone())
        .await;
    ended.map_err(|_| {
        runtime.metrics.panicked(controller);
        span.in_scope(|| runtime.failures.panicked(uid))
    })
}

/// Runs and counts a reconcile that returns its result and when the next one is due; `None`: at the next event.
pub async fn counted(
    runtime: &Runtime,
    controller: Controller,
    object: &impl ResourceExt,
    reconcile: impl Future<Output = Result<(ReconcileResult, Option<Requeue>), ReconcileError>>,
) -> Action {
    let (namespace, name) = (object.namespace(), object.name_any());
    let span = tracing::info_span!("reconcile", controller = controller.label(), namespace, name);
    let uid = object.uid().unwrap_or_default();
    let running = runtime.metrics.reconcile(controller);
    let to_its_end = async {
        let ended = reconcile.await.inspect(|_| runtime.failures.over(&uid));
        ended.unwrap_or_else(|error| after(runtime.failures.failed(&uid, &error)))
    };
    let ended = catch_panic(runtime, controller, &uid, span, to_its_end).await;
    let (result, requeue) = ended.unwrap_or_else(after);
    running.end(result);
    requeue.map_or_else(Action::await_change, |requeue| Action::requeue(requeue.after))
}

fn after(retry: Retry) -> (ReconcileResult, Option<Requeue>) {
    (retry.result, Some(retry.requeue))
}
