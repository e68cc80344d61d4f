//! Follows the private endpoints of the management cluster whose entries were removed, until Azure has them no more:
//! deletes their objects of the Azure Service Operator where that is allowed, and tells of those that stay.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::discovery::{self, ApiResource};
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep};

use super::{Context, MOST_TRIES, addresses};
use crate::api::capi::AzureCluster;
use crate::api::markers::capz::DROPPED_ENDPOINTS;
use crate::azure::cloud::Observed;
use crate::azure::kinds::Kind;
use crate::capz::cluster::uid;
use crate::capz::dropped::{
    CAPZ_LAG, DroppedEndpoints, LEFT_BEHIND_AFTER, age, has_entry, is_endpoint_of, left_behind,
};
use crate::capz::entry::{entries, key};
use crate::capz::ledger::Ledger;
use crate::capz::patch::patch;
use crate::engine::client::Reconcile;
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::event::{Event, What};

/// The time between two reads of the record.
const EVERY: Duration = Duration::from_secs(5);
/// The longest wait between two reads of a private endpoint that is to go.
const LONGEST_WAIT: Duration = Duration::from_secs(60);
/// How long it is known by which kind private endpoints are deleted.
const KIND_IS_KNOWN: Duration = Duration::from_secs(300);
/// How many private endpoints are asked for between two reads of the record.
const MOST_ASKED: usize = 20;

const GROUP: &str = "network.azure.com";
const KIND: &str = "PrivateEndpoint";
/// The problem of the management cluster that private endpoints are left behind.
const LEFT_BEHIND: &str = "left-behind endpoints";

/// A private endpoint, and when its entry was removed: one that is removed again is another.
type Dropped = (String, Timestamp);

/// What is known of the private endpoints that were asked for.
#[derive(Default)]
struct Asked {
    /// When each is asked for next.
    due: BTreeMap<Dropped, Instant>,
    /// Those that Azure had.
    found: BTreeSet<Dropped>,
    /// The kind by which they are deleted, and since when it is known.
    kind: Option<(ApiResource, Instant)>,
}

/// Follows them. Never returns.
pub(super) async fn follow(cx: &Context) {
    let mut asked = Asked::default();
    loop {
        sleep(EVERY).await;
        let Some(management) = cx.management().filter(|_| !cx.reference.leads()) else {
            cx.decided(|decided| decided.left_behind = 0);
            continue;
        };
        let recorded = DroppedEndpoints::read(&management);
        asked.keep(cx, &without_entries(&management, &recorded));
        let mut gone = desired_again(&management, &recorded);
        gone.extend(ask_all(cx, &management, &mut asked).await);
        if !gone.is_empty()
            && let Err(error) = forget(cx, &gone).await
        {
            tracing::debug!(%error, "private endpoints that are gone are still recorded");
        }
        show(cx, &management, &asked).await;
    }
}

/// What is recorded, but for what has an entry again: that is removed first, or stays.
fn without_entries(management: &AzureCluster, recorded: &DroppedEndpoints) -> BTreeSet<Dropped> {
    let present: BTreeSet<String> = entries(management).map(|(_, entry)| key(&entry.name)).collect();
    let absent = recorded.all().filter(|(name, _)| !present.contains(&key(name)));
    absent.map(|(name, since)| (name.to_owned(), since)).collect()
}

/// What is recorded, though the ledger has it.
fn desired_again(management: &AzureCluster, recorded: &DroppedEndpoints) -> BTreeSet<Dropped> {
    let ledger = Ledger::read(management);
    let held = recorded.all().filter(|(name, _)| ledger.holder(name).is_some());
    held.map(|(name, since)| (name.to_owned(), since)).collect()
}

/// Whether a private endpoint is asked for: it is to be deleted, or CAPZ has had its time.
fn is_followed(cx: &Context, since: Timestamp) -> bool {
    cx.settings.deletes_dropped || age(since, Timestamp::now()) >= LEFT_BEHIND_AFTER
}

