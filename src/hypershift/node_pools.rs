//! What this process knows of all NodePools, from what it watches.

use std::collections::{BTreeMap, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use kube::Api;
use kube::runtime::watcher::Event;
use tokio_util::sync::CancellationToken;

use crate::api::{ClusterRef, NodePool};
use crate::hypershift::claims::reference;
use crate::runtime::call::{ReconcileError, list};

/// How long a reconcile waits until all NodePools have been listed once. After that it fails, and is tried again.
const FIRST_LIST_TIMEOUT: Duration = Duration::from_secs(10);

/// How many objects are read at once from a list.
const PAGE: u32 = 50;

/// All NodePools, pruned.
#[derive(Debug, Default)]
pub struct NodePools {
    known: Mutex<Known>,
    listed: CancellationToken,
}

#[derive(Debug, Default)]
struct Known {
    /// By the HostedCluster that they name, and by their own name.
    by_cluster: HashMap<ClusterRef, BTreeMap<String, NodePool>>,
    /// During a relist: those that have come.
    listing: Option<HashMap<ClusterRef, BTreeMap<String, NodePool>>>,
}

impl NodePools {
    /// Reads the list, for a process that does not watch.
    pub async fn read(kube: &kube::Client) -> Result<Self, ReconcileError> {
        let pools = Self::default();
        pools.heard(&Event::Init);
        list(&Api::<NodePool>::all(kube.clone()), PAGE, |pool| {
            pools.heard(&Event::InitApply(pool))
        })
        .await?;
        pools.heard(&Event::InitDone);
        Ok(pools)
    }

    /// Applies an event of the NodePools.
    pub fn heard(&self, event: &Event<NodePool>) {
        let mut known = self.known();
        match event {
            Event::Init => known.listing = Some(HashMap::new()),
            Event::InitApply(pool) => add(known.listing.get_or_insert_default(), pool),
            Event::Apply(pool) => {
                remove(&mut known.by_cluster, pool);
                add(&mut known.by_cluster, pool);
            }
            Event::Delete(pool) => remove(&mut known.by_cluster, pool),
            Event::InitDone => {
                known.by_cluster = known.listing.take().unwrap_or_default();
                self.listed.cancel();
            }
        }
    }

    /// The NodePools of a HostedCluster, in the order of their names, once all have been listed.
    pub async fn of(&self, cluster: &ClusterRef) -> Result<Vec<NodePool>, ReconcileError> {
        let waited = tokio::time::timeout(FIRST_LIST_TIMEOUT, self.listed.cancelled()).await;
        waited.map_err(|_| ReconcileError::Unlisted("NodePools"))?;
        let known = self.known();
        let pools = known.by_cluster.get(cluster).into_iter();
        Ok(pools.flat_map(BTreeMap::values).cloned().collect())
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The HostedCluster of a NodePool, which is in the same namespace.
pub fn cluster_of(pool: &NodePool) -> Option<ClusterRef> {
    Some(ClusterRef {
        name: pool.spec.cluster_name.clone()?,
        ..reference(pool)
    })
}

fn add(all: &mut HashMap<ClusterRef, BTreeMap<String, NodePool>>, pool: &NodePool) {
    if let Some(cluster) = cluster_of(pool) {
        let of_cluster = all.entry(cluster).or_default();
        of_cluster.insert(reference(pool).name, pool.clone());
    }
}

/// A NodePool may have named another cluster before.
fn remove(all: &mut HashMap<ClusterRef, BTreeMap<String, NodePool>>, pool: &NodePool) {
    let ClusterRef { namespace, name } = reference(pool);
    let same = all.iter_mut().filter(|(cluster, _)| cluster.namespace == namespace);
    same.for_each(|(_, pools)| drop(pools.remove(&name)));
    all.retain(|_, pools| !pools.is_empty());
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn pool(name: &str, cluster: &str, subnet: &str) -> NodePool {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": "clusters"},
            "spec": {"clusterName": cluster, "platform": {"type": "AWS", "aws": {"subnet": {"id": subnet}}}}}))
        .unwrap()
    }

    fn names(pools: &NodePools, cluster: &str) -> Vec<String> {
        let cluster = ClusterRef {
            namespace: "clusters".to_owned(),
            name: cluster.to_owned(),
        };
        let known = pools.known();
        let of_cluster = known.by_cluster.get(&cluster).into_iter();
        of_cluster.flat_map(BTreeMap::keys).cloned().collect()
    }

    #[tokio::test(start_paused = true)]
    async fn no_decision_is_made_from_a_part_of_the_list() {
        let pools = NodePools::default();
        let cluster = reference(&pool("c", "c", "s"));
        pools.heard(&Event::Init);
        pools.heard(&Event::InitApply(pool("a", "c", "s")));
        assert!(matches!(pools.of(&cluster).await, Err(ReconcileError::Unlisted(_))));
        pools.heard(&Event::InitDone);
        assert_eq!(pools.of(&cluster).await.unwrap().len(), 1);
    }

    #[test]
    fn pool_that_moves_to_another_cluster_is_of_that_one() {
        let pools = NodePools::default();
        pools.heard(&Event::Init);
        pools.heard(&Event::InitApply(pool("a", "one", "s")));
        pools.heard(&Event::InitApply(pool("b", "one", "s")));
        pools.heard(&Event::InitDone);
        pools.heard(&Event::Apply(pool("a", "two", "s")));
        assert_eq!(
            (names(&pools, "one"), names(&pools, "two")),
            (vec!["b".into()], vec!["a".into()])
        );
        pools.heard(&Event::Delete(pool("a", "two", "s")));
        assert!(names(&pools, "two").is_empty());
    }

    #[test]
    fn pool_that_a_new_list_lacks_is_gone() {
        let pools = NodePools::default();
        pools.heard(&Event::Init);
        pools.heard(&Event::InitApply(pool("a", "one", "s")));
        pools.heard(&Event::InitDone);
        pools.heard(&Event::Init);
        assert_eq!(
            names(&pools, "one"),
            ["a"],
            "the old list counts until the new one is complete"
        );
        pools.heard(&Event::InitDone);
        assert!(names(&pools, "one").is_empty());
    }
}
