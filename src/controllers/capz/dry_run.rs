//! The reconciles of one AzureCluster up to their first write, by what the API server and Azure show now.

use std::fmt::Debug;

use kube::Api;
use kube::runtime::reflector::{Lookup, Store, store};
use kube::runtime::watcher::Event;
use serde::de::DeserializeOwned;
use tokio::sync::mpsc::unbounded_channel;

use super::identities::{Identities, IdentitySettings};
use super::preview::ClusterPreview;
use super::reference_lease::{LeaseObserver, NAME};
use super::sides::{api_server, gateway_side};
use super::watch::keep_read;
use super::workload_cluster::no_management_cluster;
use super::{Context, Settings, addresses, management_cluster, served_links, shown};
use crate::api::ClusterRef;
use crate::api::capi::{AzureCluster, AzureClusterIdentity};
use crate::api::markers::capz::FINALIZER;
use crate::azure::kinds::Kind;
use crate::capz::address::Address;
use crate::capz::assignments::{Assignments, assign, undecided};
use crate::capz::cluster::{Access, access, is_deleting, is_held, reference, uid};
use crate::capz::gateway;
use crate::capz::status::{Side, published};
use crate::controllers::decision::Lifecycle;
use crate::runtime::Runtime;
use crate::runtime::call::{ReconcileError, list};
use crate::runtime::prune::Prune;
use crate::runtime::requeue::Requeue;

/// How many objects are read at once.
const PAGE: u32 = 100;

/// What the reconciles would do for this AzureCluster; none if there is none of this name.
///
/// # Errors
/// The API server refuses, or does not answer.
pub async fn dry_run(
    runtime: Runtime,
    settings: Settings,
    identities: IdentitySettings,
    only: Option<String>,
    object: &ClusterRef,
) -> Result<Option<ClusterPreview>, ReconcileError> {
    let kube = runtime.kube.clone();
    let mut found = None;
    let clusters = read_all(&Api::all(kube.clone()), |cluster: &mut AzureCluster| {
        if reference(cluster) == *object {
            found = Some(cluster.clone());
            if *object != settings.management && !is_deleting(cluster) && !is_held(cluster) {
                // What follows is decided as it will be with the finalizer.
                cluster
                    .metadata
                    .finalizers
                    .get_or_insert_default()
                    .push(FINALIZER.to_owned());
            }
        }
        keep_read(cluster, &settings.management);
    })
    .await?;
    let Some(cluster) = found else {
        return Ok(None);
    };
    let known = read_all(&Api::<AzureClusterIdentity>::all(kube.clone()), |_| {}).await?;
    let (wake, _) = unbounded_channel();
    let identities = Identities::new(identities, known);
    let cx = Context::new(runtime, settings, identities, clusters, only, wake);
    let mut preview = if cx.is_management(&cluster) {
        of_management(&cx, &cluster).await
    } else if is_deleting(&cluster) {
        of_deleting(&cx, &cluster).await
    } else {
        of_workload(&cx, &cluster).await
    };
    if let Some(holder) = LeaseObserver::default().holder(&kube).await? {
        preview.add_fact("Lease", NAME, format!("{holder} leads, so nothing is written"));
    }
    preview.facts.sort();
    Ok(Some(preview))
}

/// All objects of a kind.
async fn read_all<K>(api: &Api<K>, mut each: impl FnMut(&mut K)) -> Result<Store<K>, ReconcileError>
where
    K: Lookup<DynamicType = ()> + Prune + Clone + Debug + DeserializeOwned + 'static,
{
    let (reader, mut writer) = store();
    writer.apply_watcher_event(&Event::Init);
    list(api, PAGE, |mut object: K| {
        each(&mut object);
        object.prune();
        writer.apply_watcher_event(&Event::InitApply(object));
    })
    .await?;
    writer.apply_watcher_event(&Event::InitDone);
    Ok(reader)
}

