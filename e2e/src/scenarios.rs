//! What a hosted cluster lives through, in every [`Target`] alike: on the simulator in `make test`, elsewhere by `make e2e`.

use std::collections::BTreeSet;

use anyhow::{Result, ensure};

use crate::Target;
use crate::hosted_cluster::HostedCluster;
use crate::running::Running;

/// The domain under which clusters are published that have one.
pub const BASE_DOMAIN: &str = "apps.example.com";

/// A scenario by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scenario {
    /// A private cluster comes up, is reachable, heals, and goes without a trace.
    Plain,
    /// The same, with a base domain.
    Based,
    /// The same, with a NAT subnet that an administrator has made.
    Given,
    /// The same, with both.
    Both,
    /// While a cluster is there, the leader of each role goes: the next one leads, heals and cleans up.
    HandOver,
}

impl Scenario {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Plain, Self::Based, Self::Given, Self::Both, Self::HandOver];

    /// Its name, which its cluster has too.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plain => "plain",
            Self::Based => "based",
            Self::Given => "given",
            Self::Both => "both",
            Self::HandOver => "hand-over",
        }
    }

    /// Whether it has a NAT subnet made in the management VNet, whose addresses have to be free for that.
    pub fn gives_a_nat_subnet(self) -> bool {
        matches!(self, Self::Given | Self::Both)
    }

    /// The cluster that it is about.
    pub fn cluster(self, target: &Target) -> HostedCluster {
        let cluster = HostedCluster::new(target, self.as_str());
        match self {
            Self::Plain | Self::Given => cluster,
            Self::Based | Self::Both | Self::HandOver => cluster.with_base_domain(BASE_DOMAIN),
        }
    }

    /// Runs it to its end.
    ///
    /// # Errors
    ///
    /// It fails; the error says where.
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
        goes_without_a_trace(target, &cluster, before).await
    }
}

async fn comes_up(target: &Target, cluster: &HostedCluster) -> Result<()> {
    cluster.create(target).await?;
    cluster.becomes_available(target, target.patience()).await?;
    cluster.becomes_reachable(target, target.patience()).await
}

/// Somebody deletes the endpoint; the workers reach their control plane again.
async fn heals(target: &Target, cluster: &HostedCluster) -> Result<()> {
    target.oracle().drift_delete(&cluster.endpoint()).await?;
    cluster.becomes_reachable(target, target.patience()).await
}

/// HyperShift's and the administrator's own things stay; all else goes.
async fn goes_without_a_trace(target: &Target, cluster: &HostedCluster, before: BTreeSet<String>) -> Result<()> {
    let own = [cluster.resource_group(), cluster.vnet(), cluster.subnet()];
    let given = format!("{}/subnets/{}", target.azure().management_vnet, target.name("given"));
    let kept = own.into_iter().chain([given]).map(|id| id.to_lowercase());
    let expected: BTreeSet<_> = before.into_iter().chain(kept).collect();
    let left = target.resource_ids().await?;
    let extra: Vec<_> = left.difference(&expected).collect();
    ensure!(extra.is_empty(), "left behind: {extra:?}");
    Ok(())
}
