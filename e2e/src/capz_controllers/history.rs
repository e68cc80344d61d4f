//! The versions of AzureClusters that a controller's cache has had, so that it can read an old one.

use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use futures::StreamExt;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};

use crate::go_controllers::queue::changes;

/// How long a cache can be behind.
pub(super) const LAG: Duration = Duration::from_secs(2);

/// How many versions of an object are kept.
const KEPT: usize = 200;

/// Namespace and name of an object.
type Key = (String, String);

/// Every version of each object, in order, each with the time of its arrival.
#[derive(Debug, Default)]
pub(super) struct History(Mutex<HashMap<Key, Vec<(Instant, DynamicObject)>>>);

impl History {
    /// Records all changes; does not return.
    pub(super) async fn record(&self, api: Api<DynamicObject>) {
        let mut changed = std::pin::pin!(changes(api));
        while let Some(object) = changed.next().await {
            self.add(object);
        }
    }

    fn add(&self, object: DynamicObject) {
        let key = (object.namespace().unwrap_or_default(), object.name_any());
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = all.entry(key).or_default();
        versions.push((Instant::now(), object));
        let surplus = versions.len().saturating_sub(KEPT);
        versions.drain(..surplus);
    }

    /// Whether the newest version is this one.
    pub(super) fn is_at(&self, namespace: &str, name: &str, version: Option<&str>) -> bool {
        let newest = self.stale(namespace, name, 0, LAG);
        newest.is_some_and(|newest| newest.metadata.resource_version.as_deref() == version)
    }

    /// The version before the last `by` ones, or the oldest. Versions that arrived more than `lag` ago are not skipped.
    pub(super) fn stale(&self, namespace: &str, name: &str, by: usize, lag: Duration) -> Option<DynamicObject> {
        let all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let versions = all.get(&(namespace.to_owned(), name.to_owned()))?;
        let young = versions.iter().rev().take_while(|(arrived, _)| arrived.elapsed() < lag);
        let skipped = young.count().min(by).min(versions.len().saturating_sub(1));
        let (_, version) = versions.get(versions.len() - 1 - skipped)?;
        Some(version.clone())
    }
}
