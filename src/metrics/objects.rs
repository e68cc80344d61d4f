//! The custom resources at each scrape: how many in which state, for how long, and which ones.
//!
//! Series with the name of a custom resource are gauges only. There is one for each custom resource, so that it counts
//! once though several processes report it, and one more while it is not available. Others are limited for each
//! namespace, so that whoever writes there takes no series of another. No label has a name that Prometheus uses itself,
//! as `namespace`.

use std::cmp::Reverse;
use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::Hash;
use std::sync::Mutex;
use std::time::Duration;

use prometheus::proto::MetricFamily;

use super::declare::{AtScrape, Declare, Label};
use super::{Metrics, locked};
use crate::api::condition::{ConditionType, Reason, Status};
use crate::azure::id::ResourceId;

/// The most series of conditions that are not True in one namespace, the oldest first. The summary of a custom
/// resource, which the alert uses, does not count and has no limit.
const MOST: usize = 32;

/// The most custom resources under deletion that one namespace shows by name, those that have waited longest.
const MAX_DELETING: usize = 8;

/// The label of a reason that Hyperlink never writes, or of a condition that does not exist yet.
const OTHER: &str = "other";

/// Azure's limits
/// (<https://learn.microsoft.com/azure/azure-resource-manager/management/azure-subscription-service-limits>).
const QUOTAS: [(&str, f64); 2] = [
    ("private_link_services_per_load_balancer", 8.0),
    ("zones_per_subscription", 1000.0),
];

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
    /// The load balancer of its Private Link Service, once there is one.
    pub load_balancer: Option<ResourceId>,
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

    /// Whether it is the summary of the others.
    fn is_summary(&self) -> bool {
        self.kind == ConditionType::AzurePrivateLinkServiceAvailable
    }

    fn reason(&self) -> &'static str {
        self.reason.map_or(OTHER, Reason::as_str)
    }
}

impl ObservedObject {
    fn is_available(&self) -> bool {
        self.conditions
            .iter()
            .any(|condition| condition.is_summary() && condition.is_true())
    }

    fn not_true(&self) -> impl Iterator<Item = &ObservedCondition> {
        self.conditions.iter().filter(|condition| !condition.is_true())
    }

    fn labels(&self) -> [&str; 2] {
        [&self.namespace, &self.name]
    }

    fn state(&self) -> &'static str {
        match (self.deleting_for, self.is_available()) {
            (Some(_), _) => "deleting",
            (None, true) => "available",
            (None, false) => "unavailable",
        }
    }
}

type ListObjects = Box<dyn Fn() -> Vec<ObservedObject> + Send + Sync>;

pub(super) struct Objects {
    states: AtScrape,
    conditions: AtScrape,
    not_true: AtScrape,
    not_true_age: AtScrape,
    available: AtScrape,
    deletion_age: AtScrape,
    object_age: AtScrape,
    quota_used: AtScrape,
    quota_limit: AtScrape,
    list: Mutex<Option<ListObjects>>,
}

impl Objects {
    pub(super) fn declare(declare: &mut Declare<'_>) -> Self {
        let kind = || Label::one_of("type", ConditionType::ALL.map(ConditionType::as_str));
        let reasons = || Reason::ALL.iter().map(|reason| reason.as_str());
        let reason = || Label::one_of("reason", reasons().chain([OTHER]));
        let control_plane = || Label::free_text("control_plane", "namespace of the custom resource");
        let name = || Label::free_text("name", "name of the custom resource");
        let quota = || Label::one_of("quota", QUOTAS.map(|(quota, _)| quota));
        Self {
            states: declare.at_scrape(
                "objects",
                "AzurePrivateLinkServices by state.",
                vec![Label::one_of("state", ["available", "unavailable", "deleting"])],
            ),
            conditions: declare.at_scrape(
                "conditions",
                "AzurePrivateLinkServices by condition and its status.",
                vec![Label::one_of("status", ["True", "False", "Unknown"]), kind()],
            ),
            not_true: declare.at_scrape(
                "conditions_not_true",
                "AzurePrivateLinkServices that stay and of which a condition is not True, by its reason.",
                vec![reason(), kind()],
            ),
            not_true_age: declare.at_scrape(
                "condition_not_true_oldest_age_seconds",
                "How long a condition has not been True, for whatever reasons, by the reason that it has now; on the AzurePrivateLinkService that stays and where it has been so longest.",
                vec![reason(), kind()],
            ),
            available: declare.at_scrape(
                "object_available",
                "1 for each AzurePrivateLinkService that stays and is available, 0 for each other that stays.",
                vec![control_plane(), name()],
            ),
            deletion_age: declare.at_scrape(
                "object_deletion_age_seconds",
                "How long each AzurePrivateLinkService that goes has been going; of a namespace the 8 that have been going longest.",
                vec![control_plane(), name()],
            ),
            object_age: declare.at_scrape(
                "object_not_true_age_seconds",
                "How long a condition of this AzurePrivateLinkService that stays has not been True, for whatever reasons, by the reason that it has now; AzurePrivateLinkServiceAvailable of each, of the others the 32 oldest of a namespace.",
                vec![control_plane(), name(), reason(), kind()],
            ),
            quota_used: declare.at_scrape(
                "quota_used",
                "What the AzurePrivateLinkServices use of a quota of Azure's, where they use most of it.",
                vec![quota()],
            ),
            quota_limit: declare.at_scrape(
                "quota_limit",
                "Azure's own limit; support may have raised it.",
                vec![quota()],
            ),
            list: Mutex::default(),
        }
    }

