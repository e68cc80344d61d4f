//! The whole life of a hosted cluster, alike on every [`Target`]: `make test` runs it on the simulated Azure, `make
//! e2e` elsewhere.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::Target;
use crate::hosted_cluster::HostedCluster;
use crate::running::Running;

/// The base domain of the clusters that have one.
pub const BASE_DOMAIN: &str = "apps.example.com";

/// A scenario by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A private cluster comes up, is reachable, heals from drift, is deleted and leaves nothing behind.
    Plain,
    /// Like [`Scenario::Plain`], with a base domain.
    Based,
    /// Like [`Scenario::Plain`], with a NAT subnet that an administrator created.
    Given,
    /// Like [`Scenario::Plain`], with a base domain and a given NAT subnet.
    Both,
    /// While a cluster exists, the leader of each role stops. The next leader heals the cluster and cleans up.
    HandOver,
}

impl Scenario {
    /// All scenarios there are.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Based, Self::Given, Self::Both, Self::HandOver];

    /// The scenario's name, which is its cluster's name too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Based => "based",
            Self::Given => "given",
            Self::Both => "both",
            Self::HandOver => "hand-over",
        }
    }

    /// Whether the scenario creates a NAT subnet in the management VNet. The addresses of that subnet have to be free.
    pub fn gives_a_nat_subnet(self) -> bool {
        matches!(self, Self::Given | Self::Both)
    }

    /// The hosted cluster of the scenario.
    pub fn cluster(self, target: &Target) -> HostedCluster {
        let cluster = HostedCluster::new(target, self.as_str());
        match self {
            Self::Plain | Self::Given => cluster,
            Self::Based | Self::Both | Self::HandOver => cluster.with_base_domain(BASE_DOMAIN),
        }
    }

    /// Runs the scenario to its end.
    ///
    /// # Errors
    ///
    /// The scenario fails; the error says where.
    pub async fn run(self, target: &Target, running: Running) -> Result<()> {
        let before = target.resource_ids().await?;
        let mut cluster = self.cluster(target);
        if self.gives_a_nat_subnet() {
            let id = target.create_nat_subnet(&target.name("given")).await?;
            cluster = cluster.with_nat_subnet(&id);
        }
        comes_up(target, &cluster).await?;
        let own = cluster.own_nat_subnet(target).to_lowercase();
        let made = target.resource_ids().await?.contains(&own);
        ensure!(made != self.gives_a_nat_subnet(), "{own}: made is {made}");

        let running = match self {
            Self::HandOver => running.hand_over(target).await?,
            _ => running,
        };
        heals(target, &cluster).await?;
        cluster.delete(target, target.patience()).await?;
        running.stop().await?;
        leaves_no_trace(target, &cluster, before).await
    }
}

async fn comes_up(target: &Target, cluster: &HostedCluster) -> Result<()> {
    cluster.create(target).await?;
    cluster.becomes_available(target, target.patience()).await?;
    cluster.becomes_reachable(target, target.patience()).await
}

/// Deletes the Private Endpoint behind Hyperlink's back and waits until the workers reach their control plane again.
async fn heals(target: &Target, cluster: &HostedCluster) -> Result<()> {
    target.oracle().drift_delete(&cluster.endpoint()).await?;
    cluster.becomes_reachable(target, target.patience()).await
}

/// Fails unless everything is gone but the resources of HyperShift and of the administrator.
async fn leaves_no_trace(target: &Target, cluster: &HostedCluster, before: BTreeSet<String>) -> Result<()> {
    let own = [cluster.resource_group(), cluster.vnet(), cluster.subnet()];
    let given = format!("{}/subnets/{}", target.azure().management_vnet, target.name("given"));
    let remaining = own.into_iter().chain([given]).map(|id| id.to_lowercase());
    let expected: BTreeSet<_> = before.into_iter().chain(remaining).collect();
    let left = target.resource_ids().await?;
    let extra: Vec<_> = left.difference(&expected).collect();
    ensure!(extra.is_empty(), "left behind: {extra:?}");
    Ok(())
}
