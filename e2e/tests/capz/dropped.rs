//! Private endpoints whose entries were removed, beside the edition of CAPZ that leaves them.

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, DROPPED_ENDPOINTS, IdentityType, LoadBalancer};
use e2e::capz_controllers::{FINALIZER, Settings};
use e2e::hyperlink::Hyperlink;
use e2e::{eventually, roles, scenario};
use jiff::{SignedDuration, Timestamp};
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use kube::core::{DynamicObject, GroupVersionKind};
use kube::discovery::ApiResource;
use serde_json::{Value, json};

use crate::fleet::{Fleet, NAMESPACE, entry, workload};
use crate::{SOON, has_event, is_gone};

/// A fleet beside the edition of CAPZ that leaves private endpoints, with two workload clusters that are connected.
async fn fleet(deletes: &str) -> Result<(Fleet, [CapzCluster; 2], Hyperlink)> {
    let fleet = Fleet::beside(Settings::UPSTREAM, LoadBalancer::Internal).await?;
    fleet.create_management().await?;
    let clusters = ["kept", "gone"].map(|name| workload(name, IdentityType::WorkloadIdentity));
    for cluster in &clusters {
        cluster.create(&fleet.env).await?;
    }
    let admin = fleet.env.control_plane().admin();
    roles::install_capz_in(admin, "role-capz-delete.yaml", NAMESPACE).await?;
    let flags = [("resync", "10s"), ("delete-dropped-endpoints", deletes)];
    let hyperlink = Hyperlink::start_capz(&fleet.env, &fleet.management, &[NAMESPACE], "first", &flags).await?;
    for cluster in &clusters {
        fleet.is_connected(cluster).await?;
    }
    Ok((fleet, clusters, hyperlink))
}

/// The private endpoints that the management cluster records as dropped.
async fn dropped(fleet: &Fleet) -> Result<Value> {
    let object = fleet.management.get(&fleet.env).await?;
    let text = object.annotations().get(DROPPED_ENDPOINTS).map_or("{}", String::as_str);
    Ok(serde_json::from_str(text)?)
}

/// Writes the record as if these had been dropped so many minutes ago.
async fn dropped_before(fleet: &Fleet, entries: &[&str], minutes: i64) -> Result<()> {
    let before = (Timestamp::now() - SignedDuration::from_mins(minutes)).to_string();
    let record: Value = entries.iter().map(|name| ((*name).to_owned(), json!(before))).collect();
    fleet
        .management
        .annotate(&fleet.env, DROPPED_ENDPOINTS, Some(&record.to_string()))
        .await
}

async fn nothing_is_dropped(fleet: &Fleet) -> Result<()> {
    eventually("nothing is recorded as dropped", SOON, || async {
        let found = dropped(fleet).await?;
        ensure!(found == json!({}), "{found}");
        Ok(())
    })
    .await
}

/// The object of the Azure Service Operator for an entry.
async fn object(fleet: &Fleet, entry: &str) -> Result<Option<DynamicObject>> {
    let kind = GroupVersionKind::gvk("network.azure.com", "v1api20220701", "PrivateEndpoint");
    let resource = ApiResource::from_gvk(&kind);
    let api: Api<DynamicObject> = Api::namespaced_with(fleet.env.client()?, NAMESPACE, &resource);
    Ok(api.get_opt(entry).await?)
}

async fn ask_for_deletion(fleet: &Fleet, cluster: &CapzCluster) -> Result<()> {
    let api = cluster.azure_clusters(&fleet.env.client()?);
    api.delete(cluster.name(), &DeleteParams::default()).await?;
    Ok(())
}

