use std::sync::Mutex;

use super::*;
use crate::api::AzurePrivateLinkService;

/// Nothing is to be done.
struct Ready;

impl Script for Ready {
    async fn play(
        &self,
        _: &Context,
        cr: AzurePrivateLinkService,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        Ok(ReconcileOutcome::new(
            cr,
            Requeue::new(Duration::from_secs(300), Requeue::RESYNC),
            ReconcileResult::Ready,
        ))
    }
}

/// A custom resource with this number in its name. All are of the same second; the lower names are served.
fn numbered(number: usize) -> AzurePrivateLinkService {
    let mut cr = sample::cr(json!({}), json!({}));
    cr.metadata.name = Some(format!("c{number}"));
    cr.metadata.uid = Some(number.to_string());
    cr
}

/// A runner of these custom resources, and the calls to the API server that it makes.
fn runner(all: usize) -> (Arc<Runner<Ready>>, Arc<Mutex<Vec<String>>>) {
    let calls = Arc::new(Mutex::new(Vec::new()));
    let made = Arc::clone(&calls);
    let answers = tower::service_fn(move |request: Request<Body>| {
        let path = request.uri().path().to_owned();
        let name = path.rsplit('/').next().unwrap_or_default();
        let found = (0..all).map(numbered).find(|cr| cr.name_any() == name);
        made.lock().unwrap().push(format!("{} {path}", request.method()));
        async move { Ok::<_, tower::BoxError>(Response::new(Body::from(serde_json::to_vec(&json!(found))?))) }
    });
    let cx = sample::context(kube::Client::new(answers, "default"));
    cx.resources.heard(&Event::Init);
    for number in 0..all {
        cx.resources.heard(&Event::InitApply(numbered(number)));
    }
    cx.resources.heard(&Event::InitDone);
    (
        Arc::new(Runner::new(Ready, Arc::new(cx), Label::PrivateEndpoint)),
        calls,
    )
}

#[tokio::test(start_paused = true)]
async fn of_ten_in_a_namespace_two_have_no_call_and_one_event() {
    let (runner, calls) = runner(10);
    let (reader, mut writer) = store();
    for event in [Event::Init]
        .into_iter()
        .chain((0..10).map(|number| Event::InitApply(numbered(number))))
        .chain([Event::InitDone])
    {
        writer.apply_watcher_event(&event);
    }
    let events = stream::iter((0..10).map(|number| Ok(numbered(number)))).chain(stream::pending());
    let stop = CancellationToken::new();
    let controller = tokio::spawn(run(
        WorkQueue::new(events, reader),
        Arc::clone(&runner),
        64,
        stop.clone(),
    ));
    // In simulated time: all that can be done has been done by then.
    tokio::time::sleep(Duration::from_secs(10)).await;
    stop.cancel();
    controller.await.unwrap();
    let mut calls = calls.lock().unwrap().clone();
    calls.sort();
    let custom = "/apis/hypershift.openshift.io/v1beta1/namespaces/clusters-example/azureprivatelinkservices";
    let mut expected: Vec<String> = (0..8).map(|number| format!("GET {custom}/c{number}")).collect();
    expected.push("POST /apis/events.k8s.io/v1/namespaces/clusters-example/events".to_owned());
    assert_eq!(calls, expected);
}

#[tokio::test(start_paused = true)]
async fn unread_annotation_changed_100_times_costs_one_read() {
    let (runner, calls) = runner(1);
    for number in 0..100 {
        let mut cached = numbered(0);
        let note = [("example.com/note".to_owned(), number.to_string())];
        cached.metadata.annotations = Some(note.into());
        runner.reconcile(&cached).await;
    }
    assert_eq!(calls.lock().unwrap().len(), 1);
}

#[tokio::test(start_paused = true)]
async fn intent_forged_100_times_a_second_costs_two_reads_a_second() {
    let (runner, calls) = runner(1);
    for number in 0..1000 {
        let mut cached = numbered(0);
        let forged = [(crate::api::markers::CPO_INTENT.to_owned(), number.to_string())];
        cached.metadata.annotations = Some(forged.into());
        runner.reconcile(&cached).await;
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    let calls = calls.lock().unwrap().len();
    assert!((30..=40).contains(&calls), "{calls} calls in 10 s");
}
