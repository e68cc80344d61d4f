//! Writes Events. Never fails and never holds up a reconcile: an Event that cannot be written is lost.
//!
//! kube's own recorder counts all Events of one reason as one, whatever their notes are; here each is a change of its
//! own.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures::future::join_all;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event as KubeEvent;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Api;
use kube::api::PostParams;
use tokio::time::Instant;

use super::event::{Event, ProblemsByTopic};
use super::rate::{Limit, Rates};
use crate::metrics::{KubeResource, KubeVerb, Metrics};

/// How long a reconcile waits at most for its Events to be written.
///
/// Rule: D1 in `docs/compatibility.md`.
const EVENTS_TIMEOUT: Duration = Duration::from_secs(5);
/// The longest note that the API server accepts, in bytes.
const MAX_NOTE: usize = 1024;
/// How often Events about one namespace's custom resources may be written on their HostedCluster: one per interval,
/// after a burst. Whoever creates them without end must not fill another namespace.
///
/// Source: client-go's limit for one object,
/// <https://github.com/kubernetes/client-go/blob/master/tools/record/events_cache.go>.
const ELSEWHERE: Limit = Limit {
    burst: 25,
    interval: Duration::from_secs(300),
};

/// Who writes Events.
#[derive(Debug, Clone)]
pub struct Reporter {
    /// The name of the controller.
    pub controller: &'static str,
    /// The name of this process.
    pub instance: String,
}

/// Writes the Events of one controller manager.
pub struct Recorder {
    kube: kube::Client,
    reporter: Reporter,
    /// Names of objects that are expected. No other object of their namespace uses up their rate of Events.
    expected_names: &'static [&'static str],
    metrics: Arc<Metrics>,
    /// The problems that were published and still exist, by the UID of the object.
    standing: Mutex<HashMap<String, ProblemsByTopic>>,
    /// The rates of Events in other namespaces, by the namespace of the custom resource.
    elsewhere: Rates,
}

