//! The test environment that all situations share. Nothing runs in it by itself: each situation starts the controllers
//! of its cluster, and these serve that cluster alone.

use std::collections::HashSet;
use std::future::Future;
use std::sync::atomic::{AtomicU8, Ordering};
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT, Preset};
use e2e::go_controllers::GoOperator;
use e2e::hosted_cluster::{Condition, HostedCluster, conditions};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{ALL, SOON, calls_about, no_secret_in, nothing_is_left_of, run};
use e2e::test_env::Call;
use e2e::{TestEnv, eventually, roles};
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::DynamicObject;
use kube::runtime::{WatchStreamExt, watcher};
use serde_json::json;
use tokio::sync::{Mutex, OnceCell};
use tokio::task::JoinHandle;
use tokio_util::sync::{CancellationToken, DropGuard};

/// The intervals of HyperShift's controllers are this many times shorter: five minutes are six seconds.
const SPEED: u32 = 50;

/// Interval at which Hyperlink reads ready resources.
const RESYNC: &str = "4s";

/// The shared test environment.
pub(crate) struct MixedEnv {
    pub(crate) test_env: TestEnv,
    subnets: AtomicU8,
    starting: Mutex<()>,
}

impl MixedEnv {
    async fn start() -> Result<Self> {
        let test_env = TestEnv::local(Preset::Fast).await?;
        let url = test_env.control_url().to_owned();
        tokio::spawn(async move {
            // Azure's request budgets for five minutes are enough for a few clusters; here many live in one minute.
            let minutes = json!({"advance_s": 300});
            loop {
                let clock = reqwest::Client::new().post(format!("{url}/clock")).json(&minutes);
                // That the simulator is gone is no failure of this clock.
                if clock.send().await.is_err() {
                    return;
                }
                tokio::time::sleep(Duration::from_secs(5)).await;
            }
        });
        Ok(Self {
            test_env,
            subnets: AtomicU8::new(0),
            starting: Mutex::new(()),
        })
    }

    /// A cluster with a base domain.
    pub(crate) fn cluster(&self, name: &str) -> HostedCluster {
        HostedCluster::new(&self.test_env, name).with_base_domain(&format!("{name}.example.com"))
    }

    /// A cluster with a base domain and the NAT subnet that HyperShift's operator makes, which it can in 10.0.0.0/16
    /// alone.
    pub(crate) async fn their_cluster(&self, name: &str) -> Result<HostedCluster> {
        let cluster = self.cluster(name);
        self.nat_subnet(&format!("{}-pls-nat", cluster.infra_id())).await?;
        Ok(cluster)
    }

    /// A NAT subnet of the form that HyperShift's operator makes; its id.
    pub(crate) async fn nat_subnet(&self, name: &str) -> Result<String> {
        let third = self.subnets.fetch_add(1, Ordering::Relaxed);
        let subnet = json!({"properties": {
            "addressPrefix": format!("10.226.{third}.0/24"), "privateLinkServiceNetworkPolicies": "Disabled"}});
        let id = format!("{}/subnets/{name}", self.test_env.azure().management_vnet);
        self.test_env.oracle().drift_put(&id, &subnet).await?;
        Ok(id)
    }

    /// Starts HyperShift's operator for a cluster.
    pub(crate) async fn go_ho(&self, cluster: &HostedCluster) -> Result<GoOperator> {
        GoOperator::ho(&self.test_env, cluster, SPEED).await
    }

    /// Starts HyperShift's control-plane-operator for a cluster.
    pub(crate) async fn go_cpo(&self, cluster: &HostedCluster) -> Result<GoOperator> {
        GoOperator::cpo(&self.test_env, cluster, SPEED).await
    }

    /// Starts Hyperlink's management side for a cluster.
    pub(crate) async fn ho(&self, cluster: &HostedCluster) -> Result<Hyperlink> {
        self.hyperlink(cluster, Role::Ho).await
    }

    /// Starts Hyperlink's guest side for a cluster.
    pub(crate) async fn cpo(&self, cluster: &HostedCluster) -> Result<Hyperlink> {
        self.hyperlink(cluster, Role::Cpo).await
    }

