//! The demo of role `capz`: clusters that Cluster API makes on Azure.

mod observed;

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::json;

use super::Variant;
use super::observed::Observed;
use super::stage::{Calls, Drift, RESYNC, Stage};
use super::view::View;
use crate::azure_sim::Preset;
use crate::bench::audit::Audit;
use crate::capz_cluster::{CapzCluster, DROPPED_ENDPOINTS, LoadBalancer, entries};
use crate::capz_controllers::{API_SERVER_IP, Capz, DnsOperator, Settings, link_entry};
use crate::capz_env::{FEDERATED_CLIENT, MANAGEMENT, WORKLOAD};
use crate::hyperlink::Hyperlink;
use crate::{CapzEnv, crds, eventually};

/// The namespace of all clusters.
const NAMESPACE: &str = "org-demo";

/// How many writes at most the oldest read is behind.
const OLDEST_READ: usize = 100;

/// What of a workload cluster is in Azure beside its network, in lower case. CAPZ and the DNS operator of this
/// environment leave networks and zones.
const KINDS: [&str; 4] = [
    "/privatelinkservices/",
    "/privateendpoints/",
    "/networkinterfaces/",
    "/a/",
];

/// A simulated Azure, a management cluster with its controllers, and its workload clusters.
pub struct CapzStage {
    // Drop order: clients before servers.
    roles: Vec<Hyperlink>,
    dns: DnsOperator,
    capz: Capz,
    client: kube::Client,
    management: CapzCluster,
    workloads: [CapzCluster; 3],
    env: CapzEnv,
}

/// What is changed by hand.
#[derive(Clone, Copy, Debug)]
pub enum Change {
    /// CAPZ writes the subnets of the management cluster as they were before an entry came.
    OldSubnets,
    /// The address of the API server is removed from the first workload cluster.
    NoAddress,
}

impl CapzStage {
    /// The workload cluster that is deleted.
    fn deleted(&self) -> &CapzCluster {
        &self.workloads[1]
    }

    /// Whether the management cluster, as it was read, has an entry for each link of a workload cluster.
    fn has_entries_for(&self, workload: &CapzCluster, management: &DynamicObject) -> bool {
        workload.links().iter().all(|link| {
            let expected = link_entry(&self.management, workload, link.name());
            entries(management).any(|(_, entry)| entry["name"] == expected["name"])
        })
    }

    /// Has CAPZ write the subnets of the management cluster from an ever older read, until one drops an entry.
    async fn drop_entry(&self) -> Result<DynamicObject> {
        for stale_by in 1..=OLDEST_READ {
            let written = self.capz.rewrite_subnets(&self.management, stale_by).await?;
            if !self.workloads.iter().all(|one| self.has_entries_for(one, &written)) {
                return Ok(written);
            }
        }
        bail!("no read of CAPZ lacks an entry")
    }
}

