//! Clusters come and go while others write the same objects and the process is killed (-9): the end is what the rules
//! say, whatever the order. A seed decides on the order; it is printed, and can be given again as `E2E_SEED`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType};
use e2e::capz_controllers::CONDITION;
use e2e::hyperlink::Hyperlink;
use e2e::random::{Random, seed};
use e2e::{eventually, scenario};
use kube::api::DynamicObject;
use serde_json::Value;

use crate::SOON;
use crate::fleet::{Fleet, entry, gateway, workload};

/// How many things happen.
const STEPS: usize = 200;
/// The most clusters that there are at the same time, and the fewest that stay once there were more.
const CLUSTERS: (usize, usize) = (6, 2);
/// The entry of a person.
const THEIRS: &str = "theirs";

/// An environment in which the process dies.
struct Disturbed {
    fleet: Fleet,
    random: Random,
    hyperlink: Option<Hyperlink>,
    alive: BTreeMap<usize, CapzCluster>,
    created: usize,
    /// The entries of clusters that were gone when CAPZ, by what it had read before, wrote them again: nobody's.
    leaked: BTreeSet<String>,
    gone: BTreeSet<String>,
    lives: usize,
}

impl Disturbed {
    async fn start(seed: u64) -> Result<Self> {
        let mut this = Self {
            fleet: Fleet::start().await?,
            random: Random::new(seed),
            hyperlink: None,
            alive: BTreeMap::new(),
            created: 0,
            leaked: BTreeSet::new(),
            gone: BTreeSet::new(),
            lives: 0,
        };
        this.fleet.add_foreign_entry(THEIRS).await?;
        this.restart().await?;
        Ok(this)
    }

    async fn restart(&mut self) -> Result<()> {
        self.lives += 1;
        let name = format!("life-{}", self.lives);
        // This kills it (-9).
        drop(self.hyperlink.take());
        self.fleet.free_lease().await?;
        self.hyperlink = Some(self.fleet.hyperlink(&name).await?);
        Ok(())
    }

    /// One thing happens; returns what.
    async fn step(&mut self) -> Result<String> {
        let numbers: Vec<usize> = self.alive.keys().copied().collect();
        let picked = self
            .random
            .one_of(&numbers)
            .map(|number| (*number, self.alive[number].clone()));
        let (most, fewest) = CLUSTERS;
        Ok(match (self.random.below(10), picked) {
            (0, _) => {
                self.restart().await?;
                "killed".to_owned()
            }
            (1 | 2, _) if self.alive.len() < most => self.create().await?,
            (3, Some((number, cluster))) if self.alive.len() > fewest => {
                self.alive.remove(&number);
                self.delete(&cluster).await?
            }
            (4 | 5, Some((_, cluster))) => self.drop_entry(&cluster).await?,
            (6..=8, Some((_, cluster))) => self.write_outdated(&cluster).await?,
            (_, Some((_, cluster))) => {
                self.has_entry(&cluster).await?;
                format!("{} has its entry", cluster.name())
            }
            (_, None) => self.create().await?,
        })
    }

    async fn create(&mut self) -> Result<String> {
        let identity = if self.random.below(2) == 0 {
            IdentityType::WorkloadIdentity
        } else {
            IdentityType::ServicePrincipal
        };
        let cluster = workload(&format!("wc-{}", self.created), identity);
        cluster.create(&self.fleet.env).await?;
        let what = format!("{} created", cluster.name());
        self.alive.insert(self.created, cluster);
        self.created += 1;
        Ok(what)
    }

    /// Deletes a cluster; once it is gone, the management cluster has nothing of it.
    async fn delete(&mut self, cluster: &CapzCluster) -> Result<String> {
        cluster.delete(&self.fleet.env, SOON).await?;
        let names = self.fleet.management.entry_names(&self.fleet.env).await?;
        ensure!(!names.contains(&entry(cluster)), "{names:?}");
        let ledger = self.fleet.ledger().await.unwrap_or_default();
        ensure!(ledger.get(entry(cluster)).is_none(), "{ledger}");
        self.gone.insert(entry(cluster));
        Ok(format!("{} deleted", cluster.name()))
    }

