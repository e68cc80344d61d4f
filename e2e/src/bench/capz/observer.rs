//! What the API server shows of AzureClusters, as it shows it.

use std::collections::{BTreeMap, BTreeSet};
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;

use futures::TryStreamExt;
use kube::ResourceExt;
use kube::api::{Api, DynamicObject};
use kube::runtime::watcher::{self, Event, watcher};
use tokio::task::JoinHandle;

use crate::capz_cluster::entries;
use crate::capz_controllers::{API_SERVER_IP, CONDITION};

/// Watches the AzureClusters of a namespace. Dropping it ends that.
pub(super) struct Observer {
    observed: Arc<Mutex<Observed>>,
    task: JoinHandle<()>,
}

/// What was observed.
#[derive(Debug, Default)]
pub(super) struct Observed {
    /// When the address of each workload cluster was first there.
    published: BTreeMap<String, Instant>,
    /// The workload clusters whose condition is True.
    is_true: BTreeSet<String>,
    /// The entries that the management cluster has.
    entries: BTreeSet<String>,
    /// How often each entry was added to it.
    additions: BTreeMap<String, usize>,
    /// How many of its entries went away.
    lost: usize,
}

impl Observer {
    /// Begins to watch; `management` is the name of the management cluster.
    pub(super) fn begin(api: Api<DynamicObject>, management: &str) -> Self {
        let (observed, management) = (Arc::<Mutex<Observed>>::default(), management.to_owned());
        let noted = Arc::clone(&observed);
        let task = tokio::spawn(async move {
            let mut events = pin!(watcher(api, watcher::Config::default()));
            loop {
                match events.try_next().await {
                    Ok(Some(Event::Apply(object) | Event::InitApply(object))) => {
                        locked(&noted).note(&management, &object)
                    }
                    Ok(Some(_)) => {}
                    Ok(None) => return,
                    Err(error) => eprintln!("the watch of AzureClusters: {error}"),
                }
            }
        });
        Self { observed, task }
    }

    /// What was observed so far.
    pub(super) fn observed(&self) -> MutexGuard<'_, Observed> {
        locked(&self.observed)
    }
}

impl Drop for Observer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

fn locked(observed: &Mutex<Observed>) -> MutexGuard<'_, Observed> {
    observed.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Observed {
    fn note(&mut self, management: &str, object: &DynamicObject) {
        if object.name_any() == management {
            return self.note_entries(object);
        }
        if object.annotations().contains_key(API_SERVER_IP) {
            self.published.entry(object.name_any()).or_insert_with(Instant::now);
        }
        let conditions = object.data["status"]["conditions"].as_array().into_iter().flatten();
        if conditions
            .into_iter()
            .any(|one| one["type"] == CONDITION && one["status"] == "True")
        {
            self.is_true.insert(object.name_any());
        }
    }

    fn note_entries(&mut self, management: &DynamicObject) {
        let names = entries(management).filter_map(|(_, entry)| entry["name"].as_str().map(str::to_owned));
        let now: BTreeSet<String> = names.collect();
        self.lost += self.entries.difference(&now).count();
        for added in now.difference(&self.entries) {
            *self.additions.entry(added.clone()).or_default() += 1;
        }
        self.entries = now;
    }

    /// When the address of a workload cluster was first there.
    pub(super) fn published(&self, cluster: &str) -> Option<Instant> {
        self.published.get(cluster).copied()
    }

    /// How many workload clusters have had their condition True.
    pub(super) fn true_count(&self) -> usize {
        self.is_true.len()
    }

    /// How many entries of the management cluster went away.
    pub(super) fn lost(&self) -> usize {
        self.lost
    }

    /// How often an entry was added.
    pub(super) fn additions(&self, entry: &str) -> usize {
        self.additions.get(entry).copied().unwrap_or_default()
    }
}
