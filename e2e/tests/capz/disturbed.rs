//! Clusters come and go while others write the same objects and the process is killed (-9): the end is what the rules
//! say, whatever the order. A seed decides on the order; it is printed, and can be given again as `E2E_SEED`.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, NODE_SUBNET};
use e2e::capz_controllers::{API_SERVER_IP, CONDITION, upgrade};
use e2e::capz_env::MANAGEMENT;
use e2e::hyperlink::Hyperlink;
use e2e::random::{Random, seed};
use e2e::{eventually, scenario};
use kube::api::DynamicObject;
use serde_json::{Value, json};

use crate::SOON;
use crate::bad_input::has_reason;
use crate::changes::{links, set_links};
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
    /// The management cluster's spec, as others have it.
    foreign: Value,
    /// That of each cluster that is alive, without what CAPZ adds in its own time.
    foreign_of: BTreeMap<usize, Value>,
    /// The clusters whose link the management cluster may not use.
    forbidden: BTreeSet<usize>,
    gone: BTreeSet<String>,
    /// How many entries of clusters that were gone CAPZ has written again, by what it had read before.
    brought_back: usize,
    lives: usize,
    upgrades: usize,
}

impl Disturbed {
    async fn start(seed: u64) -> Result<Self> {
        let mut this = Self {
            fleet: Fleet::start().await?,
            random: Random::new(seed),
            hyperlink: None,
            alive: BTreeMap::new(),
            created: 0,
            foreign: Value::Null,
            foreign_of: BTreeMap::new(),
            forbidden: BTreeSet::new(),
            upgrades: 0,
            gone: BTreeSet::new(),
            brought_back: 0,
            lives: 0,
        };
        this.fleet.add_foreign_entry(THEIRS).await?;
        this.foreign = foreign_part(&this.fleet.management.get(&this.fleet.env).await?);
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
        Ok(match (self.random.below(12), picked) {
            (0, _) => {
                self.restart().await?;
                "killed".to_owned()
            }
            (1 | 2, _) if self.alive.len() < most => self.create().await?,
            (3, Some((number, cluster))) if self.alive.len() > fewest => {
                self.alive.remove(&number);
                self.foreign_of.remove(&number);
                self.forbidden.remove(&number);
                self.delete(&cluster).await?
            }
            (4 | 5, Some((_, cluster))) => self.drop_entry(&cluster).await?,
            (6..=8, Some((_, cluster))) => self.write_outdated(&cluster).await?,
            (9, Some(_)) => self.upgrade().await?,
            (10, Some((number, cluster))) => self.change_links(number, &cluster).await?,
            (_, Some((number, cluster))) => self.has_entry_or_not(number, &cluster).await?,
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
        let created = cluster.create(&self.fleet.env).await?;
        self.foreign_of.insert(self.created, foreign_part(&created));
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
                let rewritten = capz.rewrite_subnets(management, stale_by).await?;
                self.foreign = foreign_part(&rewritten);
                let brought_back = management.entry_names(env).await?;
                self.brought_back += brought_back.iter().filter(|name| self.gone.contains(*name)).count();
                "subnets of the management cluster".to_owned()
            }
        };
        Ok(format!("{what} written as they were {stale_by} writes before"))
    }

    /// Helm replaces the subnets of the management cluster, with another route table each time. Its chart has the entry
    /// of the person and no other.
    async fn upgrade(&mut self) -> Result<String> {
        self.upgrades += 1;
        let table = format!("helm-{}", self.upgrades);
        let mut subnets = self.foreign["networkSpec"]["subnets"].clone();
        let mut all = subnets.as_array_mut().into_iter().flatten();
        let nodes = all.find(|subnet| subnet["name"] == NODE_SUBNET);
        nodes.context("no subnet of nodes")?["routeTable"] = json!({"name": table});
        let Fleet { management, env, .. } = &self.fleet;
        let upgraded = upgrade(env, management, &subnets).await?;
        self.foreign["networkSpec"]["subnets"] = subnets;
        let found = foreign_part(&upgraded);
        ensure!(found == self.foreign, "{found} is not {}", self.foreign);
        Ok(format!("upgrade to {table}"))
    }

    /// The owner of a cluster forbids the management cluster the use of its link, or allows it again.
    async fn change_links(&mut self, number: usize, cluster: &CapzCluster) -> Result<String> {
        let is_allowed = self.forbidden.remove(&number);
        if !is_allowed {
            self.forbidden.insert(number);
        }
        let subscriptions: &[&str] = if is_allowed { &[MANAGEMENT] } else { &[] };
        let mut links = links(&self.fleet, cluster).await?;
        for link in &mut links {
            link["allowedSubscriptions"] = json!(subscriptions);
            link["autoApprovedSubscriptions"] = json!(subscriptions);
        }
        set_links(&self.fleet, cluster, &links).await?;
        let foreign = self.foreign_of.get_mut(&number).context("an unknown cluster")?;
        foreign["networkSpec"]["apiServerLB"]["privateLinks"] = links.into();
        let verb = if is_allowed { "allows" } else { "forbids" };
        Ok(format!("{} {verb} its link", cluster.name()))
    }

