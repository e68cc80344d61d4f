//! The custom resources of one role as they are watched, and which of them are served: the oldest of each namespace.
//!
//! Whoever may write in a namespace could otherwise make this process work for any number of them.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use futures::{Stream, stream};
use kube::runtime::reflector::store::Writer;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::runtime::watcher::Event;
use kube::{Api, ResourceExt};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tokio::time::Instant;

use crate::api::{ClusterRef, Reason, Role, held_by};
use crate::controllers::custom_resource::CustomResource;
use crate::controllers::reconciler::ServedResource;
use crate::hypershift::claims::{Holder, reference};
use crate::runtime::call::{ReconcileError, list};

/// How many custom resources of a namespace are served; HyperShift creates two.
pub const MOST: usize = 8;

/// How long it is not reported again that some custom resources of a namespace are not served. One too many may come
/// and go without end.
///
/// Rule: D5 in `docs/compatibility.md`.
const REPORTED_FOR: Duration = Duration::from_secs(600);

/// How many custom resources are read at once from a list.
const PAGE: u32 = 10;

/// The custom resources of one namespace.
#[derive(Debug, Default)]
struct Namespace {
    /// Those that are not being deleted, the oldest first.
    staying: BTreeSet<Holder>,
    /// Those that are being deleted and that the role tears down, the oldest first.
    deleting_of_role: BTreeSet<Holder>,
    /// Those that are being deleted and that any role tears down, the oldest first.
    deleting_of_any: BTreeSet<Holder>,
    /// The last Event that some are not served.
    reported: Option<Reported>,
}

#[derive(Debug, Clone, Copy)]
struct Reported {
    at: Instant,
    /// Whether all have been served since.
    over: bool,
}

impl Reported {
    fn is_recent(&self, now: Instant) -> bool {
        now.saturating_duration_since(self.at) < REPORTED_FOR
    }
}

impl Namespace {
    fn insert(&mut self, cr: &impl ServedResource, role: Role) {
        if cr.meta().deletion_timestamp.is_none() {
            self.staying.insert(Holder::of(cr));
            return;
        }
        if cr.is_torn_down_by(role) {
            self.deleting_of_role.insert(Holder::of(cr));
        }
        if Role::ALL.iter().any(|role| cr.is_torn_down_by(*role)) {
            self.deleting_of_any.insert(Holder::of(cr));
        }
    }

    fn remove(&mut self, cr: &impl ServedResource) {
        let holder = Holder::of(cr);
        for all in [&mut self.staying, &mut self.deleting_of_role, &mut self.deleting_of_any] {
            all.remove(&holder);
        }
    }

    /// Those that are served. One that is being deleted does not displace one that stays, and is served once enough
    /// older ones are gone.
    fn served(&self) -> impl Iterator<Item = &Holder> {
        self.staying
            .iter()
            .take(MOST)
            .chain(self.deleting_of_role.iter().take(MOST))
    }

    /// How many are not served.
    fn unserved(&self) -> usize {
        self.staying.len().saturating_sub(MOST) + self.deleting_of_role.len().saturating_sub(MOST)
    }
}

/// Whether a holder is one of the oldest, or would be if it was known.
fn among_oldest(all: &BTreeSet<Holder>, holder: &Holder) -> bool {
    all.iter().take(MOST).filter(|other| *other < holder).count() < MOST
}

fn is_contested(cr: &impl CustomResource) -> bool {
    let contested = [Reason::DuplicateIdentity, Reason::HostNameClaimed].map(Reason::as_str);
    let mut conditions = cr.conditions().iter();
    conditions.any(|condition| contested.contains(&condition.reason.as_str()))
}

/// Whether a holder is known and one of the oldest.
fn is_one_of_oldest(all: &BTreeSet<Holder>, holder: &Holder) -> bool {
    all.iter().take(MOST).any(|one| one == holder)
}

struct StoreState<R: ServedResource> {
    role: Role,
    writer: Writer<R>,
    namespaces: HashMap<String, Namespace>,
    /// Those that were refused because another cluster had what they name.
    contested: BTreeSet<ClusterRef>,
    /// Those that another process serves.
    elsewhere: BTreeSet<ClusterRef>,
    listed: bool,
    followers: Vec<UnboundedSender<Arc<R>>>,
    promoted: Vec<UnboundedSender<ObjectRef<R>>>,
}

/// The custom resources that one role watches.
pub struct CustomResourceStore<R: ServedResource> {
    role: Role,
    store: Store<R>,
    state: Mutex<StoreState<R>>,
}

