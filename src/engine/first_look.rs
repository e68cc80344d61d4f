//! What a process that has just begun learns of resources that it knows nothing of: of those of ready objects, from
//! lists that all share, or later. A single read of each would exceed the cloud's budgets.

use tokio::time::Instant;

use super::client::{CloudClient, Urgency};
use super::cloud::{Cloud, ResourceKind};
use super::kind_rules::Resync;
use super::read::Reader;
use super::resource::{Observed, Progress};

/// From so many objects on that a process serves, it verifies records and links in their turn. Those of fewer it reads
/// at once.
const MANY: usize = 10;

impl<C: Cloud, A: CloudClient<C>> Reader<'_, C, A> {
    /// What is learned without a read of its own of a resource of which nothing is known, if nobody waits for it. None:
    /// it has to be read.
    pub(super) async fn first_look(&self, kind: C::Kind, key: &C::Key) -> Option<Observed<C>> {
        let Urgency::Routine { served } = self.reconcile.urgency else {
            return None;
        };
        let now = Instant::now();
        let deferred = self.observations.is_deferred(key);
        if self.observations.knows(key) && !deferred {
            return None;
        }
        if !deferred && kind.rules().resync == Resync::Record {
            return (served >= MANY).then(|| self.observations.defer(kind, key, now));
        }
        let serves = if deferred {
            self.observations.share_a_first_list(kind, key)
        } else {
            served
        };
        let since = self.observations.list_start(now);
        let row = self
            .inventory
            .row(self.client, self.reconcile, (kind, key), since, serves)
            .await?;
        let is_ready = C::progress(&row.body) == Progress::Ready && (kind.rules().completed)(&row.body);
        is_ready.then(|| self.observations.first_listed(kind, key, row))
    }
}