    async fn has_entry_or_not(&self, number: usize, cluster: &CapzCluster) -> Result<String> {
        let (name, is_desired) = (entry(cluster), !self.forbidden.contains(&number));
        let word = if is_desired { "has" } else { "has not" };
        let what = format!("{} {word} its entry", cluster.name());
        eventually(&what, SOON, || async {
            let names = self.fleet.management.entry_names(&self.fleet.env).await?;
            ensure!(names.contains(&name) == is_desired, "{names:?}");
            Ok(())
        })
        .await?;
        Ok(what)
    }

    /// The end: every cluster that is alive is connected, as far as it allows that, and there is nothing else.
    async fn is_in_order(&self) -> Result<()> {
        let is_allowed = |number: &usize| !self.forbidden.contains(number);
        let allowed = self.alive.iter().filter(|(number, _)| is_allowed(number));
        let entries: Vec<_> = allowed.map(|(_, cluster)| entry(cluster)).collect();
        // What an old write of CAPZ has brought back of clusters that are gone is gone again.
        let others = [THEIRS.to_owned()];
        self.fleet.has_entries_and(&entries, &others).await?;
        for (number, cluster) in &self.alive {
            if is_allowed(number) {
                self.fleet.is_connected(cluster).await?;
            } else {
                self.is_without_link(cluster).await?;
            }
            let conditions = cluster.conditions(&self.fleet.env, CONDITION).await?;
            ensure!(conditions.len() == 1, "{conditions:?}");
        }
        self.fleet.has_entries_and(&entries, &others).await?;
        self.is_foreign_part_kept().await?;
        self.fleet.only_reads().await
    }

    /// The way to the gateway is there, and nothing of the way to the API server.
    async fn is_without_link(&self, cluster: &CapzCluster) -> Result<()> {
        let Fleet { management, env, .. } = &self.fleet;
        has_reason(&self.fleet, cluster, "LinksNotAllowed").await?;
        let address = cluster.annotation(env, API_SERVER_IP).await?;
        ensure!(address.is_none(), "{address:?}");
        let host = management.gateway_host();
        self.fleet.is_reachable(&cluster.vnet(), &host).await
    }

    /// What others have written stands, in the management cluster and in all clusters.
    async fn is_foreign_part_kept(&self) -> Result<()> {
        let Fleet { management, env, .. } = &self.fleet;
        let found = foreign_part(&management.get(env).await?);
        ensure!(found == self.foreign, "{found} is not {}", self.foreign);
        for (number, cluster) in &self.alive {
            let found = without_ids(foreign_part(&cluster.get(env).await?));
            let expected = self.foreign_of.get(number).context("an unknown cluster")?;
            ensure!(found == *expected, "{}: {found} is not {expected}", cluster.name());
        }
        Ok(())
    }
}

/// The subnets of a spec.
fn subnets(spec: &mut Value) -> impl Iterator<Item = &mut Value> {
    let subnets = spec["networkSpec"]["subnets"].as_array_mut();
    subnets.into_iter().flatten()
}

/// A cluster's spec without the entries of Hyperlink.
fn foreign_part(object: &DynamicObject) -> Value {
    let mut spec = object.data["spec"].clone();
    for subnet in subnets(&mut spec).filter_map(Value::as_object_mut) {
        let entries = subnet.get_mut("privateEndpoints").and_then(Value::as_array_mut);
        let is_empty = entries.is_some_and(|entries| {
            entries.retain(|entry| entry["name"] == THEIRS);
            entries.is_empty()
        });
        if is_empty {
            subnet.remove("privateEndpoints");
        }
    }
    spec
}

fn without_ids(mut spec: Value) -> Value {
    for subnet in subnets(&mut spec).filter_map(Value::as_object_mut) {
        subnet.remove("id");
    }
    spec
}

#[test]
fn disturbed_lives_end_as_the_rules_have_it() {
    let seed = seed();
    scenario(async {
        let mut disturbed = Disturbed::start(seed).await?;
        for number in 0..STEPS {
            let what = disturbed.step().await;
            let what = what.with_context(|| format!("step {number} of E2E_SEED={seed}"))?;
            println!("{number}: {what}");
        }
        let end = disturbed.is_in_order().await;
        end.with_context(|| format!("the end of E2E_SEED={seed}"))?;
        let Disturbed {
            lives, upgrades, gone, ..
        } = &disturbed;
        println!(
            "entries of clusters that were gone written again: {}",
            disturbed.brought_back
        );
        let has_happened = *lives > 1 && *upgrades > 0 && !gone.is_empty();
        ensure!(has_happened, "too little has happened");
        disturbed.hyperlink.take().context("no process")?.stop().await?;
        disturbed.fleet.stop().await
    });
}
