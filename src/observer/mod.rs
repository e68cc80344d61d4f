//! Role `cpo`: watches control planes and the Services that publish them. It keeps a custom resource for each Service
//! and a Service for each host name that external-dns should publish, and removes its finalizer from a control plane
//! that is torn down.

pub mod decide;
pub mod external_services;
mod keep;
pub mod spec;
pub mod watch;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::reflector::Store;
use kube::{Api, Resource, ResourceExt};

use crate::api::HostedControlPlane;
use crate::api::markers::SERVICES;
use crate::controllers::azure::access::Context;
use crate::controllers::private_endpoint::control_plane;
use crate::hypershift::identity;
use crate::metrics::{Controller, ReconcileResult};
use crate::runtime::call::{ReconcileError, within};
use crate::runtime::event::{Event, What};
use crate::runtime::guard;
use crate::runtime::requeue::Requeue;
use crate::runtime::work_queue::Action;
use decide::Verdict;

/// The observer, for the control planes of one Azure cloud.
pub struct Observer {
    cx: Arc<Context>,
    /// The cloud's name as HostedControlPlanes spell it.
    cloud: &'static str,
    /// The external Services with the label that marks them, as the watch last delivered them.
    external: Store<Service>,
}

/// The outcome of reconciling one Service, or the host names.
struct ServiceOutcome {
    result: ReconcileResult,
    requeue: Option<Requeue>,
    /// What a person should know.
    note: Option<String>,
}

impl ServiceOutcome {
    fn ready() -> Self {
        Self {
            result: ReconcileResult::Ready,
            requeue: None,
            note: None,
        }
    }

    fn waiting(why: &str, requeue: Option<Requeue>) -> Self {
        Self {
            result: ReconcileResult::Waiting,
            requeue,
            note: Some(why.to_owned()),
        }
    }

    fn refused(wrong: String, requeue: Option<Requeue>) -> Self {
        Self {
            result: ReconcileResult::Refused,
            requeue,
            note: Some(wrong),
        }
    }
}

/// Reconciles one control plane.
pub async fn reconcile(cached: Arc<HostedControlPlane>, observer: Arc<Observer>) -> Action {
    let reconcile = observer.reconcile(&cached);
    guard::counted(&observer.cx.runtime, Controller::Observer, cached.as_ref(), reconcile).await
}

impl Observer {
    /// An observer that watches this cloud.
    pub fn new(cx: Arc<Context>, cloud: &'static str, external: Store<Service>) -> Self {
        Self { cx, cloud, external }
    }

    /// What the observer works with.
    pub fn context(&self) -> &Context {
        &self.cx
    }

    async fn reconcile(
        &self,
        cached: &HostedControlPlane,
    ) -> Result<(ReconcileResult, Option<Requeue>), ReconcileError> {
        if !self.serves(cached) {
            return Ok((ReconcileResult::Ready, None));
        }
        let namespace = cached.namespace().unwrap_or_default();
        let name = cached.name_any();
        let api: Api<HostedControlPlane> = Api::namespaced(self.cx.runtime.kube.clone(), &namespace);
        let Some(found) = within(api.get_opt(&name)).await? else {
            return Ok((ReconcileResult::Ready, None));
        };
        if !self.serves(&found) {
            return Ok((ReconcileResult::Ready, None));
        }
        if found.metadata.deletion_timestamp.is_some() {
            return control_plane::let_go(&self.cx, &found).await;
        }
        let now = Timestamp::now();
        let mut outcomes = Vec::new();
        let mut failed = None;
        for service in SERVICES {
            match self.serve(service, &found, now).await {
                Ok(one) => outcomes.push((service, one)),
                Err(error) => failed = Some(error),
            }
        }
        match self.expose(&found, now).await {
            Ok(one) => outcomes.push(("host names", one)),
            Err(error) => failed = Some(error),
        }
        self.emit_events(&found, &outcomes).await;
        if let Some(error) = failed {
            return Err(error);
        }
        let result = outcomes
            .iter()
            .map(|(_, one)| one.result)
            .max_by_key(|result| urgency(*result));
        let requeue = Requeue::earliest(outcomes.iter().filter_map(|(_, one)| one.requeue));
        Ok((result.unwrap_or(ReconcileResult::Ready), requeue))
    }

