//! Which objects of a controller are to be reconciled: each when something has happened or when it is due, and by one
//! reconcile at a time.
//!
//! It stands in for the queue of `kube::runtime::Controller`, which polls all reconciles that wait whenever one of them
//! ends: the work of a start then grows with the square of the objects (`docs/decisions/0016-work-queue.md`).

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::future::ready;
use std::panic::resume_unwind;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use futures::stream::{BoxStream, SelectAll};
use futures::{Stream, StreamExt, stream};
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::scheduler::{ScheduleRequest, scheduler};
use kube::runtime::watcher;
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::task::{JoinError, JoinSet};
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use super::reconcile::ReconciledObject;

/// What follows a reconcile.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    /// The next one comes after this time, or when something happens before.
    Requeue(Duration),
    /// The next one comes when something happens.
    AwaitChange,
}

/// The objects of a store, and what makes a reconcile of them necessary.
pub struct WorkQueue<K: ReconciledObject> {
    store: Store<K>,
    triggers: SelectAll<BoxStream<'static, ObjectRef<K>>>,
}

impl<K: ReconciledObject> WorkQueue<K> {
    /// The objects of `store`, each reconciled when it is in `objects`. What makes these fail is no business of the
    /// queue.
    pub fn new(objects: impl Stream<Item = Result<K, watcher::Error>> + Send + 'static, store: Store<K>) -> Self {
        let triggers = SelectAll::new();
        Self { store, triggers }.watches(objects, |object| [ObjectRef::from_obj(&object)])
    }

    /// Each of these objects also reconciles those that `concerned` names.
    #[must_use]
    pub fn watches<O, I>(
        self,
        objects: impl Stream<Item = Result<O, watcher::Error>> + Send + 'static,
        concerned: impl Fn(O) -> I + Send + 'static,
    ) -> Self
    where
        O: Send + 'static,
        I: IntoIterator<Item = ObjectRef<K>> + 'static,
        I::IntoIter: Send,
    {
        let objects = objects.filter_map(|object| ready(object.ok()));
        self.reconcile_on(objects.flat_map(move |object| stream::iter(concerned(object))))
    }

    /// Also reconciles each of these objects.
    #[must_use]
    pub fn reconcile_on(mut self, objects: impl Stream<Item = ObjectRef<K>> + Send + 'static) -> Self {
        self.triggers.push(objects.boxed());
        self
    }

    /// Also reconciles all objects on each of these items.
    #[must_use]
    pub fn reconcile_all_on(self, items: impl Stream<Item = ()> + Send + 'static) -> Self {
        let store = self.store.clone();
        let all = move |()| {
            let all = store.state().into_iter();
            stream::iter(all.map(|object| ObjectRef::from_obj(object.as_ref())))
        };
        self.reconcile_on(items.flat_map(all))
    }

    /// Runs `reconcile` for the objects once the store has them, each in a task of its own, until `stop`; those that
    /// run then end first.
    pub async fn run<F>(self, stop: CancellationToken, reconcile: impl Fn(Arc<K>) -> F)
    where
        F: Future<Output = Action> + Send + 'static,
    {
        let (sender, mut again) = unbounded_channel();
        let again = stream::poll_fn(move |cx| again.poll_recv(cx));
        let triggers = self.triggers.map(|object| at(object, Instant::now()));
        let mut queue = pin!(scheduler(stream::select(triggers, again)));
        let mut running = Running {
            objects: HashMap::new(),
            tasks: JoinSet::new(),
            again: sender,
        };
        let mut held = queue.as_mut().hold();
        tokio::select! {
            () = stop.cancelled() => return,
            _ = self.store.wait_until_ready() => {}
            _ = held.next() => {}
        }
        loop {
            tokio::select! {
                () = stop.cancelled() => break,
                Some(ended) = running.tasks.join_next() => running.ended(ended),
                Some(object) = queue.next() => running.begin(object, &self.store, &reconcile),
            }
        }
        while let Some(ended) = running.tasks.join_next().await {
            running.ended(ended);
        }
    }
}

fn at<K: ReconciledObject>(object: ObjectRef<K>, run_at: Instant) -> ScheduleRequest<ObjectRef<K>> {
    ScheduleRequest {
        message: object,
        run_at,
    }
}

/// The reconciles that run.
struct Running<K: ReconciledObject> {
    /// Whether something has happened since the object's reconcile began.
    objects: HashMap<ObjectRef<K>, bool>,
    tasks: JoinSet<(ObjectRef<K>, Action)>,
    again: UnboundedSender<ScheduleRequest<ObjectRef<K>>>,
}

impl<K: ReconciledObject> Running<K> {
    fn begin<F>(&mut self, object: ObjectRef<K>, store: &Store<K>, reconcile: impl Fn(Arc<K>) -> F)
    where
        F: Future<Output = Action> + Send + 'static,
    {
        match self.objects.entry(object) {
            Entry::Occupied(mut woken) => *woken.get_mut() = true,
            Entry::Vacant(idle) => {
                let Some(object) = store.get(idle.key()) else {
                    return;
                };
                let key = idle.key().clone();
                let work = reconcile(object);
                idle.insert(false);
                self.tasks.spawn(async move { (key, work.await) });
            }
        }
    }

    /// A panic of a task goes on here.
    fn ended(&mut self, ended: Result<(ObjectRef<K>, Action), JoinError>) {
        let (object, action) = match ended {
            Ok(ended) => ended,
            Err(error) => resume_unwind(error.into_panic()),
        };
        let woken = self.objects.remove(&object).unwrap_or_default();
        let next = match action {
            _ if woken => Instant::now(),
            Action::Requeue(after) => Instant::now() + after,
            Action::AwaitChange => return,
        };
        // After a stop nobody asks.
        drop(self.again.send(at(object, next)));
    }
}

#[cfg(test)]
mod tests;
