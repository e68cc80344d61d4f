//! The test environment that most tests of a test program share, each with a hosted cluster of its own.
//!
//! Both roles run, Hyperlink reads ready resources again every few seconds, and the leases exist.

use std::future::Future;
use std::sync::OnceLock;
use std::time::Duration;

use anyhow::{Context, Result, anyhow, ensure};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use tokio::runtime::Runtime;
use tokio::sync::OnceCell;

use crate::azure_sim::{HO_SECRET, Preset};
use crate::hosted_cluster::{HostedCluster, conditions};
use crate::hyperlink::{Hyperlink, Role};
use crate::test_env::Call;
use crate::{Target, TestEnv, eventually};

/// The longest time that a test waits for anything.
pub const SOON: Duration = Duration::from_secs(90);

/// How often Hyperlink reads ready resources again. Azure grants few reads of private DNS, so the CPO role reads less
/// often.
const HO_FLAGS: [(&str, &str); 1] = [("resync", "3s")];
const CPO_FLAGS: [(&str, &str); 1] = [("resync", "8s")];

/// A test environment with both roles running.
#[derive(Debug)]
pub struct SharedEnv {
    /// The control plane and the simulated Azure.
    pub test_env: TestEnv,
    /// The process of the HO role.
    pub ho: Hyperlink,
    /// The process of the CPO role.
    pub cpo: Hyperlink,
}

impl SharedEnv {
    /// Starts the environment and both roles.
    pub async fn start() -> Result<Self> {
        let test_env = TestEnv::local(Preset::Fast).await?;
        leases(&test_env).await?;
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &HO_FLAGS).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &CPO_FLAGS).await?;
        Ok(Self { test_env, ho, cpo })
    }

    /// Sets the simulator's fault rules.
    pub async fn faults(&self, rules: Value) -> Result<()> {
        control(&self.test_env, reqwest::Method::PUT, "/faults", rules).await
    }

    /// Waits until a condition of the cluster's custom resource is False for this reason.
    pub async fn refuses(&self, cluster: &HostedCluster, kind: &str, reason: &str) -> Result<()> {
        self.refuses_all(cluster, &[kind], reason).await
    }

    /// Waits until all of these conditions are False for this reason.
    pub async fn refuses_all(&self, cluster: &HostedCluster, kinds: &[&str], reason: &str) -> Result<()> {
        let client = self.test_env.client()?;
        eventually(&format!("{kinds:?} are False: {reason}"), SOON, || async {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            refused(&found, kinds, reason)
        })
        .await
    }

    /// Waits until a condition of the cluster's custom resource has this reason, and is what RUNBOOK.md quotes.
    pub async fn has_condition(&self, cluster: &HostedCluster, kind: &str, reason: &str) -> Result<()> {
        let client = self.test_env.client()?;
        eventually(&format!("{kind} is {reason}"), SOON, || async {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            ensure_condition(&found, kind, reason)
        })
        .await
    }

    /// Waits until the cluster is available and reachable.
    pub async fn heals(&self, cluster: &HostedCluster) -> Result<()> {
        cluster.becomes_available(&self.test_env, SOON).await?;
        cluster.becomes_reachable(&self.test_env, SOON).await
    }

    /// Creates a cluster with a base domain and waits until it is available and reachable.
    pub async fn lives(&self, name: &str) -> Result<HostedCluster> {
        let cluster = HostedCluster::new(&self.test_env, name).with_base_domain(&format!("{name}.example.com"));
        cluster.create(&self.test_env).await?;
        self.heals(&cluster).await?;
        Ok(cluster)
    }

    /// Waits until each role has read the cluster's resource twice. At the second read, the first one has had its
    /// effect.
    pub async fn reconciles_again(&self, cluster: &HostedCluster) -> Result<()> {
        let since = self.test_env.oracle().last_call().await?;
        let ids = [cluster.link_service(&self.test_env), cluster.endpoint()];
        eventually("both roles look again", SOON, || async {
            let calls = self.test_env.oracle().journal(since).await?;
            for id in &ids {
                let reads = calls.iter().filter(|call| call.path.eq_ignore_ascii_case(id)).count();
                ensure!(reads >= 2, "{reads} looks at {id}");
            }
            Ok(())
        })
        .await
    }

    /// Waits until the cluster has healed, deletes it, and fails if it leaves anything. Tests delete their clusters
    /// because a load balancer takes only a few Private Link Services.
    pub async fn heals_and_is_deleted(&self, cluster: &HostedCluster) -> Result<()> {
        self.heals(cluster).await?;
        cluster.delete(&self.test_env, SOON).await?;
        self.nothing_is_left_of(cluster, &[]).await
    }

    /// The calls whose path names the cluster.
    pub async fn calls_about(&self, cluster: &HostedCluster) -> Result<Vec<Call>> {
        calls_about(&self.test_env, cluster, 0).await
    }

    /// Fails if anybody has asked Azure about the cluster.
    pub async fn nobody_asked_about(&self, cluster: &HostedCluster) -> Result<()> {
        let calls = self.calls_about(cluster).await?;
        ensure!(calls.is_empty(), "{calls:?}");
        Ok(())
    }

    /// Fails if a deleted cluster has left more than an administrator made: the group, the network, and ids that begin
    /// with one of `preserved`.
    pub async fn nothing_is_left_of(&self, cluster: &HostedCluster, preserved: &[&str]) -> Result<()> {
        nothing_is_left_of(&self.test_env, cluster, preserved).await
    }

    /// The resource of this id and everything below it, as JSON text from the simulator.
    pub async fn observed(&self, id: &str) -> Result<String> {
        let found = self.test_env.oracle().resources(id).await?;
        ensure!(!found.is_empty(), "{id} is not there");
        Ok(serde_json::to_string(&found)?)
    }
}

