//! Lists that many clusters share: what Azure showed, and when. The caller says how old a list may be.
//!
//! A list of resources only proves that nothing has changed. Whatever else it shows, or does not show, is a suspicion:
//! then the resource itself is read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::client::{Client, Reconcile};
use super::error::{ArmError, Class};
use super::frontends::Frontends;
use super::id::{ResourceId, SubscriptionId, same};
use super::kinds::{Kind, KindSpec, List, ListScope};
use super::lists::{Lists, REFUSED_FOR, in_time};

/// The rows of a page of private DNS, whose pages are the shortest
/// (<https://learn.microsoft.com/rest/api/dns/privatedns/private-zones/list>).
const PAGE: usize = 100;

/// The shared lists of one process.
#[derive(Debug, Default)]
pub struct Inventory {
    pub(super) frontends: Frontends,
    resources: Lists<HashMap<ResourceId, u64>>,
}

/// How a list shows one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// When the request for the list was started.
    pub observed: Instant,
    /// A hash of the resource's whole body; equal bodies have equal ones.
    pub fingerprint: u64,
}

impl Inventory {
    /// How a list that was started after `since` shows a resource; none if the list does not show it, or cannot be had.
    ///
    /// `serves` gives the number of resources that the list would serve. It is called only if there is no such list
    /// yet.
    pub async fn listed(
        &self,
        client: &Client,
        reconcile: Reconcile,
        (kind, id): (Kind, &ResourceId),
        since: Instant,
        serves: impl FnOnce() -> usize,
    ) -> Option<Listed> {
        let list = ListOf::of(kind, id)?;
        let path = list.path();
        let shared = self.resources.at(&path);
        let mut last = shared.lock().await;
        let (observed, rows) = match last.known(Some(since), retry_interval) {
            Some(known) => known,
            None => {
                let serves = serves();
                if serves < list.spec.min_served {
                    return None;
                }
                last.relist(fingerprints(
                    client,
                    reconcile,
                    (kind, id.subscription()),
                    &path,
                    serves * PAGE,
                ))
                .await
            }
        };
        let fingerprint = *rows.ok()?.get(id)?;
        Some(Listed { observed, fingerprint })
    }
}

/// The fingerprint of each resource in a list. A list with more than `max_rows` rows costs more than it saves: it is an
/// error.
async fn fingerprints(
    client: &Client,
    reconcile: Reconcile,
    (kind, subscription): (Kind, &SubscriptionId),
    path: &str,
    max_rows: usize,
) -> Result<HashMap<ResourceId, u64>, ArmError> {
    let bodies = in_time(client.list(reconcile, kind, subscription, path)).await?;
    if bodies.len() > max_rows {
        return Err(ArmError::own(Class::Invalid, "ListTooLong"));
    }
    Ok(bodies.iter().filter_map(fingerprint).collect())
}

fn fingerprint(body: &Value) -> Option<(ResourceId, u64)> {
    let id = ResourceId::parse(body.get("id")?.as_str()?).ok()?;
    // Only this process compares fingerprints: another release of Rust may hash in another way.
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    Some((id, hasher.finish()))
}

/// One list of resources: those of a kind in a subscription, a group or a parent resource.
#[derive(Debug)]
pub(super) struct ListOf {
    kind: &'static KindSpec,
    spec: &'static List,
    subscription: SubscriptionId,
    group: Option<String>,
    parent: Option<ResourceId>,
}

impl ListOf {
    /// The list that shows this resource; none if no list is of use.
    pub(super) fn of(kind: Kind, id: &ResourceId) -> Option<Self> {
        let kind = kind.spec();
        let spec = kind.list.as_ref()?;
        let (group, parent) = match spec.of {
            ListScope::Subscription => (None, None),
            ListScope::Group => (Some(id.group().to_owned()), None),
            ListScope::Parent => (None, Some(id.parent()?)),
        };
        Some(Self {
            kind,
            spec,
            subscription: id.subscription().clone(),
            group,
            parent,
        })
    }

    /// Whether the list shows this resource of its kind.
    pub(super) fn shows(&self, id: &ResourceId) -> bool {
        *id.subscription() == self.subscription
            && self.group.as_ref().is_none_or(|group| same(group, id.group()))
            && self.parent.as_ref().is_none_or(|parent| id.is_in(parent))
    }

    /// Whether the list is known to have no more than a page, by the parent's body, or need not be that short.
    pub(super) fn is_short(&self, parent: Option<&Value>) -> bool {
        match (self.spec.rows, parent) {
            (None, _) => true,
            (Some(rows), Some(parent)) => rows(parent) <= PAGE as u64,
            (Some(_), None) => false,
        }
    }

    fn path(&self) -> String {
        let provider = self.kind.provider;
        let scope = match (&self.parent, &self.group) {
            (Some(parent), _) => parent.to_string(),
            (None, Some(group)) => {
                format!(
                    "/subscriptions/{}/resourceGroups/{group}/providers/{provider}",
                    self.subscription
                )
            }
            (None, None) => format!("/subscriptions/{}/providers/{provider}", self.subscription),
        };
        format!("{scope}/{}", self.kind.path.last().copied().unwrap_or_default())
    }
}

/// How long a list of resources is not tried again after `failures` in a row.
fn retry_interval(error: &ArmError, failures: u32) -> Duration {
    match error.class {
        Class::Denied | Class::Invalid => REFUSED_FOR,
        _ => error.delay(failures),
    }
}
