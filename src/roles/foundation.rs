//! What the controllers of a role are built on, whatever the platform.

use std::sync::Arc;
use std::time::Duration;

use crate::api::Role;
use crate::config::Config;
use crate::controllers::cloud_access::CloudContext;
use crate::controllers::context::Context;
use crate::controllers::excluded::ExcludedNamespaces;
use crate::controllers::reconciler::ServedResource;
use crate::engine::gate::Gate;
use crate::hypershift::shard::Shard;
use crate::metrics::Metrics;
use crate::scopes_file::ScopesFile;

/// What the controllers of a role are built on.
pub struct Foundation<'a> {
    /// The settings.
    pub config: &'a Config,
    /// The role.
    pub role: Role,
    /// The Kubernetes API; writes pass the gate.
    pub kube: kube::Client,
    /// Whether the cloud may be written to.
    pub gate: Arc<dyn Gate>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
}

impl Foundation<'_> {
    /// What the reconciles of a custom resource work with, in this cloud.
    pub(super) fn context<R: ServedResource>(&self, cloud: CloudContext<R::Cloud>) -> Context<R> {
        let run = self.config.run.as_ref();
        let instance = run.map_or("hyperlink", |run| run.lease.candidate.as_str());
        let metrics = Arc::clone(&self.metrics);
        Context {
            excluded: excluded(self.config),
            shard: run.map_or(Shard::WHOLE, |run| run.shard),
            ..Context::new(self.role, instance, self.kube.clone(), cloud, metrics, self.resync())
        }
    }

    pub(super) fn resync(&self) -> Duration {
        self.config.intervals.resync
    }
}

/// The namespaces that the operator excludes.
pub fn excluded(config: &Config) -> ExcludedNamespaces {
    ExcludedNamespaces {
        fixed: config.scope.exclude_namespaces.iter().cloned().collect(),
        file: config.scope.allow_scopes.as_ref().map(ScopesFile::allowed),
    }
}