/// The calls after number `since` whose path names the cluster.
pub async fn calls_about(test_env: &TestEnv, cluster: &HostedCluster, since: u64) -> Result<Vec<Call>> {
    let names = [
        cluster.infra_id(),
        cluster.cluster_id(),
        format!("/{}.", cluster.name()),
    ];
    let mut calls = test_env.oracle().journal(since).await?;
    calls.retain(|call| names.iter().any(|name| call.path.contains(name.as_str())));
    Ok(calls)
}

/// Fails if a deleted cluster has left more than an administrator made: the group, the network, and ids that begin with
/// one of `preserved`.
pub async fn nothing_is_left_of(target: &Target, cluster: &HostedCluster, preserved: &[&str]) -> Result<()> {
    let own = [cluster.resource_group(), cluster.vnet(), cluster.subnet()];
    let names = [cluster.infra_id(), cluster.cluster_id()];
    let ids = target.resource_ids().await?;
    let left: Vec<_> = ids
        .iter()
        .filter(|id| names.iter().any(|name| id.contains(&name.to_lowercase())))
        .filter(|id| !own.iter().any(|one| one.to_lowercase() == **id))
        .filter(|id| !preserved.iter().any(|prefix| id.starts_with(&prefix.to_lowercase())))
        .collect();
    ensure!(left.is_empty(), "left behind: {left:?}");
    Ok(())
}

/// Fails unless these conditions are False for this reason.
pub fn refused(object: &DynamicObject, kinds: &[&str], reason: &str) -> Result<()> {
    let all = conditions(object);
    for kind in kinds {
        let condition = all.iter().find(|one| one.kind == *kind);
        ensure!(
            condition.is_some_and(|one| one.status == "False" && one.reason == reason),
            "{all:?}"
        );
    }
    Ok(())
}

/// Fails unless a condition has this reason and RUNBOOK.md quotes it.
pub fn ensure_condition(object: &DynamicObject, kind: &str, reason: &str) -> Result<()> {
    let all = conditions(object);
    let found = all.iter().find(|one| one.kind == kind && one.reason == reason);
    crate::runbook::quotes(found.with_context(|| format!("{all:?}"))?)
}

/// The conditions that the HO role publishes.
pub const MANAGEMENT_SIDE: [&str; 2] = ["AzureInternalLoadBalancerAvailable", "AzurePLSCreated"];

/// The types of all conditions of a custom resource.
pub const ALL: [&str; 5] = [
    "AzureInternalLoadBalancerAvailable",
    "AzurePLSCreated",
    "AzurePrivateEndpointAvailable",
    "AzurePrivateDNSAvailable",
    "AzurePrivateLinkServiceAvailable",
];

