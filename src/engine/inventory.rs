//! Lists that many clusters share: what the cloud showed, and when. The caller says how old a list may be.
//!
//! A list of resources only proves that nothing has changed. Whatever else it shows, or does not show, is a suspicion:
//! then the resource itself is read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::client::{CloudClient, Reconcile};
use super::cloud::{Cloud, Key, List, ResourceKind};
use super::failure::{Class, Failure};
use super::kind_rules::ListRules;
use super::lists::{Asked, LIST_TIMEOUT, Lists, REFUSED_FOR, in_time, patience};

/// The shared lists of one process.
#[derive(Debug)]
pub struct Inventory<C: Cloud> {
    lists: Lists<Rows<C::Key>, C::Error>,
    /// How many bytes of bodies are kept.
    kept: Arc<AtomicUsize>,
}

/// What a list shows.
#[derive(Debug)]
struct Rows<K> {
    /// The fingerprint and the version of each resource.
    shown: HashMap<K, (u64, Option<u64>)>,
    /// The bodies of those that nobody has asked for since, as text, where they are the first that is known of them.
    bodies: Mutex<Bodies<K>>,
}

/// Bodies of resources, as text.
#[derive(Debug)]
struct Bodies<K> {
    texts: HashMap<K, Box<str>>,
    /// How many bytes they have, and all lists together.
    bytes: usize,
    of_all: Arc<AtomicUsize>,
}

impl<K> Default for Bodies<K> {
    fn default() -> Self {
        Self {
            texts: HashMap::new(),
            bytes: 0,
            of_all: Arc::default(),
        }
    }
}

impl<K> Drop for Bodies<K> {
    fn drop(&mut self) {
        self.of_all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// How many bytes of bodies are kept at most. Resources of which no body is kept are read by themselves.
const MOST_KEPT: usize = 16 << 20;

/// How long the bodies in a list are kept: until then a process that begins has asked for those that it needs. A
/// subscription may have any number of others.
const KEPT_FOR: Duration = Duration::from_secs(120);

/// Forgets the bodies in a list that nobody has asked for in time.
async fn forget_bodies<K: Send>(rows: Weak<Rows<K>>) {
    tokio::time::sleep(KEPT_FOR).await;
    if let Some(rows) = rows.upgrade() {
        *rows.bodies() = Bodies::default();
    }
}

/// A resource of which a list shows the first that is known.
#[derive(Debug)]
pub(super) struct Row {
    /// The resource's body.
    pub(super) body: Value,
    /// How the list shows it.
    pub(super) listed: Listed,
}

/// How a list shows one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// When the request for the list was started.
    pub observed: Instant,
    /// A hash of the resource's body but for versions; equal bodies have equal ones.
    pub fingerprint: u64,
    /// A hash of the resource's version; none if the list shows none.
    pub version: Option<u64>,
}

/// Why a list shows nothing of a resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unlisted {
    /// It does not show it.
    NotShown,
    /// The list cannot be had, or is not worth its calls.
    Unavailable,
    /// Another caller is still reading it.
    Pending,
}

/// How many rows a list may have for each object that this process serves, where it is not known how many of them the
/// list would serve.
const ROWS_EACH: usize = 10;

/// What a list is worth that is still to be read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Worth {
    /// How many resources it would serve.
    serves: usize,
    /// How many rows it may have: with more it costs more than it saves.
    max_rows: usize,
    /// How long the last one may have taken: a slower one is too old when it comes.
    max_time: Duration,
}

impl Worth {
    /// Of a list that spares so many reads.
    pub(super) fn of<C: Cloud>(serves: usize) -> Self {
        Self {
            serves,
            max_rows: serves * C::PAGE,
            max_time: LIST_TIMEOUT,
        }
    }

    /// Of a list that spares so many reads of what is being created. It may be as long as one for those that are ready:
    /// a refused list is not tried for these either.
    pub(super) fn of_creations<C: Cloud>(creations: usize, ready: usize, max_time: Duration) -> Self {
        Self {
            serves: creations,
            max_rows: (creations + ready) * C::PAGE,
            max_time,
        }
    }

    /// Of a list that may serve as many as this, of which nothing is known.
    pub(super) fn at_most<C: Cloud>(serves: usize) -> Self {
        Self {
            serves,
            max_rows: C::PAGE + serves * ROWS_EACH,
            max_time: LIST_TIMEOUT,
        }
    }

