//! What all controllers of one role share.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::time::Instant;

use super::awaiting::Awaiting;
use super::cloud_access::CloudContext;
use super::contention::PublishedConditions;
use super::custom_resource::store::{CustomResourceStore, MOST};
use super::excluded::ExcludedNamespaces;
use super::reconciler::ServedResource;
use super::report;
use crate::api::Role;
use crate::engine::cloud::Cloud;
use crate::hypershift::shard::Shard;
use crate::metrics::Metrics;
use crate::runtime::Runtime;
use crate::runtime::event::{Event, What};
use crate::runtime::polls::Polls;
use crate::runtime::rate::Rates;
use crate::runtime::reconcile::{Admission, ReconcileContext};
use crate::runtime::recorder::{Recorder, Reporter};
use crate::runtime::retry::Retries;

/// What every reconcile of a custom resource by one role works with.
pub struct Context<R: ServedResource> {
    /// The role that this process plays.
    pub role: Role,
    /// What does not depend on what is reconciled.
    pub runtime: Runtime,
    /// The cloud of the custom resource, and what was observed in it.
    pub cloud: CloudContext<R::Cloud>,
    /// The conditions as this process last published them.
    pub published: PublishedStore,
    /// How often to poll for what no watch shows.
    pub polls: Polls,
    /// The custom resources that wait in a write queue.
    pub awaiting: Awaiting<<R::Cloud as Cloud>::Key>,
    /// The custom resources that the role watches.
    pub resources: Arc<CustomResourceStore<R>>,
    /// The namespaces that the operator excludes.
    pub excluded: ExcludedNamespaces,
    /// The part of all clusters that this process serves.
    pub shard: Shard,
}

impl<R: ServedResource> Context<R> {
    /// A context in which nothing is known yet. Events are written as the process `instance`; `kube` passes the gate.
    pub fn new(
        role: Role,
        instance: &str,
        kube: kube::Client,
        cloud: CloudContext<R::Cloud>,
        metrics: Arc<Metrics>,
        resync: Duration,
    ) -> Self {
        Self {
            role,
            runtime: Runtime {
                events: recorder(kube.clone(), role, R::EXPECTED_NAMES, instance, Arc::clone(&metrics)),
                kube,
                field_manager: role.field_manager(),
                retries: Retries::default(),
                rates: Rates::default(),
                metrics,
                resync,
            },
            cloud,
            published: PublishedStore::default(),
            polls: Polls::default(),
            awaiting: Awaiting::default(),
            resources: Arc::new(CustomResourceStore::new(role)),
            excluded: ExcludedNamespaces::default(),
            shard: Shard::WHOLE,
        }
    }
}

impl<R: ServedResource> ReconcileContext<R> for Context<R> {
    fn runtime(&self) -> &Runtime {
        &self.runtime
    }

    fn admission(&self, cr: &R) -> Admission {
        if self
            .excluded
            .contains(cr.meta().namespace.as_deref().unwrap_or_default())
        {
            Admission::Excluded
        } else if self.resources.serves(cr) {
            Admission::Admitted
        } else {
            Admission::TooMany
        }
    }

    fn shares(&self, object: &R, key: &str) -> bool {
        let is_own = self.shard.has(key);
        self.resources.note_elsewhere(object, !is_own);
        is_own
    }

    async fn report_too_many(&self, cr: &R) {
        let namespace = cr.namespace().unwrap_or_default();
        // One process reports it.
        if !self.shard.has(&namespace) {
            return;
        }
        let Some(unserved) = self.resources.not_served(&namespace) else {
            return;
        };
        let note = format!(
            "{unserved} {}s of this namespace are not served: only the {MOST} oldest are",
            R::kind(&())
        );
        tracing::warn!(namespace, reason = note, "too many custom resources in a namespace");
        let event = Event::new(What::NotServed, note);
        self.runtime.events.emit(&[cr.object_ref(&())], &[event]).await;
    }

    fn fingerprint(&self, cr: &R) -> String {
        let published = self.published.of(&cr.uid().unwrap_or_default());
        report::fingerprint(cr, self.role, &published, Instant::now().into_std())
    }

    fn next_answer(&self, cr: &R) -> Option<Duration> {
        let published = self.published.of(&cr.uid().unwrap_or_default());
        published.next_answer(cr.conditions(), Instant::now().into_std())
    }

    fn is_contested(&self, cr: &R) -> bool {
        cr.other_writer(self.role, Timestamp::now(), self.runtime.resync)
            .is_some()
    }

    fn changed(&self, uid: &str) {
        self.polls.change(uid);
    }

    fn forget(&self, uid: &str) {
        self.polls.over(uid);
        self.awaiting.forget(uid);
        self.published.forget(uid);
    }
}

