//! CPO: watches control planes and their router Services, keeps the custom resource, and lets a control plane go that is done.

pub mod decide;

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures::FutureExt;
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Service;
use kube::api::{Patch, PatchParams, PostParams};
use kube::runtime::controller::Action;
use kube::{Api, ResourceExt};

use crate::api::markers::PRIVATE_ROUTER;
use crate::api::{AzurePrivateLinkService, HostedControlPlane};
use crate::controllers::context::Context;
use crate::controllers::endpoint::control_plane;
use crate::controllers::frame::{PassError, within};
use crate::metrics::{Controller, KubeResource, KubeVerb, PassResult};
use decide::Verdict;

/// The observer, for the control planes of one Azure cloud.
pub struct Observer {
    /// What it works with.
    pub cx: Arc<Context>,
    /// The cloud's name as HostedControlPlanes spell it.
    pub cloud: &'static str,
}

/// One pass over a control plane.
pub async fn reconcile(cached: Arc<HostedControlPlane>, observer: Arc<Observer>) -> Result<Action, PassError> {
    let counted = observer.cx.metrics.pass(Controller::Observer);
    // A panic that got through would end the whole controller.
    let guarded = AssertUnwindSafe(observer.pass(&cached)).catch_unwind();
    let (outcome, action) = match guarded.await {
        Err(_) => {
            observer.cx.metrics.panicked(Controller::Observer);
            (PassResult::Panicked, Action::requeue(Duration::from_secs(10)))
        }
        Ok(Ok(done)) => done,
        Ok(Err(error)) if error.conflict() => (PassResult::Waiting, Action::requeue(Duration::from_millis(200))),
        Ok(Err(error)) => {
            let (namespace, name) = (cached.namespace(), cached.name_any());
            tracing::warn!(namespace, name, %error, "the custom resource could not be kept");
            (PassResult::Failed, Action::requeue(Duration::from_secs(10)))
        }
    };
    counted.end(outcome);
    Ok(action)
}

impl Observer {
    async fn pass(&self, cached: &HostedControlPlane) -> Result<(PassResult, Action), PassError> {
        let (namespace, name) = (cached.namespace().unwrap_or_default(), cached.name_any());
        let api: Api<HostedControlPlane> = Api::namespaced(self.cx.kube.clone(), &namespace);
        let Some(found) = within(api.get_opt(&name)).await? else {
            return Ok((PassResult::Settled, Action::await_change()));
        };
        if found.metadata.deletion_timestamp.is_some() {
            return control_plane::let_go(&self.cx, &found).await;
        }
        let services: Api<Service> = Api::namespaced(self.cx.kube.clone(), &namespace);
        let service = within(services.get_opt(PRIVATE_ROUTER)).await?;
        let verdict = decide::decide(service.as_ref(), &found, self.cloud, Timestamp::now());
        Ok(match verdict {
            Verdict::Ignore(why) => {
                tracing::debug!(namespace, name, reason = why, "ignored");
                (PassResult::Settled, Action::await_change())
            }
            Verdict::Wait(why, again) => {
                tracing::debug!(namespace, name, reason = why, "waiting");
                (
                    PassResult::Waiting,
                    again.map_or_else(Action::await_change, Action::requeue),
                )
            }
            Verdict::Unfit(wrong) => {
                tracing::warn!(namespace, name, reason = wrong, "the control plane cannot be served");
                (PassResult::Refused, Action::await_change())
            }
            Verdict::Want(wanted) => {
                self.keep(&namespace, &wanted).await?;
                (PassResult::Settled, Action::await_change())
            }
        })
    }

    async fn keep(&self, namespace: &str, wanted: &AzurePrivateLinkService) -> Result<(), PassError> {
        let api: Api<AzurePrivateLinkService> = Api::namespaced(self.cx.kube.clone(), namespace);
        let (name, manager) = (wanted.name_any(), Some(self.cx.role.field_manager().to_owned()));
        let Some(current) = within(api.get_opt(&name)).await? else {
            let params = PostParams {
                field_manager: manager,
                ..PostParams::default()
            };
            within(api.create(&params, wanted)).await?;
            self.cx.metrics.kube_write(KubeResource::LinkService, KubeVerb::Create);
            tracing::info!(namespace, name, "custom resource created");
            return Ok(());
        };
        if current.metadata.deletion_timestamp.is_some() {
            // It is made again when it is gone, which is an event.
            return Ok(());
        }
        if let Some(patch) = decide::patch(&current, wanted) {
            let params = PatchParams {
                field_manager: manager,
                ..PatchParams::default()
            };
            within(api.patch(&name, &params, &Patch::Merge(&patch))).await?;
            self.cx.metrics.kube_write(KubeResource::LinkService, KubeVerb::Patch);
            tracing::info!(namespace, name, "custom resource changed");
        }
        Ok(())
    }
}
