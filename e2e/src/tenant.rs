//! A tenant's access to the cluster: what a control plane's own operator may do in its namespace, and what a
//! compromised one does there.

use std::ops::Range;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use futures::{StreamExt, TryStreamExt, stream};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::{ApiResource, GroupVersionKind, TypeMeta};
use serde_json::{Value, json};
use tokio::task::JoinHandle;
use tokio::time::MissedTickBehavior;

use crate::Target;
use crate::hosted_cluster::HostedCluster;
use crate::test_env::TestEnv;
use crate::wait::eventually;

/// The ServiceAccount of the control plane's operator.
const ACCOUNT: &str = "control-plane-operator";
/// How many writes run at the same time.
const AT_ONCE: usize = 8;
/// How long a custom resource of [`Tenant::create_and_delete`] exists: Hyperlink observes it, but it is deleted
/// before Hyperlink can do anything for it.
const ALIVE: Duration = Duration::from_millis(70);
/// The size in bytes of the largest annotation that the API server accepts, minus a reserve.
pub const LARGEST_ANNOTATION: usize = 250 * 1024;

/// A ServiceAccount in the namespace of a control plane, with the rights that HyperShift gives there and none
/// elsewhere.
#[derive(Clone)]
pub struct Tenant {
    cluster: HostedCluster,
    client: kube::Client,
}

impl Tenant {
    /// Access to the namespace of this cluster's control plane, which is created if it does not exist.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn of(target: &Target, cluster: &HostedCluster) -> Result<Self> {
        let namespace = cluster.control_plane_namespace();
        let access = target
            .admin()
            .service_account(target.dir(), &namespace, ACCOUNT)
            .await?;
        target.apply_yaml(&rights(&namespace)).await?;
        Ok(Self {
            cluster: cluster.clone(),
            client: access.client()?,
        })
    }

    /// The tenant's Kubernetes client.
    pub fn client(&self) -> &kube::Client {
        &self.client
    }

    /// The objects of one of HyperShift's kinds in the tenant's namespace.
    pub fn hypershift(&self, kind: &str) -> Api<DynamicObject> {
        self.cluster
            .api(&self.client, kind, &self.cluster.control_plane_namespace())
    }

    /// The objects of a kind in the tenant's namespace.
    pub fn api(&self, group: &str, version: &str, kind: &str) -> Api<DynamicObject> {
        let resource = ApiResource::from_gvk(&GroupVersionKind::gvk(group, version, kind));
        Api::namespaced_with(self.client.clone(), &self.cluster.control_plane_namespace(), &resource)
    }

    /// Creates one custom resource for each of these numbers, named `junk-NUMBER`, with an annotation of so many bytes.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn junk(&self, target: &Target, numbers: Range<usize>, bytes: usize) -> Result<()> {
        let objects = numbers.map(|n| self.custom_resource(target, &format!("junk-{n}"), bytes));
        self.create_all(self.hypershift("AzurePrivateLinkService"), objects)
            .await
    }

    /// Creates all of these objects.
    ///
    /// # Errors
    ///
    /// The API server refuses.
    pub async fn create_all(&self, api: Api<DynamicObject>, objects: impl Iterator<Item = Value>) -> Result<()> {
        let made = objects.map(|object| create(&api, object));
        stream::iter(made).buffer_unordered(AT_ONCE).try_collect().await
    }

    fn custom_resource(&self, target: &Target, name: &str, bytes: usize) -> Value {
        let (azure, cluster) = (target.azure(), &self.cluster);
        json!({"apiVersion": "hypershift.openshift.io/v1beta1", "kind": "AzurePrivateLinkService",
            "metadata": {"name": name, "annotations": {
                "hypershift.openshift.io/cluster": format!("{}/{}", target.hosted_clusters(), cluster.name()),
                "example.com/junk": "x".repeat(bytes)}},
            "spec": {"subscriptionID": azure.guest_subscription, "resourceGroupName": cluster.infra_id(),
                "location": azure.location, "loadBalancerIP": "10.224.0.99",
                "guestVNetID": cluster.vnet(), "guestSubnetID": cluster.subnet()}})
    }

    /// Changes an object `per_second` times a second until the guard is dropped. `patch` makes the n-th JSON merge
    /// patch.
    pub fn changes(
        &self,
        api: Api<DynamicObject>,
        name: &str,
        per_second: u32,
        patch: impl Fn(u64) -> Value + Send + 'static,
    ) -> Changes {
        let name = name.to_owned();
        Changes(tokio::spawn(async move {
            let mut ticks = tokio::time::interval(Duration::from_secs(1) / per_second);
            ticks.set_missed_tick_behavior(MissedTickBehavior::Burst);
            for number in 0.. {
                ticks.tick().await;
                let patch = Patch::Merge(patch(number));
                // Others change the object too, and it may not exist for a moment.
                let _ = api.patch(&name, &PatchParams::default(), &patch).await;
            }
        }))
    }

    /// Creates and deletes custom resources without end, `at_once` at a time, until the guards are dropped.
    pub fn create_and_delete(&self, target: &Target, at_once: usize) -> Vec<Changes> {
        let lane = |lane: usize| {
            let api = self.hypershift("AzurePrivateLinkService");
            let object = self.custom_resource(target, "junk", 0);
            Changes(tokio::spawn(async move {
                for number in 0.. {
                    let name = format!("junk-{lane}-{number}");
                    let mut object = object.clone();
                    object["metadata"]["name"] = name.as_str().into();
                    if create(&api, object).await.is_ok() {
                        tokio::time::sleep(ALIVE).await;
                        let _ = api.delete(&name, &DeleteParams::default()).await;
                    }
                }
            }))
        };
        (0..at_once).map(lane).collect()
    }
}