impl<R: ServedResource> CustomResourceStore<R> {
    /// Without any custom resource yet.
    pub fn new(role: Role) -> Self {
        let writer = Writer::new(());
        Self {
            role,
            store: writer.as_reader(),
            state: Mutex::new(StoreState {
                role,
                writer,
                namespaces: HashMap::new(),
                contested: BTreeSet::new(),
                elsewhere: BTreeSet::new(),
                listed: false,
                followers: Vec::new(),
                promoted: Vec::new(),
            }),
        }
    }

    fn state(&self) -> MutexGuard<'_, StoreState<R>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// All of them, served or not.
    pub fn store(&self) -> Store<R> {
        self.store.clone()
    }

    /// One of them, as last observed.
    pub fn get(&self, object: &ClusterRef) -> Option<Arc<R>> {
        self.store.get(&ObjectRef::new(&object.name).within(&object.namespace))
    }

    /// Each custom resource that is added, changed or removed, from now on.
    pub fn follow(&self) -> impl Stream<Item = Arc<R>> + Send + Unpin + use<R> {
        let (sender, receiver) = unbounded_channel();
        self.state().followers.push(sender);
        items(receiver)
    }

    /// Each custom resource that is served because an older one is gone, from now on.
    pub fn promoted(&self) -> impl Stream<Item = ObjectRef<R>> + Send + Unpin + use<R> {
        let (sender, receiver) = unbounded_channel();
        self.state().promoted.push(sender);
        items(receiver)
    }

    /// Applies an event of the watch.
    pub fn heard(&self, event: &Event<R>) {
        let mut state = self.state();
        match event {
            Event::Init | Event::InitApply(_) => state.writer.apply_watcher_event(event),
            Event::InitDone => {
                state.writer.apply_watcher_event(event);
                state.relisted(&self.store);
            }
            Event::Apply(cr) | Event::Delete(cr) => {
                let before = self.store.get(&ObjectRef::from_obj(cr));
                state.writer.apply_watcher_event(event);
                let gone = matches!(event, Event::Delete(_));
                state.changed(cr, before.as_deref(), gone);
            }
        }
    }

    /// Lists the custom resources of a namespace, for a process that does not watch.
    pub async fn read(&self, api: &Api<R>) -> Result<(), ReconcileError> {
        self.heard(&Event::Init);
        list(api, PAGE, |mut cr: R| {
            cr.prune();
            self.heard(&Event::InitApply(cr));
        })
        .await?;
        self.heard(&Event::InitDone);
        Ok(())
    }

    /// In how many namespaces there are such custom resources.
    pub fn namespaces(&self) -> usize {
        self.state().namespaces.len()
    }

    /// Whether all have been listed once.
    pub fn listed(&self) -> bool {
        self.state().listed
    }

    /// Whether the role serves a custom resource: one of the oldest of its namespace, or of those there that are being
    /// deleted and that the role tears down.
    pub fn serves(&self, cr: &R) -> bool {
        let is_deleting = cr.meta().deletion_timestamp.is_some();
        if is_deleting && !cr.is_torn_down_by(self.role) {
            return false;
        }
        let state = self.state();
        let Some(namespace) = state.namespace_of(cr) else {
            return true;
        };
        let all = if is_deleting {
            &namespace.deleting_of_role
        } else {
            &namespace.staying
        };
        among_oldest(all, &Holder::of(cr))
    }

    /// How many of a namespace are not served. Returned on the first call while there are such, and not again soon.
    pub fn not_served(&self, namespace: &str) -> Option<usize> {
        let mut state = self.state();
        let namespace = state.namespaces.get_mut(namespace)?;
        let unserved = namespace.unserved();
        let now = Instant::now();
        let last = namespace.reported;
        let is_reported = last.is_some_and(|last| !last.over || last.is_recent(now));
        if unserved == 0 || is_reported {
            return None;
        }
        namespace.reported = Some(Reported { at: now, over: false });
        Some(unserved)
    }

    /// Notes whether another process serves a custom resource. Nothing is kept of one that is gone meanwhile.
    pub fn note_elsewhere(&self, cr: &R, is_elsewhere: bool) {
        let mut state = self.state();
        if is_elsewhere && self.get(&reference(cr)).is_some() {
            state.elsewhere.insert(reference(cr));
        } else {
            state.elsewhere.remove(&reference(cr));
        }
    }

