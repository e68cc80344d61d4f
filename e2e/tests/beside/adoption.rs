//! Running clusters that HyperShift's controllers have made and that Hyperlink adopts.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::go_controllers::GoOperator;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::hyperlink::{Hyperlink, Role};
use e2e::shared_env::{SOON, patch};
use kube::ResourceExt;
use kube::api::{Patch, PatchParams};
use serde_json::{Value, json};

use crate::mixed_env::{MixedEnv, ends, situation};

const FIRST: &str = "44444444-4444-4444-8444-444444444444";
const SECOND: &str = "55555555-5555-4555-8555-555555555555";

/// Creates a cluster and waits until HyperShift's controllers serve it; returns them, still running.
async fn served_by_theirs(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<(GoOperator, GoOperator)> {
    cluster.create(&mixed_env.test_env).await?;
    let theirs = (mixed_env.go_ho(cluster).await?, mixed_env.go_cpo(cluster).await?);
    mixed_env.heals(cluster).await?;
    mixed_env.recorded(cluster).await?;
    Ok(theirs)
}

/// Creates a cluster, has HyperShift's controllers serve it, and stops them.
async fn made_by_theirs(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<()> {
    let (go_ho, go_cpo) = served_by_theirs(mixed_env, cluster).await?;
    go_ho.stop().await?;
    go_cpo.stop().await
}

/// Creates a cluster that HyperShift's controllers have served and both roles of Hyperlink have adopted.
async fn adopted(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<(Hyperlink, Hyperlink)> {
    made_by_theirs(mixed_env, cluster).await?;
    let (ho, cpo) = (mixed_env.ho(cluster).await?, mixed_env.cpo(cluster).await?);
    mixed_env.adopted(cluster, Role::Ho).await?;
    mixed_env.adopted(cluster, Role::Cpo).await?;
    Ok((ho, cpo))
}

/// Deletes the cluster, which has to leave nothing; then stops the processes that served it.
async fn delete_and_stop(mixed_env: &MixedEnv, cluster: &HostedCluster, served_by: [Hyperlink; 2]) -> Result<()> {
    mixed_env.delete(cluster, &[]).await?;
    for process in served_by {
        ends(process).await?;
    }
    Ok(())
}

#[test]
fn running_cluster_is_adopted_without_a_write_or_a_gap() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("taken-over").await?;
        let (go_ho, go_cpo) = served_by_theirs(mixed_env, &cluster).await?;
        let before = mixed_env.custom_resource(&cluster).await?;
        let since = mixed_env.test_env.oracle().last_call().await?;
        let watch = mixed_env.watch(&cluster);

        go_ho.stop().await?;
        let ho = mixed_env.ho(&cluster).await?;
        mixed_env.adopted(&cluster, Role::Ho).await?;
        mixed_env.has_read_all(&cluster, Role::Ho, since).await?;
        go_cpo.stop().await?;
        let cpo = mixed_env.cpo(&cluster).await?;
        mixed_env.adopted(&cluster, Role::Cpo).await?;
        mixed_env.has_read_all(&cluster, Role::Cpo, since).await?;

        at_rest(mixed_env, &cluster).await?;
        let writes = mixed_env.our_writes(&cluster, since).await?;
        ensure!(writes.is_empty(), "adoption wrote to Azure: {writes:?}");
        let after = mixed_env.custom_resource(&cluster).await?;
        ensure!(after.finalizers() == before.finalizers(), "{:?}", after.finalizers());
        ensure!(after.data["spec"] == before.data["spec"], "{}", after.data["spec"]);
        mixed_env.heals(&cluster).await?;
        watch.never_failed().await?;
        delete_and_stop(mixed_env, &cluster, [ho, cpo]).await
    });
}

/// Waits until nothing is written to the custom resource while both roles read all their resources in Azure once more.
async fn at_rest(mixed_env: &MixedEnv, cluster: &HostedCluster) -> Result<()> {
    let version = |object: kube::api::DynamicObject| object.metadata.resource_version;
    eventually("the custom resource is at rest", SOON, async || {
        let before = version(mixed_env.custom_resource(cluster).await?);
        let since = mixed_env.test_env.oracle().last_call().await?;
        mixed_env.has_read_all(cluster, Role::Ho, since).await?;
        mixed_env.has_read_all(cluster, Role::Cpo, since).await?;
        let after = version(mixed_env.custom_resource(cluster).await?);
        ensure!(before == after, "written meanwhile");
        Ok(())
    })
    .await
}