/// The name of the poll for a private endpoint.
fn poll((name, since): &Dropped) -> String {
    format!("{name}/dropped/{since}")
}

impl Asked {
    /// Forgets what is no longer dropped, and notes what is.
    fn keep(&mut self, cx: &Context, dropped: &BTreeSet<Dropped>) {
        for one in dropped.iter().filter(|(_, since)| is_followed(cx, *since)) {
            self.due.entry(one.clone()).or_insert_with(Instant::now);
        }
        self.due.retain(|one, _| {
            let is_dropped = dropped.contains(one);
            if !is_dropped {
                cx.polls.over(&poll(one));
            }
            is_dropped
        });
        self.found.retain(|one| dropped.contains(one));
    }

    /// Those to be asked for now, those first that have waited longest.
    fn are_due(&self) -> Vec<Dropped> {
        let now = Instant::now();
        let mut due: Vec<_> = self.due.iter().filter(|(_, at)| **at <= now).collect();
        due.sort_by_key(|(_, at)| **at);
        due.into_iter().take(MOST_ASKED).map(|(one, _)| one.clone()).collect()
    }

    /// The kind of the objects by which CAPZ makes private endpoints; none if it is not served. It may be served in
    /// another version than its group prefers.
    async fn kind(&mut self, cx: &Context) -> Result<Option<ApiResource>, ReconcileError> {
        let now = Instant::now();
        if let Some((kind, since)) = &self.kind
            && now < *since + KIND_IS_KNOWN
        {
            return Ok(Some(kind.clone()));
        }
        let served = match within(discovery::group(&cx.runtime.kube, GROUP)).await {
            Ok(served) => served,
            Err(ReconcileError::Kube(kube::Error::Discovery(_))) => return Ok(None),
            Err(error) => return Err(error),
        };
        let kinds = served.resources_by_stability().into_iter();
        let found = kinds.map(|(kind, _)| kind).find(|kind| kind.kind == KIND);
        self.kind = found.clone().map(|kind| (kind, now));
        Ok(found)
    }
}

/// Asks for those that are due; returns those that are no longer to be followed.
async fn ask_all(cx: &Context, management: &AzureCluster, asked: &mut Asked) -> BTreeSet<Dropped> {
    let mut gone = BTreeSet::new();
    let due = asked.are_due();
    if due.is_empty() {
        return gone;
    }
    let kind = if cx.settings.deletes_dropped {
        match asked.kind(cx).await {
            Ok(kind) => kind,
            Err(error) => {
                tracing::warn!(%error, "private endpoints without an entry are not deleted");
                return gone;
            }
        }
    } else {
        None
    };
    for one in due {
        let age = age(one.1, Timestamp::now());
        match ask(cx, management, kind.as_ref(), (&one.0, age)).await {
            Answer::InAzure => asked.found.insert(one.clone()),
            Answer::MayComeBack => asked.found.remove(&one),
            Answer::Gone => gone.insert(one.clone()),
            Answer::Unknown => false,
        };
        let now = Instant::now();
        let wait = if age >= LEFT_BEHIND_AFTER {
            cx.runtime.resync
        } else {
            cx.polls.wait(&poll(&one), EVERY, now).min(LONGEST_WAIT)
        };
        asked.due.insert(one, now + wait);
    }
    gone
}

/// What is found of a private endpoint.
enum Answer {
    /// Azure has it.
    InAzure,
    /// Azure has it no more, but what CAPZ has asked for last may be made later.
    MayComeBack,
    /// Nothing of it is left.
    Gone,
    /// It cannot be known now.
    Unknown,
}

