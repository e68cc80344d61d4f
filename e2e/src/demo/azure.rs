//! The demo on Azure.

mod observed;
pub(super) mod resource;

use std::time::Duration;

use anyhow::{Context, Result};
use serde_json::{Value, json};

use super::Variant;
use super::observed::Observed;
use super::stage::{Calls, Drift, RESYNC, Stage};
use super::view::View;
use crate::azure_sim::Preset;
use crate::hosted_cluster::{HostedCluster, OAUTH};
use crate::hyperlink::{Hyperlink, Role};
use crate::test_env::TestEnv;

/// A simulated Azure, both roles, and one cluster.
pub struct AzureStage {
    test_env: TestEnv,
    roles: Vec<Hyperlink>,
    client: kube::Client,
    cluster: HostedCluster,
}

/// A resource that is changed, or deleted, by its ARM id.
pub enum Change {
    /// It gets this body.
    Put(String, Value),
    /// It is deleted.
    Delete(String),
}

impl Stage for AzureStage {
    type Change = Change;
    type Position = u64;
    const CLOUD: &'static str = "Azure";
    const HEADINGS: [&'static str; 2] = ["ARM calls", "ARM writes"];
    const PROGRAMS: &'static str = "etcd, kube-apiserver, kube-controller-manager, armsim";
    const PATIENCE: Duration = Duration::from_secs(60);
    const DELETION: &'static str = "go: HostedControlPlane and namespace are deleted";
    const DELETED: &'static str = "nothing is left in Azure, no finalizer, and the namespace is gone";

    async fn start(preset: Preset, variant: Variant) -> Result<Self> {
        let test_env = TestEnv::local(preset).await?;
        let mut cluster = HostedCluster::new(&test_env, "first-light").with_base_domain("apps.example.com");
        if variant == Variant::OAuth {
            cluster = cluster.with_oauth_load_balancer();
        }
        Ok(Self {
            client: test_env.client()?,
            test_env,
            roles: Vec::new(),
            cluster,
        })
    }

    async fn start_roles(&mut self) -> Result<()> {
        for role in [Role::Ho, Role::Cpo] {
            let started = Hyperlink::start(&self.test_env, role, role.as_str(), &RESYNC).await?;
            self.roles.push(started);
        }
        Ok(())
    }

    fn addresses(&self) -> [String; 2] {
        let server = self.test_env.control_plane().server();
        [server.to_owned(), self.test_env.azure().arm.clone()]
    }

    fn roles(&self) -> Vec<&Hyperlink> {
        self.roles.iter().collect()
    }

    async fn observe(&self) -> Result<Observed> {
        observed::read(&self.test_env, &self.client, &self.cluster).await
    }

    async fn position(&self) -> Result<u64> {
        self.test_env.oracle().last_call().await
    }

    async fn calls(&self, since: &u64) -> Result<Calls> {
        let calls = self.test_env.oracle().journal(*since).await?;
        Ok(Calls {
            all: calls.len(),
            writes: calls.iter().filter(|call| call.is_write()).count(),
        })
    }

    async fn create(&self) -> Result<()> {
        self.cluster.create(&self.test_env).await
    }

    fn drifts(&self) -> Result<Vec<Drift<Change>>> {
        let zone = self.cluster.zones().into_iter().next().context("no zone")?;
        let wrong = json!({"properties": {"ttl": 300, "aRecords": [{"ipv4Address": "10.0.0.250"}]}});
        let deleted = |heading, phase, id| Drift {
            heading,
            phase,
            change: Change::Delete(id),
        };
        let mut drifts = vec![
            Drift {
                heading: "heal: the record of the API is changed",
                phase: "heal a record",
                change: Change::Put(format!("{zone}/A/api"), wrong),
            },
            deleted(
                "heal: the Private Endpoint is deleted",
                "heal: Private Endpoint is deleted",
                self.cluster.endpoint(),
            ),
            deleted(
                "heal: the Private Link Service is deleted",
                "heal: Private Link Service is deleted",
                self.cluster.link_service(&self.test_env),
            ),
        ];
        if self.cluster.services().contains(&OAUTH) {
            drifts.push(deleted(
                "heal: the endpoint of OAuth is deleted",
                "heal: endpoint of OAuth is deleted",
                self.cluster.endpoint_of(OAUTH),
            ));
        }
        Ok(drifts)
    }

    async fn change(&self, change: Change) -> Result<Observed> {
        match change {
            Change::Put(id, body) => self.test_env.oracle().drift_put(&id, &body).await?,
            Change::Delete(id) => self.test_env.oracle().drift_delete(&id).await?,
        }
        self.observe().await
    }

    async fn delete(&self, timeout: Duration) -> Result<()> {
        self.cluster.delete(&self.test_env, timeout).await
    }

    async fn resource_ids(&self) -> Result<Vec<String>> {
        let network = [
            self.cluster.resource_group(),
            self.cluster.vnet(),
            self.cluster.subnet(),
        ];
        let network = network.map(|id| id.to_lowercase());
        let all = self.test_env.resource_ids().await?;
        Ok(all.into_iter().filter(|id| !network.contains(id)).collect())
    }

    fn show_how_to_inspect(&self, view: &View) {
        let control = self.test_env.control_url();
        view.note(&format!("export KUBECONFIG={}", self.test_env.admin().path().display()));
        view.note(&format!("export CONTROL={control}"));
        for process in &self.roles {
            let name = process.role().to_uppercase();
            view.note(&format!("export {name}={}", process.metrics_address()));
        }
        view.note("To try:");
        view.note("  kubectl get azpls -A -o yaml");
        view.note(&format!(
            "  curl -X DELETE '{control}/resources{}'   # and see it come back",
            self.cluster.endpoint()
        ));
        let (vnet, name) = (
            self.cluster.vnet(),
            self.cluster.host_names().into_iter().next().unwrap_or_default(),
        );
        view.note(&format!("  curl '{control}/reachable?vnet={vnet}&name={name}'"));
    }

    async fn stop(self) -> Result<()> {
        for process in self.roles {
            process.stop().await?;
        }
        Ok(())
    }
}
