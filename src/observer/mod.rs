//! Role `cpo`: watches control planes and the Services that publish them. It keeps a custom resource for each Service
//! and a Service for each host name that external-dns should publish, and removes its finalizer from a control plane
//! that is torn down.

pub mod aws;
pub mod azure;
pub mod external_services;
mod keep;
pub mod rules;
#[cfg(test)]
mod test_env;
pub mod verdict;
mod watch;

use std::sync::Arc;

use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::runtime::reflector::Store;
use kube::{Api, Resource, ResourceExt};

use crate::api::HostedControlPlane;
use crate::controllers::context::Context;
use crate::hypershift::identity;
use crate::metrics::{Controller, ReconcileResult};
use crate::runtime::call::{ReconcileError, within};
use crate::runtime::event::{Event, What};
use crate::runtime::guard;
use crate::runtime::requeue::Requeue;
use crate::runtime::work_queue::Action;
use rules::PlatformRules;
use verdict::{Admission, Verdict};

/// The topic of what is wrong with a control plane as a whole.
const WHOLE: &str = "control plane";

/// The observer, for the control planes of one cloud.
pub struct Observer<P: PlatformRules> {
    cx: Arc<Context<P::Resource>>,
    rules: P,
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
pub async fn reconcile<P: PlatformRules>(cached: Arc<HostedControlPlane>, observer: Arc<Observer<P>>) -> Action {
    let reconcile = observer.reconcile(&cached);
    guard::counted(&observer.cx.runtime, Controller::Observer, cached.as_ref(), reconcile).await
}

impl<P: PlatformRules> Observer<P> {
    /// An observer with the rules of one cloud.
    pub fn new(cx: Arc<Context<P::Resource>>, rules: P, external: Store<Service>) -> Self {
        Self { cx, rules, external }
    }

    /// What the observer works with.
    pub fn context(&self) -> &Context<P::Resource> {
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
            return P::let_go(&self.cx, &found).await;
        }
        let (outcomes, failed) = self.outcomes(&found, Timestamp::now()).await;
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

    /// Reconciles the Services and the host names of a control plane, if it is served. A failure over one keeps none
    /// of the others from being served.
    async fn outcomes(
        &self,
        found: &HostedControlPlane,
        now: Timestamp,
    ) -> (Vec<(&'static str, ServiceOutcome)>, Option<ReconcileError>) {
        let mut outcomes = Vec::new();
        match self.rules.admission(&self.cx, found).await {
            Ok(Admission::Admitted) => outcomes.push((WHOLE, ServiceOutcome::ready())),
            Ok(Admission::Ignored) => return (vec![(WHOLE, ServiceOutcome::ready())], None),
            Ok(Admission::Refused(wrong)) => {
                let refused = ServiceOutcome::refused(wrong, Some(self.resync()));
                return (vec![(WHOLE, refused)], None);
            }
            Err(error) => return (outcomes, Some(error)),
        }
        let mut failed = None;
        for service in P::SERVICES {
            match self.serve(service, found, now).await {
                Ok(one) => outcomes.push((service, one)),
                Err(error) => failed = Some(error),
            }
        }
        match self.expose(found, now).await {
            Ok(one) => outcomes.push(("host names", one)),
            Err(error) => failed = Some(error),
        }
        (outcomes, failed)
    }

    /// The next reconcile where an obstacle may be removed without an event.
    fn resync(&self) -> Requeue {
        Requeue::new(self.cx.runtime.resync, Requeue::RESYNC)
    }

    /// Whether this process serves the control plane, and not another shard.
    fn serves(&self, found: &HostedControlPlane) -> bool {
        self.cx.shard.has(P::shard_key(found))
    }

    /// Reconciles one Service of the control plane, with its custom resource.
    async fn serve(
        &self,
        service: &str,
        found: &HostedControlPlane,
        now: Timestamp,
    ) -> Result<ServiceOutcome, ReconcileError> {
        if !P::published(service, &found.spec) {
            return Ok(ServiceOutcome::ready());
        }
        let namespace = found.namespace().unwrap_or_default();
        let services: Api<Service> = Api::namespaced(self.cx.runtime.kube.clone(), &namespace);
        let read = within(services.get_opt(service)).await?;
        match self.rules.decide(read.as_ref(), found, now) {
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
        Ok(ServiceOutcome::refused(wrong.join("; "), Some(self.resync())))
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
