//! What a controller says of its objects, and how it reconciles one.

use std::fmt::Debug;
use std::time::Duration;

use kube::Resource;
use kube::core::NamespaceResourceScope;
use serde::de::DeserializeOwned;
use uuid::Uuid;

use super::ReconcileOutcome;
use crate::runtime::Runtime;
use crate::runtime::call::ReconcileError;
use crate::runtime::prune::Prune;

/// An object that can be reconciled.
pub trait ReconciledObject:
    Resource<DynamicType = (), Scope = NamespaceResourceScope> + Clone + Debug + DeserializeOwned + Send + Sync + 'static
{
}

impl<K> ReconciledObject for K where
    K: Resource<DynamicType = (), Scope = NamespaceResourceScope>
        + Clone
        + Debug
        + DeserializeOwned
        + Send
        + Sync
        + 'static
{
}

/// Whether an object is reconciled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Admission {
    /// It is.
    Admitted,
    /// It is not, because the operator excludes it.
    Excluded,
    /// It is not, because its namespace has too many.
    TooMany,
}

/// What the controllers of one kind of object share.
pub trait ReconcileContext<K>: Send + Sync + 'static {
    /// What does not depend on what is reconciled.
    fn runtime(&self) -> &Runtime;

    /// Whether the object is reconciled.
    fn admission(&self, object: &K) -> Admission;

    /// Whether this process serves objects with this key, as [`Reconciler::shard_key`] gives it. Notes the answer.
    fn shares(&self, object: &K, key: &str) -> bool;

    /// Reports an object that is not reconciled because its namespace has too many.
    fn report_too_many(&self, object: &K) -> impl Future<Output = ()> + Send;

    /// The parts of the object whose change needs a reconcile, as one text.
    fn fingerprint(&self, object: &K) -> String;

    /// How long until another writer of the object's status is to be answered; `None` if none is.
    fn next_answer(&self, object: &K) -> Option<Duration>;

    /// Whether another controller writes the status of the object, which was read from the API server.
    fn is_contested(&self, object: &K) -> bool;

    /// Notes that something has changed since the last reconcile of the object with this UID.
    fn changed(&self, uid: &str);

    /// Forgets the object with this UID.
    fn forget(&self, uid: &str);
}

/// How one controller reconciles an object.
pub trait Reconciler: Send + Sync + 'static {
    /// What it reconciles.
    type Object: ReconciledObject;
    /// What it works with.
    type Context: ReconcileContext<Self::Object>;
    /// What Kubernetes shows around the object.
    type Inputs: Prune + Send + Sync;

    /// Names of objects that are expected. New objects with these names wait for none of other names.
    const EXPECTED_NAMES: &'static [&'static str];

    /// Reads the inputs. The text stands for everything in them whose change needs a reconcile.
    fn inputs(
        &self,
        cx: &Self::Context,
        object: &Self::Object,
    ) -> impl Future<Output = Result<(Self::Inputs, String), ReconcileError>> + Send;

    /// What the calls for the object go to, as far as the object shows it.
    fn target(&self, object: &Self::Object) -> Option<String>;

    /// What decides which of several processes serves the object.
    fn shard_key(&self, object: &Self::Object, inputs: &Self::Inputs) -> String;

    /// Reconciles the object once; `correlation` names this reconcile in logs and calls.
    fn reconcile(
        &self,
        cx: &Self::Context,
        correlation: Uuid,
        object: Self::Object,
        inputs: &Self::Inputs,
    ) -> impl Future<Output = Result<ReconcileOutcome<Self::Object>, ReconcileError>> + Send;

    /// Reconciles an object at rest by inputs that were read earlier, and writes nothing; none if something is to be
    /// written.
    fn reconcile_at_rest(
        &self,
        cx: &Self::Context,
        correlation: Uuid,
        object: Self::Object,
        inputs: &Self::Inputs,
    ) -> impl Future<Output = Option<ReconcileOutcome<Self::Object>>> + Send;

    /// The object with this UID is gone.
    fn forget(&self, _uid: &str) {}
}
