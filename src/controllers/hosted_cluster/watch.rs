//! What the controller watches.

use std::sync::Arc;

use futures::{Stream, StreamExt, TryStreamExt, stream};
use kube::ResourceExt;
use kube::runtime::WatchStreamExt;
use kube::runtime::reflector::ObjectRef;

use crate::api::HostedCluster;
use crate::api::markers::CLUSTER_ANNOTATION;
use crate::controllers::context::Context;
use crate::controllers::hosted_cluster::aggregate::AggregatedResource;
use crate::controllers::hosted_cluster::{self, Aggregator};
use crate::controllers::reconciler::ServedResource;
use crate::controllers::watch::Heard;
use crate::controllers::watch::whom::hosted_cluster_of;
use crate::hypershift::claims::Claim;
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::names;
use crate::metrics::Controller as Label;
use crate::runtime::concurrency_limit::{ConcurrencyLimit, Requester};
use crate::runtime::reconcile;
use crate::runtime::watch::{Scope, gone, stored};
use crate::runtime::work_queue::{Action, WorkQueue};

/// Runs a controller for the HO role where it sums up conditions, over HostedClusters and their custom resources.
/// `cluster_index` is kept by another controller.
pub async fn run<R: ServedResource + AggregatedResource>(
    cx: Arc<Context<R>>,
    scope: Scope,
    cluster_index: Arc<ClusterIndex>,
    clusters: impl Stream<Item = Heard<HostedCluster>> + Send + 'static,
) {
    let clusters = clusters.inspect_ok({
        let cx = Arc::clone(&cx);
        gone(move |uid| {
            cx.published.forget(uid);
            cx.runtime.retries.over(uid);
        })
    });
    let (reader, clusters) = stored(clusters);
    let custom_resources = cx.resources.follow();
    let concerned =
        custom_resources.flat_map(move |cr| stream::iter(hosted_clusters_of::<R>(&cluster_index, cr.as_ref())));
    let aggregator = Arc::new(Aggregator {
        cx,
        health: Arc::clone(&scope.health),
        only: scope.namespace.clone(),
    });
    let queue = WorkQueue::new(clusters.touched_objects(), reader)
        .reconcile_on(concerned)
        .reconcile_all_on(scope.changes());
    let limit = ConcurrencyLimit::new(Label::HostedCluster, scope.concurrency);
    reconcile::run_each(queue, limit, scope.stop, move |cluster, limit| {
        let aggregator = Arc::clone(&aggregator);
        async move {
            let namespace = names::control_plane_namespace(&hosted_cluster::reference(&cluster));
            let metrics = Arc::clone(&aggregator.cx.runtime.metrics);
            let work = || aggregator.reconcile(cluster);
            let action = limit.take(&metrics, Requester::of(&namespace), work).await;
            action.unwrap_or(Action::AwaitChange)
        }
    })
    .await;
}

/// The HostedCluster that a custom resource names; where one that names none counts, all that have their control plane
/// in its namespace.
fn hosted_clusters_of<R: AggregatedResource>(cluster_index: &ClusterIndex, cr: &R) -> Vec<ObjectRef<HostedCluster>> {
    if !R::UNNAMED || cr.annotations().contains_key(CLUSTER_ANNOTATION) {
        return hosted_cluster_of(cr).into_iter().collect();
    }
    let clusters = cluster_index.clusters();
    let holders = clusters.holders(&Claim::Namespace(cr.namespace().unwrap_or_default()));
    let objects = holders.map(|holder| &holder.object);
    objects
        .map(|cluster| ObjectRef::new(&cluster.name).within(&cluster.namespace))
        .collect()
}

#[cfg(test)]
mod tests {
    use kube::runtime::watcher::Event;
    use rstest::rstest;
    use serde_json::json;

    use super::*;
    use crate::api::{AWSEndpointService, AzurePrivateLinkService};
    use crate::controllers::samples;

    fn known() -> ClusterIndex {
        let cluster_index = ClusterIndex::default();
        for name in ["example", "other"] {
            let cluster = json!({"metadata": {"name": name, "namespace": "clusters", "uid": name}});
            cluster_index.cluster(&Event::Apply(serde_json::from_value(cluster).unwrap()));
        }
        cluster_index
    }

    #[rstest]
    #[case::named(json!({CLUSTER_ANNOTATION: "clusters/example"}), &["example"])]
    #[case::not_named_yet(json!({}), &["example"])]
    #[case::of_another_namespace(json!({CLUSTER_ANNOTATION: "clusters/other"}), &[])]
    fn endpoint_service_concerns_the_cluster_of_its_namespace(
        #[case] annotations: serde_json::Value,
        #[case] expected: &[&str],
    ) {
        let cr: AWSEndpointService = serde_json::from_value(json!({
            "metadata": {"name": "private-router", "namespace": "clusters-example", "annotations": annotations}}))
        .unwrap();
        let concerned = hosted_clusters_of(&known(), &cr);
        assert_eq!(
            concerned.iter().map(|one| one.name.as_str()).collect::<Vec<_>>(),
            expected
        );
    }

    #[test]
    fn private_link_service_that_names_no_cluster_concerns_none() {
        let mut cr = samples::cr(json!({}), json!({}));
        cr.metadata.namespace = Some("clusters-example".to_owned());
        cr.metadata.annotations = None;
        assert!(hosted_clusters_of::<AzurePrivateLinkService>(&known(), &cr).is_empty());
    }
}
