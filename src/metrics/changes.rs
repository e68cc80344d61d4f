//! What was created, repaired and replaced in a cloud: how often in all, and how often one and the same resource, which
//! shows whether somebody else keeps changing it.

use std::collections::{BTreeMap, BTreeSet, HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use prometheus::{HistogramOpts, HistogramVec, IntCounterVec, Opts, Result};
use tokio::time::Instant;

use super::{Metrics, Registered, locked};
use crate::api::Platform;
use crate::aws::kinds as aws;
use crate::azure::kinds::Kind;
use crate::engine::plan::Change;
use crate::hypershift::conditions::Since;

/// How long a change of a resource counts as recent in the metrics.
const LATELY: Duration = Duration::from_secs(3_600);

/// The most recent changes of one resource that are kept; nobody needs to know of more.
const MOST: usize = 100;

/// Buckets in seconds: from a path whose parts all exist to one that somebody has to look after.
const OF_PATHS: [f64; 12] = [
    5.0, 10.0, 20.0, 30.0, 45.0, 60.0, 90.0, 120.0, 180.0, 300.0, 600.0, 1800.0,
];

pub(super) const CHANGES: [&str; 3] = ["created", "repaired", "replaced"];

pub(super) struct Changes {
    total: IntCounterVec,
    to_available: HistogramVec,
}

impl Changes {
    pub(super) fn new(registered: &mut Registered) -> Result<Self> {
        let total = registered.add(IntCounterVec::new(
            Opts::new(
                "hyperlink_changes_total",
                "Resources in a cloud, and entries of AzureClusters, that Hyperlink changed and that are as desired since.",
            ),
            &["kind", "change"],
        )?)?;
        let to_available = registered.add(HistogramVec::new(
            HistogramOpts::new(
                "hyperlink_time_to_available_seconds",
                "How long a custom resource took to be available, since its creation or since it last was.",
            )
            .buckets(OF_PATHS.to_vec()),
            &["platform", "since"],
        )?)?;
        // From 0 on, so that the first one shows as an increase.
        for platform in Platform::ALL {
            for since in Since::ALL {
                to_available.with_label_values(&[platform.as_str(), since.label()]);
            }
        }
        for kind in kinds() {
            for change in CHANGES {
                total.with_label_values(&[kind, change]);
            }
        }
        Ok(Self { total, to_available })
    }
}

/// The kind of an AzureCluster's entries for private endpoints.
pub const ENDPOINT_ENTRY: &str = "private_endpoint_entry";

/// The kinds of resources of both clouds, and the entries of AzureClusters, by their labels.
pub(super) fn kinds() -> BTreeSet<&'static str> {
    let of_azure = Kind::ALL.map(Kind::label).into_iter();
    let in_clouds = of_azure.chain(aws::Kind::ALL.map(aws::Kind::label));
    in_clouds.chain([ENDPOINT_ENTRY]).collect()
}

/// The recent changes of each resource.
#[derive(Default)]
pub(super) struct Recent(Mutex<HashMap<(&'static str, String), VecDeque<Instant>>>);

impl Recent {
    fn add(&self, kind: &'static str, id: &str) {
        self.forget_old();
        let mut recent = locked(&self.0);
        // Azure compares ids without case, whoever spells them otherwise. Those of AWS differ in more than case, but
        // not by kind: a service and its principals have one name.
        let times = recent.entry((kind, id.to_lowercase())).or_default();
        times.push_back(Instant::now());
        if times.len() > MOST {
            times.pop_front();
        }
    }

    /// Of each kind, how often the resource was changed that was changed most.
    pub(super) fn most(&self) -> BTreeMap<&'static str, usize> {
        self.forget_old();
        let mut most: BTreeMap<_, _> = kinds().into_iter().map(|kind| (kind, 0)).collect();
        for ((kind, _), times) in locked(&self.0).iter() {
            most.entry(kind).and_modify(|most| *most = times.len().max(*most));
        }
        most
    }

    fn forget_old(&self) {
        let now = Instant::now();
        locked(&self.0).retain(|_, times| {
            times.retain(|time| now.duration_since(*time) < LATELY);
            !times.is_empty()
        });
    }
}

impl Metrics {
    /// Counts a change by Hyperlink after which a resource is as desired.
    pub fn changed(&self, kind: &'static str, id: &str, change: &Change) {
        let [created, repaired, replaced] = CHANGES;
        let word = match change {
            Change::Created => created,
            Change::Repaired(_) => repaired,
            Change::Replaced(_) => replaced,
        };
        self.changes.total.with_label_values(&[kind, word]).inc();
        self.sources.recent.add(kind, id);
    }

    /// Records that a custom resource became available, and how long it was not.
    pub fn available_after(&self, platform: Platform, since: Since, took: Duration) {
        let labels = [platform.as_str(), since.label()];
        let histogram = self.changes.to_available.with_label_values(&labels);
        histogram.observe(took.as_secs_f64());
    }
}