/// What is decided on the entries of the management cluster, once it is known which clusters are gone.
async fn decide(cx: &Context, management: &AzureCluster) -> Assignments {
    while !served_links::check(cx, management).await {}
    let mut assigned = cx.with_snapshot(management, assign);
    loop {
        let unknown = assigned.unknown.len();
        management_cluster::confirm_gone(cx, &assigned.unknown).await;
        assigned = cx.with_snapshot(management, assign);
        if assigned.unknown.len() == unknown {
            return assigned;
        }
    }
}

async fn of_management(cx: &Context, management: &AzureCluster) -> ClusterPreview {
    let mut preview = ClusterPreview::new(Lifecycle::Build);
    let assigned = decide(cx, management).await;
    preview.add_cluster(management);
    let count = shown::count(&assigned);
    let state = format!("{} desired, {} there", count.desired, count.present);
    preview.add_fact("AzureCluster", format!("{}, entries", reference(management)), state);
    preview.unreadable = !assigned.unknown.is_empty();
    preview.add_assignments(management, &assigned, None);
    preview.add_unclaimed(&assigned);
    preview
}

async fn of_deleting(cx: &Context, cluster: &AzureCluster) -> ClusterPreview {
    if !is_held(cluster) {
        return ClusterPreview::new(Lifecycle::Nothing);
    }
    let mut preview = ClusterPreview::new(Lifecycle::Teardown);
    let Some(management) = cx.management() else {
        preview.add_finalizer("remove");
        return preview;
    };
    preview.add_cluster(&management);
    let assigned = decide(cx, &management).await;
    preview.add_assignments(&management, &assigned, Some(cluster));
    if cx.with_snapshot(&management, |snapshot| Assignments::is_free_of(snapshot, uid(cluster))) {
        preview.add_finalizer("remove");
    }
    preview.pending = true;
    preview
}

async fn of_workload(cx: &Context, cluster: &AzureCluster) -> ClusterPreview {
    let mut preview = ClusterPreview::new(Lifecycle::Build);
    preview.add_cluster(cluster);
    let Some(management) = cx.management() else {
        preview.add_problem(cluster, no_management_cluster(cx));
        return preview;
    };
    preview.add_cluster(&management);
    if let Err(problem) = undecided(cluster, &management, cx.settings.cloud) {
        preview.add_problem(cluster, problem);
        return preview;
    }
    if !is_held(cluster) {
        preview.add_finalizer("set");
    }
    let assigned = decide(cx, &management).await;
    preview.add_assignments(&management, &assigned, Some(cluster));
    cx.decided(|decided| decided.of = assigned.of);
    let gateway = gateway::decide(cluster, &management, access(&management).unwrap_or(Access::Public));
    preview.add_changes(&reference(cluster), gateway.changes());
    let mut requeues = vec![Requeue::new(cx.runtime.resync, Requeue::RESYNC)];
    let api_server = api_server(cx, cluster, &management, &mut requeues).await;
    let api_server = api_server.unwrap_or(Side::NotDesired);
    let gateway = gateway_side(cx, cluster, gateway, &mut requeues).await;
    add_side(&mut preview, &api_server, &management);
    add_side(&mut preview, &gateway, cluster);
    preview.add_published(cluster, &published(cluster, &api_server, &gateway));
    preview.add_requeue(Requeue::earliest(requeues));
    preview
}

/// Adds what is known of the private endpoints of one direction, which lie in the network of `cluster`.
fn add_side(preview: &mut ClusterPreview, side: &Side, cluster: &AzureCluster) {
    let Side::Desired(endpoints, _) = side else {
        return;
    };
    for endpoint in endpoints {
        let state = match &endpoint.address {
            Address::Known(address) => address.to_string(),
            Address::Missing(problem) | Address::Unread(problem) => problem.message.clone(),
        };
        preview.unreadable |= matches!(endpoint.address, Address::Unread(_));
        let id = addresses::id(cluster, &endpoint.name);
        let id = id.map_or_else(|| endpoint.name.clone(), |id| id.to_string());
        preview.add_fact(Kind::PrivateEndpoint.label(), id, state);
    }
}