#[test]
fn endpoint_that_capz_leaves_is_deleted_with_its_entry() {
    scenario(async {
        let (fleet, [kept, gone], hyperlink) = fleet("true").await?;
        gone.delete(&fleet.env, SOON).await?;
        is_gone(&fleet.env, &fleet.management.endpoint(&entry(&gone))).await?;
        eventually("its object is gone", SOON, || async {
            let found = object(&fleet, &entry(&gone)).await?;
            ensure!(found.is_none(), "{found:?}");
            Ok(())
        })
        .await?;
        // What CAPZ has begun before may still be made, so it is followed for minutes.
        dropped_before(&fleet, &[&entry(&gone)], 6).await?;
        nothing_is_dropped(&fleet).await?;
        has_event(
            &fleet.env,
            NAMESPACE,
            "Deleted",
            "whose entry was removed, is being deleted",
        )
        .await?;
        ensure!(object(&fleet, &entry(&kept)).await?.is_some());
        fleet.is_connected(&kept).await?;
        fleet.only_reads().await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn endpoint_that_stays_for_half_an_hour_is_shown() {
    scenario(async {
        let (fleet, [kept, gone], hyperlink) = fleet("false").await?;
        // CAPZ cannot delete a Private Link Service that has a connection, so the cluster stays for now.
        ask_for_deletion(&fleet, &gone).await?;
        eventually("Hyperlink lets it go", SOON, || async {
            let object = gone.get(&fleet.env).await?;
            ensure!(!object.finalizers().iter().any(|one| one == FINALIZER));
            Ok(())
        })
        .await?;
        eventually("the endpoint is recorded as dropped", SOON, || async {
            let found = dropped(&fleet).await?;
            ensure!(found.as_object().is_some_and(|all| all.len() == 1), "{found}");
            Ok(())
        })
        .await?;
        let left = entry(&gone);
        dropped_before(&fleet, &[&left, &entry(&kept), "never-was"], 31).await?;
        has_event(&fleet.env, NAMESPACE, "LeftBehind", &left).await?;
        eventually("the metric shows it", SOON, || async {
            let (_, text) = hyperlink.page("/metrics").await?;
            let line = text
                .lines()
                .find(|line| line.starts_with("hyperlink_capz_left_behind_endpoints"));
            ensure!(line == Some("hyperlink_capz_left_behind_endpoints 1"), "{line:?}");
            Ok(())
        })
        .await?;
        // What has its entry, and what Azure does not have, is not followed.
        let found = dropped(&fleet).await?;
        ensure!(found.as_object().context("no map")?.keys().eq([&left]), "{found}");
        fleet.is_connected(&kept).await?;

        let id = fleet.management.endpoint(&left);
        fleet.env.oracle().drift_delete(&id).await?;
        nothing_is_dropped(&fleet).await?;
        gone.delete(&fleet.env, SOON).await?;
        fleet.only_reads().await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn endpoint_of_another_owner_is_not_deleted() {
    scenario(async {
        let (fleet, [_, gone], hyperlink) = fleet("true").await?;
        fleet.capz.pause();
        let theirs = object(&fleet, &entry(&gone)).await?.context("no object")?;
        let kind = GroupVersionKind::gvk("network.azure.com", "v1api20220701", "PrivateEndpoint");
        let api: Api<DynamicObject> =
            Api::namespaced_with(fleet.env.client()?, NAMESPACE, &ApiResource::from_gvk(&kind));
        let owners = json!({"metadata": {"ownerReferences": null}});
        api.patch(
            &theirs.name_any(),
            &Default::default(),
            &kube::api::Patch::Merge(owners),
        )
        .await?;
        let calls = fleet.env.oracle().journal(0).await?.len();
        fleet.capz.resume();
        ask_for_deletion(&fleet, &gone).await?;
        let id = fleet.management.endpoint(&entry(&gone));
        eventually("it was asked for more than once", SOON, || async {
            let all = fleet.env.oracle().journal(0).await?;
            let asked = all
                .iter()
                .skip(calls)
                .filter(|call| call.path.eq_ignore_ascii_case(&id));
            ensure!(asked.filter(|call| call.method == "GET").count() > 2);
            Ok(())
        })
        .await?;
        let found = object(&fleet, &entry(&gone)).await?.context("it is deleted")?;
        ensure!(found.metadata.deletion_timestamp.is_none(), "{found:?}");
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