    /// Whether this process serves the control plane, and not another shard.
    fn serves(&self, found: &HostedControlPlane) -> bool {
        let azure = found.spec.platform.azure.as_ref();
        let subscription = azure.and_then(|azure| azure.subscription_id.as_deref());
        self.cx.shard.has(subscription.unwrap_or_default())
    }

    /// Reconciles one Service of the control plane, with its custom resource.
    async fn serve(
        &self,
        service: &str,
        found: &HostedControlPlane,
        now: Timestamp,
    ) -> Result<ServiceOutcome, ReconcileError> {
        if !decide::published(service, &found.spec) {
            return Ok(ServiceOutcome::ready());
        }
        let namespace = found.namespace().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(self.cx.runtime.kube.clone(), &namespace);
        let read = within(services.get_opt(service)).await?;
        match decide::decide(read.as_ref(), found, self.cloud, now) {
            Verdict::Ignore(_) => Ok(ServiceOutcome::ready()),
            Verdict::Wait(why, requeue) => Ok(ServiceOutcome::waiting(why, requeue)),
            Verdict::Unfit(wrong) => Ok(ServiceOutcome::refused(wrong, None)),
            Verdict::Desired(desired) => self.outcome_of(self.keep(&namespace, &desired).await),
        }
    }

    /// Reconciles the host names of the control plane.
    async fn expose(&self, found: &HostedControlPlane, now: Timestamp) -> Result<ServiceOutcome, ReconcileError> {
        let paused = identity::paused(&found.spec, now).is_some();
        self.outcome_of(self.publish(found, paused).await)
    }

    /// The outcome of writes that returned `problems`. What the API server refuses now it will refuse in a second, too:
    /// a person has to see it.
    fn outcome_of(&self, problems: Result<Vec<String>, ReconcileError>) -> Result<ServiceOutcome, ReconcileError> {
        let wrong = match problems {
            Ok(wrong) => wrong,
            Err(error) if error.invalid() => {
                tracing::debug!(%error, "refused by the API server");
                vec!["the API server does not take what the control plane means".to_owned()]
            }
            Err(error) => return Err(error),
        };
        if wrong.is_empty() {
            return Ok(ServiceOutcome::ready());
        }
        // The obstacle may be removed without an event.
        let resync = Requeue::new(self.cx.runtime.resync, Requeue::RESYNC);
        Ok(ServiceOutcome::refused(wrong.join("; "), Some(resync)))
    }

    /// Reports what is new: what is waited for in the log, what is refused as an Event, too.
    async fn emit_events(&self, of: &HostedControlPlane, outcomes: &[(&'static str, ServiceOutcome)]) {
        let namespace = of.namespace();
        let name = of.name_any();
        let uid = of.uid().unwrap_or_default();
        let mut events = Vec::new();
        for (about, one) in outcomes {
            let new = self.cx.runtime.events.begins(&uid, about, one.note.as_deref());
            let Some(reason) = one.note.as_deref().filter(|_| new) else {
                continue;
            };
            if one.result == ReconcileResult::Refused {
                tracing::warn!(namespace, name, reason, "{about}: refused");
                events.push(Event::new(What::Refused, format!("{about}: {reason}")));
            } else {
                tracing::info!(namespace, name, reason, "{about}: waits");
            }
        }
        self.cx.runtime.events.emit(&[of.object_ref(&())], &events).await;
    }

    /// Forgets the control plane with this UID, which is deleted.
    pub fn forget(&self, uid: &str) {
        self.cx.runtime.retries.over(uid);
        self.cx.runtime.events.forget(uid);
    }
}

/// Ranks results: of several, the highest is reported.
fn urgency(result: ReconcileResult) -> u8 {
    match result {
        ReconcileResult::Ready => 0,
        ReconcileResult::Waiting => 1,
        ReconcileResult::Refused => 2,
        ReconcileResult::Failed | ReconcileResult::Panicked | ReconcileResult::Aborted => 3,
    }
}

#[cfg(test)]
mod tests;