impl Stage for CapzStage {
    type Change = Change;
    type Position = (u64, Audit);
    const CLOUD: &'static str = "Azure";
    const HEADINGS: [&'static str; 2] = ["ARM calls", "Kubernetes writes"];
    const PROGRAMS: &'static str =
        "etcd, kube-apiserver, kube-controller-manager, armsim; CAPZ and DNS operator, played";
    const PATIENCE: Duration = Duration::from_secs(90);
    const COMMANDS: &'static str = "hyperlink run --role capz";
    const CREATION: &'static str = "up: two private workload clusters and a public one";
    const DELETION: &'static str = "go: KubeadmControlPlane, AzureCluster and Cluster of wc-2 are deleted";
    const DELETED: &'static str =
        "of wc-2 no entry is left, no private endpoint, no record and no finalizer; the others are connected";

    async fn start(preset: Preset, _: Variant) -> Result<Self> {
        let env = CapzEnv::local(preset).await?;
        // Nobody here uses Crossplane, so that all writes are about private paths.
        crds::serve_provider_configs(&env.client()?, false).await?;
        let management = CapzCluster::management(NAMESPACE, "mc", LoadBalancer::Internal);
        let workloads = [
            ("wc-1", LoadBalancer::Internal),
            ("wc-2", LoadBalancer::Internal),
            ("public", LoadBalancer::Public),
        ];
        let capz = Capz::start(&env, &[NAMESPACE], Settings::FORK).await?;
        let dns = DnsOperator::start(&env, &management, &[NAMESPACE]).await?;
        management.create(&env).await?;
        management.create_gateway(&env, &[WORKLOAD]).await?;
        Ok(Self {
            roles: Vec::new(),
            dns,
            capz,
            client: env.client()?,
            management,
            workloads: workloads.map(|(name, balancer)| CapzCluster::workload(NAMESPACE, name, balancer)),
            env,
        })
    }

    async fn start_roles(&mut self) -> Result<()> {
        let started = Hyperlink::start_capz(&self.env, &self.management, &[], "capz", &RESYNC[..1]).await?;
        self.roles.push(started);
        Ok(())
    }

    fn addresses(&self) -> [String; 2] {
        let server = self.env.control_plane().server();
        [server.to_owned(), self.env.azure().arm.clone()]
    }

    fn roles(&self) -> Vec<&Hyperlink> {
        self.roles.iter().collect()
    }

    async fn observe(&self) -> Result<Observed> {
        observed::read(self, None).await
    }

    async fn position(&self) -> Result<Self::Position> {
        let audit = Audit::begin(self.env.control_plane().audit_log())?;
        Ok((self.env.oracle().last_call().await?, audit))
    }

    /// Those of Hyperlink alone: CAPZ and the DNS operator call with identities of their own.
    async fn calls(&self, (since, audit): &Self::Position) -> Result<Calls> {
        let mut calls = self.env.oracle().journal(*since).await?;
        calls.retain(|call| call.principal.as_deref() == Some(FEDERATED_CLIENT));
        let written = calls.iter().find(|call| call.is_write());
        ensure!(written.is_none(), "Hyperlink writes to Azure: {written:?}");
        Ok(Calls {
            all: calls.len(),
            writes: audit.writes()?.len(),
        })
    }

    async fn create(&self) -> Result<()> {
        let azure_clusters = self.management.azure_clusters(&self.client);
        for workload in &self.workloads {
            if azure_clusters.get_opt(workload.name()).await?.is_none() {
                workload.create(&self.env).await?;
            }
        }
        Ok(())
    }

    fn drifts(&self) -> Result<Vec<Drift<Change>>> {
        let drift = |heading, phase, change| Drift { heading, phase, change };
        Ok(vec![
            drift(
                "heal: CAPZ drops an entry of the management cluster by a write from an old read",
                "heal: entry is dropped",
                Change::OldSubnets,
            ),
            drift(
                "heal: the annotation with the address of wc-1's API server is removed",
                "heal: address is removed",
                Change::NoAddress,
            ),
        ])
    }

    async fn change(&self, change: Change) -> Result<Observed> {
        let changed = match change {
            Change::OldSubnets => self.drop_entry().await?,
            Change::NoAddress => {
                let patch = json!({"metadata": {"annotations": {API_SERVER_IP: null}}});
                self.workloads[0].patch(&self.env, &patch).await?
            }
        };
        // Hyperlink may have repaired it before anybody can read it.
        observed::read(self, Some(changed)).await
    }

    async fn delete(&self, timeout: Duration) -> Result<()> {
        self.deleted().delete(&self.env, timeout).await?;
        eventually(
            "nothing of it is left, and the others are connected",
            timeout,
            || async {
                let left = self.resource_ids().await?;
                ensure!(left.is_empty(), "{left:?}");
                let observed = self.observe().await?;
                ensure!(observed.is_up(), "{}", observed.lacks());
                Ok(())
            },
        )
        .await
    }

    /// Those of the cluster that is deleted: resources, and what the management cluster has for it.
    async fn resource_ids(&self) -> Result<Vec<String>> {
        let mut ids = Vec::new();
        for subscription in [MANAGEMENT, WORKLOAD] {
            let prefix = format!("/subscriptions/{subscription}");
            for resource in self.env.oracle().resources(&prefix).await? {
                let id = resource["id"].as_str().context("a resource without an id")?;
                ids.push(id.to_lowercase());
            }
        }
        ids.retain(|id| KINDS.iter().any(|kind| id.contains(kind)));
        let management = self.management.get(&self.env).await?;
        ids.extend(entries(&management).map(|(_, entry)| format!("entry {}", entry["name"])));
        // The record of removed entries stays for some minutes: CAPZ may still make what it was asked for before.
        let annotations = management.annotations().iter();
        let annotations = annotations.filter(|(name, _)| *name != DROPPED_ENDPOINTS);
        ids.extend(annotations.map(|(name, value)| format!("annotation {name} {value}")));
        ids.retain(|id| id.contains(self.deleted().name()));
        Ok(ids)
    }

    fn show_how_to_inspect(&self, view: &View) {
        let control = self.env.control_url();
        view.note(&format!("export KUBECONFIG={}", self.env.admin().path().display()));
        view.note(&format!("export CONTROL={control}"));
        for process in &self.roles {
            let name = process.role().to_uppercase();
            view.note(&format!("export {name}={}", process.metrics_address()));
        }
        let workload = &self.workloads[0];
        view.note("To try:");
        view.note(&format!("  kubectl -n {NAMESPACE} get azurecluster mc -o yaml"));
        view.note(&format!(
            "  kubectl -n {NAMESPACE} annotate azurecluster {} {API_SERVER_IP}-   # and see it come back",
            workload.name()
        ));
        let (vnet, name) = (self.management.vnet(), workload.api_host());
        view.note(&format!("  curl '{control}/reachable?vnet={vnet}&name={name}'"));
    }

    async fn stop(self) -> Result<()> {
        for process in self.roles {
            process.stop().await?;
        }
        self.dns.stop().await?;
        self.capz.stop().await
    }
}