/// A task that makes changes until this guard is dropped.
pub struct Changes(JoinHandle<()>);

impl Drop for Changes {
    fn drop(&mut self) {
        self.0.abort();
    }
}

async fn create(api: &Api<DynamicObject>, object: Value) -> Result<()> {
    let object: DynamicObject = serde_json::from_value(object)?;
    ensure!(object.types != Some(TypeMeta::default()), "an object without a kind");
    api.create(&PostParams::default(), &object).await?;
    Ok(())
}

/// HyperShift's Role of the control-plane-operator, as far as tests need it: all of HyperShift's kinds, Services,
/// Events, leases, Secrets and ConfigMaps.
fn rights(namespace: &str) -> String {
    let role = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role",
        "metadata": {"name": ACCOUNT, "namespace": namespace},
        "rules": [
            {"apiGroups": ["hypershift.openshift.io"], "resources": ["*"], "verbs": ["*"]},
            {"apiGroups": [""], "resources": ["services", "events", "secrets", "configmaps"], "verbs": ["*"]},
            {"apiGroups": ["events.k8s.io"], "resources": ["events"], "verbs": ["*"]},
            {"apiGroups": ["coordination.k8s.io"], "resources": ["leases"], "verbs": ["*"]},
        ],
    });
    let binding = json!({
        "apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding",
        "metadata": {"name": ACCOUNT, "namespace": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": ACCOUNT},
        "subjects": [{"kind": "ServiceAccount", "namespace": namespace, "name": ACCOUNT}],
    });
    format!("{role}\n---\n{binding}\n")
}

/// Makes a cluster's Private Link Service drift from what is desired, and returns how long Hyperlink took to repair it.
///
/// # Errors
///
/// It is not repaired within `timeout`.
pub async fn time_of_repair(test_env: &TestEnv, cluster: &HostedCluster, timeout: Duration) -> Result<Duration> {
    let id = cluster.link_service(test_env);
    let found = test_env.oracle().resources(&id).await?;
    let mut body = found.into_iter().next().context("no Private Link Service")?;
    body["properties"]["enableProxyProtocol"] = json!(true);
    test_env.oracle().drift_put(&id, &body).await?;
    let began = Instant::now();
    eventually("the Private Link Service is repaired", timeout, || async {
        let found = test_env.oracle().resources(&id).await?;
        let now = found.first().context("no Private Link Service")?;
        ensure!(now["properties"]["enableProxyProtocol"] != json!(true), "it is not");
        ensure!(now["properties"]["provisioningState"] == "Succeeded", "it is under way");
        Ok(())
    })
    .await?;
    Ok(began.elapsed())
}