    /// Whether it spares more calls than it costs, as far as is known.
    fn is_enough<C: Cloud>(self, rules: &ListRules<C>, lately: Option<(Duration, Arc<Rows<C::Key>>)>) -> bool {
        let few = self.serves < rules.min_served;
        let costs_more =
            lately.is_some_and(|(took, rows)| took > self.max_time || self.serves < rows.shown.len().div_ceil(C::PAGE));
        !few && !costs_more
    }
}

/// Which bodies in a list are kept.
type Keeps<'a, K> = &'a (dyn Fn(&K) -> bool + Sync);

impl<C: Cloud> Default for Inventory<C> {
    fn default() -> Self {
        Self {
            lists: Lists::default(),
            kept: Arc::default(),
        }
    }
}

impl<C: Cloud> Inventory<C> {
    /// How a list that was started after `since` shows a resource. `serves` gives the number of resources that the list
    /// would serve. It is called only if there is no such list yet.
    ///
    /// # Errors
    /// Why it shows nothing.
    pub async fn listed(
        &self,
        client: &impl CloudClient<C>,
        reconcile: Reconcile,
        (kind, key): (C::Kind, &C::Key),
        since: Instant,
        serves: impl FnOnce() -> usize,
    ) -> Result<Listed, Unlisted> {
        let worth = || Worth::of::<C>(serves());
        let (listed, _) = self.shown(client, reconcile, (kind, key), since, worth, None).await?;
        Ok(listed)
    }

    /// A resource with its body, as a list shows it that was started after `since`; a list shows it so once. `worth` is
    /// called only if there is no such list yet; of that the bodies are kept of which `keeps` holds.
    pub(super) async fn row(
        &self,
        client: &impl CloudClient<C>,
        reconcile: Reconcile,
        (kind, key): (C::Kind, &C::Key),
        since: Instant,
        worth: impl FnOnce() -> Worth,
        keeps: Keeps<'_, C::Key>,
    ) -> Result<Row, Unlisted> {
        let (listed, rows) = self
            .shown(client, reconcile, (kind, key), since, worth, Some(keeps))
            .await?;
        let body = rows.bodies().texts.remove(key).ok_or(Unlisted::Unavailable)?;
        let body = serde_json::from_str(&body).map_err(|_| Unlisted::Unavailable)?;
        Ok(Row { body, listed })
    }

    /// The list with this resource.
    async fn shown(
        &self,
        client: &impl CloudClient<C>,
        reconcile: Reconcile,
        (kind, key): (C::Kind, &C::Key),
        since: Instant,
        worth: impl FnOnce() -> Worth,
        keeps: Option<Keeps<'_, C::Key>>,
    ) -> Result<(Listed, Arc<Rows<C::Key>>), Unlisted> {
        let (rules, list) = list_of::<C>(kind, key).ok_or(Unlisted::Unavailable)?;
        let shared = self.lists.at(&list.address());
        let asked = shared.ask(Some(since), retry_interval, patience(reconcile.urgency));
        let (observed, rows) = match asked.await {
            Asked::Known(known) => known,
            Asked::Pending => return Err(Unlisted::Pending),
            Asked::Reader(reader) => {
                let worth = worth();
                if !worth.is_enough(rules, shared.lately()) {
                    return Err(Unlisted::Unavailable);
                }
                let rows = in_time(client.list(reconcile, kind, &list));
                let read = async {
                    let rows = rows.await?;
                    let shown = Rows::of::<C>(&rows, worth.max_rows)?;
                    if let Some(keeps) = keeps {
                        shown.keep_bodies::<C>(&rows, keeps, &self.kept);
                    }
                    Ok(shown)
                };
                let (observed, rows) = reader.read(read).await;
                if let Some(rows) = rows.as_ref().ok().filter(|_| keeps.is_some()) {
                    tokio::spawn(forget_bodies(Arc::downgrade(rows)));
                }
                (observed, rows)
            }
        };
        let rows = rows.map_err(|_| Unlisted::Unavailable)?;
        let (fingerprint, version) = *rows.shown.get(key).ok_or(Unlisted::NotShown)?;
        let listed = Listed {
            observed,
            fingerprint,
            version,
        };
        Ok((listed, rows))
    }
}

/// The list that shows this resource, and its rules; none if no list is of use.
pub(super) fn list_of<C: Cloud>(kind: C::Kind, key: &C::Key) -> Option<(&'static ListRules<C>, C::List)> {
    let rules = kind.rules().list.as_ref()?;
    Some((rules, C::list(kind, key, rules.of)?))
}

