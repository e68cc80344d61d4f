//! A management cluster, those who play their parts beside Hyperlink, and what is true of its workload clusters.

use std::collections::BTreeSet;

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::Preset;
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::{CONDITION, Capz, DnsOperator, Settings};
use e2e::capz_env::{MANAGEMENT, WORKLOAD};
use e2e::hyperlink::Hyperlink;
use e2e::{CapzEnv, eventually, roles};
use k8s_openapi::api::coordination::v1::Lease;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use crate::{SOON, becomes_true};

pub(crate) const NAMESPACE: &str = "org-giantswarm";
pub(crate) const LEDGER: &str = "hyperlink.hypershift.openshift.io/capz-endpoints";

/// A private management cluster, and those who play their parts beside Hyperlink.
pub(crate) struct Fleet {
    pub(crate) capz: Capz,
    pub(crate) dns: DnsOperator,
    pub(crate) management: CapzCluster,
    pub(crate) env: CapzEnv,
}

impl Fleet {
    pub(crate) async fn start() -> Result<Self> {
        let this = Self::without_management(LoadBalancer::Internal).await?;
        this.create_management().await?;
        Ok(this)
    }

    /// Starts everybody with private workload clusters of these names, which Hyperlink has connected.
    pub(crate) async fn serving<const N: usize>(names: [&str; N]) -> Result<(Self, [CapzCluster; N], Hyperlink)> {
        let this = Self::start().await?;
        let clusters = names.map(|name| workload(name, IdentityType::WorkloadIdentity));
        for cluster in &clusters {
            cluster.create(&this.env).await?;
        }
        let hyperlink = this.hyperlink("first").await?;
        for cluster in &clusters {
            this.is_connected(cluster).await?;
        }
        hyperlink.ready(SOON).await?;
        Ok((this, clusters, hyperlink))
    }

    /// Starts everybody before the management cluster is created.
    pub(crate) async fn without_management(load_balancer: LoadBalancer) -> Result<Self> {
        Self::beside(Settings::FORK, load_balancer).await
    }

    /// Starts everybody with a private management cluster, for workload clusters in these namespaces too.
    pub(crate) async fn across(namespaces: &[&str]) -> Result<Self> {
        let this = Self::of(Settings::FORK, LoadBalancer::Internal, namespaces).await?;
        this.create_management().await?;
        Ok(this)
    }

    /// Starts everybody before the management cluster is created, with an edition of CAPZ.
    pub(crate) async fn beside(capz: Settings, load_balancer: LoadBalancer) -> Result<Self> {
        Self::of(capz, load_balancer, &[]).await
    }

    async fn of(capz: Settings, load_balancer: LoadBalancer, more: &[&str]) -> Result<Self> {
        let namespaces = [&[NAMESPACE], more].concat();
        let env = CapzEnv::local(Preset::Fast).await?;
        let management = CapzCluster::management(NAMESPACE, "mc", load_balancer);
        let capz = Capz::start(&env, &namespaces, capz).await?;
        let dns = DnsOperator::start(&env, &management, &namespaces).await?;
        Ok(Self {
            capz,
            dns,
            management,
            env,
        })
    }

    pub(crate) async fn create_management(&self) -> Result<()> {
        self.management.create(&self.env).await?;
        self.management.create_gateway(&self.env, &[WORKLOAD]).await
    }

