//! A controller's work queue with its one worker. Every event of a watched object causes a reconcile, without any
//! predicate.

use std::collections::HashMap;
use std::time::Duration;

use anyhow::Result;
use futures::stream::BoxStream;
use futures::{Stream, StreamExt};
use kube::runtime::{WatchStreamExt, watcher};
use kube::{Api, Resource, ResourceExt};
use serde::de::DeserializeOwned;
use tokio::time::Instant;

use super::Next;

/// What a controller does with one object.
pub(super) trait GoReconciler: Sync {
    /// Reconciles the object of this name.
    fn reconcile(&self, name: &str) -> impl Future<Output = Result<Next>> + Send;
}

/// The names of objects to reconcile, one for each event.
pub(super) type Events = BoxStream<'static, String>;

/// An event for every change of every object of a kind.
pub(crate) fn changes<K>(api: Api<K>) -> impl Stream<Item = K> + Send
where
    K: Resource + Clone + std::fmt::Debug + DeserializeOwned + Send + 'static,
{
    let events = watcher(api, watcher::Config::default()).default_backoff();
    events.touched_objects().filter_map(|event| async { event.ok() })
}

/// Shortest and longest back-off of the rate limiter of all three controllers.
const FIRST_RETRY: Duration = Duration::from_secs(3);
const LAST_RETRY: Duration = Duration::from_secs(30);

/// Runs reconciles one after the other. It repeats a failed one with back-off, and divides intervals by `speed`.
pub(super) async fn work(mut events: Events, speed: u32, reconciler: &impl GoReconciler) -> Result<()> {
    let mut due: HashMap<String, Instant> = HashMap::new();
    let mut failures: HashMap<String, u32> = HashMap::new();
    loop {
        let first = due
            .iter()
            .min_by_key(|(_, at)| **at)
            .map(|(name, at)| (name.clone(), *at));
        let next_due = first
            .as_ref()
            .map_or_else(|| Instant::now() + Duration::from_hours(1), |(_, at)| *at);
        tokio::select! {
            biased;
            Some(name) = events.next() => {
                due.insert(name, Instant::now());
            }
            () = tokio::time::sleep_until(next_due) => {
                let Some((name, _)) = first else { continue };
                due.remove(&name);
                let wait = match reconciler.reconcile(&name).await {
                    Ok(next) => {
                        failures.remove(&name);
                        match next {
                            Next::Event => continue,
                            Next::After(wait) => wait,
                        }
                    }
                    Err(error) => {
                        tracing::debug!(name, "Reconciler error: {error:#}");
                        let failed = failures.entry(name.clone()).or_default();
                        *failed += 1;
                        (FIRST_RETRY * 2_u32.pow((*failed - 1).min(4))).min(LAST_RETRY)
                    }
                };
                due.insert(name, Instant::now() + wait / speed);
            }
        }
    }
}

/// The names of the changed objects.
pub(super) fn names<K: Resource>(changes: impl Stream<Item = K> + Send + 'static) -> Events {
    changes.map(|object| object.name_any()).boxed()
}
