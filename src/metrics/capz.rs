//! Clusters of Cluster API on Azure at each scrape, and the writes of the management cluster.
//!
//! Series with the name of a cluster are gauges only, and limited for each namespace, so that whoever writes there takes
//! no series of another.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus::core::Collector;
use prometheus::{IntCounterVec, Opts, Result};

use super::at_scrape::{AtScrape, Sample};
use super::labels::{IdentityResult, ManagementWrite};
use super::state::Sources;
use super::{Metrics, Registered, locked};
use crate::api::capi::IdentityType;
use crate::capz::reason::Reason;

/// The most clusters that one namespace shows by name, those that have waited longest.
const MOST: usize = 32;

/// The label of a cluster whose condition is True.
pub(super) const READY: &str = "Ready";
/// The label of a cluster without the condition, or with a reason that Hyperlink never writes.
pub(super) const OTHER: &str = "other";
/// How entries of the management cluster are counted.
pub(super) const ENTRIES: [&str; 3] = ["desired", "present", "unclaimed"];

/// What role `capz` knows at a scrape.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ObservedFleet {
    /// The entries of the management cluster.
    pub entries: ObservedEntries,
    /// The private endpoints that are still in Azure long after their entries were removed.
    pub left_behind: usize,
    /// The workload clusters to which the condition applies.
    pub clusters: Vec<ObservedCluster>,
    /// The identities that were used, by type and what came of their last use.
    pub identities: BTreeMap<(IdentityType, IdentityResult), usize>,
}

/// How many entries the management cluster has.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct ObservedEntries {
    /// Those that workload clusters desire.
    pub desired: usize,
    /// Those of them that are there.
    pub present: usize,
    /// Those that have the form of Hyperlink's and are no workload cluster's.
    pub unclaimed: usize,
}

/// One workload cluster.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObservedCluster {
    /// Namespace of its AzureCluster.
    pub namespace: String,
    /// Name of its AzureCluster.
    pub name: String,
    /// Whether its condition is True.
    pub is_ready: bool,
    /// The condition's reason; `None` when it is missing or has one that Hyperlink never writes.
    pub reason: Option<Reason>,
    /// How long the condition has had its status; of one that is missing, the age of the cluster.
    pub age: Duration,
}

impl ObservedCluster {
    fn label(&self) -> &'static str {
        match self.reason {
            _ if self.is_ready => READY,
            Some(reason) => reason.as_str(),
            None => OTHER,
        }
    }
}

pub(super) type ObserveFleet = Box<dyn Fn() -> ObservedFleet + Send + Sync>;

/// There are no series in a process that does not lead role `capz`.
pub(super) fn gauges(sources: Arc<Sources>) -> Result<impl Collector> {
    AtScrape::new(move || locked(&sources.fleet).as_ref().map(|observe| observe()))
        .gauge(
            "hyperlink_capz_entries",
            "Entries for private endpoints in the management cluster's AzureCluster: those that workload clusters desire, \
             those of them that are there, and those of Hyperlink's form that are no workload cluster's.",
            &["state"],
            entries,
        )?
        .gauge(
            "hyperlink_capz_left_behind_endpoints",
            "Private endpoints of the management cluster that are still in Azure 30 minutes after their entries were \
             removed.",
            &[],
            |fleet| vec![(vec![], fleet.left_behind as f64)],
        )?
        .gauge(
            "hyperlink_capz_clusters",
            "Workload clusters with a private side, by the reason of their condition.",
            &["reason"],
            clusters,
        )?
        .gauge(
            "hyperlink_capz_cluster_not_ready_age_seconds",
            "How long a workload cluster's condition has not been True, by its reason now; of each namespace the 32 oldest.",
            &["cluster_namespace", "name", "reason"],
            not_ready_ages,
        )?
        .gauge(
            "hyperlink_capz_identities",
            "AzureClusterIdentities by type and what came of their last use.",
            &["type", "result"],
            identities,
        )
}

fn entries(fleet: &ObservedFleet) -> Vec<Sample<'_>> {
    let ObservedEntries {
        desired,
        present,
        unclaimed,
    } = fleet.entries;
    let counts = [desired, present, unclaimed];
    ENTRIES
        .iter()
        .zip(counts)
        .map(|(state, count)| (vec![*state], count as f64))
        .collect()
}

fn clusters(fleet: &ObservedFleet) -> Vec<Sample<'_>> {
    let mut counts = BTreeMap::from([(READY, 0.0)]);
    for cluster in &fleet.clusters {
        *counts.entry(cluster.label()).or_default() += 1.0;
    }
    counts
        .into_iter()
        .map(|(reason, count)| (vec![reason], count))
        .collect()
}

fn not_ready_ages(fleet: &ObservedFleet) -> Vec<Sample<'_>> {
    let mut namespaces: BTreeMap<&str, Vec<&ObservedCluster>> = BTreeMap::new();
    for cluster in fleet.clusters.iter().filter(|cluster| !cluster.is_ready) {
        namespaces.entry(&cluster.namespace).or_default().push(cluster);
    }
    let mut samples = Vec::new();
    for (namespace, mut clusters) in namespaces {
        clusters.sort_by_key(|cluster| std::cmp::Reverse(cluster.age));
        samples.extend(clusters.into_iter().take(MOST).map(|cluster| {
            let labels = vec![namespace, cluster.name.as_str(), cluster.label()];
            (labels, cluster.age.as_secs_f64())
        }));
    }
    samples
}

fn identities(fleet: &ObservedFleet) -> Vec<Sample<'_>> {
    let all = fleet.identities.iter();
    all.map(|((kind, result), count)| (vec![kind.as_str(), result.label()], *count as f64))
        .collect()
}

pub(super) struct ManagementWrites(IntCounterVec);

impl ManagementWrites {
    pub(super) fn new(registered: &mut Registered) -> Result<Self> {
        let total = registered.add(IntCounterVec::new(
            Opts::new(
                "hyperlink_capz_management_cluster_writes_total",
                "Patches of the management cluster's AzureCluster; a conflict is one that somebody else's write made void.",
            ),
            &["result"],
        )?)?;
        // From 0 on, so that the first one shows as an increase.
        for label in ManagementWrite::LABELS {
            total.with_label_values(&[label]);
        }
        Ok(Self(total))
    }
}

impl Metrics {
    /// Sets the function that gives, at each scrape, what role `capz` knows. It must be quick and must not block.
    pub fn observe_fleet_with(&self, observe: impl Fn() -> ObservedFleet + Send + Sync + 'static) {
        *locked(&self.sources.fleet) = Some(Box::new(observe));
    }

    /// Counts a patch of the management cluster's AzureCluster.
    pub fn management_cluster_written(&self, result: ManagementWrite) {
        self.management_writes.0.with_label_values(&[result.label()]).inc();
    }
}
