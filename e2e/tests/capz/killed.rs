//! A process that is killed (-9) after each of its writes, while the paths of a cluster are made and while the cluster
//! is deleted. The watch that shows a write to the process itself ends it.

use std::collections::{BTreeMap, BTreeSet};
use std::future::pending;
use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType};
use e2e::capz_controllers::{API_SERVER_IP, CONDITION, FINALIZER, MANAGEMENT_INGRESS_IP};
use e2e::{eventually, scenario};
use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::WatchStreamExt;
use kube::runtime::watcher::{self, Event, watcher};
use serde_json::Value;
use tokio::sync::watch;
use tokio::time::timeout;

use crate::fleet::{Fleet, LEDGER, entry, gateway, workload};
use crate::is_gone;

/// The longest time that a phase takes with all its deaths.
const PHASE: Duration = Duration::from_secs(240);

/// What Hyperlink writes for a private cluster of a private management cluster, beside the condition.
const WRITES: [&str; 6] = [
    "finalizer",
    "entry",
    "record in the ledger",
    "entry for the gateway",
    API_SERVER_IP,
    MANAGEMENT_INGRESS_IP,
];
const IS_TRUE: &str = "condition True ";
const IS_MISSING: &str = "condition False IdentityMissing";

/// What is there of [`WRITES`], and the condition with its reason.
type Written = BTreeSet<String>;

/// What Hyperlink has written for a cluster.
fn written(all: &BTreeMap<String, DynamicObject>, management: &CapzCluster, cluster: &CapzCluster) -> Written {
    let mut found = Written::new();
    let has_entry = |owner: &DynamicObject, name: &str| {
        let subnets = owner.data["spec"]["networkSpec"]["subnets"]
            .as_array()
            .into_iter()
            .flatten();
        let mut entries = subnets.flat_map(|subnet| subnet["privateEndpoints"].as_array().into_iter().flatten());
        entries.any(|entry| entry["name"] == name)
    };
    let mut note = |is_there: bool, what: &str| {
        if is_there {
            found.insert(what.to_owned());
        }
    };
    if let Some(object) = all.get(management.name()) {
        let ledger = object.annotations().get(LEDGER).map_or("", String::as_str);
        note(has_entry(object, &entry(cluster)), WRITES[1]);
        note(ledger.contains(&entry(cluster)), WRITES[2]);
    }
    if let Some(object) = all.get(cluster.name()) {
        note(object.finalizers().iter().any(|one| one == FINALIZER), WRITES[0]);
        note(has_entry(object, &gateway(cluster, management)), WRITES[3]);
        for annotation in [API_SERVER_IP, MANAGEMENT_INGRESS_IP] {
            note(object.annotations().contains_key(annotation), annotation);
        }
        let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
        let text = |condition: &Value, field: &str| condition[field].as_str().unwrap_or_default().to_owned();
        for condition in conditions.filter(|one| one["type"] == CONDITION) {
            let what = format!("condition {} {}", text(condition, "status"), text(condition, "reason"));
            note(true, &what);
        }
    }
    found
}

/// A cluster whose process dies at each write.
struct Mortal {
    fleet: Fleet,
    cluster: CapzCluster,
    lives: usize,
    /// What had changed at each death.
    deaths: Vec<Written>,
}

impl Mortal {
    /// Reports what is written, from the first change on; does not return.
    async fn follow(
        api: Api<DynamicObject>,
        of: (CapzCluster, CapzCluster),
        shown: watch::Sender<Written>,
    ) -> Result<()> {
        let (management, cluster) = of;
        let mut events = std::pin::pin!(watcher(api, watcher::Config::default()).default_backoff());
        let (mut all, mut is_whole) = (BTreeMap::new(), false);
        while let Some(event) = events.next().await {
            match event? {
                Event::Init => all.clear(),
                Event::Apply(object) | Event::InitApply(object) => drop(all.insert(object.name_any(), object)),
                Event::Delete(object) => drop(all.remove(&object.name_any())),
                Event::InitDone => is_whole = true,
            }
            if is_whole {
                shown.send_replace(written(&all, &management, &cluster));
            }
        }
        anyhow::bail!("the watch has ended")
    }

