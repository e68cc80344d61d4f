//! What lists show of resources that are new. Where many are created at once, one list takes the place of a read of each:
//! it shows which are not there yet, and later how far all of them are.

use tokio::time::Instant;

use super::client::CloudClient;
use super::cloud::{Cloud, ResourceKind};
use super::inventory::{Unlisted, Worth};
use super::read::Reader;
use super::resource::Observed;
use super::urgency::Urgency;

impl<C: Cloud, A: CloudClient<C>> Reader<'_, C, A> {
    /// What a list shows of a resource that this process creates, or is to create for an object that is new. None: it
    /// has to be read by itself.
    ///
    /// That a list does not show a resource counts only where the create holds for a new one alone: if the list was
    /// behind, the cloud refuses it. What is created has its own read then, which also shows why it failed.
    pub(super) async fn creation_read(&self, kind: C::Kind, key: &C::Key) -> Option<Observed<C>> {
        let rules = kind.rules();
        rules.list.as_ref().filter(|list| list.suffices.is_none())?;
        let creation = self.observations.creation(key);
        let is_new = self.reconcile.urgency == Urgency::New && rules.create_if_new && !self.observations.knows(key);
        let now = Instant::now();
        let recent = now.checked_sub(rules.pace / 2).unwrap_or(now);
        let since = match creation {
            Some(began) => recent.max(began),
            None if is_new => recent,
            None => return None,
        };
        let worth = || {
            let creations = self.observations.creations(kind, key);
            Worth::of_creations::<C>(creations, self.observations.share_a_list(kind, key))
        };
        let row = self
            .inventory
            .row(self.client, self.reconcile, (kind, key), since, worth);
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