    /// Somebody removes an entry of a cluster, or the one of its way to the gateway.
    async fn drop_entry(&mut self, cluster: &CapzCluster) -> Result<String> {
        let (owner, name) = match self.random.below(2) {
            0 => (&self.fleet.management, entry(cluster)),
            _ => (cluster, gateway(cluster, &self.fleet.management)),
        };
        owner.remove_entry(&self.fleet.env, &name).await?;
        Ok(format!("{name} dropped"))
    }

    /// CAPZ writes subnets or conditions as they were some writes before.
    async fn write_outdated(&mut self, cluster: &CapzCluster) -> Result<String> {
        let stale_by = 1 + usize::try_from(self.random.below(3))?;
        let Fleet {
            capz, management, env, ..
        } = &self.fleet;
        let what = match self.random.below(4) {
            0 => {
                capz.rewrite_conditions(cluster, stale_by).await?;
                format!("conditions of {}", cluster.name())
            }
            1 => {
                capz.rewrite_subnets(cluster, stale_by).await?;
                format!("subnets of {}", cluster.name())
            }
            _ => {
                capz.rewrite_subnets(management, stale_by).await?;
                let names = management.entry_names(env).await?;
                self.leaked = names.into_iter().filter(|name| self.gone.contains(name)).collect();
                "subnets of the management cluster".to_owned()
            }
        };
        Ok(format!("{what} written as they were {stale_by} writes before"))
    }

    async fn has_entry(&self, cluster: &CapzCluster) -> Result<()> {
        eventually("its entry is there", SOON, || async {
            let names = self.fleet.management.entry_names(&self.fleet.env).await?;
            ensure!(names.contains(&entry(cluster)), "{names:?}");
            Ok(())
        })
        .await
    }

    /// The end: every cluster that is alive is connected, and there is nothing else.
    async fn is_in_order(&self) -> Result<()> {
        let alive: Vec<_> = self.alive.values().map(entry).collect();
        let others: Vec<_> = self.leaked.iter().cloned().chain([THEIRS.to_owned()]).collect();
        self.fleet.has_entries_and(&alive, &others).await?;
        for cluster in self.alive.values() {
            self.fleet.is_connected(cluster).await?;
            let conditions = cluster.conditions(&self.fleet.env, CONDITION).await?;
            ensure!(conditions.len() == 1, "{conditions:?}");
        }
        self.fleet.has_entries_and(&alive, &others).await?;
        self.fleet.only_reads().await
    }
}

/// A cluster's spec without the entries of workload clusters.
fn foreign_part(object: &DynamicObject) -> String {
    let mut spec = object.data["spec"].clone();
    for subnet in spec["networkSpec"]["subnets"].as_array_mut().into_iter().flatten() {
        if let Some(entries) = subnet.get_mut("privateEndpoints").and_then(Value::as_array_mut) {
            entries.retain(|entry| entry["name"] == THEIRS);
        }
    }
    spec.to_string()
}

#[test]
fn disturbed_lives_end_as_the_rules_have_it() {
    let seed = seed();
    scenario(async {
        let mut disturbed = Disturbed::start(seed).await?;
        let before = foreign_part(&disturbed.fleet.management.get(&disturbed.fleet.env).await?);
        for number in 0..STEPS {
            let what = disturbed.step().await;
            let what = what.with_context(|| format!("step {number} of E2E_SEED={seed}"))?;
            println!("{number}: {what}");
        }
        let end = disturbed.is_in_order().await;
        end.with_context(|| format!("the end of E2E_SEED={seed}"))?;
        let after = foreign_part(&disturbed.fleet.management.get(&disturbed.fleet.env).await?);
        ensure!(after == before, "{after} is not {before}");
        ensure!(
            disturbed.lives > 1 && !disturbed.gone.is_empty(),
            "too little has happened"
        );
        disturbed.hyperlink.take().context("no process")?.stop().await?;
        disturbed.fleet.stop().await
    });
}
