//! Many workload clusters at once, and entries that others drop again and again: none is lost, and the management
//! cluster is written seldom.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, ensure};
use e2e::bench::audit::Audit;
use e2e::capz_cluster::{CapzCluster, IdentityType, LoadBalancer};
use e2e::capz_controllers::CONDITION;
use e2e::random::{Random, seed};
use e2e::{eventually, patient, scenario};
use futures::stream::{self, StreamExt, TryStreamExt};
use kube::ResourceExt;
use serde_json::{Value, json};
use tokio::time::interval;

use crate::SOON;
use crate::fleet::{Fleet, entry, workload};

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

/// How often an entry is dropped.
const DROPS: usize = 50;
/// The clusters whose entries are dropped.
const CLUSTERS: usize = 5;
/// Within this time, an entry is usually back.
const BACK: Duration = Duration::from_secs(1);

/// Every entry of the management cluster, by its name, in the order of subnets and entries.
async fn entries(management: &CapzCluster, fleet: &Fleet) -> Result<(Value, BTreeMap<String, Value>)> {
    let subnets = management.get(&fleet.env).await?.data["spec"]["networkSpec"]["subnets"].clone();
    let lists = subnets.as_array().context("no subnets")?.iter();
    let all = lists.flat_map(|subnet| subnet["privateEndpoints"].as_array().into_iter().flatten());
    let all = all.map(|entry| (entry["name"].as_str().unwrap_or_default().to_owned(), entry.clone()));
    let all = all.collect();
    Ok((subnets, all))
}

/// Writes the subnets of the management cluster as they were before this entry was there, whatever stands there now:
/// so does a controller that has read them then.
async fn drop_entry(fleet: &Fleet, name: &str) -> Result<()> {
    let (mut subnets, _) = entries(&fleet.management, fleet).await?;
    for subnet in subnets.as_array_mut().into_iter().flatten() {
        if let Some(all) = subnet["privateEndpoints"].as_array_mut() {
            all.retain(|entry| entry["name"] != name);
        }
    }
    let patch = json!({"spec": {"networkSpec": {"subnets": subnets}}});
    fleet.management.patch(&fleet.env, &patch).await.map(drop)
}

#[test]
fn entry_that_is_dropped_at_random_is_back_each_time() {
    let mut random = Random::new(seed());
    scenario(async {
        let fleet = Fleet::start().await?;
        fleet.capz.pause();
        let theirs = json!({"name": "theirs", "location": "westeurope", "customNetworkInterfaceName": "nic",
            "privateLinkServiceConnections": [{"name": "theirs", "groupIDs": ["blob"]}]});
        fleet.management.add_entry(&fleet.env, &theirs).await?;
        let clusters: Vec<_> = (0..CLUSTERS)
            .map(|number| workload(&format!("wc-{number}"), IdentityType::WorkloadIdentity))
            .collect();
        for cluster in &clusters {
            cluster.create_objects(&fleet.env).await?;
            cluster.set_conditions(&fleet.env, &[(LINKS_READY, "True")]).await?;
        }
        let hyperlink = fleet.hyperlink("first").await?;
        let names: Vec<_> = clusters.iter().map(entry).collect();
        fleet.has_entries_and(&names, &["theirs".to_owned()]).await?;
        let (_, before) = entries(&fleet.management, &fleet).await?;

        let mut times = Vec::new();
        for _ in 0..DROPS {
            let dropped = random.one_of(&names).context("no entry")?;
            drop_entry(&fleet, dropped).await?;
            let began = Instant::now();
            eventually("it is back", SOON, || async {
                let (_, now) = entries(&fleet.management, &fleet).await?;
                ensure!(now == before, "{now:?}");
                Ok(())
            })
            .await?;
            times.push(began.elapsed());
        }
        times.sort();
        println!("back after {times:?}");
        let median = times[DROPS / 2];
        ensure!(median <= patient(BACK), "{times:?}");
        hyperlink.process().check()?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
