//! Crossplane's ProviderConfigs: one for each Cluster on Azure, with the identity and subscription of that.

mod write;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use futures::{Stream, TryStreamExt};
use kube::discovery::ApiResource;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::{ObjectRef, Store};
use kube::{Api, Resource, ResourceExt};
use tokio::sync::mpsc::{UnboundedSender, unbounded_channel};
use tokio::time::{Instant, sleep};

use super::identities::NoIdentity;
use super::reference_lease::LeaseObserver;
use super::watch::each;
use super::{Context, event};
use crate::api::capi::{AzureCluster, AzureClusterIdentity, Cluster, ProviderConfig};
use crate::api::markers::capz::PROVIDER_CONFIG_FINALIZER;
use crate::api::{ClusterRef, held_by};
use crate::capz::cluster::reference;
use crate::capz::provider_config::{
    DEFAULT, IdsSource, ProviderConfigOwner, ProviderIds, everybodys, has_ids, is_as_desired, not_owned, owner, source,
    taken,
};
use crate::capz::reason::{Problem, Reason};
use crate::controllers::watch::Heard;
use crate::metrics::{Controller as Label, ReconcileResult};
use crate::runtime::call::{ReconcileError, within};
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::event::{Event, What};
use crate::runtime::requeue::Requeue;
use crate::runtime::watch::{Scope, gone};
use crate::runtime::work_queue::{Action, WorkQueue};
use crate::runtime::{Runtime, guard, reconcile};

/// The time until it is tried again what nothing wakes.
const AGAIN: Duration = Duration::from_secs(30);

type Reconciled = Result<(ReconcileResult, Option<Requeue>), ReconcileError>;

/// Keeps ProviderConfigs.
pub(super) struct Provider {
    pub(super) runtime: Runtime,
    pub(super) cx: Arc<Context>,
    /// Whether the API server serves ProviderConfigs.
    is_served: AtomicBool,
    /// The ids with which the ProviderConfig of each Cluster was found last, and when, by the UID of the Cluster.
    confirmed: Mutex<HashMap<String, (ProviderIds, Instant)>>,
    /// The identity that each Cluster was read with last, by the UID of the Cluster.
    identities: Mutex<HashMap<String, ClusterRef>>,
}

/// What happens to the Clusters, and to what they are made of.
pub(super) struct ProviderEvents<C, A, I> {
    pub(super) known: Store<Cluster>,
    pub(super) clusters: C,
    pub(super) azure_clusters: A,
    pub(super) identities: I,
}

impl Provider {
    pub(super) fn new(runtime: Runtime, cx: Arc<Context>) -> Self {
        Self {
            runtime,
            cx,
            is_served: AtomicBool::new(false),
            confirmed: Mutex::default(),
            identities: Mutex::default(),
        }
    }

    /// Runs until the scope's end.
    pub(super) async fn run(
        self,
        events: ProviderEvents<
            impl Stream<Item = Heard<Cluster>> + Send + 'static,
            impl Stream<Item = Heard<AzureCluster>> + Send + 'static,
            impl Stream<Item = Heard<AzureClusterIdentity>> + Send + 'static,
        >,
        scope: Scope,
    ) {
        let provider = Arc::new(self);
        let ProviderEvents {
            known,
            clusters,
            azure_clusters,
            identities,
        } = events;
        let forgets = Arc::clone(&provider);
        let clusters = clusters.inspect_ok(gone(move |uid| {
            forgets.runtime.retries.over(uid);
            forgets.runtime.events.forget(uid);
            forgets.confirmed(|all| all.remove(uid));
            forgets.identities(|all| all.remove(uid));
        }));
        let (wake, woken) = unbounded_channel();
        let [of_azure_cluster, of_identity] = [0, 1].map(|_| (Arc::clone(&provider), known.clone()));
        let queue = WorkQueue::new(clusters.touched_objects(), known.clone())
            .watches(azure_clusters.touched_objects(), move |changed: AzureCluster| {
                let (provider, known) = &of_azure_cluster;
                users(known, |cluster| {
                    provider
                        .azure_cluster(cluster)
                        .is_some_and(|azure| reference(&azure) == reference(&changed))
                })
            })
            .watches(identities.touched_objects(), move |changed: AzureClusterIdentity| {
                let (provider, known) = &of_identity;
                let changed = ClusterRef {
                    namespace: changed.namespace().unwrap_or_default(),
                    name: changed.name_any(),
                };
                users(known, |cluster| provider.identity(cluster).as_ref() == Some(&changed))
            })
            .reconcile_on(each(woken))
            .reconcile_all_on(scope.changes());
        let follows = provider.follow_discovery(&known, &wake);
        let reconciles = provider.run_queue(queue, scope.clone());
        futures::future::select(Box::pin(reconciles), Box::pin(follows)).await;
    }

