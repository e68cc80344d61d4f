//! The controller of the CPO role: the guest's side of a private path. It observes, plans, executes and reports.

pub mod control_plane;
pub mod dns;
mod observe;
pub mod plan;
mod preview;
#[cfg(test)]
mod samples;
pub mod served;
pub mod shadow;
pub mod siblings;
pub mod status;
pub mod teardown;
pub mod watch;

pub use observe::HostedClusters;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::{Resource, ResourceExt};
use serde_json::Value;
use tokio::sync::watch::Receiver;
use tokio::time::Instant;
use uuid::Uuid;

use crate::api::markers::{CPO_INTENT, HCP_FINALIZER, SERVICES};
use crate::api::{AzurePrivateLinkService, HostedControlPlane, Role};
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::Kind;
use crate::azure::kinds::private_endpoint::{Approval, address, approval};
use crate::azure::plan::{Outcome, Step};
use crate::controllers::azure::access::Context;
use crate::controllers::azure::{Decision, Facts, Needs};
use crate::controllers::decision::{Lifecycle, deleted_at};
use crate::controllers::driver::Driver;
use crate::controllers::preview::{Fact, FinalizerChange};
use crate::controllers::reconciler::CustomResourceReconciler;
use crate::controllers::report::Report;
use crate::hypershift::owner;
use crate::hypershift::scopes::AllowedScopes;
use crate::runtime::call::ReconcileError;
use crate::runtime::prune::Prune;
use crate::runtime::reconcile::{ReconcileOutcome, Reconciler};
use crate::runtime::requeue::Requeue;

/// The controller of the CPO role.
pub struct PrivateEndpointController {
    /// What control planes may use; none: whatever they name.
    pub allowed: Option<Receiver<Arc<AllowedScopes>>>,
    /// What vouches for control planes; none: the conditions of the HO role do.
    pub hosted_clusters: Option<HostedClusters>,
}

/// The control plane as it was read, and its state.
pub struct PrivateEndpointInputs {
    found: Option<HostedControlPlane>,
    state: plan::ControlPlaneState,
}

impl PrivateEndpointInputs {
    /// The control plane, if our finalizer is missing on it though the custom resource is served.
    fn to_be_held(&self, cr: &AzurePrivateLinkService) -> Option<&HostedControlPlane> {
        let served = served::served(cr, &self.state).ok()?;
        self.found.as_ref().filter(|_| !served.control_plane.held)
    }
}

impl Prune for PrivateEndpointInputs {
    /// Of the control plane itself only that our finalizer is missing matters to a reconcile that writes nothing.
    fn prune(&mut self) {
        let held = self.state.control_plane.as_ref().is_ok_and(|found| found.held);
        self.found = self
            .found
            .take()
            .filter(|_| !held)
            .map(|_| HostedControlPlane::default());
    }
}

/// How long a private DNS zone or a virtual network link may still appear whose PUT got no answer, or came from a
/// process that has died. A create in private DNS takes about half a minute, and until then nothing can be read of it.
///
/// Source: recorded traffic of Azure, as in `e2e/armsim/src/dns/links.rs`.
const LATE: Duration = Duration::from_secs(40);

/// Why to reconcile then: a zone or a link may still appear.
const MAY_COME_LATE: &str = "may_come_late";

/// How long a zone or a link may still appear that another process put before it died, or whose PUT got no answer.
/// Until then it proves little that a read does not find it.
fn may_come_late(cx: &Context, cr: &AzurePrivateLinkService, decision: &Decision) -> Option<Requeue> {
    let now = Instant::now();
    let waits = perhaps_put(cr, decision).filter_map(|step| {
        let wait = LATE
            .checked_sub(cx.cloud.observations.absent_for(&step.key, now)?)
            .filter(|wait| !wait.is_zero())?;
        cx.cloud.observations.expedite(&step.key, wait, now);
        Some(wait)
    });
    Some(Requeue::new(waits.max()?, MAY_COME_LATE))
}

/// The zones and links that are not there and may have been put: an intent was recorded before, and no status has named
/// them since.
fn perhaps_put<'a>(cr: &AzurePrivateLinkService, decision: &'a Decision) -> impl Iterator<Item = &'a Step> + use<'a> {
    let intended = cr.annotations().contains_key(CPO_INTENT);
    let status = cr.status.clone().unwrap_or_default();
    let named = [status.private_dns_zone_id, status.base_domain_dns_zone_id];
    let named = named.map(|text| ResourceId::parse(&text?).ok());
    let gone = decision.steps.iter().filter(move |step| {
        intended && matches!(step.kind, Kind::PrivateDnsZone | Kind::VirtualNetworkLink) && step.gone()
    });
    gone.filter(move |step| !named.contains(&Some(step.key.clone())))
}

/// Expedites the read of an endpoint whose connection is not approved or that shows no address yet: ever less often,
/// and at once when something else has changed.
fn expedite_endpoint(cx: &Context, uid: &str, decision: &Decision) {
    let step = decision.step(Kind::PrivateEndpoint);
    let Some(step) = step.filter(|step| step.ready().is_some_and(awaits_connection)) else {
        return cx.polls.over(uid);
    };
    let now = Instant::now();
    let has_changed = cx.polls.has_changed(uid);
    let wait = cx.polls.wait(uid, plan::APPROVAL_POLL, now);
    let wait = if has_changed { Duration::ZERO } else { wait };
    cx.cloud.observations.expedite(&step.key, wait, now);
}

