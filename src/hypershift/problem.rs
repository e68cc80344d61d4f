//! What prevents a custom resource from being as desired, in the words of a condition. Data only.

use std::time::Duration;

use serde::Serialize;

use crate::api::Reason;
use crate::engine::failure::{Class, Failure};
use crate::runtime::requeue::Requeue;

/// Why nothing can be done for an object, in the words of a condition.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Problem {
    /// The condition's reason.
    pub reason: Reason,
    /// The condition's message: short and stable.
    pub message: String,
    /// After how long to reconcile again though nothing has changed; none where only a change can help.
    #[serde(skip)]
    pub requeue_after: Option<Duration>,
    /// The class of the cloud's error, if the problem is one.
    #[serde(skip)]
    pub class: Option<Class>,
    /// Whether this is only a read that failed for a short while, or the cloud being busy: nothing is known to have
    /// changed.
    #[serde(skip)]
    pub unread: bool,
}

impl Problem {
    /// A problem that only a change of some object can solve.
    pub fn new(reason: Reason, message: impl Into<String>) -> Self {
        Self {
            reason,
            message: message.into(),
            requeue_after: None,
            class: None,
            unread: false,
        }
    }

    /// The problem of a cloud's error about `subject`.
    pub fn error(reason: Reason, subject: &str, error: &impl Failure) -> Self {
        Self {
            class: Some(error.class()),
            ..Self::new(reason, format!("{subject}: {error}"))
        }
    }

    /// The problem of a cloud's error in a read of `subject`.
    pub fn unread(reason: Reason, subject: &str, error: &impl Failure) -> Self {
        if error.class().is_back_pressure() || !error.is_lasting() {
            return Self {
                unread: true,
                ..Self::error(reason, subject, error)
            };
        }
        let subject = format!("{subject} cannot be read, nothing is known of it now");
        Self::error(reason, &subject, error)
    }

    /// This problem, with another reconcile after `wait`.
    pub fn requeue_after(mut self, wait: Duration) -> Self {
        self.requeue_after = Some(wait);
        self
    }

    /// When to reconcile again though nothing has changed; none where only a change can help.
    pub fn requeue(&self) -> Option<Requeue> {
        Some(Requeue::new(self.requeue_after?, self.reason.as_str()))
    }
}
