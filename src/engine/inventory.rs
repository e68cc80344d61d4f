//! Lists that many clusters share: what the cloud showed, and when. The caller says how old a list may be.
//!
//! A list of resources only proves that nothing has changed. Whatever else it shows, or does not show, is a suspicion:
//! then the resource itself is read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::client::{CloudClient, Reconcile};
use super::cloud::{Cloud, List, ResourceKind};
use super::failure::{Class, Failure};
use super::kind_rules::ListRules;
use super::lists::{Lists, REFUSED_FOR, in_time};

/// The shared lists of one process.
#[derive(Debug)]
pub struct Inventory<C: Cloud>(Lists<HashMap<C::Key, u64>, C::Error>);

/// How a list shows one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// When the request for the list was started.
    pub observed: Instant,
    /// A hash of the resource's whole body; equal bodies have equal ones.
    pub fingerprint: u64,
}

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
        let (rules, list) = list_of::<C>(kind, key)?;
        let shared = self.0.at(&list.address());
        let mut last = shared.lock().await;
        let (observed, rows) = match last.known(Some(since), retry_interval) {
            Some(known) => known,
            None => {
                let serves = serves();
                if serves < rules.min_served {
                    return None;
                }
                let rows = in_time(client.list(reconcile, kind, &list));
                last.relist(async { fingerprints::<C>(&rows.await?, serves * C::PAGE) })
                    .await
            }
        };
        let fingerprint = *rows.ok()?.get(key)?;
        Some(Listed { observed, fingerprint })
    }
}

/// The list that shows this resource, and its rules; none if no list is of use.
pub(super) fn list_of<C: Cloud>(kind: C::Kind, key: &C::Key) -> Option<(&'static ListRules<C>, C::List)> {
    let rules = kind.rules().list.as_ref()?;
    Some((rules, C::list(kind, key, rules.of)?))
}

/// The fingerprint of each resource in a list. A list with more than `max_rows` rows costs more than it saves: it is an
/// error.
fn fingerprints<C: Cloud>(rows: &[Value], max_rows: usize) -> Result<HashMap<C::Key, u64>, C::Error> {
    if rows.len() > max_rows {
        return Err(C::Error::own(Class::Invalid, "ListTooLong"));
    }
    let keyed = rows.iter().filter_map(|row| Some((C::key_of(row)?, fingerprint(row))));
    Ok(keyed.collect())
}

fn fingerprint(row: &Value) -> u64 {
    // Only this process compares fingerprints: another release of Rust may hash in another way.
    let mut hasher = DefaultHasher::new();
    row.to_string().hash(&mut hasher);
    hasher.finish()
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
