//! HO: the conditions of custom resources, summed up on their HostedCluster. Runs only where HyperShift does not do it.

pub mod aggregate;
pub mod watch;

use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DynamicObject, Patch};
use kube::core::ApiResource;
use kube::{Api, ResourceExt};
use serde_json::Value;
use tokio::time::Instant;

use super::context::Context;
use super::reconciler::ServedResource;
use crate::api::{ClusterRef, HostedCluster};
use crate::hypershift::names;
use crate::metrics::{Controller, KubeResource, KubeVerb, ReconcileResult};
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::guard;
use crate::runtime::requeue::Requeue;
use crate::runtime::watch_health::WatchHealth;
use crate::runtime::work_queue::Action;
use aggregate::{AggregatedResource, DesiredConditions};

/// The namespace and name of a HostedCluster.
pub fn reference(cluster: &HostedCluster) -> ClusterRef {
    ClusterRef {
        namespace: cluster.namespace().unwrap_or_default(),
        name: cluster.name_any(),
    }
}

/// How long until custom resources that are not listed yet are looked up again. No event follows where there are none.
const UNLISTED_RETRY: Duration = Duration::from_secs(5);
/// How long until a list that fails is looked at again, once a HostedCluster says so.
const FAILING_RETRY: Duration = Duration::from_secs(60);

/// Sums up the conditions of the custom resources of one kind.
pub struct Aggregator<R: ServedResource> {
    /// What it works with.
    pub cx: Arc<Context<R>>,
    /// Shows whether the custom resources can be listed.
    pub health: Arc<WatchHealth>,
    /// The only namespace of control planes that is served; none means all.
    pub only: Option<String>,
}

impl<R: ServedResource + AggregatedResource> Aggregator<R> {
    /// Reconciles a HostedCluster of this process's shard if its control plane is in a namespace that is served.
    pub async fn reconcile(&self, cached: Arc<HostedCluster>) -> Action {
        let cluster = reference(&cached);
        let namespace = names::control_plane_namespace(&cluster);
        let is_excluded =
            self.only.as_ref().is_some_and(|only| *only != namespace) || self.cx.excluded.contains(&namespace);
        // Any of the processes may sum up; one of them does.
        if is_excluded || !self.cx.shard.has(&cluster.to_string()) {
            return Action::AwaitChange;
        }
        let summary = self.publish_summary(&cached, &cluster, &namespace);
        let reconcile = async { Ok((ReconcileResult::Ready, Some(summary.await?))) };
        guard::counted(&self.cx.runtime, Controller::HostedCluster, cached.as_ref(), reconcile).await
    }

    /// Publishes the summary; returns when the next reconcile is due.
    async fn publish_summary(
        &self,
        cached: &HostedCluster,
        cluster: &ClusterRef,
        namespace: &str,
    ) -> Result<Requeue, ReconcileError> {
        let resync = Requeue::new(self.cx.runtime.resync, Requeue::RESYNC);
        let retry = |after| Requeue::new(after, Requeue::LIST_DUE);
        if !R::concerns(&cached.spec) {
            return Ok(resync);
        }
        let (resync, why) = match (self.cx.resources.listed(), self.health.failing_list(R::WATCHED)) {
            (true, _) => (resync, None),
            (false, Some(why)) => (retry(FAILING_RETRY), Some(why)),
            (false, None) => return Ok(retry(UNLISTED_RETRY)),
        };
        let Some(hosted) = within(self.api(cluster).get_opt(&cluster.name)).await? else {
            return Ok(resync);
        };
        let hosted = serde_json::to_value(&hosted).unwrap_or_default();
        let now = Timestamp::now();
        let desired = match why {
            Some(why) => Some(aggregate::unlisted_condition::<R>(&hosted, namespace, &why, now)),
            None => {
                let found = self.cx.resources.of_namespace(namespace);
                aggregate::desired_conditions::<R>(&hosted, cluster, &found, now)
            }
        };
        let answer = match desired {
            Some(desired) => self.publish(cached, cluster, &hosted, &desired).await?,
            None => None,
        };
        Ok(resync.or_earlier(answer))
    }

