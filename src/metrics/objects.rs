//! The custom resources at each scrape: how many in which state, for how long, and which ones.
//!
//! Series with the name of a custom resource are gauges only. There is one for each custom resource, so that it counts
//! once though several processes report it, and one more while it is not available. Others are limited for each
//! namespace, so that whoever writes there takes no series of another. No label has a name that Prometheus uses itself,
//! as `namespace`.

pub(super) mod quotas;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use prometheus::Result;
use prometheus::core::Collector;

use super::at_scrape::{AtScrape, Sample};
use super::state::Sources;
use super::{Metrics, locked};
use crate::api::Platform;
use crate::api::condition::{ConditionType, Reason, Status};
use crate::azure::arm::id::ResourceId;
use crate::azure::kinds::private_link_service::quota::CountedService;

pub use quotas::QuotasOfAws;

/// The most series of conditions that are not True in one namespace, the oldest first. The decisive ones, which the
/// alert uses, do not count and have no limit.
const MOST: usize = 32;

/// The most custom resources under deletion that one namespace shows by name, those that have waited longest.
const MAX_DELETING: usize = 8;

/// The label of a reason that Hyperlink never writes, or of a condition that does not exist yet.
pub(super) const OTHER: &str = "other";

pub(super) const STATES: [&str; 3] = ["available", "unavailable", "deleting"];

pub(super) const STATUSES: [&str; 3] = ["True", "False", "Unknown"];

/// One custom resource, as it is counted.
#[derive(Debug, Clone, PartialEq)]
pub struct ObservedObject {
    /// Namespace of the custom resource.
    pub namespace: String,
    /// Name of the custom resource.
    pub name: String,
    /// How long it has been under deletion; `None` if it is not.
    pub deleting_for: Option<Duration>,
    /// One condition of each type.
    pub conditions: Vec<ObservedCondition>,
    /// Its Private Link Service, once there is one.
    pub link_service: Option<CountedService>,
    /// The load balancer on which it is to have its Private Link Service, as long as there is none.
    pub awaits_service_on: Option<ResourceId>,
    /// The private DNS zones of the custom resource.
    pub zones: Vec<ResourceId>,
}

/// One condition of a custom resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObservedCondition {
    /// Type of the condition.
    pub kind: ConditionType,
    /// Its status; `None` when it is missing or has one that Hyperlink never writes.
    pub status: Option<Status>,
    /// Its reason; `None` when it is missing or has one that Hyperlink never writes.
    pub reason: Option<Reason>,
    /// How long it has had this status.
    pub age: Duration,
}

impl ObservedCondition {
    fn is_true(&self) -> bool {
        self.status == Some(Status::True)
    }

    fn status(&self) -> &'static str {
        self.status.map_or("Unknown", Status::as_str)
    }

    /// Its reason and type.
    fn labels(&self) -> Vec<&'static str> {
        vec![self.reason.map_or(OTHER, Reason::as_str), self.kind.as_str()]
    }
}

impl ObservedObject {
    fn is_available(&self) -> bool {
        let mut decisive = self.conditions.iter().filter(|condition| condition.kind.is_decisive());
        decisive.all(ObservedCondition::is_true)
    }

    /// Its namespace and name.
    fn labels(&self) -> Vec<&str> {
        vec![&self.namespace, &self.name]
    }

    fn state(&self) -> &'static str {
        match (self.deleting_for, self.is_available()) {
            (Some(_), _) => "deleting",
            (None, true) => "available",
            (None, false) => "unavailable",
        }
    }
}

pub(super) type CountQuotas = Box<dyn Fn() -> QuotasOfAws + Send + Sync>;
pub(super) type ListObjects = Box<dyn Fn() -> Vec<ObservedObject> + Send + Sync>;

/// The custom resources of one platform.
struct Objects {
    platform: Platform,
    all: Vec<ObservedObject>,
}

