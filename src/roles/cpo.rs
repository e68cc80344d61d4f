//! Role `cpo`: the custom resources of control planes, and Private Endpoints with their private DNS.

use std::sync::Arc;

use kube::Api;
use kube::core::ApiResource;

use super::{Foundation, Prepared, Work, custom_resource, dry_run_of, shown};
use crate::api::AzurePrivateLinkService;
use crate::config::Config;
use crate::controllers::azure::Preview;
use crate::controllers::private_endpoint::{self, HostedClusters, PrivateEndpointController};
use crate::http::ReadinessItem;
use crate::hypershift::cluster_index::ClusterIndex;
use crate::metrics::Controller as Label;
use crate::observer;
use crate::preview::Object;
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{pages, twice};
use crate::scopes_file::ScopesFile;

const RIGHTS: &str = include_str!("../../charts/hyperlink/files/role-cpo.yaml");
const RIGHTS_OF_MANY: &str = include_str!("../../charts/hyperlink/files/role-cpo-many.yaml");

pub(super) fn resource() -> ApiResource {
    ApiResource::erase::<AzurePrivateLinkService>(&())
}

pub(super) fn rights(config: &Config) -> Vec<&'static str> {
    let mut files = vec![RIGHTS];
    if config.scope.namespace.is_none() {
        files.push(RIGHTS_OF_MANY);
    }
    files
}

pub(super) async fn prepare(_: &kube::Client, _: &ReadinessItem) -> Prepared {
    Prepared::default()
}

pub(super) async fn run(work: Work<'_>) -> anyhow::Result<()> {
    let Work { foundation, scope, .. } = work;
    let config = foundation.config;
    let cx = Arc::new(foundation.context());
    shown::show_objects(&cx);
    let hosted_clusters = serves_many(config).then(Arc::<ClusterIndex>::default);
    let controller = controller(config, hosted_clusters.clone());
    let runner = Runner::new(controller, Arc::clone(&cx), Label::PrivateEndpoint);
    let runner = Arc::new(runner.watching(scope.health.follow()));
    let (planes, again) = twice(scope.events(&cx.runtime.kube, pages()));
    tokio::join!(
        observer::watch::run(cx, config.azure.cloud_name, scope.clone(), planes),
        private_endpoint::watch::run(runner, scope, hosted_clusters, again)
    );
    Ok(())
}

pub(super) async fn dry_run(foundation: &Foundation<'_>, object: &Object) -> anyhow::Result<Preview> {
    let config = foundation.config;
    let cx = foundation.context();
    let of_namespace = Api::namespaced(cx.runtime.kube.clone(), &object.namespace);
    let cr = custom_resource(&cx, object, &of_namespace).await?;
    let hosted_clusters = if serves_many(config) {
        Some(Arc::new(ClusterIndex::read_clusters(&cx.runtime.kube).await?))
    } else {
        None
    };
    dry_run_of(&controller(config, hosted_clusters), &cx, &cr).await
}

/// Whether it serves many control planes with one identity.
fn serves_many(config: &Config) -> bool {
    config.scope.namespace.is_none() && config.scope.allow_scopes.is_some()
}

fn controller(config: &Config, hosted_clusters: Option<Arc<ClusterIndex>>) -> PrivateEndpointController {
    PrivateEndpointController {
        hosted_clusters: hosted_clusters.map(|all| HostedClusters {
            all,
            cloud: config.azure.cloud_name,
        }),
        allowed: config.scope.allow_scopes.as_ref().map(ScopesFile::allowed),
    }
}