/// What is found of a private endpoint. What may be deleted is.
async fn ask(
    cx: &Context,
    management: &AzureCluster,
    kind: Option<&ApiResource>,
    (name, age): (&str, Duration),
) -> Answer {
    let has_object = match kind {
        Some(kind) => match delete(cx, management, kind, name).await {
            Ok(has_object) => has_object,
            Err(error) => {
                tracing::warn!(id = name, %error, "a private endpoint without an entry is not deleted");
                return Answer::Unknown;
            }
        },
        None => false,
    };
    let Some(id) = addresses::id(management, name) else {
        return Answer::Unknown;
    };
    let Ok(cloud) = cx.identities.cloud(&cx.runtime, management).await else {
        return Answer::Unknown;
    };
    cloud.observations.invalidate(&id, Instant::now());
    match cloud.reader(Reconcile::begin()).read(Kind::PrivateEndpoint, &id).await {
        Observed::Absent if has_object || age < CAPZ_LAG => Answer::MayComeBack,
        Observed::Absent => Answer::Gone,
        Observed::Found(_) | Observed::Pending => Answer::InAzure,
        _ => Answer::Unknown,
    }
}

/// Deletes the object of the Azure Service Operator for a private endpoint, if it is the management cluster's and the
/// entry is certainly removed. Whether there is such an object.
async fn delete(
    cx: &Context,
    management: &AzureCluster,
    kind: &ApiResource,
    name: &str,
) -> Result<bool, ReconcileError> {
    let kube = cx.runtime.kube.clone();
    let api: Api<DynamicObject> = Api::namespaced_with(kube, &cx.settings.management.namespace, kind);
    let found = within(api.get_opt(&key(name))).await?;
    let Some(found) = found.filter(|found| is_endpoint_of(found, management, name)) else {
        return Ok(false);
    };
    // No entry of this name is added meanwhile.
    let _writing = cx.writing.lock().await;
    let fresh = cx.read(&cx.settings.management).await?;
    let is_dropped = |fresh: &AzureCluster| {
        uid(fresh) == uid(management) && !has_entry(fresh, name) && DroppedEndpoints::read(fresh).has(name)
    };
    if found.metadata.deletion_timestamp.is_some() || !fresh.as_ref().is_some_and(is_dropped) {
        return Ok(true);
    }
    let params = DeleteParams::default().preconditions(Preconditions {
        uid: found.uid(),
        resource_version: None,
    });
    changing(api.delete(&found.name_any(), &params)).await?;
    let note = format!("private endpoint {name}, whose entry was removed, is being deleted");
    tracing::info!("{note}");
    let event = Event::new(What::Deleted, note);
    cx.runtime.events.emit(&[management.object_ref(&())], &[event]).await;
    Ok(true)
}

/// Removes these from the record; again where others write at the same time.
async fn forget(cx: &Context, gone: &BTreeSet<Dropped>) -> Result<(), ReconcileError> {
    let _writing = cx.writing.lock().await;
    let mut tries = 1;
    loop {
        let Some(management) = cx.read(&cx.settings.management).await? else {
            return Ok(());
        };
        let before = DroppedEndpoints::read(&management);
        let after = before.clone().without(gone);
        if after == before {
            return Ok(());
        }
        let annotations = [(DROPPED_ENDPOINTS, after.text())];
        match cx.patch(&management, patch(&management, &[], None, &annotations)).await {
            Err(error) if error.conflict() && tries < MOST_TRIES => tries += 1,
            written => return written.map(drop),
        }
    }
}

/// Tells of those that are left behind, by a metric, and by an Event when others are than before.
async fn show(cx: &Context, management: &AzureCluster, asked: &Asked) {
    let now = Timestamp::now();
    let is_left = |(_, since): &&Dropped| age(*since, now) >= LEFT_BEHIND_AFTER;
    let left: BTreeSet<&str> = asked
        .found
        .iter()
        .filter(is_left)
        .map(|(name, _)| name.as_str())
        .collect();
    cx.decided(|decided| decided.left_behind = left.len());
    let event = (!left.is_empty()).then(|| Event::new(What::LeftBehind, left_behind(&left)));
    cx.runtime
        .events
        .stands(&management.object_ref(&()), LEFT_BEHIND, event)
        .await;
}

#[cfg(test)]
mod tests;