/// The custom resources of each platform on which this process leads.
struct Platforms {
    all: Vec<Objects>,
    /// How much of AWS's quotas is used, where this process counts that.
    quotas_of_aws: Option<QuotasOfAws>,
}

/// There are no series before the custom resources are known; a standby does not know them.
pub(super) fn gauges(sources: Arc<Sources>) -> Result<impl Collector> {
    let platforms = AtScrape::new(move || {
        let lists = locked(&sources.objects);
        let all = lists.iter().map(|(platform, list)| Objects {
            platform: *platform,
            all: list(),
        });
        let count = locked(&sources.quotas_of_aws);
        let platforms = Platforms {
            all: all.collect(),
            quotas_of_aws: count.as_ref().map(|count| count()),
        };
        Some(platforms).filter(|platforms| !platforms.all.is_empty())
    });
    quotas::gauges(ages(conditions(platforms)?)?)
}

fn conditions(platforms: AtScrape<Platforms>) -> Result<AtScrape<Platforms>> {
    platforms
        .gauge(
            "hyperlink_objects",
            "Custom resources by state.",
            &["platform", "state"],
            |all| all.each(Objects::by_state),
        )?
        .gauge(
            "hyperlink_conditions",
            "Custom resources by condition and its status.",
            &["platform", "status", "type"],
            |all| all.each(Objects::by_condition),
        )?
        .gauge(
            "hyperlink_conditions_not_true",
            "Custom resources of which a condition is not True, by its reason; without those being deleted.",
            &["platform", "reason", "type"],
            |all| all.each(Objects::not_true_by_reason),
        )?
        .gauge(
            "hyperlink_condition_not_true_oldest_age_seconds",
            "How long a condition has not been True, for whatever reasons, by the reason that it has now; of the \
             custom resource where this has lasted longest, without those being deleted.",
            &["platform", "reason", "type"],
            |all| all.each(Objects::oldest_not_true),
        )
}

fn ages(platforms: AtScrape<Platforms>) -> Result<AtScrape<Platforms>> {
    platforms
        .gauge(
            "hyperlink_object_available",
            "1 for each custom resource that is available, 0 for each other; without those being deleted.",
            &["platform", "control_plane", "name"],
            |all| all.each(Objects::available),
        )?
        .gauge(
            "hyperlink_object_deletion_age_seconds",
            "How long a custom resource has been under deletion; of each namespace the 8 oldest.",
            &["platform", "control_plane", "name"],
            |all| all.each(Objects::deletion_ages),
        )?
        .gauge(
            "hyperlink_object_not_true_age_seconds",
            "How long a condition has not been True, for whatever reasons, by the reason that it has now; \
             AzurePrivateLinkServiceAvailable and the conditions of AWSEndpointServices of each custom resource, of the \
             others the 32 oldest of a namespace, without those being deleted.",
            &["platform", "control_plane", "name", "reason", "type"],
            |all| all.each(Objects::not_true_ages),
        )
}

impl Metrics {
    /// Sets the function that lists the custom resources of a platform at each scrape. It must be quick and must not
    /// block.
    pub fn list_objects_with(&self, of: Platform, list: impl Fn() -> Vec<ObservedObject> + Send + Sync + 'static) {
        locked(&self.sources.objects).insert(of, Box::new(list));
    }

    /// Sets the function that gives, at each scrape, how much of AWS's quotas is used. It must be quick and must not
    /// block.
    pub fn count_quotas_of_aws_with(&self, count: impl Fn() -> QuotasOfAws + Send + Sync + 'static) {
        *locked(&self.sources.quotas_of_aws) = Some(Box::new(count));
    }
}

impl Platforms {
    /// What is computed for each platform, with its label before the others.
    fn each<'o>(&'o self, compute: fn(&'o Objects) -> Vec<Sample<'o>>) -> Vec<Sample<'o>> {
        let labelled = self.all.iter().flat_map(|objects| {
            let samples = compute(objects).into_iter();
            samples.map(|(labels, value)| {
                let all = [objects.platform.as_str()].into_iter().chain(labels);
                (all.collect(), value)
            })
        });
        labelled.collect()
    }

    fn on_azure(&self) -> Option<&Objects> {
        self.all.iter().find(|objects| objects.platform == Platform::Azure)
    }
}

