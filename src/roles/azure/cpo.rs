//! Role `cpo`: the custom resources of control planes, and Private Endpoints with their private DNS.

use std::sync::Arc;

use kube::Api;

use super::{AzureConnection, context, shown};
use crate::config::Config;
use crate::controllers::private_endpoint::{self, HostedClusters, PrivateEndpointController};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::metrics::Controller as Label;
use crate::observer;
use crate::preview::{Object, RolePlan};
use crate::roles::{Foundation, custom_resource, dry_run_of};
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{Scope, pages, twice};
use crate::scopes_file::ScopesFile;

const RIGHTS: &str = include_str!("../../../charts/hyperlink/files/role-cpo.yaml");
const RIGHTS_OF_MANY: &str = include_str!("../../../charts/hyperlink/files/role-cpo-many.yaml");

pub(super) fn rights(config: &Config) -> Vec<&'static str> {
    let mut files = vec![RIGHTS];
    if config.scope.namespace.is_none() {
        files.push(RIGHTS_OF_MANY);
    }
    files
}

pub(super) async fn run(foundation: &Foundation<'_>, azure: &AzureConnection, scope: Scope) -> anyhow::Result<()> {
    let config = foundation.config;
    let cx = Arc::new(context(foundation, azure));
    shown::show_objects(&cx);
    let hosted_clusters = serves_many(config).then(Arc::<ClusterIndex>::default);
    let controller = controller(config, azure, hosted_clusters.clone());
    let runner = Runner::new(controller, Arc::clone(&cx), Label::PrivateEndpoint);
    let runner = Arc::new(runner.watching(scope.health.follow()));
    let (planes, again) = twice(scope.events(&cx.runtime.kube, pages()));
    tokio::join!(
        observer::azure::run(cx, azure.settings.cloud_name, scope.clone(), planes),
        private_endpoint::watch::run(runner, scope, hosted_clusters, again)
    );
    Ok(())
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    azure: &AzureConnection,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    let config = foundation.config;
    let cx = context(foundation, azure);
    let of_namespace = Api::namespaced(cx.runtime.kube.clone(), &object.namespace);
    let cr = custom_resource(&cx, object, &of_namespace).await?;
    let hosted_clusters = if serves_many(config) {
        Some(Arc::new(ClusterIndex::read_clusters(&cx.runtime.kube).await?))
    } else {
        None
    };
    dry_run_of(&controller(config, azure, hosted_clusters), &cx, &cr).await
}

/// Whether it serves many control planes with one identity.
fn serves_many(config: &Config) -> bool {
    config.scope.namespace.is_none() && config.scope.allow_scopes.is_some()
}

fn controller(
    config: &Config,
    azure: &AzureConnection,
    hosted_clusters: Option<Arc<ClusterIndex>>,
) -> PrivateEndpointController {
    PrivateEndpointController {
        hosted_clusters: hosted_clusters.map(|all| HostedClusters {
            all,
            cloud: azure.settings.cloud_name,
        }),
        allowed: config.scope.allow_scopes.as_ref().map(ScopesFile::allowed),
    }
}