#[test]
fn adopted_cluster_loses_a_revoked_subscription() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("revoked").await?;
        let allowed = |list: Value| {
            json!({"spec": {"platform": {"azure": {"private": {"privateLink": {
            "additionalAllowedSubscriptions": list}}}}}})
        };
        let cluster = cluster
            .with_hosted_cluster(allowed(json!([FIRST, SECOND])))
            .with_control_plane(allowed(json!([FIRST, SECOND])));
        let (ho, cpo) = adopted(mixed_env, &cluster).await?;
        ensure!(
            mixed_env.stored_service(&cluster).await?.contains(SECOND),
            "it was not allowed"
        );
        let client = mixed_env.test_env.client()?;
        let namespace = cluster.control_plane_namespace();
        for (kind, namespace) in [("HostedCluster", NAMESPACE), ("HostedControlPlane", &namespace)] {
            let api = cluster.api(&client, kind, namespace);
            patch(&api, cluster.name(), allowed(json!([FIRST]))).await?;
        }
        eventually("the subscription is not allowed any more", SOON, async || {
            let spec = mixed_env.custom_resource(&cluster).await?.data["spec"].take();
            ensure!(spec["additionalAllowedSubscriptions"] == json!([FIRST]), "{spec}");
            let found = mixed_env.stored_service(&cluster).await?;
            ensure!(!found.contains(SECOND) && found.contains(FIRST), "{found}");
            Ok(())
        })
        .await?;
        mixed_env.heals(&cluster).await?;
        delete_and_stop(mixed_env, &cluster, [ho, cpo]).await
    });
}

#[test]
fn adopted_cluster_with_a_dead_alias_gets_another() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("dead-alias").await?;
        let (ho, cpo) = adopted(mixed_env, &cluster).await?;
        let alias = async || {
            let found = mixed_env.custom_resource(&cluster).await?;
            let alias = found
                .data
                .pointer("/status/privateLinkServiceAlias")
                .and_then(Value::as_str);
            alias.map(str::to_owned).context("no alias")
        };
        let before = alias().await?;
        mixed_env
            .test_env
            .oracle()
            .drift_delete(&cluster.link_service(&mixed_env.test_env))
            .await?;
        eventually(
            "there is another alias, and the endpoint leads to it",
            SOON,
            async || {
                let now = alias().await?;
                ensure!(now != before, "still {now}");
                let endpoint = mixed_env.test_env.oracle().resources(&cluster.endpoint()).await?;
                ensure!(
                    serde_json::to_string(&endpoint)?.contains(&now),
                    "the endpoint leads elsewhere"
                );
                Ok(())
            },
        )
        .await?;
        mixed_env.heals(&cluster).await?;
        delete_and_stop(mixed_env, &cluster, [ho, cpo]).await
    });
}

/// As after a control-plane-operator that was killed between its records and its status.
#[test]
fn zone_that_nobody_recorded_is_adopted_by_what_is_in_it() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("unrecorded").await?;
        made_by_theirs(mixed_env, &cluster).await?;
        let fields = json!({"status": {"baseDomainDNSZoneID": null, "privateDNSZoneID": null, "dnsZoneName": null}});
        let custom = cluster.api(
            &mixed_env.test_env.client()?,
            "AzurePrivateLinkService",
            &cluster.control_plane_namespace(),
        );
        custom
            .patch_status("private-router", &PatchParams::default(), &Patch::Merge(fields))
            .await?;
        let since = mixed_env.test_env.oracle().last_call().await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
        eventually("both zones are recorded again", SOON, async || {
            let status = mixed_env.custom_resource(&cluster).await?.data["status"].take();
            ensure!(
                status["baseDomainDNSZoneID"].is_string() && status["privateDNSZoneID"].is_string(),
                "{status}"
            );
            Ok(())
        })
        .await?;
        mixed_env.heals(&cluster).await?;
        let writes = mixed_env.our_writes(&cluster, since).await?;
        ensure!(writes.is_empty(), "{writes:?}");
        delete_and_stop(mixed_env, &cluster, [ho, cpo]).await
    });
}

#[test]
fn cluster_deleted_right_after_the_hand_over_leaves_nothing() {
    situation(async |mixed_env| {
        let cluster = mixed_env.their_cluster("handed-over").await?;
        made_by_theirs(mixed_env, &cluster).await?;
        let client = mixed_env.test_env.client()?;
        let namespace = cluster.control_plane_namespace();
        let control_planes = cluster.api(&client, "HostedControlPlane", &namespace);
        // Their finalizers are still set, though the controllers are gone.
        control_planes
            .delete(cluster.name(), &kube::api::DeleteParams::default())
            .await?;
        let custom = cluster.api(&client, "AzurePrivateLinkService", &namespace);
        custom
            .delete("private-router", &kube::api::DeleteParams::default())
            .await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
        delete_and_stop(mixed_env, &cluster, [ho, cpo]).await
    });
}
