//! Watches: the events of the objects in scope, pruned, with their health recorded.

mod heard;

use std::sync::Arc;

use futures::{Stream, stream};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use kube::core::{NamespaceResourceScope, PartialObjectMeta};
use kube::runtime::reflector::{Store, store};
use kube::runtime::{WatchStreamExt, reflector, watcher};
use kube::{Api, Resource};
use tokio::sync::watch::Receiver;
use tokio_util::sync::CancellationToken;

use super::prune::Prune;
use super::reconcile::ReconciledObject;
use super::watch_health::WatchHealth;
use crate::metrics::Watched;
pub use heard::{changes, gone, twice};

/// An object that can be watched.
pub trait Watchable: ReconciledObject + Prune {
    /// The resource that it is.
    const WATCHED: Watched;
}

/// How the controllers of a role run.
#[derive(Clone)]
pub struct Scope {
    /// The only namespace to serve; none means all.
    pub namespace: Option<String>,
    /// How many reconciles run at once.
    pub concurrency: u16,
    /// When this is cancelled, running reconciles end and no new ones begin.
    pub stop: CancellationToken,
    /// A change of this reconciles all objects again.
    pub again: Receiver<()>,
    /// Where the health of the watches is recorded.
    pub health: Arc<WatchHealth>,
}

impl Scope {
    /// An item each time that all objects are to be reconciled again.
    pub fn changes(&self) -> impl Stream<Item = ()> + Send + use<> {
        stream::select(each(self.again.clone()), each(self.health.relists()))
    }

    /// The objects in scope.
    pub fn api<K: Resource<DynamicType = (), Scope = NamespaceResourceScope>>(&self, client: &kube::Client) -> Api<K> {
        match &self.namespace {
            Some(namespace) => Api::namespaced(client.clone(), namespace),
            None => Api::all(client.clone()),
        }
    }

    /// The watch events of the objects in scope.
    pub fn events<K: Watchable>(
        &self,
        client: &kube::Client,
        which: watcher::Config,
    ) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + use<K> {
        self.events_of(self.api(client), which, |_| {})
    }

    /// The watch events of these objects, without what nobody reads. `whole` is called with each object before that is
    /// dropped.
    pub fn events_of<K: Watchable, W: FnMut(&K) + Send + 'static>(
        &self,
        api: Api<K>,
        which: watcher::Config,
        mut whole: W,
    ) -> impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + use<K, W> {
        let events = watcher(api, which).default_backoff().modify(move |object| {
            whole(object);
            object.prune();
        });
        self.health.observe(K::WATCHED, events)
    }

    /// The watch events of the objects in scope, with their metadata alone: for a controller that reads them itself. The
    /// API server sends no more, however large an object is. `prune` drops what nobody reads of that.
    pub fn metadata_events<K: Watchable>(
        &self,
        client: &kube::Client,
        which: watcher::Config,
        prune: fn(&mut ObjectMeta),
    ) -> impl Stream<Item = Result<watcher::Event<PartialObjectMeta<K>>, watcher::Error>> + Send + use<K> {
        let events = watcher(self.api::<PartialObjectMeta<K>>(client), which).default_backoff();
        let events = events.modify(move |object| prune(&mut object.metadata));
        self.health.observe(K::WATCHED, events)
    }
}

/// An item each time that the signal changes.
pub fn each(signal: Receiver<()>) -> impl Stream<Item = ()> + Send {
    stream::unfold(signal, async |mut signal| {
        signal.changed().await.ok()?;
        Some(((), signal))
    })
}

/// Small pages: a page is held in memory whole, and an object may have more than a megabyte before it is pruned.
pub fn pages() -> watcher::Config {
    watcher::Config::default().page_size(10)
}

/// A store of the objects in these events, and the events themselves once they are in it.
///
/// A store's own `wait_until_ready` is of no use here: it wakes one waiter only, and that is the controller.
pub fn stored<K: Watchable>(
    events: impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) -> (
    Store<K>,
    impl Stream<Item = Result<watcher::Event<K>, watcher::Error>> + Send + 'static,
) {
    let (reader, writer) = store();
    (reader, reflector(writer, events))
}
