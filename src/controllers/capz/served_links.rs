//! Asks for a cluster itself, and for the definition of AzureClusters, before the links that a watch shows no more count
//! as gone. Until then what is there stays.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use kube::api::DynamicObject;
use kube::discovery::ApiResource;
use kube::runtime::reflector::ObjectRef;
use kube::{Api, Resource, ResourceExt};
use tokio::time::{Instant, sleep};

use super::Context;
use crate::api::capi::AzureCluster;
use crate::capz::cluster::{links, reference, uid};
use crate::capz::ledger::Ledger;
use crate::capz::reason::Problem;
use crate::capz::served_links::{has_links, has_lost_its_links, not_readable, not_served, served_again, shows_no_link};
use crate::runtime::call::within;
use crate::runtime::event::{Event, What};

/// The problem of the management cluster that links are hidden.
const HIDDEN: &str = "hidden links";

/// The time between two looks for clusters that show their links no more.
const EVERY: Duration = Duration::from_secs(2);
/// The time until it is asked again whether links are served.
const AFTER_HIDDEN: Duration = Duration::from_secs(10);
/// How long the API server may hide links after it shows a definition that has them.
const CATCHES_UP: Duration = Duration::from_secs(60);
/// How many clusters are read in one look, those first that were read longest ago.
const MOST_READS: usize = 20;

/// What reads have shown of clusters that show their links no more.
#[derive(Debug, Default)]
pub(super) struct ServedLinks {
    /// By the UID of the cluster.
    of: HashMap<String, Known>,
    definition: Definition,
    /// When it was last without links.
    not_served: Option<Instant>,
}

/// What is known of a cluster that shows its links no more.
#[derive(Debug, Clone)]
struct Known {
    /// When it was read last.
    read: Option<Instant>,
    state: State,
}

#[derive(Debug, Clone, PartialEq, Eq)]
enum State {
    /// At this resource version it certainly has no links.
    WithoutLinks(String),
    /// It may have links.
    Uncertain(Problem),
    /// It showed links just now, of which an event is on its way.
    Changing,
}

/// What the definition of AzureClusters was when it was read last.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
enum Definition {
    #[default]
    WithLinks,
    WithoutLinks,
    NotReadable,
}

/// Whether it is certain that a cluster has no links, if it shows none.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Certainty {
    /// It is, or it shows links.
    Certain,
    /// It is not; that is what to tell.
    Uncertain(Problem),
    /// It is not known yet; the cluster is woken then.
    NotYet,
}

impl ServedLinks {
    /// Whether a read has shown that this version of a cluster has no links.
    fn is_known(&self, cluster: &AzureCluster) -> bool {
        let state = self.of.get(uid(cluster)).map(|one| &one.state);
        matches!(state, Some(State::WithoutLinks(version))
            if Some(version) == cluster.metadata.resource_version.as_ref())
    }

    /// The UIDs of those workload clusters with an entry in the ledger whose links may be hidden.
    pub(super) fn hidden(&self, workloads: &[&AzureCluster], ledger: &Ledger) -> BTreeSet<String> {
        let recorded = ledger.uids();
        let hidden = workloads
            .iter()
            .filter(|cluster| shows_no_link(cluster) && recorded.contains(uid(cluster)) && !self.is_known(cluster));
        hidden.map(|cluster| uid(cluster).to_owned()).collect()
    }

    fn certainty(&self, cluster: &AzureCluster) -> Certainty {
        if self.is_known(cluster) {
            return Certainty::Certain;
        }
        match self.of.get(uid(cluster)).map(|one| &one.state) {
            Some(State::Uncertain(problem)) => Certainty::Uncertain(problem.clone()),
            _ => Certainty::NotYet,
        }
    }

    /// Notes what the definition is now; returns why links may be hidden.
    fn hiding(&mut self, definition: Definition, now: Instant) -> Option<Problem> {
        self.definition = definition;
        match definition {
            Definition::WithoutLinks => {
                self.not_served = Some(now);
                Some(not_served())
            }
            Definition::NotReadable => Some(not_readable()),
            Definition::WithLinks => {
                let is_recent = self.not_served.is_some_and(|at| now < at + CATCHES_UP);
                is_recent.then(served_again)
            }
        }
    }

    /// Notes what is found of a cluster; returns whether that is new.
    fn note(&mut self, cluster: &AzureCluster, state: State, read: Option<Instant>) -> bool {
        let known = self.of.get(uid(cluster));
        let is_new = known.is_none_or(|known| known.state != state);
        let read = read.or_else(|| known.and_then(|known| known.read));
        self.of.insert(uid(cluster).to_owned(), Known { read, state });
        is_new
    }
}

/// Looks for clusters that show their links no more, and wakes them when more is known of them. Never returns.
pub(super) async fn follow(cx: &Context) {
    loop {
        let are_served = cx.decided(|decided| decided.served_links.definition) == Definition::WithLinks;
        sleep(if are_served { EVERY } else { AFTER_HIDDEN }).await;
        if let Some(management) = cx.management().filter(|_| !cx.reference.leads()) {
            check(cx, &management).await;
            show(cx, &management).await;
        }
    }
}