/// A recorder that writes Events as `role`, from the process `instance`. Objects with one of the `expected` names wait
/// for none of other names.
pub fn recorder(
    kube: kube::Client,
    role: Role,
    expected: &'static [&'static str],
    instance: &str,
    metrics: Arc<Metrics>,
) -> Recorder {
    let reporter = Reporter {
        controller: role.field_manager(),
        instance: instance.to_owned(),
    };
    Recorder::new(kube, reporter, expected, metrics)
}

/// The conditions that this process has published, by the UID of the object.
#[derive(Debug, Default)]
pub struct PublishedStore(Mutex<HashMap<String, PublishedConditions>>);

impl PublishedStore {
    fn all(&self) -> MutexGuard<'_, HashMap<String, PublishedConditions>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The published conditions of one object.
    pub fn of(&self, uid: &str) -> PublishedConditions {
        self.all().get(uid).cloned().unwrap_or_default()
    }

    /// Stores the published conditions of one object.
    pub fn keep(&self, uid: &str, published: PublishedConditions) {
        self.all().insert(uid.to_owned(), published);
    }

    /// Forgets an object that is gone.
    pub fn forget(&self, uid: &str) {
        self.all().remove(uid);
    }
}

/// A context for tests of what is done in Kubernetes: its Azure never answers.
#[cfg(test)]
pub(crate) mod sample {
    use async_trait::async_trait;
    use bytes::Bytes;
    use http::{Request, Response};
    use uuid::Uuid;

    use super::*;
    use crate::api::AzurePrivateLinkService;
    use crate::azure::arm::client::Client;
    use crate::azure::arm::transport::{Transport, TransportError};
    use crate::azure::observations::ObservationCache;
    use crate::controllers::azure::access::{ArmContext, Context};
    pub(crate) use crate::controllers::samples::cr;
    use crate::engine::gate::Gate;
    use crate::runtime::call::ReconcileError;
    use crate::runtime::prune::Prune;
    use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};

    struct NoAzure;

    impl Gate for NoAzure {
        fn open(&self) -> bool {
            false
        }
    }

    #[async_trait]
    impl Transport for NoAzure {
        async fn ready(&self) -> Result<(), TransportError> {
            Err(TransportError::Timeout)
        }

        async fn send(&self, _: Request<Bytes>) -> Result<Response<Bytes>, TransportError> {
            Err(TransportError::Timeout)
        }
    }

    pub(crate) fn context(kube: kube::Client) -> Context {
        context_with(kube, Duration::from_secs(60))
    }

    pub(crate) fn context_with(kube: kube::Client, resync: Duration) -> Context {
        let metrics = Arc::new(Metrics::new("1", "c").unwrap());
        let endpoint = "https://management.azure.com".parse().unwrap();
        let client = Client::new(Arc::new(NoAzure), endpoint, Arc::new(NoAzure), metrics.clone());
        let arm = ArmContext::new(client, ObservationCache::new(resync, resync));
        Context::new(Role::Cpo, "test", kube, arm, metrics, resync)
    }

    impl Prune for () {
        fn prune(&mut self) {}
    }

    /// A reconciler without inputs, of which a test says what one reconcile does.
    pub(crate) trait Script: Send + Sync + 'static {
        fn play(
            &self,
            cx: &Context,
            cr: AzurePrivateLinkService,
        ) -> impl Future<Output = Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError>> + Send;

        /// The text that stands for what is read.
        fn inputs_text(&self) -> String {
            String::new()
        }

        /// What a reconcile of an object at rest does.
        fn rest(&self, _: AzurePrivateLinkService) -> Option<ReconcileOutcome<AzurePrivateLinkService>> {
            None
        }
    }

    impl<S: Script> Reconciler for S {
        type Object = AzurePrivateLinkService;
        type Context = Context;
        type Inputs = ();

        const EXPECTED_NAMES: &'static [&'static str] = &[];

        async fn inputs(&self, _: &Context, _: &AzurePrivateLinkService) -> Result<((), String), ReconcileError> {
            Ok(((), self.inputs_text()))
        }

        fn target(&self, _: &AzurePrivateLinkService) -> Option<String> {
            None
        }

        fn shard_key(&self, cr: &AzurePrivateLinkService, (): &()) -> String {
            cr.spec.subscription_id.clone()
        }

        async fn reconcile(
            &self,
            cx: &Context,
            _: Uuid,
            cr: AzurePrivateLinkService,
            (): &(),
        ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
            self.play(cx, cr).await
        }

        async fn reconcile_at_rest(
            &self,
            _: &Context,
            _: Uuid,
            cr: AzurePrivateLinkService,
            (): &(),
        ) -> Option<ReconcileOutcome<AzurePrivateLinkService>> {
            self.rest(cr)
        }
    }
}
