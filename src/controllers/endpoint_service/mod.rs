//! The controller of the HO role on AWS: the load balancer's side of a private path. It observes, plans, executes and
//! reports.

mod guests_side;
mod inputs;
mod observe;
mod plan;
mod preview;
mod reports;
#[cfg(test)]
mod samples;
mod service;
pub mod settings;
mod status;
mod teardown;
pub mod watch;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use tokio::time::Instant;
use uuid::Uuid;

use self::inputs::EndpointServiceInputs;
use self::plan::Basis;
use self::settings::Settings;
use crate::api::markers::aws::SERVICES;
use crate::api::{AWSEndpointService, Reason, Role};
use crate::aws::kinds::Kind;
use crate::aws::slot::Slot;
use crate::controllers::aws::access::Context;
use crate::controllers::aws::{Decision, Facts, Needs, Outcome};
use crate::controllers::decision::{Lifecycle, deleted_at};
use crate::controllers::driver::Driver;
use crate::controllers::preview::{Fact, FinalizerChange};
use crate::controllers::reconciler::CustomResourceReconciler;
use crate::controllers::report::Report;
use crate::hypershift::aws::ids::service_id;
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::node_pools::NodePools;
use crate::runtime::call::ReconcileError;
use crate::runtime::event::Event;
use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};
use crate::runtime::requeue::Requeue;

/// The controller of the HO role on AWS.
pub struct EndpointServiceController {
    /// What the operator decided for all clusters.
    pub settings: Settings,
    /// All clusters and custom resources.
    pub cluster_index: Arc<ClusterIndex>,
    /// The workers of all clusters.
    pub node_pools: Arc<NodePools>,
}

impl Reconciler for EndpointServiceController {
    type Object = AWSEndpointService;
    type Context = Context;
    type Inputs = EndpointServiceInputs;

    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;

    async fn inputs(&self, cx: &Context, cr: &AWSEndpointService) -> Result<(Self::Inputs, String), ReconcileError> {
        let inputs = observe::read_inputs(cx, cr, self).await?;
        let fingerprint = observe::fingerprint(&inputs);
        Ok((inputs, fingerprint))
    }

    /// None: all endpoint services are in one account.
    fn target(&self, _: &AWSEndpointService) -> Option<String> {
        None
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
        if inputs.unwanted.is_some() {
            return None;
        }
        Driver::new(self, cx, correlation, inputs).at_rest(cr).await
    }

    fn forget(&self, _: &str) {}
}

impl EndpointServiceController {
    fn basis<'a>(
        &'a self,
        cr: &'a AWSEndpointService,
        inputs: &'a EndpointServiceInputs,
        facts: &'a Facts,
    ) -> Basis<'a> {
        Basis {
            cr,
            inputs,
            facts,
            settings: &self.settings,
        }
    }

    /// Notes which endpoint service the status shows: AWS is asked about it by its id, too.
    fn note_shown_service(&self, cx: &Context, cr: &AWSEndpointService, inputs: &EndpointServiceInputs) {
        let shown = cr
            .status
            .as_ref()
            .and_then(|status| status.endpoint_service_name.as_deref());
        let id = shown.and_then(|name| service_id(name, &self.settings.region));
        if let (Some(id), Ok(balancer)) = (id, plan::load_balancer(cr, inputs, &self.settings)) {
            let slot = Slot::endpoint_service(&self.settings.account, &balancer.name);
            cx.cloud.client.note_recorded(&slot, id);
        }
    }
}

impl CustomResourceReconciler for EndpointServiceController {
    type Found = ();

    fn lifecycle(&self, cr: &AWSEndpointService, _: &Self::Inputs) -> Lifecycle {
        Lifecycle::of(Role::Ho, cr, cr.metadata.deletion_timestamp.is_some())
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
            Lifecycle::Teardown => teardown::teardown(basis, Timestamp::now())?,
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

    fn also<'a>(&self, inputs: &'a Self::Inputs) -> Option<&'a ObjectReference> {
        inputs.hosted_cluster.as_ref()
    }

    async fn prepare(
        &self,
        cx: &Context,
        lifecycle: Lifecycle,
        cr: &AWSEndpointService,
        inputs: &Self::Inputs,
    ) -> Result<(), ReconcileError> {
        self.note_shown_service(cx, cr, inputs);
        if lifecycle != Lifecycle::Build || inputs.paused.is_some() {
            return Ok(());
        }
        match inputs.unwanted {
            Some(why) => reports::delete(cx, cr, self.also(inputs), why).await,
            None => Ok(()),
        }
    }

    /// Waits ever longer while only others can help.
    fn remember(
        &self,
        cx: &Context,
        cr: &AWSEndpointService,
        _: &Self::Inputs,
        decision: &mut Decision,
        _: &[Outcome],
    ) -> Option<Requeue> {
        let uid = cr.uid().unwrap_or_default();
        let waited = decision.problem.as_ref();
        let reasons = [Reason::WaitingForLoadBalancer, Reason::LoadBalancerNotActive];
        let waited = waited.filter(|problem| reasons.contains(&problem.reason));
        match waited.and_then(|problem| Some((problem.reason, problem.requeue_after?))) {
            Some((reason, first)) => {
                let (name, now) = (&cr.spec.network_load_balancer_name, Instant::now());
                let after = cx.polls.wait_with(&uid, name, first, now);
                decision.requeue = Some(Requeue::new(after, reason.as_str()));
                // What is not there yet is else believed to be absent until the next resync.
                if let Some(step) = decision.step(Kind::LoadBalancer) {
                    cx.cloud.observations.expedite(&step.key, after, now);
                }
            }
            None => cx.polls.over(&uid),
        }
        None
    }

    fn expedite(&self, _: &Context, _: Lifecycle, _: &AWSEndpointService, _: &Decision) {}

    fn last_events(&self, inputs: &Self::Inputs, decision: &Decision) -> Vec<Event> {
        reports::last_events(inputs, decision)
    }
}
