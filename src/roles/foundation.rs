//! What the controllers of a role are built on.

use std::sync::Arc;

use tokio::time::Instant;

use crate::api::Role;
use crate::azure::arm::client::Client as ArmClient;
use crate::azure::arm::ports::Gate;
use crate::azure::arm::transport::Transport;
use crate::azure::cloud::Arm;
use crate::azure::observations::ObservationCache;
use crate::config::Config;
use crate::controllers::azure::access::ArmContext;
use crate::controllers::context::Context;
use crate::controllers::excluded::ExcludedNamespaces;
use crate::controllers::reconciler::ServedResource;
use crate::engine::call_budget::CallBudgets;
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
    /// The way to ARM.
    pub azure: Arc<dyn Transport>,
    /// Whether ARM may be written to.
    pub gate: Arc<dyn Gate>,
    /// The metrics of the process.
    pub metrics: Arc<Metrics>,
}

impl Foundation<'_> {
    /// What the reconciles of a custom resource work with.
    pub fn context<R: ServedResource<Cloud = Arm>>(&self) -> Context<R> {
        let config = self.config;
        let endpoint = config.azure.cloud.endpoint().clone();
        let instance = config
            .run
            .as_ref()
            .map_or("hyperlink", |run| run.lease.candidate.as_str());
        let intervals = &config.intervals;
        let budgets = CallBudgets::for_resync(intervals.resync);
        let metrics = Arc::clone(&self.metrics);
        let client = ArmClient::new(
            Arc::clone(&self.azure),
            endpoint,
            Arc::clone(&self.gate),
            metrics.clone(),
        )
        .with_call_budgets(budgets);
        let cloud = ArmContext::new(client, ObservationCache::new(intervals.resync, intervals.record_resync));
        metrics.read_operations_with({
            let observations = Arc::clone(&cloud.observations);
            move || observations.under_way(Instant::now())
        });
        Context {
            excluded: excluded(config),
            shard: config.run.as_ref().map_or(Shard::WHOLE, |run| run.shard),
            ..Context::new(self.role, instance, self.kube.clone(), cloud, metrics, intervals.resync)
        }
    }
}

/// The namespaces that the operator excludes.
pub fn excluded(config: &Config) -> ExcludedNamespaces {
    ExcludedNamespaces {
        fixed: config.scope.exclude_namespaces.iter().cloned().collect(),
        file: config.scope.allow_scopes.as_ref().map(ScopesFile::allowed),
    }
}
