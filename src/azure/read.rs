//! Reads one resource: from the observation cache while that is fresh, else with GETs. Never writes.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::client::{Client, Reconcile};
use super::deletion::{self, Deletion};
use super::error::{ArmError, Class};
use super::id::ResourceId;
use super::inventory::{Inventory, Listed};
use super::kinds::Kind;
use super::observation_cache::{ObservationCache, Operation};
use super::operation::OperationState;
use super::resource::{Observed, Progress, progress};

/// What reads need.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// The client that reads.
    pub client: &'a Client,
    /// The cache that stores what was observed.
    pub observations: &'a ObservationCache,
    /// The lists that all clusters share.
    pub inventory: &'a Inventory,
    /// The reconcile that reads.
    pub reconcile: Reconcile,
}

impl Reader<'_> {
    /// The state of a resource, from the observation cache while that is fresh.
    ///
    /// Without a read, a resource counts as absent if this process created its parent and never put anything under this
    /// id. If others have put one there, the create that follows is refused, as it holds only for a new resource.
    pub async fn read(&self, kind: Kind, id: &ResourceId) -> Observed {
        let now = Instant::now();
        if let Some(observed) = self.observations.fresh(id, now) {
            return observed;
        }
        if !self.observations.knows(id) && id.parent().is_some_and(|parent| self.observations.made_here(&parent)) {
            return Observed::Absent;
        }
        self.get(kind, id).await
    }

    /// The state of a resource in Azure now. What the observation cache holds of it is not used.
    pub async fn read_uncached(&self, kind: Kind, id: &ResourceId) -> Observed {
        if let Some(observed) = self.observations.observed_instead(id, self.reconcile.began) {
            return observed;
        }
        self.observations.invalidate(id, Instant::now());
        self.get(kind, id).await
    }

    async fn get(&self, kind: Kind, id: &ResourceId) -> Observed {
        if self.is_out_of_its_parent(kind, id).await {
            return self.absent(kind, id, ArmError::missing());
        }
        let listed = self.listed(kind, id).await;
        if let Some(observed) = listed.and_then(|listed| self.observations.unchanged(id, listed)) {
            return observed;
        }
        let observed = match self.client.get(self.reconcile, kind, id).await {
            Ok(answer) => self.found(kind, id, answer.body).await,
            Err(error) if error.class == Class::Gone => self.not_found(kind, id, error).await,
            Err(error) => self.read_failed(kind, id, error),
        };
        if let Some(listed) = listed {
            self.observations.listed(id, listed);
        }
        self.observations.forget_overdue(Instant::now());
        observed
    }

    /// Whether a resource that this process deletes is gone, by the parent's count of such resources, if the parent has
    /// one. The parent is read next anyway.
    async fn is_out_of_its_parent(&self, kind: Kind, id: &ResourceId) -> bool {
        let Some(count) = kind.spec().count_in_parent else {
            return false;
        };
        let is_deleting = |id: &ResourceId| {
            self.observations
                .operation(id)
                .is_some_and(|operation| operation.deletes)
        };
        let Some(parent) = id.parent().filter(|parent| is_deleting(id) && !is_deleting(parent)) else {
            return false;
        };
        let Some(parent_kind) = parent.kind() else {
            return false;
        };
        let Ok(answer) = self.client.get(self.reconcile, parent_kind, &parent).await else {
            return false;
        };
        let out = count(&answer.body) == Some(0);
        if out {
            // Else the parent's state from before, with the resource in it, would be used after that is gone.
            self.found(parent_kind, &parent, answer.body).await;
            self.observations.was_read_instead(&parent, Instant::now());
        }
        out
    }

    /// How a list shows a resource that was ready.
    async fn listed(&self, kind: Kind, id: &ResourceId) -> Option<Listed> {
        let since = self.observations.list_since(id, Instant::now())?;
        let serves = || self.observations.share_a_list(kind, id);
        self.inventory
            .listed(self.client, self.reconcile, (kind, id), since, serves)
            .await
    }

    async fn found(&self, kind: Kind, id: &ResourceId, body: serde_json::Value) -> Observed {
        let (now, operation, state) = (Instant::now(), self.observations.operation(id), progress(&body));
        let completed = (kind.spec().completed)(&body);
        self.observations.shown(id);
        if let Some(children) = kind.spec().children {
            self.observations.children_are(id, &children(&body));
        }
        let observed = Observed::Found(body);
        match (state, operation) {
            (Progress::Deleting, _) => self.in_progress(kind, id, observed, None),
            (_, Some(operation)) if operation.deletes => self.deleting(kind, id, &operation).await,
            (Progress::InProgress, _) => self.in_progress(kind, id, observed, None),
            (Progress::Ready, _) if !completed => self.in_progress(kind, id, Observed::Pending, None),
            (Progress::Failed, Some(operation)) => match self.poll(kind, id, &operation).await {
                Ok(OperationState::Failed(error)) => self.write_failed(kind, id, error),
                _ => self.failed_state(kind, id, observed),
            },
            (Progress::Failed, None) => self.failed_state(kind, id, observed),
            (Progress::Ready, _) => self.ready(kind, id, observed, now),
        }
    }

    /// Handles a resource whose last operation failed by its `provisioningState`. If this process started that
    /// operation, the resource is put again only after a wait.
    fn failed_state(&self, kind: Kind, id: &ResourceId, observed: Observed) -> Observed {
        if self.observations.is_put(id) {
            self.write_failed(kind, id, ArmError::own(Class::Busy, "OperationFailed"))
        } else {
            self.ready(kind, id, observed, Instant::now())
        }
    }

    /// The state of a resource whose delete was accepted, but which is still shown and not as deleting.
    pub async fn deleting(&self, kind: Kind, id: &ResourceId, operation: &Operation) -> Observed {
        let polled = self.poll(kind, id, operation).await;
        match deletion::progress(operation, polled, Instant::now()) {
            Deletion::Running(wait) => self.in_progress(kind, id, Observed::Pending, wait),
            Deletion::Failed(error) => self.delete_failed(kind, id, error),
            Deletion::Unread(error) => self.read_failed(kind, id, error),
        }
    }

    /// The state of a resource that a read does not find. Its create may have been accepted; then only the operation
    /// shows how it stands.
    async fn not_found(&self, kind: Kind, id: &ResourceId, missing: ArmError) -> Observed {
        let operation = self.observations.operation(id).filter(|operation| !operation.deletes);
        let succeeded = self.observations.wait_to_be_shown(id, Instant::now()).is_some();
        let Some(operation) = operation.filter(|_| !succeeded) else {
            return self.absent(kind, id, missing);
        };
        match self.poll(kind, id, &operation).await {
            Ok(OperationState::Running(wait)) => self.in_progress(kind, id, Observed::Pending, wait),
            Ok(OperationState::Failed(error)) => self.write_failed(kind, id, error),
            Ok(OperationState::Succeeded) => self.made_meanwhile(kind, id).await,
            Err(error) if error.class != Class::Gone => self.read_failed(kind, id, error),
            Err(_) => self.absent(kind, id, missing),
        }
    }

    /// Reads a resource again whose create ended after the first read.
    async fn made_meanwhile(&self, kind: Kind, id: &ResourceId) -> Observed {
        self.observations.put_succeeded(id, Instant::now());
        match self.client.get(self.reconcile, kind, id).await {
            Ok(answer) => self.found(kind, id, answer.body).await,
            Err(error) if error.class == Class::Gone => self.absent(kind, id, error),
            Err(error) => self.read_failed(kind, id, error),
        }
    }

    /// Handles a read that found nothing. Just after an accepted PUT it proves nothing. If the resource was there
    /// before, it counts as a failed read until a second read finds nothing either: what follows is a write over
    /// whatever is there.
    fn absent(&self, kind: Kind, id: &ResourceId, missing: ArmError) -> Observed {
        let now = Instant::now();
        if self.observations.shows_late(id, now) {
            let wait = self.observations.wait_to_be_shown(id, now);
            self.in_progress(kind, id, Observed::Pending, wait)
        } else if let Some(wait) = self.observations.missed(id, now) {
            let retry_after = Some(wait);
            self.read_failed(kind, id, ArmError { retry_after, ..missing })
        } else {
            self.ready(kind, id, Observed::Absent, now)
        }
    }

    /// Polls the DELETE of a resource that is no longer found, unless the resource is already known to be gone.
    pub async fn prove_gone(&self, kind: Kind, id: &ResourceId) {
        let Some(url) = self.observations.delete_to_poll(id) else {
            return;
        };
        match self.client.operation(self.reconcile, kind, id, &url).await {
            Ok(OperationState::Succeeded) => self.observations.delete_ended(id, true),
            Ok(OperationState::Failed(_)) => self.observations.delete_ended(id, false),
            Ok(OperationState::Running(_)) | Err(_) => {}
        }
    }

    async fn poll(&self, kind: Kind, id: &ResourceId, operation: &Operation) -> Result<OperationState, ArmError> {
        match &operation.url {
            Some(url) => self.client.operation(self.reconcile, kind, id, url).await,
            None => Err(ArmError::own(Class::Gone, "NoOperation")),
        }
    }

    fn ready(&self, kind: Kind, id: &ResourceId, observed: Observed, now: Instant) -> Observed {
        self.observations.ready(kind, id, observed.clone(), now);
        observed
    }

    fn in_progress(&self, kind: Kind, id: &ResourceId, observed: Observed, wait: Option<Duration>) -> Observed {
        let wait = wait.unwrap_or_else(|| kind.pace());
        self.observations
            .in_progress(kind, id, observed.clone(), wait, Instant::now());
        observed
    }

    fn read_failed(&self, kind: Kind, id: &ResourceId, error: ArmError) -> Observed {
        let now = Instant::now();
        let wait = self.observations.read_failed(kind, id, &error, now);
        self.log("read failed", kind, id, &error, wait);
        let lasting = self.observations.unread_for_long(id, now);
        Observed::ReadFailed(ArmError { lasting, ..error })
    }

    fn write_failed(&self, kind: Kind, id: &ResourceId, error: ArmError) -> Observed {
        let wait = self.observations.write_failed(kind, id, &error, Instant::now());
        self.log("operation failed", kind, id, &error, wait);
        Observed::WriteFailed(error)
    }

    fn delete_failed(&self, kind: Kind, id: &ResourceId, error: ArmError) -> Observed {
        let wait = self.observations.delete_failed(kind, id, &error, Instant::now());
        self.log("delete failed", kind, id, &error, wait);
        Observed::DeleteFailed(error)
    }

    fn log(&self, what: &str, kind: Kind, id: &ResourceId, error: &ArmError, wait: Duration) {
        warn!(
            kind = kind.label(),
            %id,
            status = error.status,
            code = error.code,
            class = error.class.label(),
            text = error.text,
            again_in_s = wait.as_secs(),
            correlation_id = %self.reconcile.correlation,
            "{what}"
        );
    }
}
