//! Many workload clusters at once, and entries that others drop again and again: none is lost, and the management
//! cluster is written seldom.

use std::collections::{BTreeMap, BTreeSet};
use std::time::{Duration, Instant};

use anyhow::{Result, ensure};
use e2e::bench::audit::Audit;
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer, entries};
use e2e::capz_controllers::CONDITION;
use e2e::hyperlink::Hyperlink;
use e2e::random::{Random, seed};
use e2e::{eventually, patient, scenario};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::ResourceExt;
use kube::api::DynamicObject;
use serde_json::Value;
use tokio::time::interval;

use crate::fleet::{Fleet, entry, entry_of_a_person, workload};
use crate::{SOON, becomes_true};

/// How many clusters come, and in which time.
const CROWD: (u32, Duration) = (300, Duration::from_secs(9));
/// The most writes of the management cluster, in which time.
const MOST_WRITES: (u32, Duration) = (30, Duration::from_secs(10));
/// How many requests are on their way at the same time.
const AT_ONCE: usize = 16;
/// The longest time that anything takes for so many clusters.
const LONG: Duration = Duration::from_secs(240);

const LINKS_READY: &str = "PrivateLinksReady";

/// Waits until each workload cluster has one condition of the role, for one of these reasons.
async fn have_reason(fleet: &Fleet, reasons: &[&str]) -> Result<()> {
    let api = fleet.management.azure_clusters(&fleet.env.client()?);
    eventually(&format!("each has its condition {reasons:?}"), LONG, || async {
        let mut all = api.list(&Default::default()).await?.items;
        all.retain(|object| object.name_any() != fleet.management.name());
        for object in &all {
            let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
            let own: Vec<&Value> = conditions.filter(|one| one["type"] == CONDITION).collect();
            let [condition] = own[..] else {
                anyhow::bail!("{}: {own:?}", object.name_any());
            };
            let reason = condition["reason"].as_str().unwrap_or_default();
            ensure!(reasons.contains(&reason), "{}: {condition}", object.name_any());
        }
        ensure!(all.len() == CROWD.0 as usize, "{} clusters", all.len());
        Ok(())
    })
    .await
}

