//! The controller of the HO role: the load balancer's side of a private path. It observes, plans, executes and reports.

mod basis;
mod connecting;
pub mod frontend;
pub mod nat_prefix;
mod observe;
mod ownership;
pub mod plan;
mod preview;
pub mod quota;
mod refused_prefixes;
mod remembered;
mod reports;
mod revocation;
#[cfg(test)]
mod samples;
mod service_id;
pub mod settings;
pub mod status;
mod subnet;
pub mod teardown;
mod their_endpoint;
mod waits;
pub mod watch;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::ObjectReference;
use kube::ResourceExt;
use tokio::time::Instant;
use uuid::Uuid;

use self::remembered::Remembered;
use self::settings::ScopedSettings;
use crate::api::markers::SERVICES;
use crate::api::{AzurePrivateLinkService, Role};
use crate::azure::plan::Outcome;
use crate::controllers::azure::access::Context;
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::controllers::decision::{Lifecycle, deleted_at};
use crate::controllers::driver::Driver;
use crate::controllers::preview::{Fact, FinalizerChange};
use crate::controllers::reconciler::CustomResourceReconciler;
use crate::controllers::report::Report;
use crate::hypershift::cluster_index::ClusterIndex;
use crate::runtime::call::ReconcileError;
use crate::runtime::event::Event;
use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};
use crate::runtime::requeue::Requeue;

/// Why to reconcile at once: another prefix has to be chosen for the NAT subnet.
const PREFIX_REFUSED: &str = "nat_prefix_refused";

/// The controller of the HO role.
pub struct PrivateLinkServiceController {
    settings: ScopedSettings,
    cluster_index: Arc<ClusterIndex>,
    remembered: Remembered,
}

impl PrivateLinkServiceController {
    /// A controller with the operator's settings and the index of all clusters.
    pub fn new(settings: ScopedSettings, cluster_index: Arc<ClusterIndex>) -> Self {
        Self {
            settings,
            cluster_index,
            remembered: Remembered::default(),
        }
    }
}

impl Reconciler for PrivateLinkServiceController {
    type Object = AzurePrivateLinkService;
    type Context = Context;
    type Inputs = plan::PrivateLinkServiceInputs;

    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;

    async fn inputs(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
    ) -> Result<(Self::Inputs, String), ReconcileError> {
        let mut inputs = observe::read_inputs(cx, cr, &self.cluster_index, &self.settings).await?;
        let fingerprint = observe::fingerprint(&inputs);
        let uid = cr.uid().unwrap_or_default();
        inputs.shown_subnet = self.remembered.shown_subnet(&uid);
        Ok((inputs, fingerprint))
    }

    fn target(&self, cr: &AzurePrivateLinkService) -> Option<String> {
        let service = quota::counted_service(cr)?;
        Some(service.id.subscription().as_str().to_owned())
    }

    fn shard_key(&self, cr: &AzurePrivateLinkService, inputs: &Self::Inputs) -> String {
        let scope = inputs.management_scope.as_ref();
        let scope = self.settings.serving_scope(cr, scope);
        scope.subscription.as_str().to_owned()
    }

