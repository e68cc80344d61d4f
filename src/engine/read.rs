//! Reads one resource: from the observation cache while that is fresh, else with GETs. Never writes.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::client::{CloudClient, OperationState, Reconcile};
use super::cloud::{Cloud, Key, ResourceKind};
use super::deletion::{self, Deletion};
use super::failure::{Class, Failure};
use super::first_read::FirstRead;
use super::inventory::{Inventory, Listed, Unlisted};
use super::observation_cache::{ObservationCache, Operation};
use super::resource::{Observed, Progress};
use super::urgency::Urgency;

/// What reads need.
#[derive(Clone, Copy)]
pub struct Reader<'a, C: Cloud, A> {
    /// The client that reads.
    pub client: &'a A,
    /// The cache that stores what was observed.
    pub observations: &'a ObservationCache<C>,
    /// The lists that all clusters share.
    pub inventory: &'a Inventory<C>,
    /// The reconcile that reads.
    pub reconcile: Reconcile,
}

impl<C: Cloud, A: CloudClient<C>> Reader<'_, C, A> {
    /// The state of a resource, from the observation cache while that is fresh.
    ///
    /// Without a read, a resource counts as absent if this process created its parent and never put anything under this
    /// id. If others have put one there, the create that follows is refused, as it holds only for a new resource.
    pub async fn read(&self, kind: C::Kind, key: &C::Key) -> Observed<C> {
        let now = Instant::now();
        let is_awaited = self.reconcile.urgency.is_awaited();
        let fresh = self.observations.fresh(key, now);
        let is_put_off = is_awaited && self.observations.is_put_off(key);
        if let Some(observed) = fresh.filter(|_| !is_put_off) {
            return observed;
        }
        if let Some(observed) = self.observations.observed_in_use(key, now) {
            return observed;
        }
        if is_awaited && !is_put_off && self.observations.is_only_due(key, now) {
            return self.verifying().get(kind, key).await;
        }
        if !self.observations.knows(key) && key.parent().is_some_and(|parent| self.observations.made_here(&parent)) {
            return Observed::Absent;
        }
        if let Some(observed) = self.creation_read(kind, key).await {
            return observed;
        }
        match self.first_read(kind, key).await {
            FirstRead::Enough(observed) => observed,
            FirstRead::Nothing => self.get(kind, key).await,
            FirstRead::NotEnough(listed) => {
                let observed = self.get(kind, key).await;
                self.observations.listed(key, listed, Instant::now());
                observed
            }
        }
    }

    /// The same reader, for what is only verified: the budgets are for what somebody waits for.
    fn verifying(&self) -> Self {
        Self {
            client: self.client,
            observations: self.observations,
            inventory: self.inventory,
            reconcile: self.reconcile.verifying(),
        }
    }

    /// The state of a resource in the cloud now. What the observation cache holds of it is not used.
    pub async fn read_uncached(&self, kind: C::Kind, key: &C::Key) -> Observed<C> {
        if let Some(observed) = self.observations.observed_instead(key, self.reconcile.began) {
            return observed;
        }
        self.observations.invalidate(key, Instant::now());
        self.get(kind, key).await
    }

    async fn get(&self, kind: C::Kind, key: &C::Key) -> Observed<C> {
        match self.is_out_of_its_parent(kind, key).await {
            Ok(true) => return self.absent(kind, key, C::Error::missing()),
            // Its own read would only wait as long as the cloud says, and then ask for the parent again.
            Err(error) if error.class() == Class::Throttled => return self.read_failed(kind, key, error),
            Ok(false) | Err(_) => {}
        }
        let listed = match self.listed(kind, key).await {
            Err(Unlisted::Pending) if !self.reconcile.urgency.is_awaited() => {
                if let Some(known) = self.observations.known_until_listed(key, Instant::now()) {
                    self.note_passed_over(key);
                    return known;
                }
                None
            }
            listed => listed.ok(),
        };
        if let Some(observed) = listed.and_then(|listed| self.observations.unchanged(key, listed)) {
            return observed;
        }
        let observed = match self.client.get(self.reconcile, kind, key).await {
            Ok(body) => self.found(kind, key, body).await,
            Err(error) if error.class() == Class::Gone => self.not_found(kind, key, error).await,
            Err(error) => self.not_read(kind, key, error),
        };
        if let Some(listed) = listed {
            self.observations.listed(key, listed, Instant::now());
        }
        self.observations.forget_overdue(Instant::now());
        observed
    }

    /// Handles a failed read. A verification that has to wait because the cloud only takes so many requests leaves what
    /// is known as it is.
    fn not_read(&self, kind: C::Kind, key: &C::Key, error: C::Error) -> Observed<C> {
        if error.is_of_caller() {
            return Observed::ReadFailed(error);
        }
        let is_limited = error.is_unsent() || (error.class() == Class::Throttled && error.status() != 0);
        if self.reconcile.urgency.is_awaited() || !is_limited {
            return self.read_failed(kind, key, error);
        }
        let Some(known) = self.observations.postpone(key, &error, Instant::now()) else {
            let observed = self.read_failed(kind, key, error);
            self.observations.passed_over(key);
            return observed;
        };
        self.note_passed_over(key);
        known
    }

    /// Notes that a read of what is known was not sent, for a later reconcile that waits. One that waits and verifies
    /// has no use for it.
    fn note_passed_over(&self, key: &C::Key) {
        if self.reconcile.urgency != Urgency::Verification {
            self.observations.passed_over(key);
        }
    }

    /// Whether a resource that this process deletes is gone, by the parent's count of such resources, if the parent has
    /// one. The parent is read next anyway.
    async fn is_out_of_its_parent(&self, kind: C::Kind, key: &C::Key) -> Result<bool, C::Error> {
        let Some(count) = kind.rules().count_in_parent else {
            return Ok(false);
        };
        let Some(parent) = key.parent() else {
            return Ok(false);
        };
        if !self.is_deleting(key) || self.is_deleting(&parent) {
            return Ok(false);
        }
        let Some(parent_kind) = C::kind_of(&parent) else {
            return Ok(false);
        };
        let body = self.client.get(self.reconcile, parent_kind, &parent).await?;
        let out = count(&body) == Some(0);
        if out {
            // Else the parent's state from before, with the resource in it, would be used after that is gone.
            self.found(parent_kind, &parent, body).await;
            self.observations.was_read_instead(&parent, Instant::now());
        }
        Ok(out)
    }

    /// Whether this process deletes a resource.
    fn is_deleting(&self, key: &C::Key) -> bool {
        let operation = self.observations.operation(key);
        operation.is_some_and(|operation| operation.deletes)
    }

    /// How a list shows a resource that was ready.
    async fn listed(&self, kind: C::Kind, key: &C::Key) -> Result<Listed, Unlisted> {
        let since = self.observations.list_since(key, Instant::now());
        let since = since.ok_or(Unlisted::Unavailable)?;
        let serves = || self.observations.share_a_list(kind, key);
        self.inventory
            .listed(self.client, self.reconcile, (kind, key), since, serves)
            .await
    }

    pub(super) async fn found(&self, kind: C::Kind, key: &C::Key, body: serde_json::Value) -> Observed<C> {
        let now = Instant::now();
        let operation = self.observations.operation(key);
        let state = C::progress(&body);
        let completed = (kind.rules().completed)(&body);
        let in_force = (kind.rules().in_force)(&body);
        self.observations.shown(key);
        let failed = C::failed(&body);
        if let Some(wait) = self.observations.wait_to_confirm_failure(kind, key, &failed, now) {
            let error = C::Error::own(Class::Busy, "FailureNotConfirmed");
            return self.read_failed(kind, key, error.with_retry_after(wait));
        }
        if let Some(children) = kind.rules().children {
            self.observations.children_are(key, &children(&body));
        }
        let observed = Observed::Found(body);
        match (state, operation) {
            (Progress::Deleting, _) => self.in_progress(kind, key, observed, None),
            (_, Some(operation)) if operation.deletes => self.deleting(kind, key, &operation).await,
            (Progress::InProgress | Progress::Ready, _) if !completed => {
                self.in_progress(kind, key, Observed::Pending, None)
            }
            (Progress::InProgress, _) => self.in_progress(kind, key, observed, None),
            (Progress::Failed, Some(operation)) => match self.poll(kind, key, &operation).await {
                Ok(OperationState::Failed(error)) => self.write_failed(kind, key, error),
                _ => self.failed_state(kind, key, observed),
            },
            (Progress::Failed, None) => self.failed_state(kind, key, observed),
            (Progress::Ready, _) if !in_force => self.in_progress(kind, key, observed, None),
            (Progress::Ready, _) => self.ready(kind, key, observed, now),
        }
    }

    /// Handles a resource whose last operation failed by its `provisioningState`. If this process started that
    /// operation, the resource is put again only after a wait.
    fn failed_state(&self, kind: C::Kind, key: &C::Key, observed: Observed<C>) -> Observed<C> {
        if self.observations.is_put(key) {
            self.write_failed(kind, key, C::Error::own(Class::Busy, "OperationFailed"))
        } else {
            self.ready(kind, key, observed, Instant::now())
        }
    }

    /// The state of a resource whose delete was accepted, but which is still shown and not as deleting.
    pub async fn deleting(&self, kind: C::Kind, key: &C::Key, operation: &Operation<C>) -> Observed<C> {
        let polled = self.poll(kind, key, operation).await;
        match deletion::progress(operation, polled, Instant::now()) {
            Deletion::Running(wait) => self.in_progress(kind, key, Observed::Pending, wait),
            Deletion::Failed(error) => self.delete_failed(kind, key, error),
            Deletion::Unread(error) => self.read_failed(kind, key, error),
        }
    }

    /// The state of a resource that a read does not find. Its create may have been accepted; then only the operation
    /// shows how it stands.
    async fn not_found(&self, kind: C::Kind, key: &C::Key, missing: C::Error) -> Observed<C> {
        let operation = self.observations.operation(key).filter(|operation| !operation.deletes);
        let succeeded = self.observations.wait_to_be_shown(key, Instant::now()).is_some();
        let Some(operation) = operation.filter(|_| !succeeded) else {
            return self.absent(kind, key, missing);
        };
        match self.poll(kind, key, &operation).await {
            Ok(OperationState::Running(wait)) => self.in_progress(kind, key, Observed::Pending, wait),
            Ok(OperationState::Failed(error)) => self.write_failed(kind, key, error),
            Ok(OperationState::Succeeded) => self.made_meanwhile(kind, key).await,
            Err(error) if error.class() != Class::Gone => self.read_failed(kind, key, error),
            Err(_) => self.absent(kind, key, missing),
        }
    }

    /// Reads a resource again whose create ended after the first read.
    async fn made_meanwhile(&self, kind: C::Kind, key: &C::Key) -> Observed<C> {
        self.observations.put_succeeded(key, Instant::now());
        match self.client.get(self.reconcile, kind, key).await {
            Ok(body) => self.found(kind, key, body).await,
            Err(error) if error.class() == Class::Gone => self.absent(kind, key, error),
            Err(error) => self.read_failed(kind, key, error),
        }
    }

    /// Handles a read that found nothing. Just after an accepted PUT it proves nothing. If the resource was there
    /// before, it counts as a failed read until a second read finds nothing either: what follows is a write over
    /// whatever is there.
    fn absent(&self, kind: C::Kind, key: &C::Key, missing: C::Error) -> Observed<C> {
        let now = Instant::now();
        if self.observations.shows_late(key, now) {
            let wait = self.observations.wait_to_be_shown(key, now);
            self.in_progress(kind, key, Observed::Pending, wait)
        } else if let Some(wait) = self.observations.missed(kind, key, now) {
            self.read_failed(kind, key, missing.with_retry_after(wait))
        } else {
            self.ready(kind, key, Observed::Absent, now)
        }
    }

    /// Polls the DELETE of a resource that is no longer found, unless the resource is already known to be gone.
    pub async fn prove_gone(&self, kind: C::Kind, key: &C::Key) {
        let Some(operation) = self.observations.delete_to_poll(key) else {
            return;
        };
        match self.client.poll(self.reconcile, kind, key, &operation).await {
            Ok(OperationState::Succeeded) => self.observations.delete_ended(key, true),
            Ok(OperationState::Failed(_)) => self.observations.delete_ended(key, false),
            Ok(OperationState::Running(_)) | Err(_) => {}
        }
    }

    async fn poll(
        &self,
        kind: C::Kind,
        key: &C::Key,
        operation: &Operation<C>,
    ) -> Result<OperationState<C::Error>, C::Error> {
        match &operation.id {
            Some(id) => self.client.poll(self.reconcile, kind, key, id).await,
            None => Err(C::Error::own(Class::Gone, "NoOperation")),
        }
    }

    fn ready(&self, kind: C::Kind, key: &C::Key, observed: Observed<C>, now: Instant) -> Observed<C> {
        self.observations.ready(kind, key, observed.clone(), now);
        observed
    }

    fn in_progress(&self, kind: C::Kind, key: &C::Key, observed: Observed<C>, wait: Option<Duration>) -> Observed<C> {
        let wait = wait.unwrap_or_else(|| kind.rules().pace);
        self.observations
            .in_progress(kind, key, observed.clone(), wait, Instant::now());
        observed
    }

    fn read_failed(&self, kind: C::Kind, key: &C::Key, error: C::Error) -> Observed<C> {
        let now = Instant::now();
        let wait = self.observations.read_failed(kind, key, &error, now);
        self.log("read failed", kind, key, &error, wait);
        let lasting = self.observations.unread_for_long(key, now);
        Observed::ReadFailed(error.with_lasting(lasting))
    }

    fn write_failed(&self, kind: C::Kind, key: &C::Key, error: C::Error) -> Observed<C> {
        let wait = self.observations.write_failed(kind, key, &error, Instant::now());
        self.log("operation failed", kind, key, &error, wait);
        Observed::WriteFailed(error)
    }

    fn delete_failed(&self, kind: C::Kind, key: &C::Key, error: C::Error) -> Observed<C> {
        let wait = self.observations.delete_failed(kind, key, &error, Instant::now());
        self.log("delete failed", kind, key, &error, wait);
        Observed::DeleteFailed(error)
    }

    fn log(&self, what: &str, kind: C::Kind, key: &C::Key, error: &C::Error, wait: Duration) {
        warn!(
            kind = kind.label(),
            id = %key,
            status = error.status(),
            code = error.code(),
            class = error.class().label(),
            text = error.text(),
            again_in_s = wait.as_secs(),
            correlation_id = %self.reconcile.correlation,
            "{what}"
        );
    }
}
