//! The calls that the engine makes, and what it has to know of their answers.

use std::hash::{BuildHasher, RandomState};
use std::sync::LazyLock;
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;
use uuid::Uuid;

use super::cloud::Cloud;
use super::urgency::Urgency;

/// Hashes callers. Nobody outside this process can tell which ones have the same hash.
static CALLERS: LazyLock<RandomState> = LazyLock::new(RandomState::new);

/// What all calls of one reconcile share.
#[derive(Debug, Clone, Copy)]
pub struct Reconcile {
    /// The correlation id: sent with each call where the cloud takes one, and logged.
    pub correlation: Uuid,
    /// When it began. What was read before may not show the change that caused it.
    pub began: Instant,
    /// Whether somebody waits for it.
    pub urgency: Urgency,
    /// On whose behalf it calls, as a hash, where each caller has call budgets of its own.
    pub caller: u64,
}

impl Reconcile {
    /// Begins a reconcile with a new correlation id, for which somebody waits.
    pub fn begin() -> Self {
        Self {
            correlation: Uuid::new_v4(),
            began: Instant::now(),
            urgency: Urgency::Awaited,
            caller: 0,
        }
    }

    /// The same reconcile, on behalf of this caller.
    #[must_use]
    pub fn on_behalf_of(self, caller: &str) -> Self {
        Self {
            caller: CALLERS.hash_one(caller),
            ..self
        }
    }

    /// The same reconcile, as it reads what it knows to be ready.
    #[must_use]
    pub(crate) fn verifying(self) -> Self {
        Self {
            urgency: Urgency::Verification,
            ..self
        }
    }

    /// The same reconcile, for which somebody waits from now on.
    #[must_use]
    pub fn awaited(self) -> Self {
        Self {
            urgency: Urgency::Awaited,
            ..self
        }
    }
}

/// The precondition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// No precondition at all.
    Any,
    /// Only if the resource does not exist.
    New,
    /// Only if the resource still has this version.
    Unchanged(String),
}

/// What a write goes to.
#[derive(Debug)]
pub struct WriteTarget<'a, C: Cloud> {
    /// The resource's kind.
    pub kind: C::Kind,
    /// The resource's key.
    pub key: &'a C::Key,
    /// The resource as it was read before the write; none if it was not there, or only another resource shows it.
    /// A cloud that names its resources itself finds the name here.
    pub found: Option<&'a Value>,
}

// Derived, they would ask that keys are `Copy`.
impl<C: Cloud> Clone for WriteTarget<'_, C> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<C: Cloud> Copy for WriteTarget<'_, C> {}

/// The answer to a write that the cloud accepted.
#[derive(Debug, Clone, PartialEq)]
pub struct Accepted<C: Cloud> {
    /// The resource as the answer shows it; none if it does not.
    pub shown: Option<Value>,
    /// How far the cloud is with it.
    pub execution: Execution,
    /// The wait that the cloud asks for.
    pub retry_after: Option<Duration>,
    /// Where the state of the operation can be read; none if the cloud does not say.
    pub operation: Option<C::OperationId>,
}

/// How far the cloud is with a write that it accepted, by its answer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Execution {
    /// It works on the write.
    Running,
    /// The write is in force.
    Complete,
    /// There was nothing to delete.
    NothingThere,
}

/// Why a write was not accepted.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WriteError<E> {
    /// The gate was shut: the write was not sent, as this process may not write any more.
    #[error("not leading: not sent")]
    NotLeading,
    /// The cloud refused the write, or it could not be sent.
    #[error(transparent)]
    Failed(#[from] E),
}

/// The state of an operation.
#[derive(Debug, Clone, PartialEq)]
pub enum OperationState<E> {
    /// Not ended; with the wait that the cloud asks for.
    Running(Option<Duration>),
    /// Ended with success.
    Succeeded,
    /// Ended with this error.
    Failed(E),
}

/// The calls to a cloud, one at a time. Each is sent once.
pub trait CloudClient<C: Cloud>: Send + Sync {
    /// Reads one resource; its body.
    fn get(
        &self,
        reconcile: Reconcile,
        kind: C::Kind,
        key: &C::Key,
    ) -> impl Future<Output = Result<Value, C::Error>> + Send;

    /// Reads all pages of a list; its rows.
    fn list(
        &self,
        reconcile: Reconcile,
        kind: C::Kind,
        list: &C::List,
    ) -> impl Future<Output = Result<Vec<Value>, C::Error>> + Send;

    /// Creates or replaces one resource.
    fn put(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, C>,
        body: &Value,
        condition: &Condition,
    ) -> impl Future<Output = Result<Accepted<C>, WriteError<C::Error>>> + Send;

    /// Deletes one resource. One that is already gone counts as deleted.
    fn delete(
        &self,
        reconcile: Reconcile,
        target: WriteTarget<'_, C>,
        condition: &Condition,
    ) -> impl Future<Output = Result<Accepted<C>, WriteError<C::Error>>> + Send;

    /// Reads the state of an operation on the resource. The class `Gone`: the cloud no longer knows the operation.
    fn poll(
        &self,
        reconcile: Reconcile,
        kind: C::Kind,
        key: &C::Key,
        operation: &C::OperationId,
    ) -> impl Future<Output = Result<OperationState<C::Error>, C::Error>> + Send;
}