/// The first wait before a custom resource sees whether the link of `private-router` is there. Later waits are longer.
/// What makes the link is in the same process, so this costs no call of Azure's.
const LINK_POLL: Duration = Duration::from_secs(2);

/// When to reconcile again because a link of a sibling may be there: nothing that this custom resource reads shows it.
fn awaits_link(cx: &Context, uid: &str, decision: &Decision) -> Option<Requeue> {
    let key = format!("{uid}/link");
    if !decision.steps.iter().any(|step| step.why == dns::NEEDS_LINK) {
        cx.polls.over(&key);
        return None;
    }
    let wait = cx.polls.wait(&key, LINK_POLL, Instant::now());
    Some(Requeue::new(wait, Requeue::POLL))
}

fn awaits_connection(endpoint: &Value) -> bool {
    approval(endpoint) != Approval::Approved || address(endpoint).is_none()
}

impl Reconciler for PrivateEndpointController {
    type Object = AzurePrivateLinkService;
    type Context = Context;
    type Inputs = PrivateEndpointInputs;

    const EXPECTED_NAMES: &'static [&'static str] = &SERVICES;

    async fn inputs(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
    ) -> Result<(PrivateEndpointInputs, String), ReconcileError> {
        let found = owner::control_plane(&cx.runtime.kube, cr).await?;
        let mut state = observe::read_inputs(cx, cr, found.as_ref(), self.hosted_clusters.as_ref()).await?;
        let all = self.hosted_clusters.as_ref();
        let peers = all.map(|all| all.in_network_of(cr)).unwrap_or_default();
        let allowed = self.allowed.as_ref();
        state.refused = allowed.and_then(|allowed| allowed.borrow().refusal(cr, &peers));
        let inputs = PrivateEndpointInputs { found, state };
        let fingerprint = observe::fingerprint(&inputs);
        Ok((inputs, fingerprint))
    }

    fn target(&self, cr: &AzurePrivateLinkService) -> Option<String> {
        Some(cr.spec.subscription_id.to_ascii_lowercase())
    }

    fn shard_key(&self, cr: &AzurePrivateLinkService, _: &Self::Inputs) -> String {
        cr.spec.subscription_id.clone()
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
}

impl CustomResourceReconciler for PrivateEndpointController {
    type Found = plan::Names;

    fn lifecycle(&self, cr: &AzurePrivateLinkService, inputs: &Self::Inputs) -> Lifecycle {
        let deleting = cr.metadata.deletion_timestamp.is_some() || inputs.state.control_plane_deleting;
        Lifecycle::of(Role::Cpo, cr, deleting)
    }

    /// The custom resource is deleted alone, or with its control plane, which is usually deleted first.
    fn deleting_since(&self, cr: &AzurePrivateLinkService, inputs: &Self::Inputs) -> Option<Timestamp> {
        let control_plane = inputs.found.as_ref().and_then(deleted_at);
        [control_plane, deleted_at(cr)].into_iter().flatten().min()
    }

    fn decide(
        &self,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
        facts: &Facts,
    ) -> Result<(Decision, Self::Found), Needs> {
        if lifecycle == Lifecycle::Teardown {
            let decision = teardown::teardown(cr, &inputs.state, facts)?;
            return Ok((decision, Self::Found::default()));
        }
        plan::build(cr, &inputs.state, facts)
    }

    fn report(
        &self,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        decision: &Decision,
        found: &Self::Found,
        outcomes: &[Outcome],
    ) -> Report {
        match lifecycle {
            Lifecycle::Teardown => status::after_teardown(cr, decision, outcomes),
            _ => status::after_build(cr, decision, found, outcomes),
        }
    }

    fn known(&self, inputs: &Self::Inputs) -> Vec<Fact> {
        preview::known(&inputs.state)
    }

    fn holds(&self, lifecycle: Lifecycle, cr: &AzurePrivateLinkService, inputs: &Self::Inputs) -> Vec<FinalizerChange> {
        let held = inputs.to_be_held(cr).filter(|_| lifecycle == Lifecycle::Build);
        let change = held.map(|_| FinalizerChange {
            verb: "set",
            kind: HostedControlPlane::kind(&()),
            finalizer: HCP_FINALIZER,
        });
        change.into_iter().collect()
    }

    async fn prepare(
        &self,
        cx: &Context,
        lifecycle: Lifecycle,
        cr: &AzurePrivateLinkService,
        inputs: &Self::Inputs,
    ) -> Result<(), ReconcileError> {
        match inputs.to_be_held(cr) {
            Some(found) if lifecycle == Lifecycle::Build => control_plane::hold(cx, found).await,
            _ => Ok(()),
        }
    }

    async fn recorded(&self, cx: &Context, cr: AzurePrivateLinkService) -> Result<(), ReconcileError> {
        control_plane::still_stands(cx, cr).await
    }

    fn remember(
        &self,
        cx: &Context,
        cr: &AzurePrivateLinkService,
        _: &Self::Inputs,
        decision: &mut Decision,
        _: &[Outcome],
    ) -> Option<Requeue> {
        awaits_link(cx, &cr.uid().unwrap_or_default(), decision)
    }

    fn expedite(&self, cx: &Context, lifecycle: Lifecycle, cr: &AzurePrivateLinkService, decision: &Decision) {
        if lifecycle == Lifecycle::Build {
            expedite_endpoint(cx, &cr.uid().unwrap_or_default(), decision);
        }
    }

    fn may_appear(&self, cx: &Context, cr: &AzurePrivateLinkService, decision: &Decision) -> Option<Requeue> {
        may_come_late(cx, cr, decision)
    }
}

#[cfg(test)]
mod tests;
