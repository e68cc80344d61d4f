//! The controller of the CPO role on AWS: the guest's side of a private path. It observes, plans, executes and reports.

mod inputs;
mod observe;
mod plan;
mod preview;
#[cfg(test)]
mod samples;
mod status;
mod subnets;
mod teardown;
pub mod watch;
mod zone;

use std::sync::Arc;

use jiff::Timestamp;
use kube::ResourceExt;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use uuid::Uuid;

use self::inputs::VpcEndpointInputs;
use self::plan::Basis;
use crate::api::markers::aws::SERVICES;
use crate::api::{AWSEndpointService, ClusterRef};
use crate::aws::cloud::Aws;
use crate::aws::kinds::Kind;
use crate::aws::region::Region;
use crate::aws::slot::Slot;
use crate::controllers::aws::access::Context;
use crate::controllers::aws::{Decision, Facts, Needs, Outcome};
use crate::controllers::decision::{Lifecycle, deleted_at};
use crate::controllers::driver::Driver;
use crate::controllers::event;
use crate::controllers::preview::{Fact, FinalizerChange};
use crate::controllers::reconciler::CustomResourceReconciler;
use crate::controllers::report::Report;
use crate::hypershift::scopes::AllowedScopes;
use crate::runtime::call::ReconcileError;
use crate::runtime::event::Event;
use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};
use crate::runtime::requeue::Requeue;

/// The controller of the CPO role on AWS.
pub struct VpcEndpointController {
    /// The region that this process serves.
    pub region: Region,
    /// What control planes may use, and as whom; none: whatever they name, as the process' own identity.
    pub allowed: Option<Receiver<Arc<AllowedScopes>>>,
    /// Whether it serves many control planes, for which their HostedClusters have to vouch.
    pub serves_many: bool,
}

impl Reconciler for VpcEndpointController {
    type Object = AWSEndpointService;
    type Context = Context;
    type Inputs = VpcEndpointInputs;

    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;

    async fn inputs(&self, cx: &Context, cr: &AWSEndpointService) -> Result<(Self::Inputs, String), ReconcileError> {
        let inputs = observe::read_inputs(cx, cr, self).await?;
        let fingerprint = observe::fingerprint(&inputs);
        Ok((inputs, fingerprint))
    }

    /// The guest's account, which has request limits of its own. None where the process serves one control plane.
    fn target(&self, cr: &AWSEndpointService) -> Option<String> {
        let allowed = self.allowed.as_ref()?.borrow();
        allowed.account_on_aws(&cr.namespace().unwrap_or_default())
    }

    fn shard_key(&self, cr: &AWSEndpointService, _: &Self::Inputs) -> String {
        cr.namespace().unwrap_or_default()
    }

    async fn reconcile(
        &self,
        cx: &Context,
        correlation: Uuid,
        cr: AWSEndpointService,
        inputs: &Self::Inputs,
    ) -> Result<ReconcileOutcome<AWSEndpointService>, ReconcileError> {
        Driver::new(self, cx, correlation, inputs).reconcile(cr).await
    }

    async fn reconcile_at_rest(
        &self,
        cx: &Context,
        correlation: Uuid,
        cr: AWSEndpointService,
        inputs: &Self::Inputs,
    ) -> Option<ReconcileOutcome<AWSEndpointService>> {
        Driver::new(self, cx, correlation, inputs).at_rest(cr).await
    }

    fn forget(&self, _: &str) {}
}

impl VpcEndpointController {
    /// The HostedCluster that has to vouch for the control plane in this namespace.
    fn voucher_of(&self, namespace: &str) -> Option<ClusterRef> {
        let allowed = self.allowed.as_ref().filter(|_| self.serves_many)?;
        allowed.borrow().cluster_on_aws(namespace)
    }

    fn basis<'a>(&'a self, cr: &'a AWSEndpointService, inputs: &'a VpcEndpointInputs, facts: &'a Facts) -> Basis<'a> {
        Basis {
            cr,
            inputs,
            facts,
            region: &self.region,
        }
    }
}

