//! Follows the private endpoints of the management cluster whose entries were removed, until Azure has them no more:
//! deletes their objects of the Azure Service Operator where that is allowed, and tells of those that stay.

use std::collections::{BTreeSet, HashMap};
use std::time::Duration;

use jiff::Timestamp;
use kube::api::{DeleteParams, DynamicObject, Preconditions};
use kube::{Api, Resource, ResourceExt, discovery};
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
use crate::capz::entry::key;
use crate::capz::patch::patch;
use crate::engine::client::Reconcile;
use crate::runtime::call::{ReconcileError, changing, within};
use crate::runtime::event::{Event, What};

/// The time between two reads of the record.
const EVERY: Duration = Duration::from_secs(5);
/// The longest wait between two reads of a private endpoint that is to go.
const LONGEST_WAIT: Duration = Duration::from_secs(60);

const GROUP: &str = "network.azure.com";
const KIND: &str = "PrivateEndpoint";
/// The problem of the management cluster that private endpoints are left behind.
const LEFT_BEHIND: &str = "left-behind endpoints";

/// What is known of the private endpoints that were asked for.
#[derive(Default)]
struct Asked {
    /// When each is asked for next.
    due: HashMap<String, Instant>,
    /// Those that Azure had.
    found: BTreeSet<String>,
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
        let dropped = DroppedEndpoints::read(&management);
        asked.keep(&dropped);
        let gone = ask_all(cx, &management, &dropped, &mut asked).await;
        if !gone.is_empty()
            && let Err(error) = forget(cx, &gone).await
        {
            tracing::debug!(%error, "private endpoints that are gone are still recorded");
        }
        show(cx, &management, &dropped, &asked).await;
    }
}

impl Asked {
    fn keep(&mut self, dropped: &DroppedEndpoints) {
        let names: BTreeSet<&str> = dropped.all().map(|(name, _)| name).collect();
        self.due.retain(|name, _| names.contains(name.as_str()));
        self.found.retain(|name| names.contains(name.as_str()));
    }
}

/// Asks for those that are due; returns those that are no longer to be followed.
async fn ask_all(
    cx: &Context,
    management: &AzureCluster,
    dropped: &DroppedEndpoints,
    asked: &mut Asked,
) -> BTreeSet<String> {
    let mut gone = BTreeSet::new();
    for (name, since) in dropped.all() {
        let (now, age) = (Instant::now(), age(since, Timestamp::now()));
        let is_due = asked.due.get(name).is_none_or(|due| *due <= now);
        if has_entry(management, name) {
            gone.insert(name.to_owned());
        } else if is_due && (cx.settings.deletes_dropped || age >= LEFT_BEHIND_AFTER) {
            match ask(cx, management, (name, age)).await {
                Answer::InAzure => asked.found.insert(name.to_owned()),
                Answer::MayComeBack => asked.found.remove(name),
                Answer::Gone => gone.insert(name.to_owned()),
                Answer::Unknown => false,
            };
            asked.due.insert(name.to_owned(), now + wait(cx, name, age));
        }
    }
    gone
}

/// How long it takes until a private endpoint is asked for again.
fn wait(cx: &Context, name: &str, age: Duration) -> Duration {
    if age >= LEFT_BEHIND_AFTER {
        return cx.runtime.resync;
    }
    cx.polls
        .wait(&format!("{name}/dropped"), EVERY, Instant::now())
        .min(LONGEST_WAIT)
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
async fn ask(cx: &Context, management: &AzureCluster, (name, age): (&str, Duration)) -> Answer {
    let has_object = if cx.settings.deletes_dropped {
        match delete(cx, management, name).await {
            Ok(has_object) => has_object,
            Err(error) => {
                tracing::warn!(id = name, %error, "a private endpoint without an entry is not deleted");
                return Answer::Unknown;
            }
        }
    } else {
        false
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
async fn delete(cx: &Context, management: &AzureCluster, name: &str) -> Result<bool, ReconcileError> {
    let kube = cx.runtime.kube.clone();
    let served = match within(discovery::group(&kube, GROUP)).await {
        Ok(served) => served,
        Err(ReconcileError::Kube(kube::Error::Discovery(_))) => return Ok(false),
        Err(error) => return Err(error),
    };
    let Some((resource, _)) = served.recommended_kind(KIND) else {
        return Ok(false);
    };
    let api: Api<DynamicObject> = Api::namespaced_with(kube, &cx.settings.management.namespace, &resource);
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
async fn forget(cx: &Context, gone: &BTreeSet<String>) -> Result<(), ReconcileError> {
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
async fn show(cx: &Context, management: &AzureCluster, dropped: &DroppedEndpoints, asked: &Asked) {
    let now = Timestamp::now();
    let is_left =
        |(name, since): &(&str, Timestamp)| asked.found.contains(*name) && age(*since, now) >= LEFT_BEHIND_AFTER;
    let left: BTreeSet<String> = dropped.all().filter(is_left).map(|(name, _)| name.to_owned()).collect();
    cx.decided(|decided| decided.left_behind = left.len());
    let event = (!left.is_empty()).then(|| Event::new(What::LeftBehind, left_behind(&left)));
    cx.runtime
        .events
        .stands(&management.object_ref(&()), LEFT_BEHIND, event)
        .await;
}
