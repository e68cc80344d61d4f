//! Lists that many clusters share: what Azure showed, and when. The caller says how old a list may be.
//!
//! A list of resources only proves that nothing has changed. Whatever else it shows, or does not show, is a suspicion:
//! then the resource itself is read.

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

/// The longest that a list may take. After that it is given up, as many callers wait for it.
const PATIENCE: Duration = Duration::from_secs(20);
/// How long a list that is denied or too long is not tried again.
const REFUSED_FOR: Duration = Duration::from_secs(3_600);
/// The rows of a page of private DNS, whose pages are the shortest
/// (<https://learn.microsoft.com/rest/api/dns/privatedns/private-zones/list>).
pub(super) const PAGE: usize = 100;

/// The shared lists of one process.
#[derive(Debug, Default)]
pub struct Inventory {
    frontends: Lists<Vec<Frontend>>,
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
    /// The internal frontends in a subscription or a group, and when they were observed: at most `max_age` ago. If the
    /// list is older, one call reads it again.
    ///
    /// # Errors
    /// A failure is shared too. Its `retry_after` is the time for which the list is still not tried again.
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
        // A list that was started after this call is new enough, however long it took.
        let since = Instant::now().checked_sub(max_age);
        let shared = self.frontends.at(&path);
        let mut last = shared.lock().await;
        let (observed, list) = match last.known(since, ArmError::delay) {
            Some(known) => known,
            None => {
                let bodies = in_time(client.list(reconcile, Kind::LoadBalancer, subscription, &path));
                last.relist(async { bodies.await.map(|found| internal_frontends(&found)) })
                    .await
            }
        };
        let list = list.map(|list| list.to_vec()).map_err(|error| ArmError {
            retry_after: Some(last.retry_wait(&error)),
            lasting: last.unread.is_some_and(|unread| unread.lasts(Instant::now())),
            exact: true,
            ..error
        });
        (observed, list)
    }

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
        let path = ListOf::of(kind, id)?.path();
        let shared = self.resources.at(&path);
        let mut last = shared.lock().await;
        let (observed, list) = match last.known(Some(since), retry_interval) {
            Some(known) => known,
            None => {
                let serves = serves();
                if serves < min_served(kind) {
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
        let fingerprint = *list.ok()?.get(id)?;
        Some(Listed { observed, fingerprint })
    }
}

async fn in_time(list: impl Future<Output = Result<Vec<Value>, ArmError>>) -> Result<Vec<Value>, ArmError> {
    let slow = |_| ArmError::own(Class::Down, "ListTooSlow");
    tokio::time::timeout(PATIENCE, list).await.map_err(slow)?
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
    let mut hasher = DefaultHasher::new();
    body.to_string().hash(&mut hasher);
    Some((id, hasher.finish()))
}

/// One list of resources: those of a kind in a subscription, a group or a parent resource.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct ListOf {
    kind: Kind,
    subscription: SubscriptionId,
    group: Option<String>,
    parent: Option<ResourceId>,
}

impl ListOf {
    /// The list that shows this resource; none if no list is of use.
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
        format!("{scope}/{}", types.last().copied().unwrap_or_default())
    }
}

/// How many resources a list has to serve to cost less than a read of each.
fn min_served(kind: Kind) -> usize {
    match kind {
        Kind::ZoneLink | Kind::Record => 2,
        _ => 10,
    }
}

/// How long a list of resources is not tried again after `failures` in a row.
fn retry_interval(error: &ArmError, failures: u32) -> Duration {
    match error.class {
        Class::Denied | Class::Invalid => REFUSED_FOR,
        _ => error.delay(failures),
    }
}

/// The lists by their paths.
#[derive(Debug)]
struct Lists<T>(Mutex<HashMap<String, Arc<Shared<T>>>>);

impl<T> Default for Lists<T> {
    fn default() -> Self {
        Self(Mutex::default())
    }
}

/// One list. The caller that reads it holds the lock; those that wait for the lock share the result.
type Shared<T> = tokio::sync::Mutex<Last<T>>;

impl<T> Lists<T> {
    /// The list with this path. Drops lists that nobody has asked for lately.
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

/// The result of the last attempt to read a list.
#[derive(Debug)]
struct Last<T> {
    attempt: Option<Attempt<T>>,
    failures: u32,
    unread: Option<Unread>,
}

#[derive(Debug)]
struct Attempt<T> {
    began: Instant,
    ended: Instant,
    outcome: Result<Arc<T>, ArmError>,
}

impl<T> Default for Last<T> {
    fn default() -> Self {
        Self {
            attempt: None,
            failures: 0,
            unread: None,
        }
    }
}

/// When the request for a list was started, and its result.
type ListResult<T> = (Instant, Result<Arc<T>, ArmError>);

impl<T> Last<T> {
    /// The list if it was started after `since`, or its failure if that is no older than `retry_interval` says.
    fn known(&self, since: Option<Instant>, retry_interval: fn(&ArmError, u32) -> Duration) -> Option<ListResult<T>> {
        let attempt = self.attempt.as_ref()?;
        let good = match &attempt.outcome {
            Ok(_) => since.is_none_or(|since| attempt.began >= since),
            Err(error) => attempt.ended.elapsed() < retry_interval(error, self.failures),
        };
        good.then(|| (attempt.began, attempt.outcome.clone()))
    }

    /// Reads the list again and stores the result.
    async fn relist(&mut self, call: impl Future<Output = Result<T, ArmError>>) -> ListResult<T> {
        let began = Instant::now();
        let outcome = call.await.map(Arc::new);
        self.failures = match &outcome {
            Ok(_) => 0,
            Err(_) => self.failures.saturating_add(1),
        };
        match &outcome {
            Ok(_) => self.unread = None,
            Err(_) => drop(Unread::note_failure(&mut self.unread, Instant::now())),
        }
        self.attempt = Some(Attempt {
            began,
            ended: Instant::now(),
            outcome: outcome.clone(),
        });
        (began, outcome)
    }

    /// How much longer the list is not tried again after a failure.
    fn retry_wait(&self, error: &ArmError) -> Duration {
        let elapsed = self
            .attempt
            .as_ref()
            .map_or(Duration::ZERO, |attempt| attempt.ended.elapsed());
        error.delay(self.failures).saturating_sub(elapsed)
    }

    fn is_of_use(&self) -> bool {
        self.attempt
            .as_ref()
            .is_some_and(|attempt| attempt.ended.elapsed() < REFUSED_FOR)
    }
}
