//! What was created, repaired and replaced in Azure: how often in all, and how often one and the same resource, which
//! shows whether somebody else keeps changing it.

use std::collections::{HashMap, VecDeque};
use std::sync::Mutex;
use std::time::Duration;

use prometheus::proto::MetricFamily;
use prometheus::{HistogramVec, IntCounterVec, Result};
use tokio::time::Instant;

use super::declare::{AtScrape, Declare, Label};
use super::{Metrics, locked};
use crate::azure::id::ResourceId;
use crate::azure::plan::Change;
use crate::azure::resource::Kind;
use crate::conditions::Since;

/// How long a change counts as recent.
const LATELY: Duration = Duration::from_secs(3_600);

/// The most recent changes of one resource that are kept; nobody needs to know of more.
const MOST: usize = 100;

const CHANGES: [&str; 3] = ["created", "repaired", "replaced"];

type Recent = HashMap<ResourceId, (Kind, VecDeque<Instant>)>;

pub(super) struct Changes {
    total: IntCounterVec,
    of_one: AtScrape,
    to_available: HistogramVec,
    recent: Mutex<Recent>,
}

impl Changes {
    pub(super) fn declare(declare: &mut Declare<'_>) -> Result<Self> {
        let kind = || Label::one_of("kind", Kind::ALL.map(Kind::label));
        let change = Label::one_of("change", CHANGES);
        let total = declare.counter(
            "changes_total",
            "Resources in Azure that are as wanted after a change of ours.",
            vec![kind(), change],
        )?;
        let since = Label::one_of("since", Since::ALL.map(Since::label));
        let to_available = declare.long_duration(
            "time_to_available_seconds",
            "How long it took until AzurePrivateLinkServiceAvailable was True: since the creation of the custom resource, or since it was True no more.",
            vec![since],
        )?;
        // From zero on, so that Prometheus sees the first one as an increase.
        for since in Since::ALL {
            to_available.with_label_values(&[since.label()]);
        }
        for kind in Kind::ALL {
            for change in CHANGES {
                total.with_label_values(&[kind.label(), change]);
            }
        }
        Ok(Self {
            total,
            of_one: declare.at_scrape(
                "changes_of_one_resource",
                "How often, within the last hour, the resource was changed that was changed most; 0 when there was none.",
                vec![kind()],
            ),
            to_available,
            recent: Mutex::default(),
        })
    }

    pub(super) fn collect(&self) -> MetricFamily {
        let mut recent = locked(&self.recent);
        forget_old(&mut recent, Instant::now());
        let most = |kind| {
            let of_kind = recent.values().filter(|(of, _)| *of == kind);
            of_kind.map(|(_, times)| times.len()).max().unwrap_or_default()
        };
        let samples = Kind::ALL.map(|kind| ([kind.label()], most(kind) as f64));
        self.of_one.with(samples)
    }
}

fn forget_old(recent: &mut Recent, now: Instant) {
    recent.retain(|_, (_, times)| {
        times.retain(|time| now.duration_since(*time) < LATELY);
        !times.is_empty()
    });
}

impl Metrics {
    /// Counts a change by Hyperlink after which a resource is as desired.
    pub fn changed(&self, kind: Kind, id: &ResourceId, change: &Change) {
        let [created, repaired, replaced] = CHANGES;
        let word = match change {
            Change::Created => created,
            Change::Repaired(_) => repaired,
            Change::Replaced(_) => replaced,
        };
        self.changes.total.with_label_values(&[kind.label(), word]).inc();
        let now = Instant::now();
        let mut recent = locked(&self.changes.recent);
        forget_old(&mut recent, now);
        let (_, times) = recent.entry(id.clone()).or_insert_with(|| (kind, VecDeque::new()));
        times.push_back(now);
        if times.len() > MOST {
            times.pop_front();
        }
    }

    /// Records that a custom resource became available, and how long it was not.
    pub fn available_after(&self, since: Since, took: Duration) {
        let histogram = self.changes.to_available.with_label_values(&[since.label()]);
        histogram.observe(took.as_secs_f64());
    }
}
