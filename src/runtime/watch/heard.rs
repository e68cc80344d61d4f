//! What is made of watch events: which objects are gone, which have changed in anything that a reconcile reads, and the
//! same events for a second controller.

use std::collections::{HashMap, HashSet};
use std::hash::{DefaultHasher, Hash, Hasher};

use futures::{Stream, TryStreamExt, future, stream};
use kube::ResourceExt;
use kube::runtime::{WatchStreamExt, watcher};
use tokio::sync::mpsc::unbounded_channel;

/// Calls `forget` with the UID of each object that is gone: the watch shows its deletion, or a new list no longer has
/// it.
pub fn gone<K: ResourceExt>(forget: impl Fn(&str) + Send) -> impl FnMut(&watcher::Event<K>) + Send {
    let mut known = HashSet::new();
    let mut listed = HashSet::new();
    move |event| match event {
        watcher::Event::Init => listed.clear(),
        watcher::Event::InitApply(object) => listed.extend(object.uid()),
        watcher::Event::InitDone => {
            let before = std::mem::replace(&mut known, std::mem::take(&mut listed));
            before.difference(&known).for_each(|uid| forget(uid));
        }
        watcher::Event::Apply(object) => known.extend(object.uid()),
        watcher::Event::Delete(object) => {
            let uid = object.uid().unwrap_or_default();
            known.remove(&uid);
            forget(&uid);
        }
    }
}

/// The objects that are added, changed or removed, for a controller that does not read their status: that is written
/// far more often than all else.
pub fn changes<K: ResourceExt + Send>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send,
) -> impl Stream<Item = Result<K, watcher::Error>> + Send {
    let mut known = KnownObjects::default();
    events
        .try_filter(move |event| future::ready(known.has_news(event)))
        .touched_objects()
}

/// The events of one watch for two controllers: the second one has each event once the first one has taken it. Failures
/// of the watch are for the first one alone.
pub fn twice<K: Clone + Send + 'static>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) -> (
    impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
    impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) {
    let (sender, receiver) = unbounded_channel();
    // That the second one has ended is none of the first one's business.
    let first = events.inspect_ok(move |event| drop(sender.send(event.clone())));
    let second = stream::unfold(receiver, async |mut receiver| {
        Some((Ok(receiver.recv().await?), receiver))
    });
    (first, second)
}

/// What earlier events have shown, by UID.
#[derive(Default)]
struct KnownObjects {
    objects: HashMap<String, u64>,
    listed: HashSet<String>,
}

impl KnownObjects {
    /// Whether an event shows more than what is known; what is gone for good is dropped.
    fn has_news<K: ResourceExt>(&mut self, event: &watcher::Event<K>) -> bool {
        match event {
            watcher::Event::Init => self.listed.clear(),
            watcher::Event::InitDone => {
                let listed = std::mem::take(&mut self.listed);
                self.objects.retain(|uid, _| listed.contains(uid));
            }
            watcher::Event::InitApply(object) | watcher::Event::Apply(object) => {
                let uid = object.uid().unwrap_or_default();
                if matches!(event, watcher::Event::InitApply(_)) {
                    self.listed.insert(uid.clone());
                }
                let now = without_status(object);
                return self.objects.insert(uid, now) != Some(now);
            }
            watcher::Event::Delete(object) => {
                self.objects.remove(&object.uid().unwrap_or_default());
            }
        }
        true
    }
}

/// A hash of an object without its status, with its generation for its spec.
fn without_status(object: &impl ResourceExt) -> u64 {
    let meta = object.meta();
    let mut hasher = DefaultHasher::new();
    (meta.generation, meta.deletion_timestamp.is_some()).hash(&mut hasher);
    (object.labels(), object.annotations(), object.finalizers()).hash(&mut hasher);
    for owner in object.owner_references() {
        (&owner.kind, &owner.name, &owner.uid, owner.controller).hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, StreamExt, stream};
    use kube::runtime::watcher::Event;
    use rstest::rstest;
    use serde_json::{Value, json};

    use super::*;
    use crate::api::HostedCluster;

    fn cluster(changed: Value) -> HostedCluster {
        let mut cluster = json!({"metadata": {"name": "a", "uid": "u", "generation": 1, "resourceVersion": "1"}});
        for (name, value) in changed.as_object().unwrap() {
            cluster["metadata"][name] = value.clone();
        }
        serde_json::from_value(cluster).unwrap()
    }

    async fn wakes(events: Vec<Event<HostedCluster>>) -> usize {
        let changed = changes(stream::iter(events.into_iter().map(Ok)));
        changed.map(Result::unwrap).count().await
    }

    fn listed(cluster: HostedCluster) -> Vec<Event<HostedCluster>> {
        vec![Event::Init, Event::InitApply(cluster), Event::InitDone]
    }

    #[rstest]
    #[case::status(json!({"resourceVersion": "2"}), 1)]
    #[case::spec(json!({"generation": 2}), 2)]
    #[case::annotation(json!({"annotations": {"a": "b"}}), 2)]
    #[case::label(json!({"labels": {"a": "b"}}), 2)]
    #[case::finalizer(json!({"finalizers": ["a"]}), 2)]
    #[case::deletion(json!({"deletionTimestamp": "2026-01-01T00:00:00Z"}), 2)]
    #[case::owner(json!({"ownerReferences": [{"apiVersion": "v", "kind": "k", "name": "n", "uid": "o"}]}), 2)]
    #[case::recreated(json!({"uid": "v"}), 2)]
    #[tokio::test]
    async fn change_is_forwarded_unless_it_is_of_the_status(#[case] changed: Value, #[case] times: usize) {
        let first = || listed(cluster(json!({})));
        let watched = [first(), vec![Event::Apply(cluster(changed.clone()))]].concat();
        assert_eq!(wakes(watched).await, times);
        let relists = [first(), listed(cluster(changed))].concat();
        assert_eq!(wakes(relists).await, times);
    }

    #[test]
    fn nothing_is_kept_of_what_went_while_the_watch_was_broken() {
        let mut known = KnownObjects::default();
        let recreated = || cluster(json!({"uid": "v"}));
        for event in [
            listed(cluster(json!({}))),
            listed(recreated()),
            vec![Event::Apply(recreated())],
        ]
        .concat()
        {
            known.has_news(&event);
        }
        assert_eq!(known.objects.keys().collect::<Vec<_>>(), ["v"]);
        assert_eq!(known.listed.len(), 0);
    }

    #[tokio::test]
    async fn deletion_of_an_object_is_always_forwarded() {
        let end = vec![Event::Delete(cluster(json!({})))];
        assert_eq!(wakes([listed(cluster(json!({}))), end].concat()).await, 2);
    }

    #[tokio::test]
    async fn second_controller_has_what_the_first_one_has_taken() {
        let watched = [listed(cluster(json!({}))), vec![Event::Delete(cluster(json!({})))]].concat();
        let events = watched.into_iter().map(Ok);
        let (first, second) = twice(stream::iter(events.chain([Err(watcher::Error::NoResourceVersion)])));
        let mut second = std::pin::pin!(second);
        assert!(second.next().now_or_never().is_none());
        assert_eq!(first.count().await, 5);
        let taken: Vec<_> = second.collect().await;
        assert!(matches!(
            &taken[..],
            [
                Ok(Event::Init),
                Ok(Event::InitApply(_)),
                Ok(Event::InitDone),
                Ok(Event::Delete(_))
            ]
        ));
    }
}
