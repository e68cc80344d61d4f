//! Which principals were sent lately, and how AWS took them. It may refuse one for ever, and show a unique id in place of
//! another one, which exists no more.

use std::collections::{BTreeSet, HashMap};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::api::error::AwsError;
use crate::slot::Slot;

/// How long it is remembered that AWS took a principal.
const REMEMBERED: Duration = Duration::from_secs(3_600);

/// How long a principal is not sent again that AWS has refused once, twice and so on. One that was just created may be
/// refused at first, and somebody may create one later.
///
/// Source: <https://docs.aws.amazon.com/IAM/latest/UserGuide/troubleshoot.html#troubleshoot_general_eventual-consistency>
const REFUSED_FOR: [Duration; 4] = [
    Duration::from_secs(60),
    Duration::from_secs(120),
    Duration::from_secs(600),
    Duration::from_secs(3_600),
];

/// The most principals of one endpoint service that are remembered: whoever may name them may name others without end.
const MOST_REMEMBERED: usize = 200;

/// How a principal fared that was sent.
#[derive(Debug, Clone)]
struct Sent {
    at: Instant,
    /// Why AWS refused it; none if it took it.
    error: Option<AwsError>,
    /// How often in a row AWS refused it before.
    refused_before: usize,
}

impl Sent {
    /// Until when it is not sent again.
    fn until(&self) -> Instant {
        let wait = match self.error {
            Some(_) => REFUSED_FOR[self.refused_before.min(REFUSED_FOR.len() - 1)],
            None => REMEMBERED,
        };
        self.at + wait
    }
}

/// The principals that were sent, by slot and ARN.
#[derive(Debug, Default)]
pub(super) struct SentPrincipals(Mutex<HashMap<Slot, HashMap<String, Sent>>>);

impl SentPrincipals {
    fn all(&self, now: Instant) -> MutexGuard<'_, HashMap<Slot, HashMap<String, Sent>>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        all.retain(|_, sent| {
            // How often it was refused counts for longer.
            sent.retain(|_, sent| now < sent.until() + REMEMBERED);
            !sent.is_empty()
        });
        all
    }

    /// Notes that these were sent, and how AWS refused them, if it did.
    pub(super) fn note_sent(&self, slot: &Slot, arns: &[String], error: Option<&AwsError>, now: Instant) {
        let mut all = self.all(now);
        let of_slot = all.entry(slot.clone()).or_default();
        if of_slot.len() + arns.len() > MOST_REMEMBERED {
            of_slot.clear();
        }
        for arn in arns {
            let before = of_slot.get(arn).filter(|before| before.error.is_some());
            let sent = Sent {
                at: now,
                error: error.cloned(),
                refused_before: before.map_or(0, |before| before.refused_before + 1),
            };
            of_slot.insert(arn.clone(), sent);
        }
    }

    /// Those that AWS has refused lately, and those that it has taken.
    pub(super) fn recent(&self, slot: &Slot, now: Instant) -> [BTreeSet<String>; 2] {
        let all = self.all(now);
        let of_slot = || {
            let sent = all.get(slot).into_iter().flatten();
            sent.filter(|(_, sent)| now < sent.until())
        };
        [true, false].map(|refused| {
            let sent = of_slot().filter(|(_, sent)| sent.error.is_some() == refused);
            sent.map(|(arn, _)| arn.clone()).collect()
        })
    }

    /// Why AWS refused the first of these; none if it refused none of them.
    pub(super) fn refusal(&self, slot: &Slot, arns: &BTreeSet<String>, now: Instant) -> Option<AwsError> {
        let all = self.all(now);
        let sent = all.get(slot)?;
        arns.iter().find_map(|arn| sent.get(arn)?.error.clone())
    }
}
