use futures::channel::mpsc;
use kube::ResourceExt;
use kube::runtime::reflector::store;
use kube::runtime::watcher::Event;
use serde_json::json;
use tokio::task::JoinHandle;

use super::*;
use crate::api::AzurePrivateLinkService;
use crate::controllers::context::sample;

type Object = AzurePrivateLinkService;

fn object(name: &str) -> Object {
    let mut object = sample::cr(json!({}), json!({}));
    object.metadata.name = Some(name.to_owned());
    object
}

/// A queue of the objects `a` and `b`, which are in its store. Each reconcile is shown when it begins, and takes as long
/// as the test wants.
struct TestQueue {
    events: mpsc::UnboundedSender<Result<Object, watcher::Error>>,
    begun: mpsc::UnboundedReceiver<(String, mpsc::Sender<Action>)>,
    stop: CancellationToken,
    run: JoinHandle<()>,
}

impl TestQueue {
    fn new() -> Self {
        let (reader, mut writer) = store();
        for event in [
            Event::Init,
            Event::InitApply(object("a")),
            Event::InitApply(object("b")),
            Event::InitDone,
        ] {
            writer.apply_watcher_event(&event);
        }
        Self::of(reader)
    }

    fn of(reader: Store<Object>) -> Self {
        let (events, objects) = mpsc::unbounded();
        let (begins, begun) = mpsc::unbounded();
        let stop = CancellationToken::new();
        let reconcile = move |object: Arc<Object>| {
            let (end, mut ending) = mpsc::channel(1);
            begins.unbounded_send((object.name_any(), end)).unwrap();
            async move { ending.next().await.unwrap() }
        };
        let queue = WorkQueue::new(objects, reader);
        Self {
            events,
            begun,
            run: tokio::spawn(queue.run(stop.clone(), reconcile)),
            stop,
        }
    }

    fn changed(&self, name: &str) {
        self.events.unbounded_send(Ok(object(name))).unwrap();
    }

    /// The next reconcile that begins; none if there is none within a minute.
    async fn begins(&mut self) -> Option<(String, mpsc::Sender<Action>)> {
        let begun = tokio::time::timeout(Duration::from_secs(60), self.begun.next());
        begun.await.ok().flatten()
    }
}

fn end(mut reconcile: mpsc::Sender<Action>, action: Action) {
    reconcile.try_send(action).unwrap();
}

#[tokio::test(start_paused = true)]
async fn object_that_changes_while_it_is_reconciled_is_once_more_after() {
    let mut queue = TestQueue::new();
    queue.changed("a");
    let (_, first) = queue.begins().await.unwrap();
    for _ in 0..3 {
        queue.changed("a");
    }
    assert!(queue.begins().await.is_none(), "it is being reconciled");
    queue.changed("b");
    let (name, _other) = queue.begins().await.unwrap();
    assert_eq!(name, "b", "it waits for nobody");
    end(first, Action::Requeue(Duration::from_secs(3600)));
    let (name, second) = queue.begins().await.unwrap();
    assert_eq!(name, "a");
    end(second, Action::AwaitChange);
    assert!(queue.begins().await.is_none(), "once for all that had happened");
}

#[tokio::test(start_paused = true)]
async fn requeued_object_comes_in_its_time_or_at_its_change() {
    let mut queue = TestQueue::new();
    queue.changed("a");
    let began = Instant::now();
    let (_, first) = queue.begins().await.unwrap();
    end(first, Action::Requeue(Duration::from_secs(30)));
    let (_, second) = queue.begins().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 30);
    end(second, Action::Requeue(Duration::from_secs(30)));
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.changed("a");
    let (_, third) = queue.begins().await.unwrap();
    assert_eq!(began.elapsed().as_secs(), 31);
    end(third, Action::AwaitChange);
    assert!(queue.begins().await.is_none());
}

#[tokio::test(start_paused = true)]
async fn nothing_is_reconciled_before_the_first_list_is_whole() {
    let (reader, mut writer) = store();
    let mut queue = TestQueue::of(reader);
    queue.changed("a");
    queue.changed("gone");
    assert!(queue.begins().await.is_none());
    for event in [Event::Init, Event::InitApply(object("a")), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    let (name, _running) = queue.begins().await.unwrap();
    assert_eq!(name, "a");
    assert!(queue.begins().await.is_none(), "the list does not have the other one");
}

#[tokio::test(start_paused = true)]
async fn stop_lets_a_reconcile_end_and_begins_no_other() {
    let mut queue = TestQueue::new();
    queue.changed("a");
    let (_, running) = queue.begins().await.unwrap();
    queue.changed("a");
    queue.stop.cancel();
    tokio::time::sleep(Duration::from_secs(1)).await;
    queue.changed("b");
    assert!(queue.begins().await.is_none());
    assert!(!queue.run.is_finished());
    end(running, Action::AwaitChange);
    queue.run.await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn all_objects_are_reconciled_on_demand() {
    let (reader, mut writer) = store();
    for event in [Event::Init, Event::InitApply(object("a")), Event::InitDone] {
        writer.apply_watcher_event(&event);
    }
    let (begins, mut begun) = mpsc::unbounded();
    let queue = WorkQueue::new(stream::pending(), reader).reconcile_all_on(stream::iter([()]));
    let run = queue.run(CancellationToken::new(), move |object: Arc<Object>| {
        begins.unbounded_send(object.name_any()).unwrap();
        ready(Action::AwaitChange)
    });
    tokio::spawn(run);
    assert_eq!(begun.next().await.as_deref(), Some("a"));
}

#[tokio::test(start_paused = true)]
async fn panic_of_a_task_ends_the_queue() {
    let mut queue = TestQueue::new();
    queue.changed("a");
    // The reconcile panics when nobody is left to end it.
    drop(queue.begins().await.unwrap());
    assert!(queue.run.await.unwrap_err().is_panic());
}