#[test]
fn hundreds_of_clusters_take_few_writes() {
    scenario(async {
        let (count, time) = CROWD;
        let fleet = Fleet::without_management(LoadBalancer::Public).await?;
        fleet.capz.pause();
        fleet.create_management().await?;
        let clusters: Vec<_> = (0..count)
            .map(|number| workload(&format!("crowd-{number}"), IdentityType::WorkloadIdentity))
            .collect();
        let created = stream::iter(&clusters).map(|cluster| cluster.create_objects(&fleet.env));
        created
            .buffer_unordered(AT_ONCE)
            .map_ok(drop)
            .try_collect::<()>()
            .await?;
        let hyperlink = fleet.hyperlink("first").await?;
        have_reason(&fleet, &["LinksNotReady"]).await?;

        let audit = Audit::begin(fleet.env.control_plane().audit_log())?;
        let began = Instant::now();
        let ticks = stream::unfold(interval(time / count), async |mut each| {
            each.tick().await;
            Some(((), each))
        });
        let arrivals = stream::iter(&clusters).zip(ticks);
        let ready = arrivals.map(|(cluster, ())| cluster.set_conditions(&fleet.env, &[(LINKS_READY, "True")]));
        ready.buffer_unordered(AT_ONCE).try_collect::<()>().await?;
        fleet
            .has_entries(&clusters.iter().map(entry).collect::<Vec<_>>())
            .await?;
        let (writes, took) = (audit.writes_of(fleet.management.name())?.len(), began.elapsed());
        println!("{writes} writes in {took:?}");
        let (most, usual) = MOST_WRITES;
        let most = f64::from(most) * took.max(usual).div_duration_f64(usual);
        ensure!(
            writes as f64 <= most,
            "{writes} writes of the management cluster in {took:?}"
        );
        // Three hundred reads of what is not there use the request limit of the subscription up.
        have_reason(&fleet, &["WaitingForEndpoint", "AzureThrottled"]).await?;
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

/// How often entries are dropped.
const DROPS: u32 = 50;
/// The clusters whose entries are dropped.
const CLUSTERS: usize = 5;
/// Within this time, what was dropped is usually back.
const BACK: Duration = Duration::from_secs(1);

/// Every entry of an AzureCluster, by its name.
fn by_name(object: &DynamicObject) -> BTreeMap<String, Value> {
    let all = entries(object).map(|(_, entry)| (entry["name"].as_str().unwrap_or_default().to_owned(), entry.clone()));
    all.collect()
}

/// A fleet whose workload clusters have come one after another: CAPZ, which is paused, has read the management cluster
/// with a part of their entries too. An entry of a person is in all that it has read since.
async fn come_one_by_one(clusters: &[CapzCluster]) -> Result<(Fleet, Hyperlink)> {
    let fleet = Fleet::start().await?;
    becomes_true(&fleet.env, &fleet.management, "Ready").await?;
    fleet.capz.pause();
    fleet.management.add_entry(&fleet.env, &entry_of_a_person()).await?;
    let hyperlink = fleet.hyperlink("first").await?;
    let mut names = Vec::new();
    for cluster in clusters {
        cluster.create_objects(&fleet.env).await?;
        cluster.set_conditions(&fleet.env, &[(LINKS_READY, "True")]).await?;
        names.push(entry(cluster));
        fleet.has_entries_and(&names, &["theirs".to_owned()]).await?;
    }
    Ok((fleet, hyperlink))
}

/// Has CAPZ write the subnets of the management cluster as it has read them at random: with a part of `all` that stand
/// there. `versions` are as many as CAPZ has read since the first entry of another came. Returns which are missing.
async fn drop_at_random(
    fleet: &Fleet,
    random: &mut Random,
    versions: usize,
    all: &BTreeMap<String, Value>,
) -> Result<Vec<String>> {
    loop {
        let stale_by = 1 + usize::try_from(random.below(u64::try_from(versions)?))?;
        let written = fleet.capz.rewrite_subnets(&fleet.management, stale_by).await?;
        let left = by_name(&written);
        let dropped: Vec<_> = all.keys().filter(|name| !left.contains_key(*name)).cloned().collect();
        // What it has read with all of them changes nothing.
        if !dropped.is_empty() {
            ensure!(left.contains_key("theirs"), "older than a person's entry: {left:?}");
            return Ok(dropped);
        }
    }
}

#[test]
fn entry_that_is_dropped_at_random_is_back_each_time() {
    let mut random = Random::new(seed());
    scenario(async {
        let clusters: Vec<_> = (0..CLUSTERS)
            .map(|number| workload(&format!("wc-{number}"), IdentityType::WorkloadIdentity))
            .collect();
        let (fleet, hyperlink) = come_one_by_one(&clusters).await?;
        let before = by_name(&fleet.management.get(&fleet.env).await?);

        let (mut late, mut times, mut kinds) = (0, Vec::new(), BTreeSet::new());
        let mut versions = CLUSTERS;
        for _ in 0..DROPS {
            kinds.insert(drop_at_random(&fleet, &mut random, versions, &before).await?);
            let began = Instant::now();
            eventually("all are back", SOON, || async {
                let now = by_name(&fleet.management.get(&fleet.env).await?);
                ensure!(now == before, "{now:?}");
                Ok(())
            })
            .await?;
            times.push(began.elapsed());
            late += u32::from(began.elapsed() > patient(BACK));
            versions += 2;
        }
        times.sort();
        println!("{} kinds of drops, back after {times:?}", kinds.len());
        ensure!(
            late * 10 <= DROPS,
            "{late} of {DROPS} after more than {BACK:?}: {times:?}"
        );
        ensure!(kinds.len() > 1, "always the same are dropped: {kinds:?}");
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