    async fn hyperlink(&self, cluster: &HostedCluster, role: Role) -> Result<Hyperlink> {
        // All processes of a role read one kubeconfig, which each start writes.
        let _one_at_a_time = self.starting.lock().await;
        let namespace = cluster.control_plane_namespace();
        let (role_name, lease_namespace) = (role.as_str(), roles::NAMESPACE);
        // A lease of one second, so that a process that follows another one need not wait for it.
        let name = format!("hyperlink-{role_name}-{namespace}");
        let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": lease_namespace, "name": name},
            "spec": {"holderIdentity": "the one before", "leaseDurationSeconds": 1}});
        let control_plane = self.test_env.control_plane();
        control_plane.apply_yaml(&lease.to_string()).await?;
        roles::install_lease(control_plane.admin(), role_name, &name, lease_namespace, "").await?;
        let flags = [
            ("namespace", namespace.as_str()),
            ("resync", RESYNC),
            ("record-resync", RESYNC),
        ];
        let name = format!("{role_name}-{}", cluster.name());
        Hyperlink::start(&self.test_env, role, &name, &flags).await
    }

    /// Waits until the whole path is available.
    pub(crate) async fn heals(&self, cluster: &HostedCluster) -> Result<()> {
        cluster.becomes_available(&self.test_env, SOON).await?;
        cluster.becomes_reachable(&self.test_env, SOON).await
    }

    /// Waits until every condition is True.
    pub(crate) async fn all_hold(&self, cluster: &HostedCluster) -> Result<()> {
        eventually("every condition holds", SOON, async || {
            let all = conditions(&self.custom_resource(cluster).await?);
            let hold = all.iter().filter(|one| one.status == "True");
            ensure!(hold.count() == ALL.len(), "{all:?}");
            Ok(())
        })
        .await
    }

    /// Records from now on every version of the custom resource's conditions.
    pub(crate) fn listen(&self, cluster: &HostedCluster) -> Result<ConditionHistory> {
        let namespace = cluster.control_plane_namespace();
        let api = cluster.api(&self.test_env.client()?, "AzurePrivateLinkService", &namespace);
        let observed = Arc::new(std::sync::Mutex::new(Vec::new()));
        let recording = Arc::clone(&observed);
        let stop = CancellationToken::new();
        let until = stop.clone();
        tokio::spawn(async move {
            let changes = watcher(api, watcher::Config::default()).default_backoff();
            let record = |found: Result<DynamicObject, watcher::Error>| {
                let mut recording = recording.lock().unwrap_or_else(PoisonError::into_inner);
                recording.extend(found.iter().flat_map(conditions));
                std::future::ready(())
            };
            until
                .run_until_cancelled(changes.touched_objects().for_each(record))
                .await;
        });
        Ok(ConditionHistory {
            observed,
            _stop: stop.drop_guard(),
        })
    }

    /// Waits until HyperShift's control-plane-operator has completed a reconcile: both zones are in the status.
    pub(crate) async fn recorded(&self, cluster: &HostedCluster) -> Result<()> {
        eventually("both zones are recorded", SOON, async || {
            let found = self.custom_resource(cluster).await?;
            let status = &found.data["status"];
            let both = status["privateDNSZoneID"].is_string() && status["baseDomainDNSZoneID"].is_string();
            ensure!(both, "{status}");
            Ok(())
        })
        .await
    }

    /// Deletes the cluster, and fails if anything but `remaining` is left.
    pub(crate) async fn delete(&self, cluster: &HostedCluster, remaining: &[&str]) -> Result<()> {
        cluster.delete(&self.test_env, SOON).await?;
        nothing_is_left_of(&self.test_env, cluster, remaining).await
    }

    /// The cluster's custom resource, which has to exist.
    pub(crate) async fn custom_resource(&self, cluster: &HostedCluster) -> Result<DynamicObject> {
        let found = cluster.get_link_service(&self.test_env.client()?).await?;
        found.context("no custom resource")
    }

    /// What Azure holds of the cluster's Private Link Service.
    pub(crate) async fn stored_service(&self, cluster: &HostedCluster) -> Result<String> {
        let found = self
            .test_env
            .oracle()
            .resources(&cluster.link_service(&self.test_env))
            .await?;
        Ok(serde_json::to_string(&found)?)
    }

    /// What Hyperlink has written to Azure for the cluster since a call.
    pub(crate) async fn our_writes(&self, cluster: &HostedCluster, since: u64) -> Result<Vec<Call>> {
        let mut calls = calls_about(&self.test_env, cluster, since).await?;
        calls.retain(|call| call.is_write() && is_by_hyperlink(call));
        Ok(calls)
    }

    /// Waits until Hyperlink has read, after a call, every resource of the cluster that its role manages.
    pub(crate) async fn has_read_all(&self, cluster: &HostedCluster, role: Role, since: u64) -> Result<()> {
        let mut expected = match role {
            Role::Ho => vec![cluster.link_service(&self.test_env)],
            Role::Cpo => cluster.zones(),
        };
        if role == Role::Cpo {
            expected.push(cluster.endpoint());
        }
        eventually("all is looked at", SOON, async || {
            let calls = calls_about(&self.test_env, cluster, since).await?;
            let was_read = |id: &String| {
                let path = |call: &&Call| call.path.to_lowercase().starts_with(&id.to_lowercase());
                calls
                    .iter()
                    .filter(path)
                    .any(|call| is_by_hyperlink(call) && !call.is_write())
            };
            let missing: Vec<_> = expected.iter().filter(|id| !was_read(id)).collect();
            ensure!(missing.is_empty(), "not at {missing:?}");
            Ok(())
        })
        .await
    }

    /// Waits until Hyperlink has adopted the custom resource for this role: its intent is recorded.
    pub(crate) async fn adopted(&self, cluster: &HostedCluster, role: Role) -> Result<()> {
        let annotation = format!("hyperlink.hypershift.openshift.io/{}-intent", role.as_str());
        eventually(&format!("{annotation} stands"), SOON, async || {
            let found = self.custom_resource(cluster).await?;
            ensure!(
                found.annotations().contains_key(&annotation),
                "{:?}",
                found.annotations()
            );
            Ok(())
        })
        .await
    }

    /// Watches from now on whether workers reach the control plane.
    pub(crate) fn watch(&'static self, cluster: &HostedCluster) -> Watch {
        let (stop, cluster) = (CancellationToken::new(), cluster.clone());
        let until = stop.clone();
        let task = tokio::spawn(async move {
            let mut failures = Vec::new();
            while !until.is_cancelled() {
                for name in cluster.host_names() {
                    let found = self.test_env.oracle().reachable(&cluster.vnet(), &name).await?;
                    if !found.ok {
                        failures.push(format!("{name}: {}", found.why.unwrap_or_default()));
                    }
                }
                tokio::time::sleep(Duration::from_millis(50)).await;
            }
            Ok(failures)
        });
        Watch { stop, task }
    }
}