impl Recorder {
    /// A recorder that reports as `reporter`. Writes pass the client's gate.
    pub fn new(
        kube: kube::Client,
        reporter: Reporter,
        expected_names: &'static [&'static str],
        metrics: Arc<Metrics>,
    ) -> Self {
        Self {
            kube,
            reporter,
            expected_names,
            metrics,
            standing: Mutex::default(),
            elsewhere: Rates::within(ELSEWHERE),
        }
    }

    /// Writes the Events on the first object, which they are about, and on the other objects. For changes: the caller
    /// emits each once. The number of Events on the other objects is limited.
    pub async fn emit(&self, about: &[ObjectReference], events: &[Event]) {
        let Some((own, others)) = about.split_first() else {
            return;
        };
        let on_own = events.iter().map(|event| (own, event));
        self.write_all(on_own.chain(self.admitted(own, others, events))).await;
    }

    /// Writes an Event about `own` on another object alone. Returns whether it was within the limit for these.
    pub async fn emit_elsewhere(&self, own: &ObjectReference, other: &ObjectReference, event: &Event) -> bool {
        let admitted: Vec<_> = self
            .admitted(own, std::slice::from_ref(other), std::slice::from_ref(event))
            .collect();
        let is_admitted = !admitted.is_empty();
        self.write_all(admitted.into_iter()).await;
        is_admitted
    }

    /// The Events about `own` that may be written on other objects.
    fn admitted<'a>(
        &self,
        own: &ObjectReference,
        others: &'a [ObjectReference],
        events: &'a [Event],
    ) -> impl Iterator<Item = (&'a ObjectReference, &'a Event)> {
        let key = rate_key(own, self.expected_names);
        let now = Instant::now();
        let mut admitted: Vec<&Event> = Vec::new();
        if !others.is_empty() {
            admitted.extend(events.iter().filter(|_| self.elsewhere.take(&key, now).is_ok()));
        }
        let on_each = move |other| admitted.clone().into_iter().map(move |event| (other, event));
        others.iter().flat_map(on_each)
    }

    async fn write_all<'a>(&self, events: impl Iterator<Item = (&'a ObjectReference, &'a Event)>) {
        let written = join_all(events.map(|(object, event)| self.write(object, event)));
        if tokio::time::timeout(EVENTS_TIMEOUT, written).await.is_err() {
            tracing::debug!("an event was not taken in time");
        }
    }

    /// Records a problem of the object with this UID and returns whether it is new; `None` ends it. For what every
    /// reconcile finds again.
    pub fn begins(&self, uid: &str, topic: &'static str, note: Option<&str>) -> bool {
        let mut all = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
        // What is beyond the bound is not written either.
        let Some(note) = note.map(cut) else {
            if let Some(standing) = all.get_mut(uid) {
                standing.remove(topic);
            }
            return false;
        };
        let before = all.entry(uid.to_owned()).or_default().insert(topic, note.to_owned());
        before.as_deref() != Some(note)
    }

    /// Writes an Event about a problem of an object when it begins; `None` ends it.
    pub async fn stands(&self, object: &ObjectReference, topic: &'static str, event: Option<Event>) {
        let uid = object.uid.as_deref().unwrap_or_default();
        let new = self.begins(uid, topic, event.as_ref().map(|event| event.note.as_str()));
        if let Some(event) = event.filter(|_| new) {
            self.emit(std::slice::from_ref(object), &[event]).await;
        }
    }

    /// Writes the Events that `update` returns about the problems of the first object. `update` keeps the problems that
    /// still exist.
    pub async fn emit_new(&self, about: &[ObjectReference], update: impl FnOnce(&mut ProblemsByTopic) -> Vec<Event>) {
        let uid = about.first().and_then(|object| object.uid.clone()).unwrap_or_default();
        let events = {
            let mut all = self.standing.lock().unwrap_or_else(PoisonError::into_inner);
            let mut standing = all.remove(&uid).unwrap_or_default();
            let events = update(&mut standing);
            if !standing.is_empty() {
                all.insert(uid, standing);
            }
            events
        };
        self.emit(about, &events).await;
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.standing.lock().unwrap_or_else(PoisonError::into_inner).remove(uid);
    }

    async fn write(&self, object: &ObjectReference, event: &Event) {
        let namespace = object.namespace.as_deref().unwrap_or("default");
        let api: Api<KubeEvent> = Api::namespaced(self.kube.clone(), namespace);
        match api.create(&PostParams::default(), &self.build(object, event)).await {
            Ok(_) => self.metrics.kube_write(KubeResource::Event, KubeVerb::Create),
            // A namespace that is being deleted accepts no more Events.
            Err(kube::Error::Api(status)) if status.code == 403 => {
                tracing::debug!(error = %status, reason = event.what.reason(), "an event was not taken");
            }
            Err(error) => tracing::warn!(%error, reason = event.what.reason(), "an event was not taken"),
        }
    }

    fn build(&self, object: &ObjectReference, event: &Event) -> KubeEvent {
        let name = object.name.as_deref().unwrap_or_default();
        KubeEvent {
            metadata: ObjectMeta {
                namespace: object.namespace.clone(),
                generate_name: Some(format!("{name}-")),
                ..ObjectMeta::default()
            },
            regarding: Some(object.clone()),
            type_: Some(if event.what.warns() { "Warning" } else { "Normal" }.to_owned()),
            reason: Some(event.what.reason().to_owned()),
            action: Some(event.what.action().to_owned()),
            note: Some(cut(&event.note).to_owned()),
            event_time: Some(MicroTime(Timestamp::now())),
            reporting_controller: Some(self.reporter.controller.to_owned()),
            reporting_instance: Some(self.reporter.instance.clone()),
            ..KubeEvent::default()
        }
    }
}

fn cut(note: &str) -> &str {
    note.get(..note.floor_char_boundary(MAX_NOTE)).unwrap_or_default()
}