impl<K> Rows<K> {
    fn bodies(&self) -> MutexGuard<'_, Bodies<K>> {
        self.bodies.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<K: Key> Rows<K> {
    /// What these rows show. A list with more than `max_rows` rows costs more than it saves: it is an error.
    fn of<C: Cloud<Key = K>>(rows: &[Value], max_rows: usize) -> Result<Self, C::Error> {
        if rows.len() > max_rows {
            return Err(C::Error::own(Class::Invalid, "ListTooLong"));
        }
        let keyed = rows.iter().filter_map(|row| Some((C::key_of(row)?, row)));
        Ok(Self {
            shown: keyed
                .map(|(key, row)| (key, (fingerprint::<C>(row), version::<C>(row))))
                .collect(),
            bodies: Mutex::default(),
        })
    }

    /// Keeps the bodies, as far as there is room for them.
    fn keep_bodies<C: Cloud<Key = K>>(&self, rows: &[Value], keeps: Keeps<'_, K>, of_all: &Arc<AtomicUsize>) {
        let mut bodies = Bodies {
            texts: HashMap::new(),
            bytes: 0,
            of_all: Arc::clone(of_all),
        };
        for row in rows {
            let Some(key) = C::key_of(row).filter(|key| keeps(key)) else {
                continue;
            };
            let text: Box<str> = row.to_string().into();
            if of_all.load(Ordering::Relaxed) + text.len() > MOST_KEPT {
                break;
            }
            of_all.fetch_add(text.len(), Ordering::Relaxed);
            bodies.bytes += text.len();
            bodies.texts.insert(key, text);
        }
        *self.bodies() = bodies;
    }
}

/// A hash of the body without versions: a resource's version may change with a neighbour.
fn fingerprint<C: Cloud>(row: &Value) -> u64 {
    // Only this process compares fingerprints: another release of Rust may hash in another way.
    let mut hasher = DefaultHasher::new();
    hash_without(row, C::VERSION_FIELD, &mut hasher);
    hasher.finish()
}

/// A hash of the version that a body shows.
pub(super) fn version<C: Cloud>(body: &Value) -> Option<u64> {
    let mut hasher = DefaultHasher::new();
    C::version(body)?.hash(&mut hasher);
    Some(hasher.finish())
}

fn hash_without(value: &Value, left_out: &str, hasher: &mut DefaultHasher) {
    match value {
        Value::Object(fields) => {
            for (name, field) in fields.iter().filter(|(name, _)| *name != left_out) {
                name.hash(hasher);
                hash_without(field, left_out, hasher);
            }
            hasher.write_u8(b'}');
        }
        Value::Array(items) => {
            items.iter().for_each(|item| hash_without(item, left_out, hasher));
            hasher.write_u8(b']');
        }
        simple => simple.hash(hasher),
    }
}

impl<C: Cloud> ListRules<C> {
    /// Whether the list is known to have no more than a page, by the parent's body, or need not be that short.
    pub(super) fn is_short(&self, parent: Option<&Value>) -> bool {
        match (self.rows, parent) {
            (None, _) => true,
            (Some(rows), Some(parent)) => rows(parent) <= C::PAGE as u64,
            (Some(_), None) => false,
        }
    }
}

/// How long a list of resources is not tried again after `failures` in a row.
fn retry_interval<E: Failure>(error: &E, failures: u32) -> Duration {
    match error.class() {
        Class::Denied | Class::Invalid => REFUSED_FOR,
        _ => error.delay(failures),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sample::{Key, Kind, Sample};

    #[test]
    fn list_is_read_only_if_it_spares_more_calls_than_it_costs() {
        let rows = |many: usize| Rows {
            shown: (0..many).map(|n| (Key::of(&n.to_string()), (0, None))).collect(),
            bodies: Mutex::default(),
        };
        let rules = Kind::Guarded.rules().list.as_ref().unwrap();
        let enough = |serves, lately: Option<(u64, usize)>| {
            let lately = lately.map(|(took, many)| (Duration::from_secs(took), Arc::new(rows(many))));
            Worth::of_creations::<Sample>(serves, 0, Duration::from_secs(5)).is_enough(rules, lately)
        };
        assert_eq!([1, 2].map(|serves| enough(serves, None)), [false, true]);
        let pages_of_two_rows = [2, 3, 4].map(|serves| enough(serves, Some((1, 5))));
        assert_eq!(pages_of_two_rows, [false, true, true]);
        assert!(!enough(9, Some((6, 5))), "it would be too old when it comes");
    }
}
