//! What a process that has just begun learns of resources that it knows nothing of: of those of ready objects, from
//! lists that all share, or later. A single read of each would exceed the cloud's budgets.

use tokio::time::Instant;

use super::client::CloudClient;
use super::cloud::{Cloud, ResourceKind};
use super::inventory::{Listed, Unlisted, Worth};
use super::kind_rules::Resync;
use super::observation_cache::Deferral;
use super::read::Reader;
use super::resource::{Observed, Progress};
use super::urgency::Urgency;

/// From so many objects on that a process serves, it verifies records and links in their turn. Those of fewer it reads
/// at once.
const MANY: usize = 10;

/// What is learned of a resource without a read of its own.
pub(super) enum FirstRead<C: Cloud> {
    /// All that has to be known of it now.
    Enough(Observed<C>),
    /// How a list shows it, which is not enough.
    NotEnough(Listed),
    /// Nothing.
    Nothing,
}

impl<C: Cloud, A: CloudClient<C>> Reader<'_, C, A> {
    /// What is learned of a resource of which nothing is known, if nobody waits for it.
    pub(super) async fn first_read(&self, kind: C::Kind, key: &C::Key) -> FirstRead<C> {
        let Urgency::Routine { served } = self.reconcile.urgency else {
            return FirstRead::Nothing;
        };
        let now = Instant::now();
        let deferral = self.observations.deferral(key);
        if self.observations.knows(key) && deferral.is_none() {
            return FirstRead::Nothing;
        }
        let deferred = deferral == Some(Deferral::ToItsTurn);
        if !deferred && kind.rules().resync != Resync::Resource {
            return match served >= MANY && !self.observations.none_inside(kind, key) {
                true => FirstRead::Enough(self.observations.defer(kind, key, now)),
                false => FirstRead::Nothing,
            };
        }
        let since = self.observations.list_start(key, now);
        let serves = || self.observations.share_a_list(kind, key);
        let suffices = kind.rules().list.as_ref().and_then(|list| list.suffices);
        if deferred && suffices.is_some() {
            let listed = self
                .inventory
                .listed(self.client, self.reconcile, (kind, key), since, serves);
            return match listed.await {
                Ok(listed) => FirstRead::NotEnough(listed),
                Err(unlisted) => self.unlisted(kind, key, unlisted),
            };
        }
        let serves = if deferred { serves() } else { served };
        let worth = || Worth::at_most::<C>(serves);
        let row = self
            .inventory
            .row(self.client, self.reconcile, (kind, key), since, worth, &|_| true);
        let row = match row.await {
            Ok(row) => row,
            Err(unlisted) => return self.unlisted(kind, key, unlisted),
        };
        let rules = kind.rules();
        let is_done = (rules.completed)(&row.body) && (rules.in_force)(&row.body);
        let is_ready = C::progress(&row.body) == Progress::Ready && is_done;
        match suffices {
            None if is_ready => FirstRead::Enough(self.observations.first_listed(kind, key, row)),
            Some(suffices) if is_ready && suffices(&row.body) => {
                FirstRead::Enough(self.observations.defer(kind, key, now))
            }
            _ => FirstRead::NotEnough(row.listed),
        }
    }

    /// What is learned of a resource that no list shows.
    fn unlisted(&self, kind: C::Kind, key: &C::Key, unlisted: Unlisted) -> FirstRead<C> {
        match unlisted {
            Unlisted::NotShown | Unlisted::Unavailable => FirstRead::Nothing,
            Unlisted::Pending => FirstRead::Enough(self.observations.await_list(kind, key, Instant::now())),
        }
    }
}
