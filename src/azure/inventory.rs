//! Lists that many clusters share: what was seen, when. Who asks says how old it may be.
//!
//! A list of resources is only good to see that nothing has changed. Whatever else it shows, or does not show, is a
//! suspicion: the resource itself is read.

use std::collections::HashMap;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::client::{Client, Reconcile};
use super::error::{ArmError, Class};
use super::id::{ResourceId, SubscriptionId, lower, same};
use super::load_balancer::{Frontend, internal_frontends};
use super::observation_cache::Unread;
use super::resource::Kind;

/// A list that takes longer is given up: many wait for it.
const PATIENCE: Duration = Duration::from_secs(20);
/// Where a list is not allowed, or too long, it is not tried again for this long.
const REFUSED_FOR: Duration = Duration::from_secs(3_600);
/// The rows of a page of private DNS, whose pages are the shortest
/// (<https://learn.microsoft.com/rest/api/dns/privatedns/private-zones/list>).
pub(super) const PAGE: usize = 100;

/// The lists of one process.
#[derive(Debug, Default)]
pub struct Inventory {
    frontends: Lists<Vec<Frontend>>,
    resources: Lists<HashMap<ResourceId, u64>>,
}

/// How a list shows one resource.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Listed {
    /// When the list was begun.
    pub observed: Instant,
    /// Stands for the resource's whole body; equal bodies have equal ones.
    pub fingerprint: u64,
}

impl Inventory {
    /// The internal frontends in a scope, seen at most `max_age` ago, and when. One call where the list is older. A failure is shared
    /// too: its `retry_after` is the rest of the time for which the list is not tried again.
    pub async fn frontends(
        &self,
        client: &Client,
        reconcile: Reconcile,
        subscription: &SubscriptionId,
        group: Option<&str>,
        max_age: Duration,
    ) -> (Instant, Result<Vec<Frontend>, ArmError>) {
        let group_part = group
            .map(|group| format!("/resourceGroups/{group}"))
            .unwrap_or_default();
        let path = format!("/subscriptions/{subscription}{group_part}/providers/Microsoft.Network/loadBalancers");
        // A list that was begun after this question is new enough, however long it took.
        let since = Instant::now().checked_sub(max_age);
        let shared = self.frontends.at(&path);
        let mut last = shared.lock().await;
        let (observed, list) = match last.known(since, ArmError::delay) {
            Some(known) => known,
            None => {
                let bodies = in_time(client.list(reconcile, Kind::LoadBalancer, subscription, &path));
                last.make(async { bodies.await.map(|found| internal_frontends(&found)) })
                    .await
            }
        };
        let list = list.map(|list| list.to_vec()).map_err(|error| ArmError {
            retry_after: Some(last.rests(&error)),
            lasting: last.unread.is_some_and(|unread| unread.lasts(Instant::now())),
            exact: true,
            ..error
        });
        (observed, list)
    }

    /// How a list that was begun after `since` shows a resource; none where it does not, or where no list is to be had.
    ///
    /// `serves` says how many resources the list would serve; it is asked only where there is no such list yet.
    pub async fn listed(
        &self,
        client: &Client,
        reconcile: Reconcile,
        (kind, id): (Kind, &ResourceId),
        since: Instant,
        serves: impl FnOnce() -> usize,
    ) -> Option<Listed> {
        let path = ListOf::of(kind, id)?.path();
        let shared = self.resources.at(&path);
        let mut last = shared.lock().await;
        let (observed, list) = match last.known(Some(since), rest) {
            Some(known) => known,
            None => {
                let serves = serves();
                if serves < worth(kind) {
                    return None;
                }
                last.make(fingerprints(
                    client,
                    reconcile,
                    (kind, id.subscription()),
                    &path,
                    serves * PAGE,
                ))
                .await
            }
        };
        let fingerprint = *list.ok()?.get(id)?;
        Some(Listed { observed, fingerprint })
    }
}

async fn in_time(list: impl Future<Output = Result<Vec<Value>, ArmError>>) -> Result<Vec<Value>, ArmError> {
    let slow = |_| ArmError::own(Class::Down, "ListTooSlow");
    tokio::time::timeout(PATIENCE, list).await.map_err(slow)?
}

/// What a list shows of each resource. One with more rows than `most` costs more than it saves.
async fn fingerprints(
    client: &Client,
    reconcile: Reconcile,
    (kind, subscription): (Kind, &SubscriptionId),
    path: &str,
    most: usize,
) -> Result<HashMap<ResourceId, u64>, ArmError> {
    let bodies = in_time(client.list(reconcile, kind, subscription, path)).await?;
    if bodies.len() > most {
        return Err(ArmError::own(Class::Invalid, "ListTooLong"));
    }
    Ok(bodies.iter().filter_map(fingerprint).collect())
}

fn fingerprint(body: &Value) -> Option<(ResourceId, u64)> {
    let id = ResourceId::parse(body.get("id")?.as_str()?).ok()?;
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    Some((id, hasher.finish()))
}