/// The key of the rate for Events in other namespaces. Each expected name has a rate of its own, which no other object
/// of the namespace can use up.
fn rate_key(about: &ObjectReference, expected_names: &[&str]) -> String {
    let namespace = about.namespace.as_deref().unwrap_or_default();
    let name = about.name.as_deref().filter(|name| expected_names.contains(name));
    format!("{namespace}/{}", name.unwrap_or_default())
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use http::{Request, Response};
    use kube::client::Body;

    use super::*;
    use crate::runtime::event::What;

    fn object() -> ObjectReference {
        ObjectReference {
            namespace: Some("n".into()),
            name: Some("private-router".into()),
            uid: Some("u".into()),
            ..ObjectReference::default()
        }
    }

    fn event(note: &str) -> Event {
        Event::new(What::Refused, note)
    }

    /// A recorder and the number of its calls, over an API server that answers with this status, or not at all.
    fn recorder(status: Option<u16>) -> (Recorder, Arc<AtomicUsize>) {
        let calls = Arc::new(AtomicUsize::new(0));
        let counted = Arc::clone(&calls);
        let server = tower::service_fn(move |_: Request<Body>| {
            counted.fetch_add(1, Ordering::SeqCst);
            async move {
                let Some(status) = status else {
                    return std::future::pending().await;
                };
                let answer = Response::builder().status(status).body(Body::from(b"{}".to_vec()))?;
                Ok::<_, tower::BoxError>(answer)
            }
        });
        let kube = kube::Client::new(server, "default");
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let reporter = Reporter {
            controller: "controller",
            instance: "pod".to_owned(),
        };
        (Recorder::new(kube, reporter, &["private-router"], metrics), calls)
    }

    #[tokio::test(start_paused = true)]
    async fn silent_api_server_holds_up_nothing() {
        let began = Instant::now();
        let (recorder, _) = recorder(None);
        recorder.emit(&[object()], &[event("a"), event("b")]).await;
        assert_eq!(began.elapsed(), EVENTS_TIMEOUT);
    }

    #[tokio::test]
    async fn event_refused_by_a_deleting_namespace_is_dropped() {
        let (recorder, calls) = recorder(Some(403));
        recorder.emit(&[object()], &[event("a")]).await;
        assert_eq!(calls.load(Ordering::SeqCst), 1);
    }

    #[tokio::test]
    async fn problem_is_published_when_it_begins_and_comes_back() {
        let (recorder, calls) = recorder(Some(201));
        for (note, calls_then) in [
            (Some("a"), 1),
            (Some("a"), 1),
            (Some("b"), 2),
            (None, 2),
            (Some("b"), 3),
        ] {
            recorder.stands(&object(), "topic", note.map(event)).await;
            assert_eq!(calls.load(Ordering::SeqCst), calls_then, "{note:?}");
        }
    }

    #[tokio::test(start_paused = true)]
    async fn problems_without_end_fill_no_other_namespace() {
        let (recorder, calls) = recorder(Some(201));
        let hosted = ObjectReference {
            namespace: Some("clusters".into()),
            ..object()
        };
        for n in 0..100 {
            let mut own = object();
            own.uid = Some(n.to_string());
            recorder.emit_new(&[own, hosted.clone()], |_| vec![event("a")]).await;
        }
        // What happens once is no exception: a tenant can have it happen again.
        recorder.emit(&[object(), hosted.clone()], &[event("b")]).await;
        assert_eq!(calls.load(Ordering::SeqCst), 101 + 25);
        let mut other = object();
        other.namespace = Some("neighbour".into());
        recorder.emit_new(&[other, hosted], |_| vec![event("a")]).await;
        assert_eq!(calls.load(Ordering::SeqCst), 126 + 2, "a neighbour is told of");
    }

    #[tokio::test]
    async fn no_more_is_kept_of_a_problem_than_is_written() {
        let (recorder, _) = recorder(Some(201));
        let long = "x".repeat(1 << 20);
        assert!(recorder.begins("u", "topic", Some(&long)));
        let kept: usize = {
            let all = recorder.standing.lock().unwrap();
            all["u"].values().map(String::len).sum()
        };
        assert_eq!(kept, MAX_NOTE);
        assert!(!recorder.begins("u", "topic", Some(&long)), "it is the same problem");
    }

    #[test]
    fn long_note_is_cut_between_characters() {
        let note = format!("x{}", "é".repeat(600));
        assert_eq!(cut(&note).len(), MAX_NOTE - 1);
        assert_eq!(cut("short"), "short");
    }

    #[test]
    fn unexpected_object_uses_up_no_rate_of_expected_ones() {
        let key = |name: &str| {
            let about = ObjectReference {
                namespace: Some("n".to_owned()),
                name: Some(name.to_owned()),
                ..ObjectReference::default()
            };
            rate_key(&about, &["private-router"])
        };
        assert_eq!(key("junk-1"), key("junk-2"));
        assert_ne!(key("junk-1"), key("private-router"));
    }
}
