//! The ground that all situations share. Nothing runs on it by itself: each situation says who serves its cluster, and
//! what runs serves that cluster alone.

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

/// How often Hyperlink looks at what is settled.
const RESYNC: &str = "4s";

/// The shared ground.
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
            // Azure's budgets are those of five minutes of a few clusters; here many live in one.
            let minutes = json!({"advance_s": 300});
            loop {
                let clock = reqwest::Client::new().post(format!("{url}/clock")).json(&minutes);
                // A simulator that is gone is no failure of the clock's.
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

    /// The same, with the NAT subnet that HyperShift's operator makes, which it can in 10.0.0.0/16 alone.
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

    /// HyperShift's operator.
    pub(crate) async fn go_ho(&self, cluster: &HostedCluster) -> Result<GoOperator> {
        GoOperator::ho(&self.test_env, cluster, SPEED).await
    }

    /// HyperShift's control-plane-operator.
    pub(crate) async fn go_cpo(&self, cluster: &HostedCluster) -> Result<GoOperator> {
        GoOperator::cpo(&self.test_env, cluster, SPEED).await
    }

    /// Hyperlink's management side.
    pub(crate) async fn ho(&self, cluster: &HostedCluster) -> Result<Hyperlink> {
        self.hyperlink(cluster, Role::Ho).await
    }

    /// Hyperlink's guest side.
    pub(crate) async fn cpo(&self, cluster: &HostedCluster) -> Result<Hyperlink> {
        self.hyperlink(cluster, Role::Cpo).await
    }

    async fn hyperlink(&self, cluster: &HostedCluster, role: Role) -> Result<Hyperlink> {
        // All of one role read one kubeconfig, which each start writes.
        let _one_at_a_time = self.starting.lock().await;
        let namespace = cluster.control_plane_namespace();
        let (role_name, lease_namespace) = (role.as_str(), roles::NAMESPACE);
        // Who follows another at once need not wait until a leader of all namespaces has noticed.
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

    /// Waits until the whole path is there.
    pub(crate) async fn heals(&self, cluster: &HostedCluster) -> Result<()> {
        cluster.becomes_available(&self.test_env, SOON).await?;
        cluster.becomes_reachable(&self.test_env, SOON).await
    }

    /// Waits until every condition holds.
    pub(crate) async fn all_hold(&self, cluster: &HostedCluster) -> Result<()> {
        eventually("every condition holds", SOON, async || {
            let all = conditions(&self.custom_resource(cluster).await?);
            let hold = all.iter().filter(|one| one.status == "True");
            ensure!(hold.count() == ALL.len(), "{all:?}");
            Ok(())
        })
        .await
    }

    /// Hears from now on every word of the custom resource's conditions.
    pub(crate) fn listen(&self, cluster: &HostedCluster) -> Result<Heard> {
        let namespace = cluster.control_plane_namespace();
        let api = cluster.api(&self.test_env.client()?, "AzurePrivateLinkService", &namespace);
        let said = Arc::new(std::sync::Mutex::new(Vec::new()));
        let hears = Arc::clone(&said);
        let stop = CancellationToken::new();
        let until = stop.clone();
        tokio::spawn(async move {
            let changes = watcher(api, watcher::Config::default()).default_backoff();
            let hear = |found: Result<DynamicObject, watcher::Error>| {
                let mut hears = hears.lock().unwrap_or_else(PoisonError::into_inner);
                hears.extend(found.iter().flat_map(conditions));
                std::future::ready(())
            };
            until
                .run_until_cancelled(changes.touched_objects().for_each(hear))
                .await;
        });
        Ok(Heard {
            said,
            _stop: stop.drop_guard(),
        })
    }

    /// Waits until HyperShift's control-plane-operator has come to the end of a pass: both zones are in the status.
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

    /// Deletes the cluster; nothing but `kept` may be left.
    pub(crate) async fn goes(&self, cluster: &HostedCluster, kept: &[&str]) -> Result<()> {
        cluster.delete(&self.test_env, SOON).await?;
        nothing_is_left_of(&self.test_env, cluster, kept).await
    }

    /// The custom resource.
    pub(crate) async fn custom_resource(&self, cluster: &HostedCluster) -> Result<DynamicObject> {
        let found = cluster.get_link_service(&self.test_env.client()?).await?;
        found.context("no custom resource")
    }

    /// What Azure holds of the cluster's Private Link Service.
    pub(crate) async fn seen(&self, cluster: &HostedCluster) -> Result<String> {
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
        calls.retain(|call| call.is_write() && ours(call));
        Ok(calls)
    }

    /// Waits until Hyperlink has looked, after a call, at every resource of the cluster that its role keeps.
    pub(crate) async fn looked_at_all(&self, cluster: &HostedCluster, role: Role, since: u64) -> Result<()> {
        let mut wanted = match role {
            Role::Ho => vec![cluster.link_service(&self.test_env)],
            Role::Cpo => cluster.zones(),
        };
        if role == Role::Cpo {
            wanted.push(cluster.endpoint());
        }
        eventually("all is looked at", SOON, async || {
            let calls = calls_about(&self.test_env, cluster, since).await?;
            let looked = |id: &String| {
                let path = |call: &&Call| call.path.to_lowercase().starts_with(&id.to_lowercase());
                calls.iter().filter(path).any(|call| ours(call) && !call.is_write())
            };
            let missing: Vec<_> = wanted.iter().filter(|id| !looked(id)).collect();
            ensure!(missing.is_empty(), "not at {missing:?}");
            Ok(())
        })
        .await
    }

    /// Waits until Hyperlink has taken the custom resource over for this role: its intent stands.
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

fn ours(call: &Call) -> bool {
    matches!(call.principal.as_deref(), Some(HO_CLIENT | CPO_CLIENT))
}

/// What conditions have said.
pub(crate) struct Heard {
    said: Arc<std::sync::Mutex<Vec<Condition>>>,
    _stop: DropGuard,
}

impl Heard {
    /// How often a condition was turned to this status by another one.
    pub(crate) fn turns(&self, kind: &str, status: &str) -> usize {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        let of_kind: Vec<_> = said
            .iter()
            .filter(|one| one.kind == kind)
            .map(|one| &one.status)
            .collect();
        let turns = of_kind.windows(2).filter(|two| two[0] != two[1] && two[1] == status);
        turns.count()
    }

    /// Whether a condition was ever like this.
    pub(crate) fn ever(&self, kind: &str, like: impl Fn(&Condition) -> bool) -> bool {
        let said = self.said.lock().unwrap_or_else(PoisonError::into_inner);
        said.iter().any(|one| one.kind == kind && like(one))
    }
}

/// Asks all the time whether a cluster is reachable.
pub(crate) struct Watch {
    stop: CancellationToken,
    task: JoinHandle<Result<Vec<String>>>,
}

impl Watch {
    /// Ends, and fails if there was a moment in which it was not.
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

/// Fails if a process has said a secret, and ends it as the kubelet does.
pub(crate) async fn ends(process: Hyperlink) -> Result<()> {
    no_secret_in(&process)?;
    process.stop().await
}

/// Runs one situation on the shared ground.
pub(crate) fn situation<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static MixedEnv) -> F) {
    static SHARED_ENV: OnceCell<MixedEnv> = OnceCell::const_new();
    run(async { test(SHARED_ENV.get_or_try_init(MixedEnv::start).await?).await });
}
