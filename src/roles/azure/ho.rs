//! Role `ho`: Private Link Services, and, where HyperShift does not do it, the conditions of HostedClusters.

use std::sync::Arc;

use anyhow::Context as _;
use kube::Api;

use super::{AzureConnection, Prepared, context, management_cluster, shown};
use crate::api::AzurePrivateLinkService;
use crate::config::Config;
use crate::controllers::private_link_service::nat_prefix::NatSubnetRules;
use crate::controllers::private_link_service::settings::{ScopedSettings, Settings};
use crate::controllers::private_link_service::{self, PrivateLinkServiceController};
use crate::controllers::{hosted_cluster, watch};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::metrics::Controller as Label;
use crate::preview::{Object, RolePlan};
use crate::roles::{Foundation, custom_resource, dry_run_of};
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{Scope, twice};

pub(super) const RIGHTS: &str = include_str!("../../../charts/hyperlink/files/role-ho.yaml");

pub(super) async fn run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    let config = foundation.config;
    let cx = Arc::new(context(foundation, azure));
    shown::show_objects(&cx);
    let cluster_index = Arc::new(ClusterIndex::default());
    let settings = settings(config, azure, prepared.management_cluster)?;
    let controller = PrivateLinkServiceController::new(settings, Arc::clone(&cluster_index));
    let runner = Runner::new(controller, Arc::clone(&cx), Label::PrivateLinkService);
    let runner = Arc::new(runner.watching(scope.health.follow()));
    let clusters = watch::hosted_cluster_events(&scope, cx.runtime.kube.clone());
    if config.aggregate_conditions {
        let (clusters, again) = twice(clusters);
        tokio::join!(
            private_link_service::watch::run(runner, scope.clone(), Arc::clone(&cluster_index), clusters),
            hosted_cluster::watch::run(cx, scope, cluster_index, again)
        );
    } else {
        private_link_service::watch::run(runner, scope, cluster_index, clusters).await;
    }
    Ok(())
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    let cx = context(foundation, azure);
    // All clusters use Azure's quotas.
    let known = match &foundation.config.scope.namespace {
        Some(namespace) => Api::namespaced(cx.runtime.kube.clone(), namespace),
        None => Api::all(cx.runtime.kube.clone()),
    };
    let cr = custom_resource(&cx, object, &known).await?;
    let cluster_index = Arc::new(ClusterIndex::read::<AzurePrivateLinkService>(&cx.runtime.kube).await?);
    let management_cluster = management_cluster::uid(&cx.runtime.kube).await?;
    let settings = settings(foundation.config, azure, management_cluster)?;
    let controller = PrivateLinkServiceController::new(settings, cluster_index);
    dry_run_of(&controller, &cx, &cr).await
}

fn settings(config: &Config, azure: &AzureConnection, management_cluster: String) -> anyhow::Result<ScopedSettings> {
    let management = config
        .management
        .as_ref()
        .context("role ho has no management settings")?;
    let settings = |scope, other_scopes| Settings {
        cloud: azure.settings.cloud_name,
        management_cluster: management_cluster.clone(),
        scope,
        other_scopes,
        also_manage: management.ho.also_manage.clone(),
        nat: NatSubnetRules {
            prefix_length: management.ho.nat_prefix_length,
            pool: management.ho.nat_address_pool,
        },
        nat_subnet: management.ho.nat_subnet_id.clone(),
        frontend_match: management.ho.frontend_match,
    };
    ScopedSettings::new(management.scopes.clone(), settings).context("role ho has no management scope")
}
