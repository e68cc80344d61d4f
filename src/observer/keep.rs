//! Executes what the observer has decided: writes custom resources and external Services, each only when it differs.

use k8s_openapi::api::core::v1::Service;
use kube::api::{DeleteParams, Patch, PostParams, Preconditions};
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt};

use super::Observer;
use super::external_services::{External, Host, ServiceStep, Target, step};
use super::rules::{DesiredResource, PlatformRules};
use super::verdict::SpecChange;
use crate::api::HostedControlPlane;
use crate::api::markers::PRIVATE_ROUTER;
use crate::controllers::reconciler::ServedResource;
use crate::metrics::{KubeResource, KubeVerb};
use crate::runtime::call::{ReconcileError, changing, within};

/// The problem of a custom resource that the control plane does not own.
const NOT_OURS: &str = "the custom resource does not belong to the HostedControlPlane: delete it, and it is made anew";

impl<P: PlatformRules> Observer<P> {
    fn post_params(&self) -> PostParams {
        PostParams {
            field_manager: Some(self.cx.role.field_manager().to_owned()),
            ..PostParams::default()
        }
    }

    fn count_write(&self, verb: KubeVerb) {
        self.cx.runtime.metrics.kube_write(P::Resource::WRITES, verb);
    }

    /// Creates or changes a custom resource. Returns the problems: what of it cannot be as desired.
    pub(super) async fn keep(&self, namespace: &str, desired: &P::Desired) -> Result<Vec<String>, ReconcileError> {
        let api: Api<P::Resource> = Api::namespaced(self.cx.runtime.kube.clone(), namespace);
        let name = desired.resource().name_any();
        let mut wrong = desired.complaints().to_vec();
        wrong.extend(desired.unmakeable().map(str::to_owned));
        let Some(current) = within(api.get_opt(&name)).await? else {
            if desired.unmakeable().is_none() {
                within(api.create(&self.post_params(), desired.resource())).await?;
                self.count_write(KubeVerb::Create);
                tracing::info!(namespace, name, "custom resource created");
            }
            return Ok(wrong);
        };
        if current.meta().deletion_timestamp.is_some() {
            // It is created again after its deletion, which is an event.
            return Ok(wrong);
        }
        match desired.change(&current) {
            SpecChange::None => {}
            SpecChange::Foreign => wrong.push(NOT_OURS.to_owned()),
            SpecChange::Patch(patch) => {
                changing(api.patch(&name, &self.cx.runtime.patch_params(), &Patch::Merge(&patch))).await?;
                self.count_write(KubeVerb::Patch);
                tracing::info!(namespace, name, "custom resource changed");
            }
        }
        Ok(wrong)
    }

    /// Publishes and withdraws the host names of a control plane. Returns the problems of those that cannot be
    /// published. If the cluster is `paused`, only those that belong to another cluster are withdrawn.
    pub(super) async fn publish(
        &self,
        found: &HostedControlPlane,
        paused: bool,
    ) -> Result<Vec<String>, ReconcileError> {
        let namespace = found.namespace().unwrap_or_default();
        let mut wrong = Vec::new();
        let mut open = Vec::new();
        for external in P::EXTERNALS {
            let host = P::host(external, &found.spec).unwrap_or_else(|why| {
                wrong.extend((!paused).then_some(why));
                Host::None
            });
            let name = ObjectRef::<Service>::new(external.name).within(&namespace);
            let cached = self.external.get(&name);
            // For most clusters, nothing exists and nothing should exist.
            if cached.is_some() || matches!(host, Host::Named(_)) {
                open.push((external, host, cached));
            }
        }
        if open.is_empty() {
            return Ok(wrong);
        }
        let custom: Api<P::Resource> = Api::namespaced(self.cx.runtime.kube.clone(), &namespace);
        let target = self
            .rules
            .target(within(custom.get_opt(PRIVATE_ROUTER)).await?.as_ref());
        if paused && !matches!(target, Target::Refused) {
            return Ok(wrong);
        }
        for (external, host, cached) in open {
            if step(external, &host, target.clone(), cached.as_deref(), found) != ServiceStep::Keep {
                wrong.extend(self.publish_one(external, &host, target.clone(), found).await?);
            }
        }
        Ok(wrong)
    }

    /// Executes the step on the Service as it is now, which the cache may not show yet.
    async fn publish_one(
        &self,
        external: External,
        host: &Host,
        target: Target<P::Address>,
        by: &HostedControlPlane,
    ) -> Result<Option<String>, ReconcileError> {
        let name = external.name;
        let namespace = by.namespace().unwrap_or_default();
        let api: Api<Service> = Api::namespaced(self.cx.runtime.kube.clone(), &namespace);
        let found = within(api.get_opt(name)).await?;
        let verb = match step(external, host, target, found.as_ref(), by) {
            ServiceStep::Keep => return Ok(None),
            ServiceStep::Refuse => {
                return Ok(Some(format!(
                    "Service {name} exists and does not belong to this cluster"
                )));
            }
            ServiceStep::Create(service) => {
                within(api.create(&self.post_params(), &service)).await?;
                KubeVerb::Create
            }
            ServiceStep::Patch(patch) => {
                changing(api.patch(name, &self.cx.runtime.patch_params(), &Patch::Merge(&patch))).await?;
                KubeVerb::Patch
            }
            ServiceStep::Delete => {
                let as_read = found.map(|service| Preconditions {
                    uid: service.metadata.uid,
                    resource_version: service.metadata.resource_version,
                });
                let params = DeleteParams {
                    preconditions: as_read,
                    ..DeleteParams::default()
                };
                changing(api.delete(name, &params)).await?;
                KubeVerb::Delete
            }
        };
        self.cx.runtime.metrics.kube_write(KubeResource::Service, verb);
        tracing::info!(namespace, name, verb = verb.label(), "external Service kept");
        Ok(None)
    }
}
