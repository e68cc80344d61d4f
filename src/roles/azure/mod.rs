//! Platform `azure`: HyperShift's private clusters on Azure.

pub(super) mod capz;
mod cpo;
mod ho;
mod management_cluster;
mod shown;

use std::sync::Arc;

use kube::core::ApiResource;
use tokio::time::Instant;

use super::Foundation;
use crate::api::capi::AzureCluster;
use crate::api::{AzurePrivateLinkService, Role};
use crate::azure::arm::client::Client as ArmClient;
use crate::azure::arm::transport::Transport;
use crate::azure::observations::ObservationCache;
use crate::config::{Azure, Config};
use crate::controllers::azure::access::{ArmContext, Context};
use crate::engine::call_budget::CallBudgets;
use crate::http::ReadinessItem;
use crate::preview::{Object, RolePlan};
use crate::runtime::watch::Scope;

/// How Azure is reached.
#[derive(Clone)]
pub struct AzureConnection {
    /// The settings.
    pub settings: Arc<Azure>,
    /// The way to ARM, as the process' own identity.
    pub transport: Arc<dyn Transport>,
    /// Carries requests to ARM and to the authority.
    pub http: reqwest::Client,
}

/// What a role has learned before it leads.
#[derive(Default)]
pub struct Prepared {
    /// The UID of the management cluster; empty for a role that does not need it.
    management_cluster: String,
    /// Where it is shown that another operator leads in the role's place.
    other_operator: Option<ReadinessItem>,
}

pub(super) fn resource(role: Role) -> ApiResource {
    match role {
        Role::Ho | Role::Cpo => ApiResource::erase::<AzurePrivateLinkService>(&()),
        Role::Capz => ApiResource::erase::<AzureCluster>(&()),
    }
}

pub(super) fn rights(role: Role, config: &Config) -> Vec<&'static str> {
    match role {
        Role::Ho => vec![ho::RIGHTS],
        Role::Cpo => cpo::rights(config),
        Role::Capz => capz::rights(config),
    }
}

pub(super) async fn prepare(role: Role, kube: &kube::Client, item: &ReadinessItem) -> Prepared {
    match role {
        Role::Ho => Prepared {
            management_cluster: management_cluster::wait_for_uid(kube, item).await,
            other_operator: None,
        },
        Role::Cpo => Prepared::default(),
        Role::Capz => {
            capz::prepare(kube, item).await;
            Prepared {
                other_operator: Some(item.clone()),
                ..Prepared::default()
            }
        }
    }
}

pub(super) async fn run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    match foundation.role {
        Role::Ho => ho::run(foundation, azure, prepared, scope).await,
        Role::Cpo => cpo::run(foundation, azure, scope).await,
        Role::Capz => capz::run(foundation, azure, prepared, scope).await,
    }
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    match foundation.role {
        Role::Ho => ho::dry_run(foundation, azure, object).await,
        Role::Cpo => cpo::dry_run(foundation, azure, object).await,
        Role::Capz => capz::dry_run(foundation, azure, object).await,
    }
}

/// What the reconciles of a role work with.
fn context(foundation: &Foundation<'_>, azure: &AzureConnection) -> Context {
    let intervals = &foundation.config.intervals;
    let client = ArmClient::new(
        Arc::clone(&azure.transport),
        azure.settings.cloud.endpoint().clone(),
        Arc::clone(&foundation.gate),
        foundation.metrics.clone(),
    )
    .with_call_budgets(CallBudgets::for_resync(intervals.resync));
    let cloud = ArmContext::new(client, ObservationCache::new(intervals.resync, intervals.record_resync));
    foundation.metrics.read_operations_with({
        let observations = Arc::clone(&cloud.observations);
        move || observations.under_way(Instant::now())
    });
    foundation.context(cloud)
}
