//! A test environment with tenants: one process per role for all, another tenant whose cluster was ready before all
//! tests, and the operator's file of what each may use. No test may affect the other tenant.

use std::future::Future;
use std::path::PathBuf;

use anyhow::{Context, Result, ensure};
use e2e::TestEnv;
use e2e::azure_sim::{CPO_CLIENT, Preset};
use e2e::hosted_cluster::{ADDITIONAL_SUBSCRIPTION, HostedCluster, NAMESPACE};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SOON, SharedEnv, control, leases, no_secret_in, run};
use e2e::test_env::Call;
use serde_json::{Value, json};
use tokio::sync::{Mutex, MutexGuard, OnceCell};

/// The conditions of the guest side, without the summary, which may name something else first.
pub(crate) const GUEST_SIDE: [&str; 2] = ["AzurePrivateEndpointAvailable", "AzurePrivateDNSAvailable"];

/// Ready resources are not read while the tests run, so that each call has its cause in a test.
const CPO_FLAGS: [(&str, &str); 2] = [("resync", "2h"), ("record-resync", "2h")];

pub(crate) struct Tenants {
    pub(crate) shared_env: SharedEnv,
    pub(crate) other_tenant: HostedCluster,
    file: Mutex<File>,
}

/// The operator's file.
pub(crate) struct File {
    path: PathBuf,
    entries: Vec<Value>,
}

impl File {
    /// Replaces the file's text atomically.
    pub(crate) fn write(&self, text: &str) -> Result<()> {
        let new = self.path.with_extension("new");
        std::fs::write(&new, text)?;
        Ok(std::fs::rename(new, &self.path)?)
    }

    /// Writes the entries to the file.
    pub(crate) fn write_entries(&self) -> Result<()> {
        self.write(&json!({"hostedClusters": self.entries}).to_string())
    }
}

impl Tenants {
    async fn start() -> Result<Self> {
        let test_env = TestEnv::local(Preset::Fast).await?;
        leases(&test_env).await?;
        let file = File {
            path: test_env.dir().join("tenants.json"),
            entries: Vec::new(),
        };
        file.write_entries()?;
        let path = file.path.to_string_lossy().into_owned();
        let flags = [&CPO_FLAGS[..], &[("allow-scopes", path.as_str())]].concat();
        let ho = Hyperlink::start(&test_env, Role::Ho, "ho", &[("resync", "3s")]).await?;
        let cpo = Hyperlink::start(&test_env, Role::Cpo, "cpo", &flags).await?;
        let other_tenant = HostedCluster::new(&test_env, "neighbour").with_base_domain("neighbour.example.com");
        let tenants = Self {
            shared_env: SharedEnv { test_env, ho, cpo },
            other_tenant,
            file: Mutex::new(file),
        };
        tenants.allow(&tenants.other_tenant).await?;
        tenants.other_tenant.create(&tenants.shared_env.test_env).await?;
        tenants.shared_env.heals(&tenants.other_tenant).await?;
        Ok(tenants)
    }

    /// Lets a cluster use its own resource group and domain, and nothing else.
    pub(crate) async fn allow(&self, cluster: &HostedCluster) -> Result<()> {
        let domain = format!("{}.example.com", cluster.name());
        self.allow_more(cluster, &[cluster.resource_group()], &[&domain]).await
    }

    /// Lets a cluster use these scopes and domains.
    pub(crate) async fn allow_more(&self, cluster: &HostedCluster, scopes: &[String], domains: &[&str]) -> Result<()> {
        let mut file = self.file.lock().await;
        let entry = json!({"namespace": NAMESPACE, "names": [cluster.name()], "scopes": scopes, "baseDomains": domains,
            "additionalAllowedSubscriptions": [ADDITIONAL_SUBSCRIPTION]});
        file.entries.push(entry);
        file.write_entries()
    }

    /// Removes a cluster's entry from the file.
    pub(crate) async fn forbid(&self, cluster: &HostedCluster) -> Result<()> {
        let mut file = self.file.lock().await;
        file.entries.retain(|entry| entry["names"][0] != cluster.name());
        file.write_entries()
    }

    /// Locks the file, so that no other test changes it.
    pub(crate) async fn file(&self) -> MutexGuard<'_, File> {
        self.file.lock().await
    }

    /// The calls of the guest side to Azure about a cluster.
    pub(crate) async fn guest_calls_about(&self, cluster: &HostedCluster) -> Result<Vec<Call>> {
        let mut calls = self.shared_env.calls_about(cluster).await?;
        calls.retain(|call| call.principal.as_deref() == Some(CPO_CLIENT));
        Ok(calls)
    }

    /// Everything of the other tenant that somebody might change.
    async fn other_tenants_state(&self) -> Result<Value> {
        let (test_env, cluster) = (&self.shared_env.test_env, &self.other_tenant);
        let client = test_env.client()?;
        let cr = cluster.get_link_service(&client).await?.context("no custom resource")?;
        let namespace = cluster.control_plane_namespace();
        let control_plane = cluster.api(&client, "HostedControlPlane", &namespace);
        let control_plane = control_plane.get(cluster.name()).await?;
        let mut azure = Vec::new();
        for id in [
            cluster.resource_group(),
            cluster.link_service(test_env),
            cluster.own_nat_subnet(test_env),
        ] {
            azure.extend(test_env.oracle().resources(&id).await?);
        }
        // The etag of a subnet changes with each other subnet of the network.
        for resource in &mut azure {
            resource.as_object_mut().map(|resource| resource.remove("etag"));
        }
        Ok(json!([cr, control_plane.metadata.resource_version, azure]))
    }
}

/// Runs a test in the shared test environment; fails if it affects the other tenant.
pub(crate) fn tenants<F: Future<Output = Result<()>>>(test: impl FnOnce(&'static Tenants) -> F) {
    static TENANTS: OnceCell<Tenants> = OnceCell::const_new();
    run(async {
        let tenants = TENANTS.get_or_try_init(Tenants::start).await?;
        let (test_env, other_tenant) = (&tenants.shared_env.test_env, &tenants.other_tenant);
        // Azure's request budgets for five minutes are enough for a few clusters; here many are created in one minute.
        control(test_env, reqwest::Method::POST, "/clock", json!({"advance_s": 300})).await?;
        let (before, since) = (
            tenants.other_tenants_state().await?,
            test_env.oracle().last_call().await?,
        );
        test(tenants).await?;
        let after = tenants.other_tenants_state().await?;
        ensure!(before == after, "the neighbour was {before}\nand is {after}");
        other_tenant.becomes_reachable(test_env, SOON).await?;
        let foreign = other_tenant.resource_group().to_lowercase();
        let mut calls = test_env.oracle().journal(since).await?;
        calls.retain(|call| call.path.to_lowercase().starts_with(&foreign));
        ensure!(calls.is_empty(), "called on the neighbour's group: {calls:?}");
        no_secret_in(&tenants.shared_env.ho)?;
        no_secret_in(&tenants.shared_env.cpo)
    });
}
