//! What exists of the clusters at one moment, in words, and what has changed since another one.

use std::collections::BTreeMap;

use crate::test_env::Reachable;

/// Everything that exists of the clusters, each thing with its state. What does not exist has no entry.
#[derive(Clone, Debug, Default)]
pub struct Observed {
    things: BTreeMap<String, String>,
    lack: Option<&'static str>,
    unreachable: Vec<String>,
}

impl Observed {
    /// Adds a thing with its state.
    pub(super) fn add(&mut self, name: String, state: String) {
        self.things.insert(name, state);
    }

    /// Adds a name, with where it leads. All is up only if that is the `expected` Service.
    pub(super) fn add_name(&mut self, name: &str, found: Reachable, expected: &str) {
        let service = found.path.last().map(|hop| hop.id.clone()).unwrap_or_default();
        let state = match (found.ok, found.address) {
            (true, address) => format!("leads to {service} by {}", address.unwrap_or_default()),
            (false, _) => format!("leads nowhere: {}", found.why.unwrap_or_default()),
        };
        if !found.ok || service != expected {
            self.unreachable.push(name.to_owned());
        }
        self.things.insert(format!("name {name}"), state);
    }

    /// Notes something else that is missing, such as a condition that is not True, in words.
    pub(super) fn add_lack(&mut self, lack: &'static str) {
        self.lack = Some(lack);
    }

    /// Whether Hyperlink reports everything as available, nothing else is missing, and every name really leads to its
    /// Service.
    pub fn is_up(&self) -> bool {
        self.lack.is_none() && self.unreachable.is_empty()
    }

    /// What is still missing for all to be up, for a progress line.
    pub fn lacks(&self) -> String {
        match self.unreachable.first() {
            Some(name) => format!(
                "{name} {}",
                self.things.get(&format!("name {name}")).map_or("", String::as_str)
            ),
            None => self.lack.unwrap_or("nothing").into(),
        }
    }

    /// How many things exist.
    pub fn count(&self) -> usize {
        self.things.len()
    }

    /// What differs from what was observed before, one line for each thing.
    pub fn changes_since(&self, before: &Self) -> Vec<String> {
        let new = self
            .things
            .iter()
            .filter(|(name, state)| before.things.get(*name) != Some(*state))
            .map(|(name, state)| format!("{name}  {state}"));
        let gone = before.things.keys().filter(|name| !self.things.contains_key(*name));
        new.chain(gone.map(|name| format!("{name}  is gone"))).collect()
    }
}