    fn api(&self, cluster: &ClusterRef) -> Api<DynamicObject> {
        let resource = ApiResource::erase::<HostedCluster>(&());
        Api::namespaced_with(self.cx.runtime.kube.clone(), &cluster.namespace, &resource)
    }

    /// Writes the desired conditions if they are to be written; returns when another writer is to be answered.
    async fn publish(
        &self,
        cached: &HostedCluster,
        cluster: &ClusterRef,
        hosted: &Value,
        desired: &DesiredConditions,
    ) -> Result<Option<Requeue>, ReconcileError> {
        let Self { cx, .. } = self;
        let uid = cached.uid().unwrap_or_default();
        let shown = desired.shown(hosted);
        let new = &desired.conditions;
        let now = Instant::now().into_std();
        let mut published = cx.published.of(&uid);
        if desired.to_be_written(&shown, &published, now) {
            let params = cx.runtime.patch_params();
            let carried = published.to_write(&shown, new, now);
            let patch = Patch::Merge(desired.patch(hosted, &carried));
            changing(self.api(cluster).patch_status(&cluster.name, &params, &patch)).await?;
            cx.runtime
                .metrics
                .kube_write(KubeResource::HostedClusterStatus, KubeVerb::Patch);
            published.written(&shown, new, now);
        } else {
            published.unchanged(&shown, new, now);
        }
        let answer = published.next_answer(&shown, now);
        cx.published.keep(&uid, published);
        Ok(answer.map(|after| Requeue::new(after, Requeue::OTHER_WRITER)))
    }
}

#[cfg(test)]
mod tests {
    use futures::{StreamExt, stream};
    use http::{Request, Response};
    use kube::client::Body;
    use kube::runtime::watcher;
    use serde_json::json;

    use super::*;
    use crate::api::AzurePrivateLinkService;
    use crate::controllers::context::sample;
    use crate::metrics::Watched;

    fn cluster() -> Value {
        json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "HostedCluster",
            "metadata": {"name": "example", "namespace": "clusters", "uid": "u", "resourceVersion": "1"},
            "spec": {"platform": {"type": "Azure", "azure": {"private": {"type": "PrivateLink"}}}}})
    }

    /// An aggregator over an API server with a HostedCluster. Custom resources have not been listed.
    fn aggregator() -> Aggregator<AzurePrivateLinkService> {
        let server = tower::service_fn(|_: Request<Body>| async {
            let answer = Body::from(cluster().to_string().into_bytes());
            Ok::<_, tower::BoxError>(Response::new(answer))
        });
        let cx = sample::context_with(kube::Client::new(server, "default"), Duration::from_secs(600));
        Aggregator {
            health: Arc::new(WatchHealth::new(Arc::clone(&cx.runtime.metrics))),
            cx: Arc::new(cx),
            only: None,
        }
    }

    #[tokio::test]
    async fn list_that_fails_is_read_again_after_a_minute() {
        let aggregator = aggregator();
        let refused = || Err::<watcher::Event<()>, _>(watcher::Error::NoResourceVersion);
        let errors = stream::iter([refused(), refused()]);
        let watch = aggregator.health.observe(Watched::PrivateLinkService, errors);
        let hosted: Arc<HostedCluster> = Arc::new(serde_json::from_value(cluster()).unwrap());
        let soon = aggregator.reconcile(Arc::clone(&hosted)).await;
        assert_eq!(soon, Action::Requeue(UNLISTED_RETRY), "it may be listed any moment");
        watch.for_each(async |_| {}).await;
        let later = aggregator.reconcile(hosted).await;
        assert_eq!(later, Action::Requeue(Duration::from_secs(60)));
    }
}