    /// Nothing before the custom resources are known; a standby does not know them.
    pub(super) fn collect(&self) -> Vec<MetricFamily> {
        let Some(objects) = locked(&self.list).as_ref().map(|list| list()) else {
            return Vec::new();
        };
        let staying: Vec<_> = objects.iter().filter(|object| object.deleting_for.is_none()).collect();
        let not_true = || staying.iter().flat_map(|object| object.not_true());
        let by_reason = |condition: &ObservedCondition| [condition.reason(), condition.kind.as_str()];
        let ages = not_true().map(|condition| (by_reason(condition), condition.age.as_secs_f64()));
        let available = staying
            .iter()
            .map(|object| (object.labels(), f64::from(object.is_available())));
        vec![
            self.states.with(states(&objects)),
            self.conditions.with(conditions(&objects)),
            self.not_true.with(counted(not_true().map(by_reason))),
            self.not_true_age.with(most(ages)),
            self.available.with(available),
            self.deletion_age.with(deleting_for(&objects)),
            self.object_age.with(oldest(&staying)),
            self.quota_used.with(quotas(&objects)),
            self.quota_limit.with(QUOTAS.map(|(quota, limit)| ([quota], limit))),
        ]
    }
}

impl Metrics {
    /// Sets the function that lists the custom resources at each scrape. It must be quick and must not block.
    pub fn list_objects_with(&self, list: impl Fn() -> Vec<ObservedObject> + Send + Sync + 'static) {
        *locked(&self.objects.list) = Some(Box::new(list));
    }
}

fn states(objects: &[ObservedObject]) -> impl Iterator<Item = ([&'static str; 1], f64)> {
    ["available", "unavailable", "deleting"].into_iter().map(|state| {
        let there = objects.iter().filter(|object| object.state() == state).count();
        ([state], there as f64)
    })
}

fn conditions(objects: &[ObservedObject]) -> BTreeMap<[&'static str; 2], f64> {
    let statuses = [Some(Status::True), Some(Status::False), None];
    let label = |status: Option<Status>| status.map_or("Unknown", Status::as_str);
    let all = ConditionType::ALL.into_iter();
    let none = all.flat_map(|kind| statuses.map(|status| ([label(status), kind.as_str()], 0.0)));
    let mut counts = BTreeMap::from_iter(none);
    for condition in objects.iter().flat_map(|object| &object.conditions) {
        *counts
            .entry([label(condition.status), condition.kind.as_str()])
            .or_default() += 1.0;
    }
    counts
}

/// How often each key occurs.
fn counted<K: Ord>(keys: impl Iterator<Item = K>) -> BTreeMap<K, f64> {
    let mut counts = BTreeMap::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1.0);
    counts
}

/// The highest value of each key.
fn most<K: Ord>(values: impl Iterator<Item = (K, f64)>) -> BTreeMap<K, f64> {
    let mut highest = BTreeMap::new();
    for (key, value) in values {
        let known: &mut f64 = highest.entry(key).or_default();
        *known = known.max(value);
    }
    highest
}

/// The conditions that are not True, with their custom resources: every summary, and of the others the oldest of each
/// namespace.
fn oldest<'o>(staying: &[&'o ObservedObject]) -> Vec<([&'o str; 4], f64)> {
    let mut shown = Vec::new();
    let mut others: BTreeMap<&str, Vec<(&ObservedObject, &ObservedCondition)>> = BTreeMap::new();
    for object in staying {
        for condition in object.not_true() {
            if condition.is_summary() {
                shown.push((*object, condition));
            } else {
                others.entry(&object.namespace).or_default().push((*object, condition));
            }
        }
    }
    for mut of_namespace in others.into_values() {
        of_namespace.sort_by_key(|(_, condition)| Reverse(condition.age));
        of_namespace.truncate(MOST);
        shown.extend(of_namespace);
    }
    let sample = |(object, condition): (&'o ObservedObject, &'o ObservedCondition)| {
        let labels = [
            object.namespace.as_str(),
            &object.name,
            condition.reason(),
            condition.kind.as_str(),
        ];
        (labels, condition.age.as_secs_f64())
    };
    shown.into_iter().map(sample).collect()
}

/// How long the custom resources have been under deletion that have waited longest, in each namespace.
fn deleting_for(objects: &[ObservedObject]) -> Vec<([&str; 2], f64)> {
    let mut deleting: BTreeMap<&str, Vec<(&ObservedObject, Duration)>> = BTreeMap::new();
    for object in objects {
        let age = object.deleting_for.map(|age| (object, age));
        deleting.entry(&object.namespace).or_default().extend(age);
    }
    for of_namespace in deleting.values_mut() {
        of_namespace.sort_by_key(|(_, age)| Reverse(*age));
        of_namespace.truncate(MAX_DELETING);
    }
    let all = deleting.into_values().flatten();
    all.map(|(object, age)| (object.labels(), age.as_secs_f64())).collect()
}

fn quotas(objects: &[ObservedObject]) -> [([&'static str; 1], f64); 2] {
    let services = objects.iter().filter_map(|object| object.load_balancer.as_ref());
    let zones: HashSet<&ResourceId> = objects.iter().flat_map(|object| &object.zones).collect();
    let used = [
        fullest(services),
        fullest(zones.into_iter().map(ResourceId::subscription)),
    ];
    [([QUOTAS[0].0], used[0]), ([QUOTAS[1].0], used[1])]
}

/// How often the most frequent key occurs.
fn fullest<K: Hash + Eq>(keys: impl Iterator<Item = K>) -> f64 {
    let mut counts = HashMap::<K, usize>::new();
    keys.for_each(|key| *counts.entry(key).or_default() += 1);
    counts.into_values().max().unwrap_or_default() as f64
}