impl Objects {
    /// Those that are not being deleted.
    fn staying(&self) -> impl Iterator<Item = &ObservedObject> {
        self.all.iter().filter(|object| object.deleting_for.is_none())
    }

    fn not_true(&self) -> impl Iterator<Item = (&ObservedObject, &ObservedCondition)> {
        self.staying().flat_map(|object| {
            let conditions = object.conditions.iter().filter(|condition| !condition.is_true());
            conditions.map(move |condition| (object, condition))
        })
    }

    fn by_state(&self) -> Vec<Sample<'_>> {
        let count = |state| self.all.iter().filter(|object| object.state() == state).count();
        STATES.map(|state| (vec![state], count(state) as f64)).into()
    }

    fn by_condition(&self) -> Vec<Sample<'_>> {
        let mut counts = BTreeMap::new();
        for kind in ConditionType::of(self.platform) {
            counts.extend(STATUSES.map(|status| (vec![status, kind.as_str()], 0.0)));
        }
        for condition in self.all.iter().flat_map(|object| &object.conditions) {
            let labels = vec![condition.status(), condition.kind.as_str()];
            *counts.entry(labels).or_default() += 1.0;
        }
        counts.into_iter().collect()
    }

    fn not_true_by_reason(&self) -> Vec<Sample<'_>> {
        let mut counts = BTreeMap::new();
        for (_, condition) in self.not_true() {
            *counts.entry(condition.labels()).or_default() += 1.0;
        }
        counts.into_iter().collect()
    }

    fn oldest_not_true(&self) -> Vec<Sample<'_>> {
        let mut oldest = BTreeMap::new();
        for (_, condition) in self.not_true() {
            let age: &mut f64 = oldest.entry(condition.labels()).or_default();
            *age = age.max(condition.age.as_secs_f64());
        }
        oldest.into_iter().collect()
    }

    fn available(&self) -> Vec<Sample<'_>> {
        self.staying()
            .map(|object| (object.labels(), f64::from(object.is_available())))
            .collect()
    }

    fn deletion_ages(&self) -> Vec<Sample<'_>> {
        let deleting = self.all.iter().filter_map(|object| {
            let age = object.deleting_for?.as_secs_f64();
            Some((object.labels(), age))
        });
        oldest_of_each_namespace(deleting, MAX_DELETING)
    }

    /// Every decisive condition, and of the others the oldest of each namespace.
    fn not_true_ages(&self) -> Vec<Sample<'_>> {
        let (decisive, others): (Vec<_>, Vec<_>) =
            self.not_true().partition(|(_, condition)| condition.kind.is_decisive());
        let mut shown: Vec<_> = decisive.into_iter().map(age_of).collect();
        shown.extend(oldest_of_each_namespace(others.into_iter().map(age_of), MOST));
        shown
    }
}

fn age_of<'o>((object, condition): (&'o ObservedObject, &'o ObservedCondition)) -> Sample<'o> {
    let mut labels = object.labels();
    labels.extend(condition.labels());
    (labels, condition.age.as_secs_f64())
}

/// The `most` samples of highest value of each namespace, which is their first label.
fn oldest_of_each_namespace<'o>(samples: impl Iterator<Item = Sample<'o>>, most: usize) -> Vec<Sample<'o>> {
    let mut namespaces: BTreeMap<&str, Vec<Sample<'_>>> = BTreeMap::new();
    for (labels, age) in samples {
        namespaces.entry(labels[0]).or_default().push((labels, age));
    }
    for of_namespace in namespaces.values_mut() {
        of_namespace.sort_by(|(_, one), (_, other)| other.total_cmp(one));
        of_namespace.truncate(most);
    }
    namespaces.into_values().flatten().collect()
}
