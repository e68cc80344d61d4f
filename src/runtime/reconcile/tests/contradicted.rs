//! Ten minutes, in simulated time, beside HyperShift's management side, which reports at every event that all is well.

use std::sync::Mutex;

use futures::channel::mpsc::{UnboundedSender, unbounded};
use http::Method;
use kube::runtime::watcher;
use serde_json::Value;

use super::*;
use crate::api::{ConditionType, Reason};
use crate::controllers::report::Report;
use crate::controllers::write_status::write_status;
use crate::hypershift::conditions::NewCondition;

/// The API server, and their side: the object, and how often we have written its status.
struct Theirs {
    object: Mutex<(Value, usize)>,
    events: UnboundedSender<Result<AzurePrivateLinkService, watcher::Error>>,
}

impl Theirs {
    fn object(&self) -> Value {
        self.object.lock().unwrap().0.clone()
    }

    fn change(&self, change: impl FnOnce(&mut (Value, usize))) {
        let mut object = self.object.lock().unwrap();
        change(&mut object);
        let event = serde_json::from_value(object.0.clone()).unwrap();
        // Nobody listens any more at the end.
        drop(self.events.unbounded_send(Ok(event)));
    }

    /// Their reconcile: a read of the service, then their condition.
    async fn contradict(self: Arc<Self>) {
        tokio::time::sleep(Duration::from_millis(50)).await;
        let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
        let kind = ConditionType::AzurePrivateLinkServiceAvailable.as_str();
        let condition = json!({"type": kind, "status": "True", "reason": "AzureSuccess", "observedGeneration": 1,
            "message": "Azure Private Link Service is ready", "lastTransitionTime": now});
        self.change(|(object, _)| object["status"]["conditions"] = json!([condition]));
    }

    async fn answer(self: Arc<Self>, request: Request<Body>) -> Value {
        let (parts, body) = request.into_parts();
        let body = body.collect_bytes().await.unwrap();
        let body: Value = serde_json::from_slice(&body).unwrap_or_default();
        let path = parts.uri.path();
        if parts.method == Method::PATCH && path.ends_with("/status") {
            self.change(|(object, own)| {
                object["status"]["conditions"] = body["status"]["conditions"].clone();
                *own += 1;
            });
            let answer = self.object();
            tokio::spawn(self.contradict());
            return answer;
        }
        if path.contains("/azureprivatelinkservices/") {
            self.object()
        } else {
            body
        }
    }
}

/// A path that never becomes available.
struct Unavailable;

impl Script for Unavailable {
    async fn play(
        &self,
        cx: &Context,
        cr: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        let kind = ConditionType::AzurePrivateLinkServiceAvailable;
        let condition = NewCondition::fails(kind, Reason::NotOurs, "the zone is another's", Some(1));
        let report = Report {
            conditions: vec![condition],
            ..Report::default()
        };
        Ok(ReconcileOutcome::new(
            write_status(cx, cr, None, &report).await?,
            Requeue::new(cx.runtime.resync, Requeue::RESYNC),
            ReconcileResult::Waiting,
        ))
    }
}

#[tokio::test(start_paused = true)]
async fn contradicted_status_is_written_five_times_in_ten_minutes() {
    let (events, received) = unbounded();
    let cr = sample::cr(json!({}), json!({}));
    let object = Mutex::new((serde_json::to_value(&cr).unwrap(), 0));
    let theirs = Arc::new(Theirs { object, events });
    let server = Arc::clone(&theirs);
    let answers = tower::service_fn(move |request: Request<Body>| {
        let answer = Arc::clone(&server).answer(request);
        async move { Ok::<_, tower::BoxError>(Response::new(Body::from(serde_json::to_vec(&answer.await)?))) }
    });
    let cx = Arc::new(sample::context(kube::Client::new(answers, "default")));
    let runner = Arc::new(Runner::new(Unavailable, cx, Label::PrivateEndpoint));
    let (reader, mut writer) = store();
    for event in [Event::Init, Event::InitApply(cr), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    let stop = CancellationToken::new();
    let controller = tokio::spawn(run(WorkQueue::new(received, reader), runner, 1, stop.clone()));

    // Every change of the object is an event for both.
    for _ in 0..600 {
        theirs.change(|(object, _)| object["metadata"]["labels"]["touched"] = json!("again"));
        tokio::time::sleep(Duration::from_secs(1)).await;
    }
    stop.cancel();
    controller.await.expect("the controller ends as asked");
    assert_eq!(theirs.object.lock().unwrap().1, 5);
}
