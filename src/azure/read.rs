//! Looks at one resource: from memory while that is good enough, else by one read. Never writes.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::client::{Client, Reconcile};
use super::deletion::{self, Deletion};
use super::error::{ArmError, Class};
use super::id::ResourceId;
use super::inventory::{Inventory, Listed};
use super::observation_cache::{ObservationCache, Operation};
use super::operation::OperationState;
use super::private_link_service;
use super::resource::{Kind, Observed, Progress, progress};
use super::{zone, zone_link};

/// What a look needs.
#[derive(Clone, Copy)]
pub struct Reader<'a> {
    /// Reads.
    pub client: &'a Client,
    /// Remembers.
    pub observations: &'a ObservationCache,
    /// Lists for many.
    pub inventory: &'a Inventory,
    /// The pass that looks.
    pub reconcile: Reconcile,
}

impl Reader<'_> {
    /// What is known or can be seen of a resource.
    ///
    /// What lies in a parent that this process made, and was never put there by it, is taken for absent without a read. Where
    /// others have put it there, the create that follows is refused, as it holds only for something new.
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

    /// What can be seen of a resource now, whatever is remembered of it.
    pub async fn read_uncached(&self, kind: Kind, id: &ResourceId) -> Observed {
        if let Some(observed) = self.observations.observed_instead(id, self.reconcile.began) {
            return observed;
        }
        self.observations.invalidate(id, Instant::now());
        self.get(kind, id).await
    }

    async fn get(&self, kind: Kind, id: &ResourceId) -> Observed {
        if kind == Kind::ZoneLink && self.is_out_of_its_zone(id).await {
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
        self.observations.forget_left(Instant::now());
        observed
    }

    /// Whether a link that this process deletes is gone by what its zone shows, which is read next anyway.
    async fn is_out_of_its_zone(&self, id: &ResourceId) -> bool {
        let goes = |id: &ResourceId| {
            self.observations
                .operation(id)
                .is_some_and(|operation| operation.deletes)
        };
        let Some(zone) = id.parent().filter(|zone| goes(id) && !goes(zone)) else {
            return false;
        };
        let Ok(answer) = self.client.get(self.reconcile, Kind::Zone, &zone).await else {
            return false;
        };
        let out = zone::links(&answer.body) == Some(0);
        if out {
            // With the link still in it, it would pass for what it is once the link is gone.
            self.found(Kind::Zone, &zone, answer.body).await;
            self.observations.was_read_instead(&zone, Instant::now());
        }
        out
    }

    /// How a list shows a resource that was at rest.
    async fn listed(&self, kind: Kind, id: &ResourceId) -> Option<Listed> {
        let since = self.observations.list_since(id, Instant::now())?;
        let serves = || self.observations.share_a_list(kind, id);
        self.inventory
            .listed(self.client, self.reconcile, (kind, id), since, serves)
            .await
    }

    async fn found(&self, kind: Kind, id: &ResourceId, body: serde_json::Value) -> Observed {
        let (now, operation, state) = (Instant::now(), self.observations.operation(id), progress(&body));
        let half_linked = kind == Kind::ZoneLink && !zone_link::completed(&body);
        self.observations.shown(id);
        if kind == Kind::PrivateLinkService {
            self.observations
                .connections_are(id, &private_link_service::connections(&body));
        }
        let observed = Observed::Found(body);
        match (state, operation) {
            (Progress::Deleting, _) => self.in_progress(kind, id, observed, None),
            (_, Some(operation)) if operation.deletes => self.deleting(kind, id, &operation).await,
            (Progress::InProgress, _) => self.in_progress(kind, id, observed, None),
            (Progress::Ready, _) if half_linked => self.in_progress(kind, id, Observed::Pending, None),
            (Progress::Failed, Some(operation)) => match self.ask(kind, id, &operation).await {
                Ok(OperationState::Failed(error)) => self.write_failed(kind, id, error),
                _ => self.failed_state(kind, id, observed),
            },
            (Progress::Failed, None) => self.failed_state(kind, id, observed),
            (Progress::Ready, _) => self.ready(kind, id, observed, now),
        }
    }

    /// A resource that says that its last operation failed. If that was ours, it is put again only after a while.
    fn failed_state(&self, kind: Kind, id: &ResourceId, observed: Observed) -> Observed {
        if self.observations.is_put(id) {
            self.write_failed(kind, id, ArmError::own(Class::Busy, "OperationFailed"))
        } else {
            self.ready(kind, id, observed, Instant::now())
        }
    }

    /// A delete was accepted, and the resource is still shown and does not say that it is going.
    pub async fn deleting(&self, kind: Kind, id: &ResourceId, operation: &Operation) -> Observed {
        let said = self.ask(kind, id, operation).await;
        match deletion::progress(operation, said, Instant::now()) {
            Deletion::Running(wait) => self.in_progress(kind, id, Observed::Pending, wait),
            Deletion::Failed(error) => self.delete_failed(kind, id, error),
            Deletion::Unread(error) => self.read_failed(kind, id, error),
        }
    }

    /// A create may have been accepted of which nothing can be read yet; only its operation tells how it stands.
    async fn not_found(&self, kind: Kind, id: &ResourceId, missing: ArmError) -> Observed {
        let operation = self.observations.operation(id).filter(|operation| !operation.deletes);
        let succeeded = self.observations.wait_to_be_shown(id, Instant::now()).is_some();
        let Some(operation) = operation.filter(|_| !succeeded) else {
            return self.absent(kind, id, missing);
        };
        match self.ask(kind, id, &operation).await {
            Ok(OperationState::Running(wait)) => self.in_progress(kind, id, Observed::Pending, wait),
            Ok(OperationState::Failed(error)) => self.write_failed(kind, id, error),
            Ok(OperationState::Succeeded) => self.made_meanwhile(kind, id).await,
            Err(error) if error.class != Class::Gone => self.read_failed(kind, id, error),
            Err(_) => self.absent(kind, id, missing),
        }
    }

    /// The create has ended since the resource was looked for.
    async fn made_meanwhile(&self, kind: Kind, id: &ResourceId) -> Observed {
        self.observations.put_succeeded(id, Instant::now());
        match self.client.get(self.reconcile, kind, id).await {
            Ok(answer) => self.found(kind, id, answer.body).await,
            Err(error) if error.class == Class::Gone => self.absent(kind, id, error),
            Err(error) => self.read_failed(kind, id, error),
        }
    }

    /// A read found nothing. Just after a PUT that was taken that proves nothing. Of what was there it is a read that failed until a
    /// second one finds nothing either: what would follow is a write over whatever is there.
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

    /// Asks how the DELETE of a resource that is not found any more has ended, unless it is gone for certain anyway.
    pub async fn prove_gone(&self, kind: Kind, id: &ResourceId) {
        let Some(url) = self.observations.delete_to_ask_about(id) else {
            return;
        };
        match self.client.operation(self.reconcile, kind, id, &url).await {
            Ok(OperationState::Succeeded) => self.observations.delete_ended(id, true),
            Ok(OperationState::Failed(_)) => self.observations.delete_ended(id, false),
            Ok(OperationState::Running(_)) | Err(_) => {}
        }
    }

    async fn ask(&self, kind: Kind, id: &ResourceId, operation: &Operation) -> Result<OperationState, ArmError> {
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
        self.log("look failed", kind, id, &error, wait);
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