    /// Those that metrics show and no other process serves: the oldest of each namespace, and of those there that are
    /// being deleted and that a role holds.
    pub fn shown(&self) -> Vec<Arc<R>> {
        let mut all = self.store.state();
        let state = self.state();
        all.retain(|cr| {
            let holder = Holder::of(cr.as_ref());
            if state.elsewhere.contains(&holder.object) {
                return false;
            }
            state.namespace_of(cr).is_some_and(|known| {
                is_one_of_oldest(&known.staying, &holder) || is_one_of_oldest(&known.deleting_of_any, &holder)
            })
        });
        all
    }

    /// Those of a namespace that the role serves, those being deleted last.
    pub fn of_namespace(&self, namespace: &str) -> Vec<Arc<R>> {
        let state = self.state();
        let Some(all) = state.namespaces.get(namespace) else {
            return Vec::new();
        };
        all.served().filter_map(|holder| self.get(&holder.object)).collect()
    }

    /// Those that the role serves and that were refused because another cluster had what they name.
    pub fn contested(&self) -> Vec<Arc<R>> {
        let state = self.state();
        let served = state.contested.iter().filter(|object| {
            let namespace = state.namespaces.get(&object.namespace);
            namespace.is_some_and(|all| all.served().any(|holder| holder.object == **object))
        });
        served.filter_map(|object| self.get(object)).collect()
    }

    /// Whether any custom resource of a namespace has this finalizer of a role, served or not.
    pub fn any_held(&self, namespace: &str, finalizer: &str) -> bool {
        let state = self.state();
        let all = state.namespaces.get(namespace).into_iter();
        let holders = all.flat_map(|all| all.staying.iter().chain(&all.deleting_of_any));
        let mut found = holders.filter_map(|holder| self.get(&holder.object));
        found.any(|cr| held_by(cr.as_ref(), finalizer))
    }
}

impl<R: ServedResource> StoreState<R> {
    fn namespace_of(&self, cr: &R) -> Option<&Namespace> {
        self.namespaces.get(cr.meta().namespace.as_deref().unwrap_or_default())
    }

    fn relisted(&mut self, store: &Store<R>) {
        let before = std::mem::take(&mut self.namespaces);
        self.contested.clear();
        self.elsewhere.retain(|object| {
            let reference = ObjectRef::new(&object.name).within(&object.namespace);
            store.get(&reference).is_some()
        });
        for cr in &store.state() {
            let name = cr.namespace().unwrap_or_default();
            let reported = before.get(&name).and_then(|namespace| namespace.reported);
            let namespace = self.namespaces.entry(name).or_default();
            namespace.reported = reported;
            namespace.insert(cr.as_ref(), self.role);
            if is_contested(cr.as_ref()) {
                self.contested.insert(reference(cr.as_ref()));
            }
            self.notify(cr);
        }
        self.listed = true;
    }

    fn changed(&mut self, cr: &R, before: Option<&R>, gone: bool) {
        if gone {
            self.elsewhere.remove(&reference(cr));
        }
        if !gone && is_contested(cr) {
            self.contested.insert(reference(cr));
        } else {
            self.contested.remove(&reference(cr));
        }
        let name = cr.namespace().unwrap_or_default();
        let namespace = self.namespaces.entry(name.clone()).or_default();
        let served: Vec<Holder> = namespace.served().cloned().collect();
        if let Some(before) = before {
            namespace.remove(before);
        }
        if !gone {
            namespace.insert(cr, self.role);
        }
        let own = Holder::of(cr);
        let now = namespace.served();
        let promoted: Vec<ObjectRef<R>> = now
            .filter(|holder| **holder != own && !served.contains(holder))
            .map(|holder| ObjectRef::new(&holder.object.name).within(&name))
            .collect();
        let all_served = namespace.unserved() == 0;
        if let Some(reported) = &mut namespace.reported {
            reported.over |= all_served;
        }
        let reported = namespace
            .reported
            .is_some_and(|reported| reported.is_recent(Instant::now()));
        if namespace.staying.is_empty() && namespace.deleting_of_any.is_empty() && !reported {
            self.namespaces.remove(&name);
        }
        for reference in promoted {
            self.promoted.retain(|sender| sender.send(reference.clone()).is_ok());
        }
        self.notify(&Arc::new(cr.clone()));
    }

    fn notify(&mut self, cr: &Arc<R>) {
        self.followers.retain(|sender| sender.send(Arc::clone(cr)).is_ok());
    }
}

fn items<T: Send>(mut receiver: UnboundedReceiver<T>) -> impl Stream<Item = T> + Send + Unpin + use<T> {
    stream::poll_fn(move |cx| receiver.poll_recv(cx))
}

#[cfg(test)]
mod tests;