    async fn run_queue(self: &Arc<Self>, queue: WorkQueue<Cluster>, scope: Scope) {
        let limit = ConcurrencyLimit::new(Label::ProviderConfig, scope.concurrency);
        let provider = Arc::clone(self);
        reconcile::run_each(queue, limit, scope.stop, move |cluster, limit| {
            let provider = Arc::clone(&provider);
            async move {
                let namespace = cluster.namespace().unwrap_or_default();
                let work = || {
                    let reconcile = provider.reconcile(&cluster);
                    guard::counted(&provider.runtime, Label::ProviderConfig, cluster.as_ref(), reconcile)
                };
                let action = limit
                    .take(&provider.runtime.metrics, Requester::of(&namespace), work)
                    .await;
                action.unwrap_or(Action::AwaitChange)
            }
        })
        .await;
    }

    /// Notes whether the API server serves ProviderConfigs, and wakes all Clusters when it begins to.
    async fn follow_discovery(&self, known: &Store<Cluster>, wake: &UnboundedSender<ObjectRef<Cluster>>) {
        let kind = ApiResource::erase::<ProviderConfig>(&());
        loop {
            let served = within(self.runtime.kube.list_api_group_resources(&kind.api_version)).await;
            let is_served = match &served {
                Ok(list) => Some(list.resources.iter().any(|resource| resource.name == kind.plural)),
                Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 404 => Some(false),
                // Without an answer what is known stands.
                Err(_) => None,
            };
            if is_served.is_some_and(|is_served| self.begins(is_served)) {
                for cluster in users(known, |_| true) {
                    // Nobody listens any more when the process stops.
                    let _ = wake.send(cluster);
                }
            }
            sleep(self.runtime.resync).await;
        }
    }
}

impl Provider {
    /// Notes whether ProviderConfigs are served; returns whether that begins. What was there before is gone then.
    fn begins(&self, is_served: bool) -> bool {
        if !is_served {
            self.confirmed(HashMap::clear);
        }
        !self.is_served.swap(is_served, Ordering::Relaxed) && is_served
    }

