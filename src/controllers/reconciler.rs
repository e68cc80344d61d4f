//! What a controller of a custom resource has to say; `driver` does the rest.

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;

use super::cloud_access::CloudAccess;
use super::context::Context;
use super::custom_resource::CustomResource;
use super::decision::{Decision, Lifecycle};
use super::event;
use super::facts::{Facts, Needs};
use super::preview::{Fact, FinalizerChange};
use super::report::Report;
use crate::engine::cloud::Cloud;
use crate::engine::plan::Outcome;
use crate::metrics::KubeResource;
use crate::runtime::call::ReconcileError;
use crate::runtime::event::Event;
use crate::runtime::reconcile::Reconciler;
use crate::runtime::requeue::Requeue;
use crate::runtime::watch::Watchable;

/// A custom resource that is watched and written.
pub trait ServedResource: CustomResource<Cloud: CloudAccess> + Watchable {
    /// The object in the metrics of writes.
    const WRITES: KubeResource;
    /// Its status there.
    const STATUS_WRITES: KubeResource;
}

/// A reconciler of a custom resource.
pub trait ReconcilesCustomResource:
    Reconciler<Object: ServedResource, Context = Context<<Self as Reconciler>::Object>>
{
}

impl<C: Reconciler<Object: ServedResource, Context = Context<<C as Reconciler>::Object>>> ReconcilesCustomResource
    for C
{
}

/// The cloud of what a controller reconciles.
pub type CloudOf<C> = <<C as Reconciler>::Object as CustomResource>::Cloud;

/// What names a resource in that cloud.
pub type KeyOf<C> = <CloudOf<C> as Cloud>::Key;

/// A decision with what it found in addition, or the facts that it lacks.
pub type Decided<C> = Result<(Decision<CloudOf<C>>, <C as CustomResourceReconciler>::Found), Needs<CloudOf<C>>>;

/// A controller of a custom resource. The dry run uses the same answers as a reconcile, except those that write.
pub trait CustomResourceReconciler: ReconcilesCustomResource {
    /// What a decision to build finds in addition, for the report.
    type Found: Send;

    /// What is to be done with the custom resource.
    fn lifecycle(&self, cr: &Self::Object, inputs: &Self::Inputs) -> Lifecycle;

    /// Since when what the custom resource stands for is under deletion.
    fn deleting_since(&self, cr: &Self::Object, inputs: &Self::Inputs) -> Option<Timestamp>;

    /// Decides what to do; pure. Asks for the facts that it needs.
    ///
    /// # Errors
    /// Facts are missing.
    fn decide(
        &self,
        lifecycle: Lifecycle,
        cr: &Self::Object,
        inputs: &Self::Inputs,
        facts: &Facts<CloudOf<Self>>,
    ) -> Decided<Self>;

    /// What the status reports of a decision and its outcomes; pure.
    fn report(
        &self,
        lifecycle: Lifecycle,
        cr: &Self::Object,
        decision: &Decision<CloudOf<Self>>,
        found: &Self::Found,
        outcomes: &[Outcome<CloudOf<Self>>],
    ) -> Report;

    /// The facts of Kubernetes that the decision depends on, for the dry run.
    fn known(&self, inputs: &Self::Inputs) -> Vec<Fact>;

    /// Why the cloud may refuse what was decided, for the dry run.
    fn warnings(&self, _cx: &Context<Self::Object>, _cr: &Self::Object, _found: &Self::Found) -> Vec<Fact> {
        Vec::new()
    }

    /// The finalizers that [`Self::prepare`] sets on other objects.
    fn holds(&self, lifecycle: Lifecycle, cr: &Self::Object, inputs: &Self::Inputs) -> Vec<FinalizerChange>;

    /// The object on which Events about the custom resource are written, too.
    fn also<'a>(&self, _inputs: &'a Self::Inputs) -> Option<&'a ObjectReference> {
        None
    }

    /// Does what comes before the first decision: writes to Kubernetes only.
    fn prepare(
        &self,
        cx: &Context<Self::Object>,
        lifecycle: Lifecycle,
        cr: &Self::Object,
        inputs: &Self::Inputs,
    ) -> impl Future<Output = Result<(), ReconcileError>> + Send;

    /// Is called once finalizer and intent are written, before the first write to the cloud. An error ends the
    /// reconcile.
    fn recorded(
        &self,
        _cx: &Context<Self::Object>,
        _cr: Self::Object,
    ) -> impl Future<Output = Result<(), ReconcileError>> + Send {
        std::future::ready(Ok(()))
    }

    /// Remembers what a decision shows before it is executed.
    fn note(&self, _cr: &Self::Object, _decision: &Decision<CloudOf<Self>>) {}

    /// Remembers what the outcomes show; may correct the decision by what was remembered. Returns an earlier time
    /// for the next reconcile, if there is a reason for one.
    fn remember(
        &self,
        _cx: &Context<Self::Object>,
        _cr: &Self::Object,
        _inputs: &Self::Inputs,
        _decision: &mut Decision<CloudOf<Self>>,
        _outcomes: &[Outcome<CloudOf<Self>>],
    ) -> Option<Requeue> {
        None
    }

    /// Expedites reads of what no event announces.
    fn expedite(
        &self,
        cx: &Context<Self::Object>,
        lifecycle: Lifecycle,
        cr: &Self::Object,
        decision: &Decision<CloudOf<Self>>,
    );

    /// Until when something may still appear that no read finds now; expedites the read.
    fn may_appear(
        &self,
        _cx: &Context<Self::Object>,
        _cr: &Self::Object,
        _decision: &Decision<CloudOf<Self>>,
    ) -> Option<Requeue> {
        None
    }

    /// The Events of a release after which nothing is left.
    fn last_events(&self, _inputs: &Self::Inputs, decision: &Decision<CloudOf<Self>>) -> Vec<Event> {
        event::released(decision)
    }
}
