//! Processes that are killed (-9) again and again while a cluster is created and deleted. Each dies at some call to
//! Azure whose answer is held back, before or after its effect. A seed decides which; it is printed, and can be given
//! again as `E2E_SEED`.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT, Preset};
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, conditions, release};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::random::{Random, seed};
use e2e::shared_env::{control, leases, run};
use e2e::{TestEnv, eventually, roles};
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::Namespace;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

/// Deaths during the cluster's creation, and as many during its deletion.
const DEATHS: usize = 10;
/// A process that calls this often without dying has read everything and written something.
const LONGEST: u64 = 25;
/// Timeout for a phase with all its deaths.
const PHASE: Duration = Duration::from_secs(240);

/// When a process dies.
#[derive(Debug)]
struct Death {
    role: Role,
    /// At its n-th write, or at its n-th call of any kind.
    writes_only: bool,
    call: u64,
    /// Whether Azure carries out the call that it dies in.
    accepted: bool,
}

impl Death {
    fn draw(random: &mut Random) -> Self {
        let writes_only = random.below(2) == 0;
        Self {
            role: [Role::Ho, Role::Cpo][usize::from(random.below(2) == 0)],
            writes_only,
            call: 1 + random.below(if writes_only { 2 } else { LONGEST }),
            accepted: random.below(2) == 0,
        }
    }

    fn client(&self) -> &'static str {
        match self.role {
            Role::Ho => HO_CLIENT,
            Role::Cpo => CPO_CLIENT,
        }
    }

    /// Fault rules by which no answer comes back from that call on.
    fn rules(&self) -> Value {
        let mut held = json!({"delay_ms": 60_000});
        if !self.accepted {
            held["drop"] = json!("before");
        }
        let methods: &[&str] = if self.writes_only {
            &["PUT", "DELETE"]
        } else {
            &["GET", "PUT", "DELETE"]
        };
        // Each rule counts for itself: any method may be the one.
        let rule = |method: &&str| json!({"match": {"principal": self.client(), "method": method, "from": self.call, "times": 1_000_000}, "do": held});
        methods.iter().map(rule).collect()
    }
}

/// A test environment with both roles, one of which is dead now and then.
struct Mortals {
    test_env: TestEnv,
    ho: Option<Hyperlink>,
    cpo: Option<Hyperlink>,
}

impl Mortals {
    async fn revive(&mut self, role: Role) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.test_env.client()?, roles::NAMESPACE);
        let name = format!("hyperlink-{}", role.as_str());
        // The dead process holds it; the test need not wait until it expires.
        leases.delete(&name, &DeleteParams::default()).await?;
        e2e::shared_env::leases(&self.test_env).await?;
        let flags = [("resync", "3s"), ("record-resync", "5s")];
        let alive = Hyperlink::start(&self.test_env, role, role.as_str(), &flags).await?;
        *self.of(role) = Some(alive);
        Ok(())
    }

    fn of(&mut self, role: Role) -> &mut Option<Hyperlink> {
        match role {
            Role::Ho => &mut self.ho,
            Role::Cpo => &mut self.cpo,
        }
    }

    /// Kills a process at the call that `death` names, unless `is_done` succeeds before. Returns whether it died.
    async fn suffer(&mut self, death: &Death, is_done: impl AsyncFn(&TestEnv) -> Result<()>) -> Result<bool> {
        let since = self.test_env.oracle().last_call().await?;
        control(&self.test_env, reqwest::Method::PUT, "/faults", death.rules()).await?;
        let dies = eventually(&format!("{death:?}"), PHASE, || async {
            let calls = self.test_env.oracle().journal(since).await?;
            let own = calls
                .iter()
                .filter(|call| call.principal.as_deref() == Some(death.client()));
            let own: Vec<_> = own.map(|call| call.method.as_str()).collect();
            let count = |method| own.iter().filter(|one| **one == method).count() as u64;
            let methods = ["PUT", "DELETE", "GET"];
            let counted = if death.writes_only { &methods[..2] } else { &methods[..] };
            if counted.iter().any(|method| count(*method) >= death.call) {
                return Ok(true);
            }
            is_done(&self.test_env).await.map(|()| false)
        })
        .await?;
        if dies {
            *self.of(death.role) = None;
        }
        control(&self.test_env, reqwest::Method::PUT, "/faults", json!([])).await?;
        // Azure's request budgets for five minutes are enough for a few starts.
        control(
            &self.test_env,
            reqwest::Method::POST,
            "/clock",
            json!({"advance_s": 300}),
        )
        .await?;
        if dies {
            self.revive(death.role).await?;
        }
        Ok(dies)
    }

    /// Kills processes until `is_done` succeeds or all deaths have happened; then waits for `is_done`.
    async fn live(&mut self, random: &mut Random, is_done: impl AsyncFn(&TestEnv) -> Result<()>) -> Result<()> {
        for _ in 0..DEATHS {
            let death = Death::draw(random);
            if !self.suffer(&death, &is_done).await? {
                break;
            }
        }
        eventually("the end of the phase", PHASE, || is_done(&self.test_env)).await
    }
}