/// Reads clusters that show their links no more, and then the definition; writes nothing. Returns whether it is decided
/// of all of them what to do meanwhile, which takes two reads of each at most.
pub(super) async fn check(cx: &Context, management: &AzureCluster) -> bool {
    let unconfirmed = unconfirmed(cx, management);
    let were_served = cx.decided(|decided| decided.served_links.definition) == Definition::WithLinks;
    if unconfirmed.is_empty() && were_served {
        return true;
    }
    let mut found = Vec::new();
    for cluster in unconfirmed.iter().take(if were_served { MOST_READS } else { 0 }) {
        let read = cx.read(&reference(cluster)).await.ok().flatten();
        found.push((cluster, read.filter(|read| uid(read) == uid(cluster))));
    }
    // What it was before says nothing of what the API server has shown since.
    let definition = definition(cx).await;
    let now = Instant::now();
    match cx.decided(|decided| decided.served_links.hiding(definition, now)) {
        Some(problem) => {
            for cluster in &unconfirmed {
                note(cx, management, cluster, State::Uncertain(problem.clone()), None);
            }
        }
        None => {
            for (cluster, read) in found {
                note(cx, management, cluster, state(cx, cluster, read), Some(now));
            }
        }
    }
    let is_open =
        |cluster: &AzureCluster| cx.decided(|decided| decided.served_links.certainty(cluster)) == Certainty::NotYet;
    !unconfirmed.iter().any(|cluster| is_open(cluster))
}

/// The clusters of which it is not known whether they have links, those first that were read longest ago.
fn unconfirmed(cx: &Context, management: &AzureCluster) -> Vec<Arc<AzureCluster>> {
    let ledger = Ledger::read(management);
    let recorded = ledger.uids();
    let mut all = cx.workloads();
    all.retain(|cluster| has_lost_its_links(cluster, |uid| recorded.contains(uid)));
    cx.decided(|decided| {
        let links = &mut decided.served_links;
        let uids: BTreeSet<&str> = all.iter().map(|cluster| uid(cluster)).collect();
        links.of.retain(|uid, _| uids.contains(uid.as_str()));
        all.retain(|cluster| !links.is_known(cluster));
        all.sort_by_key(|cluster| links.of.get(uid(cluster)).and_then(|one| one.read));
    });
    all
}

/// What a read shows of a cluster; none if it failed, or shows another cluster.
fn state(cx: &Context, cluster: &AzureCluster, read: Option<AzureCluster>) -> State {
    let is_first = cx.decided(|decided| !decided.served_links.of.contains_key(uid(cluster)));
    let is_same = |read: &AzureCluster| read.metadata.resource_version == cluster.metadata.resource_version;
    match read {
        Some(read) if links(&read).is_empty() && (is_first || is_same(&read)) => {
            State::WithoutLinks(read.resource_version().unwrap_or_default())
        }
        Some(_) if is_first => State::Changing,
        // No event has shown the cluster as it is.
        _ => State::Uncertain(served_again()),
    }
}

/// Notes what is known of a cluster, and wakes it if that is new. If it certainly has no links, its entries are to go.
fn note(cx: &Context, management: &AzureCluster, cluster: &AzureCluster, state: State, read: Option<Instant>) {
    let is_certain = matches!(state, State::WithoutLinks(_));
    if cx.decided(|decided| decided.served_links.note(cluster, state, read)) {
        let woken = [cluster, management].into_iter().take(if is_certain { 2 } else { 1 });
        for cluster in woken {
            // Nobody listens any more when the process stops.
            let _ = cx.wake.send(ObjectRef::from_obj(cluster));
        }
    }
}

/// Tells on the management cluster that links are hidden, when it begins.
async fn show(cx: &Context, management: &AzureCluster) {
    let definition = cx.decided(|decided| decided.served_links.definition);
    if definition == Definition::NotReadable {
        return;
    }
    let are_hidden = definition == Definition::WithoutLinks;
    let event = are_hidden.then(|| Event::new(What::Refused, not_served().message));
    let object = management.object_ref(&());
    cx.runtime.events.stands(&object, HIDDEN, event).await;
}

/// Whether it is certain that a cluster has no links, if it shows none.
pub(super) fn certainty(cx: &Context, cluster: &AzureCluster, management: &AzureCluster) -> Certainty {
    if !has_lost_its_links(cluster, |uid| !Ledger::read(management).is_free_of(uid)) {
        return Certainty::Certain;
    }
    cx.decided(|decided| decided.served_links.certainty(cluster))
}

/// Reads the definition.
async fn definition(cx: &Context) -> Definition {
    let definitions = ApiResource {
        group: "apiextensions.k8s.io".to_owned(),
        version: "v1".to_owned(),
        api_version: "apiextensions.k8s.io/v1".to_owned(),
        kind: "CustomResourceDefinition".to_owned(),
        plural: "customresourcedefinitions".to_owned(),
    };
    let api: Api<DynamicObject> = Api::all_with(cx.runtime.kube.clone(), &definitions);
    let name = format!("{}.{}", AzureCluster::plural(&()), AzureCluster::group(&()));
    match within(api.get(&name)).await {
        Ok(found) if has_links(&found.data, &AzureCluster::version(&())) => Definition::WithLinks,
        Ok(_) => Definition::WithoutLinks,
        Err(error) => {
            tracing::warn!(%error, "the definition of AzureClusters cannot be read");
            Definition::NotReadable
        }
    }
}

#[cfg(test)]
mod tests;