    fn confirmed<T>(&self, with: impl FnOnce(&mut HashMap<String, (ProviderIds, Instant)>) -> T) -> T {
        with(&mut self.confirmed.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn identities<T>(&self, with: impl FnOnce(&mut HashMap<String, ClusterRef>) -> T) -> T {
        with(&mut self.identities.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// The identity that a Cluster was read with last.
    fn identity(&self, cluster: &Cluster) -> Option<ClusterRef> {
        self.identities(|all| all.get(cluster.metadata.uid.as_deref()?).cloned())
    }

    /// Notes the identity that a Cluster is read with.
    pub(super) fn note_identity(&self, cluster: &Cluster, identity: &ClusterRef) {
        let uid = cluster.uid().unwrap_or_default();
        self.identities(|all| all.insert(uid, identity.clone()));
    }

    /// The AzureCluster that a Cluster is made of, as the watch shows it.
    pub(super) fn azure_cluster(&self, cluster: &Cluster) -> Option<Arc<AzureCluster>> {
        match source(cluster) {
            IdsSource::AzureCluster(name) => {
                let namespace = cluster.namespace().unwrap_or_default();
                self.cx.clusters.get(&ObjectRef::new(&name).within(&namespace))
            }
            _ => None,
        }
    }

    async fn reconcile(&self, cluster: &Cluster) -> Reconciled {
        if self.cx.reference.leads() {
            let again = Requeue::new(LeaseObserver::EVERY, Requeue::POLL);
            return Ok((ReconcileResult::Waiting, Some(again)));
        }
        if cluster.spec.paused {
            return Ok((ReconcileResult::Ready, None));
        }
        let resync = Requeue::new(self.runtime.resync, Requeue::RESYNC);
        let is_nothing = source(cluster) == IdsSource::Nothing;
        if cluster.metadata.deletion_timestamp.is_some() || is_nothing {
            return self.release(cluster).await;
        }
        if !self.is_served.load(Ordering::Relaxed) {
            return Ok((ReconcileResult::Ready, None));
        }
        match self.ids(cluster).await {
            Ok(Some(ids)) => self.keep(cluster, &ids).await,
            Ok(None) => {
                let poll = format!("{}/ids", cluster.uid().unwrap_or_default());
                let wait = self.cx.polls.wait(&poll, AGAIN, Instant::now());
                let again = Requeue::new(wait.min(self.runtime.resync), Requeue::POLL);
                Ok((ReconcileResult::Waiting, Some(again)))
            }
            Err(NoIdentity::Unread(_)) => Ok((ReconcileResult::Waiting, Some(Requeue::new(AGAIN, Requeue::FAILED)))),
            Err(NoIdentity::Certain(problem)) => {
                self.tell(cluster, Some(&problem)).await;
                Ok((ReconcileResult::Refused, Some(resync)))
            }
        }
    }

    /// Writes an Event about a problem of a Cluster when it begins; none ends it.
    async fn tell(&self, cluster: &Cluster, problem: Option<&Problem>) {
        let event = problem.and_then(|problem| match problem.reason {
            Reason::NameConflict => Some(Event::new(What::ProviderConfigTaken, problem.message.clone())),
            _ => event::trouble(problem),
        });
        let object = cluster.object_ref(&());
        self.runtime.events.stands(&object, "provider_config", event).await;
    }

    /// Brings the ProviderConfig of a Cluster in order, if it is the Cluster's.
    async fn keep(&self, cluster: &Cluster, ids: &ProviderIds) -> Reconciled {
        let resync = Requeue::new(self.runtime.resync, Requeue::RESYNC);
        let (uid, now) = (cluster.uid().unwrap_or_default(), Instant::now());
        let known = self
            .confirmed(|all| all.get(&uid).cloned())
            .filter(|_| is_held(cluster));
        let age = known
            .filter(|(known, _)| known == ids)
            .map(|(_, at)| now.saturating_duration_since(at));
        if let Some(left) = age
            .and_then(|age| self.runtime.resync.checked_sub(age))
            .filter(|left| !left.is_zero())
        {
            return Ok((ReconcileResult::Ready, Some(Requeue::new(left, Requeue::RESYNC))));
        }
        let name = cluster.name_any();
        if name == DEFAULT {
            self.tell(cluster, Some(&everybodys())).await;
            return Ok((ReconcileResult::Refused, Some(resync)));
        }
        let found = within(self.api().get_opt(&name)).await?;
        if let Some(found) = &found {
            if found.metadata.deletion_timestamp.is_some() {
                return Ok((ReconcileResult::Waiting, Some(Requeue::new(AGAIN, Requeue::POLL))));
            }
            if let Some(problem) = self.foreign(found, cluster, ids).await? {
                self.tell(cluster, Some(&problem)).await;
                return Ok((ReconcileResult::Refused, Some(resync)));
            }
        }
        if !is_held(cluster) {
            self.hold(cluster).await?;
        }
        if !found.as_ref().is_some_and(|found| is_as_desired(found, cluster, ids)) {
            self.write(cluster, ids, found.as_ref()).await?;
        }
        self.tell(cluster, None).await;
        self.confirmed(|all| all.insert(uid, (ids.clone(), now)));
        Ok((ReconcileResult::Ready, Some(resync)))
    }

    /// Why the ProviderConfig of a Cluster's name is not the Cluster's.
    async fn foreign(
        &self,
        found: &ProviderConfig,
        cluster: &Cluster,
        ids: &ProviderIds,
    ) -> Result<Option<Problem>, ReconcileError> {
        Ok(match owner(found, cluster) {
            ProviderConfigOwner::Own => None,
            ProviderConfigOwner::Unrecorded => (!has_ids(found, ids)).then(|| not_owned(&cluster.name_any())),
            ProviderConfigOwner::Another(holder) => {
                let ClusterRef { namespace, name } = &holder.cluster;
                let read = within(self.clusters(namespace).get_opt(name)).await?;
                let lives = read.is_some_and(|read| read.uid().as_ref() == Some(&holder.uid));
                lives.then(|| taken(&cluster.name_any(), &holder.cluster))
            }
        })
    }

    /// Deletes the ProviderConfig of a Cluster that needs none any more, and lets the Cluster go.
    async fn release(&self, cluster: &Cluster) -> Reconciled {
        if !is_held(cluster) {
            return Ok((ReconcileResult::Ready, None));
        }
        self.confirmed(|all| all.remove(&cluster.uid().unwrap_or_default()));
        if let Some(found) = self.left(&cluster.name_any()).await? {
            let is_own = match owner(&found, cluster) {
                ProviderConfigOwner::Own => true,
                ProviderConfigOwner::Another(_) => false,
                ProviderConfigOwner::Unrecorded => match self.ids(cluster).await {
                    Ok(ids) => ids.is_some_and(|ids| has_ids(&found, &ids)),
                    Err(NoIdentity::Certain(_)) => false,
                    Err(NoIdentity::Unread(_)) => {
                        return Ok((ReconcileResult::Waiting, Some(Requeue::new(AGAIN, Requeue::FAILED))));
                    }
                },
            };
            if is_own && found.metadata.deletion_timestamp.is_none() {
                self.delete(&found).await?;
            }
        }
        let Some(fresh) = self.same(cluster).await?.filter(is_held) else {
            return Ok((ReconcileResult::Ready, None));
        };
        self.write_finalizer(&fresh, false).await?;
        Ok((ReconcileResult::Ready, None))
    }

    /// The ProviderConfig of this name; none of a kind that is not served any more.
    async fn left(&self, name: &str) -> Result<Option<ProviderConfig>, ReconcileError> {
        match within(self.api().get(name)).await {
            // Of such a kind the API server says so by the code alone, which `get_opt` takes for a failure.
            Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            found => found.map(Some),
        }
    }

    /// The Cluster as the API server has it now, if it is still the same.
    async fn same(&self, cluster: &Cluster) -> Result<Option<Cluster>, ReconcileError> {
        let api = self.clusters(&cluster.namespace().unwrap_or_default());
        let found = within(api.get_opt(&cluster.name_any())).await?;
        Ok(found.filter(|found| found.uid() == cluster.uid()))
    }

    fn clusters(&self, namespace: &str) -> Api<Cluster> {
        Api::namespaced(self.runtime.kube.clone(), namespace)
    }

    fn api(&self) -> Api<ProviderConfig> {
        Api::all(self.runtime.kube.clone())
    }
}

fn is_held(cluster: &Cluster) -> bool {
    held_by(cluster, PROVIDER_CONFIG_FINALIZER)
}

/// The Clusters of which this holds.
fn users(known: &Store<Cluster>, is_it: impl Fn(&Cluster) -> bool) -> Vec<ObjectRef<Cluster>> {
    let mut all = known.state();
    all.retain(|cluster| is_it(cluster));
    all.iter()
        .map(|cluster| ObjectRef::from_obj(cluster.as_ref()))
        .collect()
}

#[cfg(test)]
mod tests;