    /// One life after the other, each as long as its first write takes, until `is_over`.
    async fn lives(&mut self, is_over: impl Fn(&Written) -> bool) -> Result<()> {
        let api = self.cluster.azure_clusters(&self.fleet.env.client()?);
        let (shown, mut observed) = watch::channel(Written::new());
        let following = tokio::spawn(Self::follow(
            api,
            (self.fleet.management.clone(), self.cluster.clone()),
            shown,
        ));
        observed.changed().await?;
        let mut before = observed.borrow_and_update().clone();
        while !is_over(&before) {
            self.lives += 1;
            self.fleet.free_lease().await?;
            let name = format!("life-{}", self.lives);
            // What holds the process is dropped at the first write, and so the process dies.
            let life = async {
                let _hyperlink = self.fleet.hyperlink(&name).await?;
                pending::<Result<()>>().await
            };
            let now = tokio::select! {
                biased;
                changed = observed.wait_for(|now| *now != before) => changed?.clone(),
                failed = life => {
                    failed?;
                    continue;
                }
            };
            let change: Written = now.symmetric_difference(&before).cloned().collect();
            println!("{name} dies at {change:?}");
            self.deaths.push(change);
            before = now;
        }
        following.abort();
        Ok(())
    }

    fn has_died_at(&self, what: &str) -> bool {
        self.deaths.iter().flatten().any(|one| one == what)
    }
}

/// Fails unless processes died at the removal of the entry and its record, and not before that at the finalizer's.
fn ends_in_order(deaths: &[Written]) -> Result<()> {
    let [finalizer, entry, record, ..] = WRITES;
    let mut at = Vec::new();
    for what in [entry, record, finalizer] {
        let death = deaths.iter().position(|change| change.contains(what));
        at.push(death.with_context(|| format!("no death at the removal of {what}: {deaths:?}"))?);
    }
    ensure!(at.is_sorted(), "the finalizer is removed first: {deaths:?}");
    Ok(())
}

#[test]
fn process_killed_after_each_write_leaves_nothing() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let cluster = workload("mortal", IdentityType::WorkloadIdentity);
        let mut mortal = Mortal {
            cluster: cluster.clone(),
            fleet,
            lives: 0,
            deaths: Vec::new(),
        };
        cluster.create(&mortal.fleet.env).await?;
        let is_whole = |now: &Written| WRITES.iter().all(|what| now.contains(*what)) && now.contains(IS_TRUE);
        timeout(PHASE, mortal.lives(is_whole)).await.context("the creation")??;
        // A process that has just started does not know all identities yet.
        ensure!(!mortal.has_died_at(IS_MISSING), "{:?}", mortal.deaths);
        for what in WRITES.iter().chain([&IS_TRUE]) {
            ensure!(mortal.has_died_at(what), "no death at {what}: {:?}", mortal.deaths);
        }
        let hyperlink = mortal.fleet.hyperlink("survivor").await?;
        mortal.fleet.is_connected(&cluster).await?;
        mortal.fleet.has_entries(&[entry(&cluster)]).await?;
        let conditions = cluster.conditions(&mortal.fleet.env, CONDITION).await?;
        ensure!(conditions.len() == 1, "{conditions:?}");
        drop(hyperlink);

        let lived = mortal.deaths.len();
        let env = mortal.fleet.env.client()?;
        let azure_clusters = cluster.azure_clusters(&env);
        azure_clusters.delete(cluster.name(), &Default::default()).await?;
        timeout(PHASE, mortal.lives(Written::is_empty))
            .await
            .context("the deletion")??;
        ends_in_order(&mortal.deaths[lived..])?;
        eventually("it is gone", PHASE, || async {
            let left = azure_clusters.get_opt(cluster.name()).await?;
            ensure!(left.is_none(), "{left:?}");
            Ok(())
        })
        .await?;
        mortal.fleet.has_entries(&[]).await?;
        is_gone(&mortal.fleet.env, &mortal.fleet.management.endpoint(&entry(&cluster))).await?;
        mortal.fleet.only_reads().await?;
        mortal.fleet.stop().await
    });
}