    /// Creates a namespace before its clusters, so that rights can be granted there.
    pub(crate) async fn create_namespace(&self, name: &str) -> Result<()> {
        let namespace = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}});
        self.env.apply_yaml(&namespace.to_string()).await.map(drop)
    }

    pub(crate) async fn hyperlink(&self, name: &str) -> Result<Hyperlink> {
        Hyperlink::start_capz(&self.env, &self.management, &[NAMESPACE], name, &[("resync", "10s")]).await
    }

    /// Lets the next process lead at once, though a dead one may hold the lease.
    pub(crate) async fn free_lease(&self) -> Result<()> {
        let leases: Api<Lease> = Api::namespaced(self.env.client()?, self.env.hyperlink_namespace());
        match leases.delete(roles::CAPZ_LEASE, &DeleteParams::default()).await {
            Err(kube::Error::Api(status)) if status.code == 404 => Ok(()),
            deleted => Ok(deleted.map(drop)?),
        }
    }

    /// Waits until the path of a workload cluster is there: its condition, and the way in each direction.
    pub(crate) async fn is_connected(&self, workload: &CapzCluster) -> Result<()> {
        becomes_true(&self.env, workload, CONDITION).await?;
        self.is_reachable(&workload.vnet(), &self.management.gateway_host())
            .await?;
        if workload.load_balancer() == LoadBalancer::Internal {
            self.is_reachable(&self.management.vnet(), &workload.api_host()).await?;
        }
        Ok(())
    }

    pub(crate) async fn is_reachable(&self, vnet: &str, host: &str) -> Result<()> {
        eventually(&format!("{host} is reachable"), SOON, || async {
            let reachable = self.env.oracle().reachable(vnet, host).await?;
            ensure!(reachable.ok, "{reachable:?}");
            Ok(())
        })
        .await
    }

    /// The ledger of the management cluster.
    pub(crate) async fn ledger(&self) -> Result<Value> {
        let object = self.management.get(&self.env).await?;
        let text = object.annotations().get(LEDGER).context("no ledger")?;
        Ok(serde_json::from_str(text)?)
    }

    /// An entry of the management cluster, as its AzureCluster has it.
    pub(crate) async fn entry_text(&self, name: &str) -> Result<String> {
        let object = self.management.get(&self.env).await?;
        let subnets = object.data["spec"]["networkSpec"]["subnets"].as_array();
        let mut entries = subnets.into_iter().flatten().flat_map(|subnet| {
            let entries = subnet["privateEndpoints"].as_array();
            entries.into_iter().flatten()
        });
        let found = entries.find(|entry| entry["name"] == name);
        found.map(Value::to_string).with_context(|| format!("no entry {name}"))
    }

    /// Waits until the management cluster has exactly these entries, and those of the ledger.
    pub(crate) async fn has_entries(&self, expected: &[String]) -> Result<()> {
        self.has_entries_and(expected, &[]).await
    }

    /// Likewise, with entries of others, which are not in the ledger.
    pub(crate) async fn has_entries_and(&self, expected: &[String], others: &[String]) -> Result<()> {
        let expected = BTreeSet::from_iter(expected.iter().cloned());
        let all: Vec<_> = expected.union(&others.iter().cloned().collect()).cloned().collect();
        eventually("the entries are as desired", SOON, || async {
            let mut names = self.management.entry_names(&self.env).await?;
            names.sort();
            let ledger = self.ledger().await?;
            let recorded: BTreeSet<_> = ledger.as_object().context("no map")?.keys().cloned().collect();
            ensure!(names == all && recorded == expected, "{names:?}, {recorded:?}");
            Ok(())
        })
        .await
    }

    /// Fails if Hyperlink's identities have written anything in Azure, or were denied anything.
    pub(crate) async fn only_reads(&self) -> Result<()> {
        let readers = [
            IdentityType::WorkloadIdentity,
            IdentityType::ServicePrincipal,
            IdentityType::ServicePrincipalCertificate,
            IdentityType::UserAssignedMsi,
        ]
        .map(IdentityType::client_id);
        let journal = self.env.oracle().journal(0).await?;
        let own: Vec<_> = journal
            .iter()
            .filter(|call| call.principal.as_deref().is_some_and(|one| readers.contains(&one)))
            .collect();
        ensure!(!own.is_empty(), "no call");
        let bad: Vec<_> = own
            .iter()
            .filter(|call| call.method != "GET" || call.status == 403)
            .collect();
        ensure!(bad.is_empty(), "{bad:?}");
        Ok(())
    }

    /// Adds an entry of a person to the management cluster, whose private endpoint leads to its own gateway. What
    /// CAPZ has read from then on has it, even if it is three writes old.
    pub(crate) async fn add_foreign_entry(&self, name: &str) -> Result<()> {
        let Self { env, management, .. } = self;
        management.create_gateway(env, &[WORKLOAD, MANAGEMENT]).await?;
        let service = management.link_service(&management.gateway_link());
        let mut entry = management.entry(name, name, &service);
        entry["customNetworkInterfaceName"] = "theirs-nic".into();
        management.add_entry(env, &entry).await?;
        becomes_true(env, management, "PrivateEndpointsReady").await?;
        for number in ["1", "2", "3"] {
            management.annotate(env, "example.com/write", Some(number)).await?;
        }
        Ok(())
    }

    pub(crate) async fn stop(self) -> Result<()> {
        self.dns.stop().await?;
        self.capz.stop().await
    }
}

pub(crate) fn workload(name: &str, identity: IdentityType) -> CapzCluster {
    CapzCluster::workload(NAMESPACE, name, LoadBalancer::Internal).with_identity_type(identity)
}

pub(crate) fn entry(workload: &CapzCluster) -> String {
    format!("{}-privateendpoint", workload.links()[0].name())
}

/// The name of the entry of a workload cluster for the gateway of its management cluster.
pub(crate) fn gateway(workload: &CapzCluster, management: &CapzCluster) -> String {
    format!("{}-to-{}-gateway-privateendpoint", workload.name(), management.name())
}

/// An entry of a person that leads to a service of Azure's own, with a field that this role does not know.
pub(crate) fn entry_of_a_person() -> Value {
    json!({"name": "theirs", "location": "westeurope", "customNetworkInterfaceName": "nic",
        "privateLinkServiceConnections": [{"name": "theirs", "groupIDs": ["blob"]}]})
}