/// Creates the leases without a holder. A candidate takes such a lease at once, a missing one only after its whole
/// duration.
pub async fn leases(target: &Target) -> Result<()> {
    let lease = |role| {
        json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
            "metadata": {"namespace": target.hyperlink_namespace(), "name": format!("hyperlink-{role}")}, "spec": {}})
    };
    let text = format!("{}\n---\n{}", lease("ho"), lease("cpo"));
    target.apply_yaml(&text).await.map(drop)
}

/// Calls the simulator's control API; fails unless it answers with success.
pub async fn control(test_env: &TestEnv, method: reqwest::Method, path: &str, body: Value) -> Result<()> {
    let url = format!("{}{path}", test_env.control_url());
    let answer = reqwest::Client::new().request(method, url).json(&body).send().await?;
    let (status, text) = (answer.status(), answer.text().await?);
    ensure!(status.is_success(), "{path}: {status}: {text}");
    Ok(())
}

/// Applies a JSON merge patch to an object.
pub async fn patch(api: &Api<DynamicObject>, name: &str, patch: Value) -> Result<DynamicObject> {
    Ok(api.patch(name, &PatchParams::default(), &Patch::Merge(patch)).await?)
}

/// Runs one test on the shared environment, and then checks that the logs hold no secret.
pub fn situation<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static SharedEnv) -> F) {
    static SHARED_ENV: OnceCell<SharedEnv> = OnceCell::const_new();
    run(async {
        let shared_env = SHARED_ENV.get_or_try_init(SharedEnv::start).await?;
        // Azure's request budgets of five minutes suffice for a few clusters. Here many come up in one minute.
        control(
            &shared_env.test_env,
            reqwest::Method::POST,
            "/clock",
            json!({"advance_s": 300}),
        )
        .await?;
        test(shared_env).await?;
        for process in [&shared_env.ho, &shared_env.cpo] {
            no_secret_in(process)?;
        }
        Ok(())
    });
}

/// Runs one test on a test environment of its own.
pub fn alone<F: Future<Output = Result<()>>>(test: impl FnOnce(TestEnv) -> F) {
    run(async {
        let test_env = TestEnv::local(Preset::Fast).await?;
        leases(&test_env).await?;
        test(test_env).await
    });
}

/// Runs a test on the one runtime of this process, to which everything that tests share is bound.
pub fn run(test: impl Future<Output = Result<()>>) {
    static RUNTIME: OnceLock<Runtime> = OnceLock::new();
    crate::scenario::install_tls_provider();
    let _of_test = crate::run_dir::OfTest::begin();
    let runtime = RUNTIME.get_or_init(|| match Runtime::new() {
        Ok(runtime) => runtime,
        Err(error) => panic!("no runtime: {error}"),
    });
    if let Err(error) = runtime.block_on(test) {
        panic!("{error:#}");
    }
}

/// Fails if the log of a process holds a secret or a raw body of Azure.
pub fn no_secret_in(process: &Hyperlink) -> Result<()> {
    let log = process.process().log();
    let text = std::fs::read_to_string(log)?;
    match secret_in(&text) {
        None => Ok(()),
        Some(line) => Err(anyhow!("a secret in {}: {line}", log.display())),
    }
}

/// The first line with a client secret, a bearer token, any JSON web token, or a raw body of Azure's.
fn secret_in(log: &str) -> Option<&str> {
    let words = [
        HO_SECRET,
        "Bearer",
        "eyJ",
        "client_secret",
        "client_assertion",
        "\\\"properties\\\"",
        "\\\"error\\\":",
    ];
    log.lines().find(|line| words.iter().any(|word| line.contains(word)))
}

#[test]
fn a_secret_in_a_log_is_found() {
    let clean = r#"{"message":"step","id":"/subscriptions/s"}"#;
    assert_eq!(secret_in(clean), None);
    for planted in [
        "Authorization: Bearer x",
        "eyJhbGciOi",
        HO_SECRET,
        r#"{"body":"{\"error\":{}}"}"#,
    ] {
        assert!(secret_in(&format!("{clean}\n{planted}")).is_some(), "{planted}");
    }
}