impl CustomResourceReconciler for VpcEndpointController {
    type Found = ();

    fn lifecycle(&self, cr: &AWSEndpointService, inputs: &Self::Inputs) -> Lifecycle {
        teardown::lifecycle(cr, inputs)
    }

    fn deleting_since(&self, cr: &AWSEndpointService, _: &Self::Inputs) -> Option<Timestamp> {
        deleted_at(cr)
    }

    fn decide(
        &self,
        lifecycle: Lifecycle,
        cr: &AWSEndpointService,
        inputs: &Self::Inputs,
        facts: &Facts,
    ) -> Result<(Decision, ()), Needs> {
        let basis = self.basis(cr, inputs, facts);
        let decision = match lifecycle {
            Lifecycle::Teardown => teardown::teardown(basis)?,
            Lifecycle::Build | Lifecycle::Nothing => plan::build(basis)?,
        };
        Ok((decision, ()))
    }

    fn report(
        &self,
        lifecycle: Lifecycle,
        cr: &AWSEndpointService,
        decision: &Decision,
        (): &(),
        outcomes: &[Outcome],
    ) -> Report {
        match lifecycle {
            Lifecycle::Teardown => status::after_teardown(cr, decision, outcomes),
            Lifecycle::Build | Lifecycle::Nothing => status::after_build(cr, decision, outcomes),
        }
    }

    fn known(&self, inputs: &Self::Inputs) -> Vec<Fact> {
        preview::known(inputs)
    }

    fn holds(&self, _: Lifecycle, _: &AWSEndpointService, _: &Self::Inputs) -> Vec<FinalizerChange> {
        Vec::new()
    }

    async fn prepare(
        &self,
        _: &Context,
        _: Lifecycle,
        _: &AWSEndpointService,
        _: &Self::Inputs,
    ) -> Result<(), ReconcileError> {
        Ok(())
    }

    /// Waits ever longer while only others can help. Forgets records as they were observed together with other ones.
    fn remember(
        &self,
        cx: &Context,
        cr: &AWSEndpointService,
        _: &Self::Inputs,
        decision: &mut Decision,
        _: &[Outcome],
    ) -> Option<Requeue> {
        let is_outdated = |key: &Slot, is_absent: bool| plan::outdates_records(&decision.steps, key, is_absent);
        cx.cloud.observations.forget_outdated(is_outdated);
        let uid = cr.uid().unwrap_or_default();
        // A list that fails knows itself how long it is not read again.
        let waited = decision.problem.as_ref().filter(|problem| problem.class.is_none());
        match waited.and_then(|problem| Some((problem.reason, problem.requeue_after?))) {
            Some((reason, first)) => {
                let after = cx.polls.wait_with(&uid, reason.as_str(), first, Instant::now());
                decision.requeue = Some(Requeue::new(after, reason.as_str()));
            }
            None => cx.polls.over(&uid),
        }
        None
    }

    /// What is recorded of records that one read did not find is forgotten once that is certain.
    fn expedite(&self, cx: &Context, lifecycle: Lifecycle, _: &AWSEndpointService, decision: &Decision) {
        let (observations, now) = (&cx.cloud.observations, Instant::now());
        let records = decision.steps.iter().filter(|step| step.kind == Kind::Records);
        let missed = records.filter(|step| step.gone() && !observations.surely_gone(&step.key));
        if lifecycle == Lifecycle::Build {
            missed.for_each(|step| observations.expedite(&step.key, observations.certain_in(&step.key, now), now));
        }
    }

    fn last_events(&self, _: &Self::Inputs, decision: &Decision) -> Vec<Event> {
        if decision.steps.is_empty() {
            return vec![event::not_read::<Aws>("nothing tells where the endpoint was")];
        }
        event::released(decision)
    }
}