fn is_by_hyperlink(call: &Call) -> bool {
    matches!(call.principal.as_deref(), Some(HO_CLIENT | CPO_CLIENT))
}

/// All versions of a custom resource's conditions, in their order.
pub(crate) struct ConditionHistory {
    observed: Arc<std::sync::Mutex<Vec<Condition>>>,
    _stop: DropGuard,
}

impl ConditionHistory {
    /// The conditions of this type by which the status changed, in their order. Left out are those that a writer put back
    /// who had read them earlier, which have the time of their first change, and what answers those.
    pub(crate) fn changes(&self, kind: &str) -> Vec<Condition> {
        let observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind = observed.iter().filter(|one| one.kind == kind);
        let (mut known, mut last, mut is_put_back) = (HashSet::new(), None, false);
        let mut changes = Vec::new();
        for one in of_kind {
            let version = (one.status.clone(), one.since.clone());
            if last.as_ref() == Some(&version) {
                continue;
            }
            let answers = std::mem::replace(&mut is_put_back, !known.insert(version.clone()));
            if !is_put_back && !answers {
                changes.push(one.clone());
            }
            last = Some(version);
        }
        changes.drain(..changes.len().min(1));
        changes
    }

    /// How often the status of the condition of this type changed, whoever wrote it and however old it was.
    pub(crate) fn turns(&self, kind: &str) -> usize {
        let observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        let statuses: Vec<_> = observed
            .iter()
            .filter(|one| one.kind == kind)
            .map(|one| &one.status)
            .collect();
        statuses.windows(2).filter(|two| two[0] != two[1]).count()
    }

    /// Whether a condition of this type ever matched.
    pub(crate) fn ever(&self, kind: &str, like: impl Fn(&Condition) -> bool) -> bool {
        let observed = self.observed.lock().unwrap_or_else(PoisonError::into_inner);
        observed.iter().any(|one| one.kind == kind && like(one))
    }
}

/// Checks all the time whether a cluster is reachable.
pub(crate) struct Watch {
    stop: CancellationToken,
    task: JoinHandle<Result<Vec<String>>>,
}

impl Watch {
    /// Stops the watch, and fails if the cluster was unreachable at any moment.
    pub(crate) async fn never_failed(self) -> Result<()> {
        self.stop.cancel();
        let failures = self.task.await??;
        ensure!(
            failures.is_empty(),
            "{} times unreachable: {:?}",
            failures.len(),
            failures.first()
        );
        Ok(())
    }
}

/// Stops a process as the kubelet does; fails if its log has a secret.
pub(crate) async fn ends(process: Hyperlink) -> Result<()> {
    no_secret_in(&process)?;
    process.stop().await
}

/// Runs one situation in the shared test environment.
pub(crate) fn situation<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static MixedEnv) -> F) {
    static MIXED_ENV: OnceCell<MixedEnv> = OnceCell::const_new();
    run(async { test(MIXED_ENV.get_or_try_init(MixedEnv::start).await?).await });
}
