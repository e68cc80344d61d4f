use std::sync::atomic::{AtomicUsize, Ordering};

use futures::{StreamExt, stream};
use http::{Request, Response};
use kube::client::Body;
use kube::runtime::reflector::store;
use kube::runtime::watcher::Event;
use serde_json::json;

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::controllers::azure::access::Context;
use crate::controllers::context::sample::{self, Script};

mod at_rest;
mod contradicted;
mod crowd;
mod overtaken;

/// Panics in the first reconcile and succeeds in the second.
struct Fragile {
    reconciles: AtomicUsize,
    ready: CancellationToken,
}

impl Script for Fragile {
    async fn play(
        &self,
        _: &Context,
        cr: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        assert!(
            self.reconciles.fetch_add(1, Ordering::SeqCst) > 0,
            "in the first reconcile"
        );
        self.ready.cancel();
        Ok(ReconcileOutcome::new(
            cr,
            Requeue::new(Duration::from_secs(300), Requeue::RESYNC),
            ReconcileResult::Ready,
        ))
    }
}

#[tokio::test]
async fn nothing_is_kept_of_an_object_that_went_without_release() {
    let answers = tower::service_fn(|_: Request<Body>| async {
        let gone = json!({"status": "Failure", "message": "gone", "reason": "NotFound", "code": 404});
        let answer = Response::builder().status(404);
        Ok::<_, tower::BoxError>(answer.body(Body::from(serde_json::to_vec(&gone)?))?)
    });
    let cx = Arc::new(sample::context(kube::Client::new(answers, "default")));
    let reconciler = Fragile {
        reconciles: AtomicUsize::new(0),
        ready: CancellationToken::new(),
    };
    let runner = Arc::new(Runner::new(reconciler, cx, Label::PrivateEndpoint));
    let now = Instant::now();
    let fingerprint = Fingerprint::default();
    assert_eq!(runner.pacer.begin(("n", "c"), "u", fingerprint, now), Ok(Cause::Change));
    runner.pacer.finish("u", fingerprint, Duration::from_secs(300), now);
    assert!(runner.pacer.early("u", fingerprint, now).is_some());
    let cached = Arc::new(sample::cr(json!({}), json!({})));
    runner.reconcile(&cached).await;
    assert_eq!(runner.pacer.early("u", fingerprint, now), None);
}

/// Always meets a conflict: somebody else is quicker.
struct Outrun;

impl Script for Outrun {
    async fn play(
        &self,
        _: &Context,
        _: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        Err(ReconcileError::Gone)
    }
}

#[tokio::test(start_paused = true)]
async fn conflicts_in_a_row_wait_longer_and_at_last_count_as_failed() {
    let cx = Arc::new(context());
    let runner = Arc::new(Runner::new(Outrun, Arc::clone(&cx), Label::PrivateEndpoint));
    for wait in [200, 400, 800, 1600, 3200] {
        let cached = Arc::new(sample::cr(json!({}), json!({})));
        let action = runner.reconcile(&cached).await;
        let wait = Duration::from_millis(wait);
        assert_eq!(action, Action::Requeue(wait));
        tokio::time::sleep(wait).await;
    }
    let text = cx.runtime.metrics.render().unwrap();
    for sample in [
        "hyperlink_reconcile_total{controller=\"private_endpoint\",result=\"waiting\"} 4",
        "hyperlink_reconcile_total{controller=\"private_endpoint\",result=\"failed\"} 1",
    ] {
        assert!(text.lines().any(|line| line == sample), "{sample} not in\n{text}");
    }
}

/// A context whose API server knows one object.
fn context() -> Context {
    let answers = tower::service_fn(|_: Request<Body>| async {
        let cr = sample::cr(json!({}), json!({}));
        Ok::<_, tower::BoxError>(Response::new(Body::from(serde_json::to_vec(&cr)?)))
    });
    sample::context(kube::Client::new(answers, "default"))
}

#[tokio::test(start_paused = true)]
async fn panic_ends_its_reconcile_and_not_the_controller() {
    let cx = Arc::new(context());
    let reconciler = Fragile {
        reconciles: AtomicUsize::new(0),
        ready: CancellationToken::new(),
    };
    let ready = reconciler.ready.clone();
    let runner = Arc::new(Runner::new(reconciler, Arc::clone(&cx), Label::PrivateEndpoint));

    let cr = sample::cr(json!({}), json!({}));
    let (reader, mut writer) = store();
    for event in [Event::Init, Event::InitApply(cr.clone()), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    let events = stream::iter([Ok(cr)]).chain(stream::pending());
    let stop = CancellationToken::new();
    let controller = tokio::spawn(run(WorkQueue::new(events, reader), runner, 1, stop.clone()));

    let second = tokio::time::timeout(Duration::from_secs(120), ready.cancelled());
    second.await.expect("a second reconcile");
    stop.cancel();
    controller.await.expect("the controller ends as asked");
    let text = cx.runtime.metrics.render().unwrap();
    for sample in [
        "hyperlink_reconcile_panics_total{controller=\"private_endpoint\"} 1",
        "hyperlink_reconcile_total{controller=\"private_endpoint\",result=\"panicked\"} 1",
        "hyperlink_reconcile_total{controller=\"private_endpoint\",result=\"ready\"} 1",
    ] {
        assert!(text.lines().any(|line| line == sample), "{sample} not in\n{text}");
    }
}

/// Must not run.
struct Never;

impl Script for Never {
    async fn play(
        &self,
        _: &Context,
        _: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        panic!("it is another process's");
    }
}

#[tokio::test(start_paused = true)]
async fn object_of_another_shard_is_left_alone_and_not_kept() {
    let cr = sample::cr(json!({}), json!({}));
    let shards = ["1/2", "2/2"].map(|text| text.parse::<crate::hypershift::shard::Shard>().unwrap());
    let other = shards.into_iter().find(|shard| !shard.has(&cr.spec.subscription_id));
    let cx = Arc::new(Context {
        shard: other.unwrap(),
        ..context()
    });
    let runner = Arc::new(Runner::new(Never, Arc::clone(&cx), Label::PrivateEndpoint));
    let uid = cr.metadata.uid.clone().unwrap();
    let spread = pace::spread(&uid, cx.runtime.resync);
    let again = Action::Requeue(cx.runtime.resync * ELSEWHERE_ROUNDS + spread);
    assert_eq!(runner.reconcile(&cr).await, again);
    assert_eq!(runner.pacer.early(&uid, Fingerprint::default(), Instant::now()), None);
    let text = cx.runtime.metrics.render().unwrap();
    assert!(!text.contains("hyperlink_reconcile_total{"), "{text}");
}