/// What one list shows: the resources of a kind in a subscription, a group or a parent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListOf {
    kind: Kind,
    subscription: SubscriptionId,
    group: Option<String>,
    parent: Option<ResourceId>,
}

impl ListOf {
    /// The scope of the list that shows this resource; none where there is no list of use.
    pub(super) fn of(kind: Kind, id: &ResourceId) -> Option<Self> {
        let (group, parent) = match kind {
            Kind::PrivateLinkService => (Some(id.group().to_owned()), None),
            Kind::PrivateEndpoint | Kind::Zone => (None, None),
            Kind::Subnet | Kind::ZoneLink | Kind::Record => (None, Some(id.parent()?)),
            Kind::LoadBalancer | Kind::VirtualNetwork | Kind::Connection => return None,
        };
        Some(Self {
            kind,
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

    fn path(&self) -> String {
        let (provider, types) = self.kind.types();
        let around = match (&self.parent, &self.group) {
            (Some(parent), _) => parent.to_string(),
            (None, Some(group)) => {
                format!(
                    "/subscriptions/{}/resourceGroups/{group}/providers/{provider}",
                    self.subscription
                )
            }
            (None, None) => format!("/subscriptions/{}/providers/{provider}", self.subscription),
        };
        format!("{around}/{}", types.last().copied().unwrap_or_default())
    }
}

/// How many resources a list has to serve to be better than looking at each.
fn worth(kind: Kind) -> usize {
    match kind {
        Kind::ZoneLink | Kind::Record => 2,
        _ => 10,
    }
}

/// How long a list of resources is not tried again after so many failures in a row.
fn rest(error: &ArmError, failures: u32) -> Duration {
    match error.class {
        Class::Denied | Class::Invalid => REFUSED_FOR,
        _ => error.delay(failures),
    }
}

/// Lists by their paths.
#[derive(Debug)]
struct Lists<T>(Mutex<HashMap<String, Arc<Shared<T>>>>);

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One list. Who makes it holds the lock, and who waits for the lock shares what comes of it.
type Shared<T> = tokio::sync::Mutex<Last<T>>;

impl<T> Lists<T> {
    /// The list with this path. What others have not asked for lately is dropped on the way.
    fn at(&self, path: &str) -> Arc<Shared<T>> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let path = lower(path);
        if let Some(known) = all.get(&path) {
            return Arc::clone(known);
        }
        let asked_for = |list: &Arc<Shared<T>>| Arc::strong_count(list) > 1;
        all.retain(|_, list| asked_for(list) || list.try_lock().is_ok_and(|last| last.is_of_use()));
        Arc::clone(all.entry(path).or_default())
    }
}

/// What came of a list the last time.
#[derive(Debug)]
struct Last<T> {
    made: Option<Made<T>>,
    failures: u32,
    unread: Option<Unread>,
}

#[derive(Debug)]
struct Made<T> {
    began: Instant,
    ended: Instant,
    outcome: Result<Arc<T>, ArmError>,
}

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self {
            made: None,
            failures: 0,
            unread: None,
        }
    }
}

/// When a list was begun, and what came of it.
type ListResult<T> = (Instant, Result<Arc<T>, ArmError>);

impl<T> Last<T> {
    /// The list if it was begun after `since`, or its failure if that is no older than `rest` says.
    fn known(&self, since: Option<Instant>, rest: fn(&ArmError, u32) -> Duration) -> Option<ListResult<T>> {
        let made = self.made.as_ref()?;
        let good = match &made.outcome {
            Ok(_) => since.is_none_or(|since| made.began >= since),
            Err(error) => made.ended.elapsed() < rest(error, self.failures),
        };
        good.then(|| (made.began, made.outcome.clone()))
    }

    /// Makes the list anew.
    async fn make(&mut self, call: impl Future<Output = Result<T, ArmError>>) -> ListResult<T> {
        let began = Instant::now();
        let outcome = call.await.map(Arc::new);
        self.failures = match &outcome {
            Ok(_) => 0,
            Err(_) => self.failures.saturating_add(1),
        };
        match &outcome {
            Ok(_) => self.unread = None,
            Err(_) => drop(Unread::again(&mut self.unread, Instant::now())),
        }
        self.made = Some(Made {
            began,
            ended: Instant::now(),
            outcome: outcome.clone(),
        });
        (began, outcome)
    }

    /// How much longer a failure keeps the list from being tried again.
    fn rests(&self, error: &ArmError) -> Duration {
        let elapsed = self.made.as_ref().map_or(Duration::ZERO, |made| made.ended.elapsed());
        error.delay(self.failures).saturating_sub(elapsed)
    }

    fn is_of_use(&self) -> bool {
        self.made
            .as_ref()
            .is_some_and(|made| made.ended.elapsed() < REFUSED_FOR)
    }
}
