//! Looks at one resource: from memory while that is good enough, else by one read. Never writes.

use std::time::Duration;

use tokio::time::Instant;
use tracing::warn;

use super::client::{Client, Pass};
use super::deletion::{self, Deletion};
use super::error::{ArmError, Class};
use super::id::ResourceId;
use super::inventory::{Inventory, Listed};
use super::link_service;
use super::memory::{Memory, Operation};
use super::operation::OperationState;
use super::resource::{Kind, Progress, Seen, progress};
use super::{zone, zone_link};

/// What a look needs.
#[derive(Clone, Copy)]
pub struct Looker<'a> {
    /// Reads.
    pub client: &'a Client,
    /// Remembers.
    pub memory: &'a Memory,
    /// Lists for many.
    pub inventory: &'a Inventory,
    /// The pass that looks.
    pub pass: Pass,
}

impl Looker<'_> {
    /// What is known or can be seen of a resource.
    ///
    /// What lies in a parent that this process made, and was never put there by it, is taken for absent without a read. Where
    /// others have put it there, the create that follows is refused, as it holds only for something new.
    pub async fn look(&self, kind: Kind, id: &ResourceId) -> Seen {
        let now = Instant::now();
        if let Some(seen) = self.memory.recall(id, now) {
            return seen;
        }
        if !self.memory.knows(id) && id.parent().is_some_and(|parent| self.memory.made_here(&parent)) {
            return Seen::Absent;
        }
        self.read(kind, id).await
    }

    /// What can be seen of a resource now, whatever is remembered of it.
    pub async fn look_anew(&self, kind: Kind, id: &ResourceId) -> Seen {
        if let Some(seen) = self.memory.seen_instead(id, self.pass.began) {
            return seen;
        }
        self.memory.doubt(id, Instant::now());
        self.read(kind, id).await
    }

    async fn read(&self, kind: Kind, id: &ResourceId) -> Seen {
        if kind == Kind::ZoneLink && self.is_out_of_its_zone(id).await {
            return self.absent(kind, id, ArmError::missing());
        }
        let listed = self.listed(kind, id).await;
        if let Some(seen) = listed.and_then(|listed| self.memory.unchanged(id, listed)) {
            return seen;
        }
        let seen = match self.client.get(self.pass, kind, id).await {
            Ok(answer) => self.found(kind, id, answer.body).await,
            Err(error) if error.class == Class::Gone => self.not_found(kind, id, error).await,
            Err(error) => self.look_failed(kind, id, error),
        };
        if let Some(listed) = listed {
            self.memory.listed(id, listed);
        }
        self.memory.forget_left(Instant::now());
        seen
    }

    /// Whether a link that this process deletes is gone by what its zone shows, which is read next anyway.
    async fn is_out_of_its_zone(&self, id: &ResourceId) -> bool {
        let goes = |id: &ResourceId| self.memory.operation(id).is_some_and(|operation| operation.deletes);
        let Some(zone) = id.parent().filter(|zone| goes(id) && !goes(zone)) else {
            return false;
        };
        let Ok(answer) = self.client.get(self.pass, Kind::Zone, &zone).await else {
            return false;
        };
        let out = zone::links(&answer.body) == Some(0);
        if out {
            // With the link still in it, it would pass for what it is once the link is gone.
            self.found(Kind::Zone, &zone, answer.body).await;
            self.memory.was_read_instead(&zone, Instant::now());
        }
        out
    }

    /// How a list shows a resource that was at rest.
    async fn listed(&self, kind: Kind, id: &ResourceId) -> Option<Listed> {
        let since = self.memory.list_since(id, Instant::now())?;
        let serves = || self.memory.share_a_list(kind, id);
        self.inventory
            .listed(self.client, self.pass, (kind, id), since, serves)
            .await
    }

    async fn found(&self, kind: Kind, id: &ResourceId, body: serde_json::Value) -> Seen {
        let (now, operation, state) = (Instant::now(), self.memory.operation(id), progress(&body));
        let half_linked = kind == Kind::ZoneLink && !zone_link::completed(&body);
        self.memory.shown(id);
        if kind == Kind::LinkService {
            self.memory.connections_are(id, &link_service::connections(&body));
        }
        let seen = Seen::Found(body);
        match (state, operation) {
            (Progress::Deleting, _) => self.moving(kind, id, seen, None),
            (_, Some(operation)) if operation.deletes => self.deleting(kind, id, &operation).await,
            (Progress::Moving, _) => self.moving(kind, id, seen, None),
            (Progress::Settled, _) if half_linked => self.moving(kind, id, Seen::Pending, None),
            (Progress::Failed, Some(operation)) => match self.ask(kind, id, &operation).await {
                Ok(OperationState::Failed(error)) => self.write_failed(kind, id, error),
                _ => self.failed_state(kind, id, seen),
            },
            (Progress::Failed, None) => self.failed_state(kind, id, seen),
            (Progress::Settled, _) => self.resting(kind, id, seen, now),
        }
    }

    /// A resource that says that its last operation failed. If that was ours, it is put again only after a while.
    fn failed_state(&self, kind: Kind, id: &ResourceId, seen: Seen) -> Seen {
        if self.memory.is_put(id) {
            self.write_failed(kind, id, ArmError::own(Class::Busy, "OperationFailed"))
        } else {
            self.resting(kind, id, seen, Instant::now())
        }
    }

    /// A delete was accepted, and the resource is still shown and does not say that it is going.
    pub async fn deleting(&self, kind: Kind, id: &ResourceId, operation: &Operation) -> Seen {
        let said = self.ask(kind, id, operation).await;
        match deletion::progress(operation, said, Instant::now()) {
            Deletion::Running(wait) => self.moving(kind, id, Seen::Pending, wait),
            Deletion::Failed(error) => self.delete_failed(kind, id, error),
            Deletion::Unread(error) => self.look_failed(kind, id, error),
        }
    }

    /// A create may have been accepted of which nothing can be read yet; only its operation tells how it stands.
    async fn not_found(&self, kind: Kind, id: &ResourceId, missing: ArmError) -> Seen {
        let operation = self.memory.operation(id).filter(|operation| !operation.deletes);
        let succeeded = self.memory.wait_to_be_shown(id, Instant::now()).is_some();
        let Some(operation) = operation.filter(|_| !succeeded) else {
            return self.absent(kind, id, missing);
        };
        match self.ask(kind, id, &operation).await {
            Ok(OperationState::Running(wait)) => self.moving(kind, id, Seen::Pending, wait),
            Ok(OperationState::Failed(error)) => self.write_failed(kind, id, error),
            Ok(OperationState::Succeeded) => self.made_meanwhile(kind, id).await,
            Err(error) if error.class != Class::Gone => self.look_failed(kind, id, error),
            Err(_) => self.absent(kind, id, missing),
        }
    }

    /// The create has ended since the resource was looked for.
    async fn made_meanwhile(&self, kind: Kind, id: &ResourceId) -> Seen {
        self.memory.put_succeeded(id, Instant::now());
        match self.client.get(self.pass, kind, id).await {
            Ok(answer) => self.found(kind, id, answer.body).await,
            Err(error) if error.class == Class::Gone => self.absent(kind, id, error),
            Err(error) => self.look_failed(kind, id, error),
        }
    }

    /// A read found nothing. Just after a PUT that was taken that proves nothing. Of what was there it is a read that failed until a
    /// second one finds nothing either: what would follow is a write over whatever is there.
    fn absent(&self, kind: Kind, id: &ResourceId, missing: ArmError) -> Seen {
        let now = Instant::now();
        if self.memory.shows_late(id, now) {
            let wait = self.memory.wait_to_be_shown(id, now);
            self.moving(kind, id, Seen::Pending, wait)
        } else if let Some(wait) = self.memory.missed(id, now) {
            let retry_after = Some(wait);
            self.look_failed(kind, id, ArmError { retry_after, ..missing })
        } else {
            self.resting(kind, id, Seen::Absent, now)
        }
    }

    /// Asks how the DELETE of a resource that is not found any more has ended, unless it is gone for certain anyway.
    pub async fn prove_gone(&self, kind: Kind, id: &ResourceId) {
        let Some(url) = self.memory.delete_to_ask_about(id) else {
            return;
        };
        match self.client.operation(self.pass, kind, id, &url).await {
            Ok(OperationState::Succeeded) => self.memory.delete_ended(id, true),
            Ok(OperationState::Failed(_)) => self.memory.delete_ended(id, false),
            Ok(OperationState::Running(_)) | Err(_) => {}
        }
    }

    async fn ask(&self, kind: Kind, id: &ResourceId, operation: &Operation) -> Result<OperationState, ArmError> {
        match &operation.url {
            Some(url) => self.client.operation(self.pass, kind, id, url).await,
            None => Err(ArmError::own(Class::Gone, "NoOperation")),
        }
    }

    fn resting(&self, kind: Kind, id: &ResourceId, seen: Seen, now: Instant) -> Seen {
        self.memory.resting(kind, id, seen.clone(), now);
        seen
    }

    fn moving(&self, kind: Kind, id: &ResourceId, seen: Seen, wait: Option<Duration>) -> Seen {
        let wait = wait.unwrap_or_else(|| kind.pace());
        self.memory.moving(kind, id, seen.clone(), wait, Instant::now());
        seen
    }

    fn look_failed(&self, kind: Kind, id: &ResourceId, error: ArmError) -> Seen {
        let now = Instant::now();
        let wait = self.memory.look_failed(kind, id, &error, now);
        self.log("look failed", kind, id, &error, wait);
        let lasting = self.memory.unread_for_long(id, now);
        Seen::ReadFailed(ArmError { lasting, ..error })
    }

    fn write_failed(&self, kind: Kind, id: &ResourceId, error: ArmError) -> Seen {
        let wait = self.memory.write_failed(kind, id, &error, Instant::now());
        self.log("operation failed", kind, id, &error, wait);
        Seen::WriteFailed(error)
    }

    fn delete_failed(&self, kind: Kind, id: &ResourceId, error: ArmError) -> Seen {
        let wait = self.memory.delete_failed(kind, id, &error, Instant::now());
        self.log("delete failed", kind, id, &error, wait);
        Seen::DeleteFailed(error)
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
            correlation_id = %self.pass.correlation,
            "{what}"
        );
    }
}
