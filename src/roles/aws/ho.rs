//! Role `ho` on AWS: endpoint services, and, where HyperShift does not do it, the conditions of HostedClusters.

use std::sync::Arc;

use kube::Api;

use super::{AwsConnection, Prepared, context, management_account};
use crate::api::AWSEndpointService;
use crate::controllers::endpoint_service::settings::Settings;
use crate::controllers::endpoint_service::{self, EndpointServiceController};
use crate::controllers::{hosted_cluster, watch};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::node_pools::NodePools;
use crate::metrics::Controller as Label;
use crate::preview::{Object, RolePlan};
use crate::roles::shown::{observed_object, show_objects};
use crate::roles::{Foundation, custom_resource, dry_run_of};
use crate::runtime::reconcile::Runner;
use crate::runtime::watch::{Scope, twice};

pub(super) const RIGHTS: &str = include_str!("../../../charts/hyperlink/files/role-ho-aws.yaml");

pub(super) async fn run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    prepared: Prepared,
    scope: Scope,
) -> anyhow::Result<()> {
    let cx = Arc::new(context(foundation, aws, &prepared.account));
    show_objects(&cx, observed_object);
    let cluster_index = Arc::default();
    let controller = EndpointServiceController {
        settings: settings(aws, &prepared),
        cluster_index: Arc::clone(&cluster_index),
        node_pools: Arc::default(),
    };
    let runner = Runner::new(controller, Arc::clone(&cx), Label::EndpointService);
    let runner = Arc::new(runner.watching(scope.health.follow()));
    let clusters = watch::hosted_cluster_events(&scope, cx.runtime.kube.clone());
    if foundation.config.aggregate_conditions {
        let (clusters, again) = twice(clusters);
        tokio::join!(
            endpoint_service::watch::run(runner, scope.clone(), clusters),
            hosted_cluster::watch::run(cx, scope, cluster_index, again)
        );
    } else {
        endpoint_service::watch::run(runner, scope, clusters).await;
    }
    Ok(())
}

pub(super) async fn dry_run(
    foundation: &Foundation<'_>,
    aws: &AwsConnection,
    prepared: Prepared,
    object: &Object,
) -> anyhow::Result<RolePlan> {
    let cx = context(foundation, aws, &prepared.account);
    let known = match &foundation.config.scope.namespace {
        Some(namespace) => Api::namespaced(cx.runtime.kube.clone(), namespace),
        None => Api::all(cx.runtime.kube.clone()),
    };
    let cr = custom_resource(&cx, object, &known).await?;
    let controller = EndpointServiceController {
        settings: settings(aws, &prepared),
        cluster_index: Arc::new(ClusterIndex::read::<AWSEndpointService>(&cx.runtime.kube).await?),
        node_pools: Arc::new(NodePools::read(&cx.runtime.kube).await?),
    };
    dry_run_of(&controller, &cx, &cr).await
}

fn settings(aws: &AwsConnection, prepared: &Prepared) -> Settings {
    Settings {
        account: management_account(aws, prepared),
        region: aws.settings.endpoints.region().clone(),
        infrastructure: prepared.infrastructure.clone(),
        nlb_match: aws.settings.nlb_match,
    }
}