/// Every resource that belongs to a cluster with a base domain is there once.
async fn built_once(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let ids = test_env.resource_ids().await?;
    let count = |part: &str| {
        let own = [cluster.infra_id(), cluster.cluster_id()];
        let mine = ids.iter().filter(|id| own.iter().any(|name| id.contains(name)));
        mine.filter(|id| {
            id.rsplit_once('/')
                .is_some_and(|(parent, _)| parent.to_lowercase().ends_with(&part.to_lowercase()))
        })
        .count()
    };
    let found = [
        "/privateLinkServices",
        "/privateEndpointConnections",
        "/privateEndpoints",
        "/privateDnsZones",
        "/virtualNetworkLinks",
        "/A",
        "/mgmt-vnet/subnets",
    ]
    .map(|part| (part, count(part)));
    let numbers = found.map(|(_, number)| number);
    ensure!(numbers == [1, 1, 1, 2, 2, 4, 1], "{found:?}");
    Ok(())
}

async fn is_available(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let found = cluster.get_link_service(&test_env.client()?).await?.context("none")?;
    let all = conditions(&found);
    ensure!(all.len() == 5 && all.iter().all(|one| one.status == "True"), "{all:?}");
    Ok(())
}

/// HyperShift's part of a deletion, as far as it can go now.
async fn is_gone(test_env: &TestEnv, cluster: &HostedCluster) -> Result<()> {
    let client = test_env.client()?;
    let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
    if let Some(found) = control_planes.get_opt(cluster.name()).await? {
        let held = found.metadata.finalizers.unwrap_or_default();
        ensure!(held == ["hypershift.openshift.io/finalizer"], "{held:?}");
        release(&control_planes, cluster.name()).await?;
    }
    let namespaces: Api<Namespace> = Api::all(client);
    let left = namespaces.get_opt(&cluster.control_plane_namespace()).await?;
    ensure!(left.is_none(), "{:?}", left.and_then(|left| left.status));
    Ok(())
}

#[test]
fn processes_killed_at_any_moment_of_a_life() {
    let mut random = Random::new(seed());
    run(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        leases(&test_env).await?;
        let before = test_env.resource_ids().await?;
        let cluster = HostedCluster::new(&test_env, "mortal").with_base_domain("mortal.example.com");
        let mut mortals = Mortals {
            test_env,
            ho: None,
            cpo: None,
        };
        mortals.revive(Role::Ho).await?;
        mortals.revive(Role::Cpo).await?;

        cluster.create(&mortals.test_env).await?;
        mortals
            .live(&mut random, async |test_env| is_available(test_env, &cluster).await)
            .await?;
        cluster.becomes_reachable(&mortals.test_env, PHASE).await?;
        built_once(&mortals.test_env, &cluster).await?;

        let client = mortals.test_env.client()?;
        let hosted_clusters = cluster.api(&client, "HostedCluster", NAMESPACE);
        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        hosted_clusters.delete(cluster.name(), &DeleteParams::default()).await?;
        control_planes.delete(cluster.name(), &DeleteParams::default()).await?;
        let namespaces: Api<Namespace> = Api::all(client.clone());
        namespaces
            .delete(&cluster.control_plane_namespace(), &DeleteParams::default())
            .await?;
        mortals
            .live(&mut random, async |test_env| is_gone(test_env, &cluster).await)
            .await?;
        let network = [cluster.resource_group(), cluster.vnet(), cluster.subnet()].map(|id| id.to_lowercase());
        // The cloud provider takes the frontend away in its own time; it is no resource of its own.
        let left = mortals.test_env.resource_ids().await?;
        let extra: Vec<_> = left
            .iter()
            .filter(|id| !before.contains(*id) && !network.contains(*id))
            .collect();
        ensure!(extra.is_empty(), "left behind: {extra:?}");
        Ok(())
    });
}
