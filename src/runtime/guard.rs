//! What surrounds every reconcile: its span in the log, its count, and the wait that an error or a panic becomes.

use std::panic::AssertUnwindSafe;

use futures::FutureExt;
use kube::ResourceExt;
use tokio::time::Instant;
use tracing::{Instrument, Span};

use super::Runtime;
use super::call::ReconcileError;
use super::requeue::Requeue;
use super::retry::Retry;
use super::work_queue::Action;
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
        span.in_scope(|| runtime.retries.panicked(uid))
    })
}

/// Runs and counts a reconcile that returns its result and when the next one is due; `None`: at the next event. One that
/// exceeds the rate of its object waits and is not counted.
pub async fn counted(
    runtime: &Runtime,
    controller: Controller,
    object: &impl ResourceExt,
    reconcile: impl Future<Output = Result<(ReconcileResult, Option<Requeue>), ReconcileError>>,
) -> Action {
    let namespace = object.namespace();
    let name = object.name_any();
    let span = tracing::info_span!("reconcile", controller = controller.label(), namespace, name);
    let uid = object.uid().unwrap_or_default();
    if let Err(wait) = runtime.rates.take(&uid, Instant::now()) {
        return Action::Requeue(wait);
    }
    let running = runtime.metrics.reconcile(controller);
    let to_its_end = async {
        let ended = reconcile.await.inspect(|_| runtime.retries.over(&uid));
        ended.unwrap_or_else(|error| after(runtime.retries.failed(&uid, &error)))
    };
    let ended = catch_panic(runtime, controller, &uid, span, to_its_end).await;
    let (result, requeue) = ended.unwrap_or_else(after);
    running.end(result);
    match requeue {
        Some(next) => self::requeue(runtime, controller, next),
        None => Action::AwaitChange,
    }
}

/// Logs and counts when the next reconcile is due.
pub(super) fn requeue(runtime: &Runtime, controller: Controller, next: Requeue) -> Action {
    tracing::debug!(again_in_s = next.after.as_secs(), reason = next.why, "requeued");
    runtime.metrics.requeued(controller, next.why);
    Action::Requeue(next.after)
}

fn after(retry: Retry) -> (ReconcileResult, Option<Requeue>) {
    (retry.result, Some(retry.requeue))
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use k8s_openapi::api::core::v1::ConfigMap;
    use kube::client::Body;

    use super::*;
    use crate::controllers::context::sample;

    #[tokio::test(start_paused = true)]
    async fn object_that_changes_without_end_is_reconciled_seldom() {
        let nobody =
            tower::service_fn(|_: Request<Body>| std::future::pending::<Result<Response<Body>, tower::BoxError>>());
        let cx = sample::context(kube::Client::new(nobody, "default"));
        let mut object = ConfigMap::default();
        object.metadata.uid = Some("u".to_owned());
        let reconciles = AtomicUsize::new(0);
        for _ in 0..100 {
            let reconcile = async {
                reconciles.fetch_add(1, Ordering::SeqCst);
                Ok((ReconcileResult::Ready, None))
            };
            counted(&cx.runtime, Controller::Observer, &object, reconcile).await;
        }
        assert_eq!(reconciles.load(Ordering::SeqCst), 20);
    }
}
