//! Lists that many clusters share: what the cloud showed, and when. The caller says how old a list may be.
//!
//! A list of resources only proves that nothing has changed. Whatever else it shows, or does not show, is a suspicion:
//! then the resource itself is read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::client::{CloudClient, Reconcile};
use super::cloud::{Cloud, Key, List, ResourceKind};
use super::failure::{Class, Failure};
use super::kind_rules::ListRules;
use super::lists::{Lists, REFUSED_FOR, in_time};

/// The shared lists of one process.
#[derive(Debug)]
pub struct Inventory<C: Cloud>(Lists<Rows<C::Key>, C::Error>);

/// What a list shows.
#[derive(Debug)]
struct Rows<K> {
    /// The fingerprint of each resource.
    fingerprints: HashMap<K, u64>,
    /// The bodies of those that nobody has asked for since, as text, where they are the first that is known of them.
    bodies: Mutex<HashMap<K, Box<str>>>,
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
}

/// How many rows a list may have for each object that this process serves, where it is not known how many of them the
/// list would serve.
const ROWS_EACH: usize = 10;

impl<C: Cloud> Default for Inventory<C> {
    fn default() -> Self {
        Self(Lists::default())
    }
}

impl<C: Cloud> Inventory<C> {
    /// How a list that was started after `since` shows a resource; none if the list does not show it, or cannot be had.
    ///
    /// `serves` gives the number of resources that the list would serve. It is called only if there is no such list
    /// yet.
    pub async fn listed(
        &self,
        client: &impl CloudClient<C>,
        reconcile: Reconcile,
        (kind, key): (C::Kind, &C::Key),
        since: Instant,
        serves: impl FnOnce() -> usize,
    ) -> Option<Listed> {
        let max_rows = || {
            let serves = serves();
            (serves, serves * C::PAGE)
        };
        let (listed, _) = self
            .shown(client, reconcile, (kind, key), since, max_rows, false)
            .await?;
        Some(listed)
    }

    /// A resource of which nothing is known, as a list shows it that was started after `since`; none if the list does
    /// not show it, was asked for it before, or cannot be had. `serves` is how many resources the list may serve.
    pub(super) async fn row(
        &self,
        client: &impl CloudClient<C>,
        reconcile: Reconcile,
        (kind, key): (C::Kind, &C::Key),
        since: Instant,
        serves: usize,
    ) -> Option<Row> {
        let max_rows = || (serves, C::PAGE + serves * ROWS_EACH);
        let (listed, rows) = self
            .shown(client, reconcile, (kind, key), since, max_rows, true)
            .await?;
        let body = rows.bodies.lock().unwrap_or_else(PoisonError::into_inner).remove(key)?;
        let body = serde_json::from_str(&body).ok()?;
        Some(Row { body, listed })
    }

    /// The list with this resource. `serves` gives how many resources it would serve, and how many rows it may have.
    async fn shown(
        &self,
        client: &impl CloudClient<C>,
        reconcile: Reconcile,
        (kind, key): (C::Kind, &C::Key),
        since: Instant,
        serves: impl FnOnce() -> (usize, usize),
        with_bodies: bool,
    ) -> Option<(Listed, Arc<Rows<C::Key>>)> {
        let (rules, list) = list_of::<C>(kind, key)?;
        let shared = self.0.at(&list.address());
        let mut last = shared.lock().await;
        let (observed, rows) = match last.known(Some(since), retry_interval) {
            Some(known) => known,
            None => {
                let (serves, max_rows) = serves();
                if serves < rules.min_served {
                    return None;
                }
                let rows = in_time(client.list(reconcile, kind, &list));
                last.relist(async { Rows::of::<C>(&rows.await?, max_rows, with_bodies) })
                    .await
            }
        };
        let rows = rows.ok()?;
        let fingerprint = *rows.fingerprints.get(key)?;
        Some((Listed { observed, fingerprint }, rows))
    }
}

/// The list that shows this resource, and its rules; none if no list is of use.
pub(super) fn list_of<C: Cloud>(kind: C::Kind, key: &C::Key) -> Option<(&'static ListRules<C>, C::List)> {
    let rules = kind.rules().list.as_ref()?;
    Some((rules, C::list(kind, key, rules.of)?))
}

impl<K: Key> Rows<K> {
    /// What these rows show. A list with more than `max_rows` rows costs more than it saves: it is an error.
    fn of<C: Cloud<Key = K>>(rows: &[Value], max_rows: usize, with_bodies: bool) -> Result<Self, C::Error> {
        if rows.len() > max_rows {
            return Err(C::Error::own(Class::Invalid, "ListTooLong"));
        }
        let keyed = || rows.iter().filter_map(|row| Some((C::key_of(row)?, row)));
        let bodies = keyed().filter(|_| with_bodies);
        Ok(Self {
            fingerprints: keyed().map(|(key, row)| (key, fingerprint::<C>(row))).collect(),
            bodies: Mutex::new(bodies.map(|(key, row)| (key, row.to_string().into())).collect()),
        })
    }
}

/// A hash of the body without versions: a resource's version may change with a neighbour.
fn fingerprint<C: Cloud>(row: &Value) -> u64 {
    // Only this process compares fingerprints: another release of Rust may hash in another way.
    let mut hasher = DefaultHasher::new();
    hash_without(row, C::VERSION_FIELD, &mut hasher);
    hasher.finish()
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
