//! What lists show of resources that are new. Where many are created at once, one list takes the place of a read of each:
//! it shows which are not there yet, and later how far all of them are.

use std::time::Duration;

use tokio::time::Instant;

use super::client::CloudClient;
use super::cloud::{Cloud, ResourceKind};
use super::inventory::{Unlisted, Worth};
use super::read::Reader;
use super::resource::Observed;
use super::urgency::Urgency;

/// How old a list may be that takes the place of a read. Each list costs a call for each of its pages, so it has to
/// serve those that come in this time.
///
/// Rule: `docs/decisions/0012-lists-and-reads.md`.
const AGE: Duration = Duration::from_secs(5);

impl<C: Cloud, A: CloudClient<C>> Reader<'_, C, A> {
    /// What a list shows of a resource that this process creates, or is to create for an object that is new. None: it
    /// has to be read by itself.
    ///
    /// That a list does not show a resource counts only where the create holds for a new one alone: if the list was
    /// behind, the cloud refuses it. What is created has its own read then, which also shows why it failed.
    pub(super) async fn creation_read(&self, kind: C::Kind, key: &C::Key) -> Option<Observed<C>> {
        let rules = kind.rules();
        let list = rules.list.as_ref().filter(|_| rules.shown_whole_in_list())?;
        let creation = self.observations.creation_listed_from(key);
        let is_new = self.reconcile.urgency == Urgency::New && rules.create_if_new && !self.observations.knows(key);
        let now = Instant::now();
        let recent = now.checked_sub(AGE).unwrap_or(now);
        let since = match creation {
            Some(from) => recent.max(from),
            None if is_new => recent,
            None => return None,
        };
        let worth = || {
            let serves = match creation {
                Some(_) => self.observations.creations_due(kind, key, AGE, now),
                None => self.observations.creations_begun(kind, key, AGE, now),
            };
            let ready = match serves < list.min_served {
                true => 0,
                false => self.observations.share_a_list(kind, key),
            };
            Worth::of_creations::<C>(serves, ready, AGE)
        };
        let keeps = |key: &C::Key| self.observations.is_unread(key);
        let row = self
            .inventory
            .row(self.client, self.reconcile, (kind, key), since, worth, &keeps);
        match row.await {
            Ok(row) if creation.is_some() => {
                let observed = self.found(kind, key, row.body).await;
                self.observations.only_listed(kind, key, row.listed);
                Some(observed)
            }
            Err(Unlisted::NotShown) if is_new => Some(Observed::Absent),
            Ok(_) | Err(_) => None,
        }
    }
}
