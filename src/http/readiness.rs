//! What the process waits for, item by item, and how `/readyz` reports it.

use std::borrow::Cow;
use std::fmt::Write as _;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// The text of an item is cut to this many characters.
const REASON_LENGTH: usize = 200;

/// The text of an item that nobody has set yet.
const UNTRIED: &str = "not tried yet";

/// What the process waits for, item by item. It is ready when every item is; without any item it is not.
#[derive(Clone, Default)]
pub struct Readiness(Arc<Mutex<Vec<ReadinessEntry>>>);

struct ReadinessEntry {
    name: Cow<'static, str>,
    state: ItemState,
}

#[derive(PartialEq, Eq)]
enum ItemState {
    /// It is ready, in this way.
    Ready(String),
    /// It is not ready, for this reason.
    Waiting(String),
}

/// One thing that must be there before the process is ready. Clones refer to the same item.
#[derive(Clone)]
pub struct ReadinessItem {
    all: Readiness,
    index: usize,
}

impl Readiness {
    /// Adds an item, waiting. Items are shown in the order in which they were added.
    pub fn item(&self, name: impl Into<Cow<'static, str>>) -> ReadinessItem {
        let mut entries = self.entries();
        entries.push(ReadinessEntry {
            name: name.into(),
            state: ItemState::Waiting(UNTRIED.to_owned()),
        });
        ReadinessItem {
            all: self.clone(),
            index: entries.len() - 1,
        }
    }

    /// Whether every item is ready, and one line per item.
    pub(crate) fn report(&self) -> (bool, String) {
        let entries = self.entries();
        let mut lines = String::new();
        for ReadinessEntry { name, state } in entries.iter() {
            // Writing to a String cannot fail.
            let _ = match state {
                ItemState::Ready(how) => writeln!(lines, "[+] {name}: {how}"),
                ItemState::Waiting(reason) => writeln!(lines, "[-] {name}: {reason}"),
            };
        }
        let ready = |entry: &ReadinessEntry| matches!(entry.state, ItemState::Ready(_));
        let ready = !entries.is_empty() && entries.iter().all(ready);
        (ready, lines)
    }

    /// The items that are not ready, and why. Items that were not tried yet are left out.
    pub fn waits(&self) -> Vec<String> {
        let entries = self.entries();
        let waits = entries.iter().filter_map(|entry| match &entry.state {
            ItemState::Waiting(reason) if reason != UNTRIED => Some(format!("{}: {reason}", entry.name)),
            _ => None,
        });
        waits.collect()
    }

    fn entries(&self) -> MutexGuard<'_, Vec<ReadinessEntry>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl ReadinessItem {
    /// Marks the item as ready.
    pub fn ready(&self) {
        self.ready_as("ready");
    }

    /// Marks the item as ready. `how` describes its state: short, nothing secret.
    pub fn ready_as(&self, how: &str) {
        self.set(ItemState::Ready(clean(how)));
    }

    /// Marks the item as not ready. `reason` is short and stable, and holds nothing secret.
    pub fn waiting(&self, reason: &str) {
        self.set(ItemState::Waiting(clean(reason)));
    }

    fn set(&self, state: ItemState) {
        let mut entries = self.all.entries();
        let Some(entry) = entries.get_mut(self.index) else {
            return;
        };
        if entry.state == state {
            return;
        }
        match &state {
            ItemState::Ready(how) => tracing::info!("{}: {how}", entry.name),
            ItemState::Waiting(reason) => tracing::warn!("waiting for {}: {reason}", entry.name),
        }
        entry.state = state;
    }
}

/// One line of limited length.
fn clean(text: &str) -> String {
    let line = text.chars().take(REASON_LENGTH);
    line.map(|c| if c.is_control() { ' ' } else { c }).collect()
}