    async fn reconcile(
        &self,
        cx: &Context,
        correlation: Uuid,
        cr: AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> Result<ReconcileOutcome<AzurePrivateLinkService>, ReconcileError> {
        Driver::new(self, cx, correlation, inputs).reconcile(cr).await
    }

    async fn reconcile_at_rest(
        &self,
        cx: &Context,
        correlation: Uuid,
        cr: AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> Option<ReconcileOutcome<AzurePrivateLinkService>> {
        Driver::new(self, cx, correlation, inputs).at_rest(cr).await
    }

    fn forget(&self, uid: &str) {
        self.remembered.forget(uid);
    }
}

impl CustomResourceReconciler for PrivateLinkServiceController {
    type Found = Option<plan::FoundFrontend>;

    fn lifecycle(&self, cr: &AzurePrivateLinkService, _: &Self::Inputs) -> Lifecycle {
        Lifecycle::of(Role::Ho, cr, cr.metadata.deletion_timestamp.is_some())
    }

    fn deleting_since(&self, cr: &AzurePrivateLinkService, _: &Self::Inputs) -> Option<Timestamp> {
        deleted_at(cr)
    }

    fn decide(
        &self,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
        facts: &Facts,
    ) -> Result<(Decision, Self::Found), Needs> {
        let settings = self.settings.of(inputs.management_scope.as_ref());
        if lifecycle == Lifecycle::Teardown {
            let decision = teardown::teardown(cr, inputs, facts, settings, Timestamp::now())?;
            return Ok((decision, None));
        }
        let uid = cr.uid().unwrap_or_default();
        let refused = self.remembered.refused(&uid, Instant::now());
        let (decision, found) = plan::build(cr, inputs, facts, settings, &refused)?;
        Ok((decision, Some(found)))
    }

    fn report(
        &self,
        _: Lifecycle,
        cr: &AzurePrivateLinkService,
        decision: &Decision,
        found: &Self::Found,
        outcomes: &[Outcome],
    ) -> Report {
        match found {
            Some(found) => status::after_build(cr, decision, found, outcomes),
            None => status::after_teardown(cr, decision, outcomes),
        }
    }

    fn known(&self, inputs: &Self::Inputs) -> Vec<Fact> {
        preview::known(inputs)
    }

    fn warnings(&self, cx: &Context, cr: &AzurePrivateLinkService, found: &Self::Found) -> Vec<Fact> {
        let Some(Ok(frontend)) = found else {
            return Vec::new();
        };
        quota::used_up(cr, frontend, cx.resources.shown().iter().map(AsRef::as_ref))
    }

    fn holds(&self, _: Lifecycle, _: &AzurePrivateLinkService, _: &Self::Inputs) -> Vec<FinalizerChange> {
        Vec::new()
    }

    fn also<'a>(&self, inputs: &'a Self::Inputs) -> Option<&'a ObjectReference> {
        inputs.hosted_cluster.as_ref()
    }

    async fn prepare(
        &self,
        cx: &Context,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> Result<(), ReconcileError> {
        if lifecycle == Lifecycle::Teardown {
            reports::guest_lock(cx, cr, inputs.hosted_cluster.as_ref()).await;
        } else if inputs.identity.is_ok() {
            reports::unconfirmed(cx, cr, inputs).await;
        }
        Ok(())
    }

    fn note(&self, cr: &AzurePrivateLinkService, decision: &Decision) {
        self.remembered.note_subnet(&cr.uid().unwrap_or_default(), decision);
    }

    fn remember(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
        decision: &mut Decision,
        outcomes: &[Outcome],
    ) -> Option<Requeue> {
        cx.awaiting.note(cr, &decision.steps, outcomes);
        if cr.metadata.deletion_timestamp.is_some() {
            return None;
        }
        let uid = cr.uid().unwrap_or_default();
        self.remembered.confirm_missing(&uid, decision, Instant::now());
        waits::slow_down(cx, &uid, &waits::awaited(cr, inputs), decision);
        let at_once = self
            .remembered
            .note_refused_prefix(&uid, &decision.steps, outcomes, &cx.cloud.observations);
        at_once.then(|| Requeue::new(Duration::ZERO, PREFIX_REFUSED))
    }

    fn expedite(&self, cx: &Context, lifecycle: Lifecycle, _: &AzurePrivateLinkService, decision: &Decision) {
        if lifecycle == Lifecycle::Teardown {
            waits::expedite_subnet(cx, decision);
        }
    }

    fn last_events(&self, inputs: &Self::Inputs, decision: &Decision) -> Vec<Event> {
        reports::last_events(inputs, decision)
    }
}

#[cfg(test)]
mod tests;
