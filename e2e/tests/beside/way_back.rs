//! Clusters that Hyperlink has made, and that HyperShift's controllers take over.

use anyhow::{Result, ensure};
use e2e::azure_sim::{GO_CPO_CLIENT, GO_HO_CLIENT};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::shared_env::{SOON, calls_about, ensure_condition, patch, refused};
use k8s_openapi::api::core::v1::Service;
use kube::ResourceExt;
use kube::api::{Api, Patch, PatchParams};
use serde_json::json;

use crate::mixed_env::{MixedEnv, ends, situation};

#[test]
fn cluster_is_given_back_without_a_gap_and_deleted_by_theirs() {
    situation(async |mixed_env| {
        let cluster = mixed_env.cluster("given-back");
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        let before = mixed_env.custom_resource(&cluster).await?;
        let watch = mixed_env.watch(&cluster);
        ends(cpo).await?;
        ends(ho).await?;
        let since = mixed_env.test_env.oracle().last_call().await?;
        let (go_ho, go_cpo) = (mixed_env.go_ho(&cluster).await?, mixed_env.go_cpo(&cluster).await?);
        // A complete reconcile of each ends with its message.
        for (kind, message) in [
            ("AzurePLSCreated", "Azure Private Link Service is ready"),
            (
                "AzurePrivateDNSAvailable",
                "Base domain private DNS zone and A records are available",
            ),
        ] {
            eventually(&format!("{kind} is theirs"), SOON, async || {
                let found = mixed_env.custom_resource(&cluster).await?;
                let all = e2e::hosted_cluster::conditions(&found);
                let condition = all.iter().find(|one| one.kind == kind);
                ensure!(
                    condition.is_some_and(|one| one.status == "True" && one.message == message),
                    "{all:?}"
                );
                Ok(())
            })
            .await?;
        }
        let calls = calls_about(&mixed_env.test_env, &cluster, since).await?;
        for client in [GO_HO_CLIENT, GO_CPO_CLIENT] {
            let own = || calls.iter().filter(|call| call.principal.as_deref() == Some(client));
            ensure!(own().count() > 0, "{client} has not called");
            let refused: Vec<_> = own().filter(|call| call.status >= 400).collect();
            ensure!(refused.is_empty(), "{refused:?}");
        }
        let after = mixed_env.custom_resource(&cluster).await?;
        ensure!(after.finalizers() == before.finalizers(), "{:?}", after.finalizers());
        watch.never_failed().await?;
        mixed_env
            .delete(&cluster, &[&cluster.own_nat_subnet(&mixed_env.test_env)])
            .await?;
        go_ho.stop().await?;
        go_cpo.stop().await
    });
}

/// `cpo-intent` on the custom resource tells the management side that the guest's side replaces a dead endpoint.
const CPO_INTENT: &str = "hyperlink.hypershift.openshift.io/cpo-intent";
const ALLOW_REPLACE: &str = "hyperlink.hypershift.openshift.io/allow-replace";

#[test]
fn after_the_guest_side_went_back_nothing_is_replaced_unasked() {
    situation(async |mixed_env| {
        let cluster = mixed_env.cluster("half-back");
        cluster.create(&mixed_env.test_env).await?;
        let (ho, cpo) = (mixed_env.ho(&cluster).await?, mixed_env.cpo(&cluster).await?);
        mixed_env.heals(&cluster).await?;
        let watch = mixed_env.watch(&cluster);
        ends(cpo).await?;
        let namespace = cluster.control_plane_namespace();
        let custom = cluster.api(&mixed_env.test_env.client()?, "AzurePrivateLinkService", &namespace);
        let annotate = async |name: &str, value: Option<&str>| {
            patch(
                &custom,
                "private-router",
                json!({"metadata": {"annotations": {name: value}}}),
            )
            .await
        };
        annotate(CPO_INTENT, None).await?;
        let go_cpo = mixed_env.go_cpo(&cluster).await?;

        // Another NAT subnet needs another service, with another alias.
        let subnet = mixed_env.nat_subnet("half-back-nat").await?;
        give_nat_subnet(mixed_env, &cluster, &subnet).await?;
        eventually("the replacement waits for leave", SOON, async || {
            ensure_condition(
                &mixed_env.custom_resource(&cluster).await?,
                "AzurePLSCreated",
                "ReplacementBlocked",
            )
        })
        .await?;
        watch.never_failed().await?;

        annotate(ALLOW_REPLACE, Some("true")).await?;
        eventually("the service is another one", SOON, async || {
            let found = mixed_env.stored_service(&cluster).await?;
            ensure!(found.contains("half-back-nat"), "{found}");
            Ok(())
        })
        .await?;
        // Theirs keeps the dead endpoint until somebody deletes it.
        eventually("their endpoint is disconnected", SOON, async || {
            let found = mixed_env.custom_resource(&cluster).await?;
            let kind = "AzurePrivateEndpointAvailable";
            refused(&found, &[kind], "PrivateEndpointConnectionNotApproved")
        })
        .await?;
        mixed_env.test_env.oracle().drift_delete(&cluster.endpoint()).await?;
        cluster.becomes_reachable(&mixed_env.test_env, SOON).await?;
        annotate(ALLOW_REPLACE, None).await?;
        mixed_env
            .delete(&cluster, &[&cluster.own_nat_subnet(&mixed_env.test_env)])
            .await?;
        go_cpo.stop().await?;
        ends(ho).await
    });
}

/// Names a NAT subnet on HostedCluster and control plane. HyperShift's observer reconciles when the Service changes.
async fn give_nat_subnet(mixed_env: &MixedEnv, cluster: &HostedCluster, subnet: &str) -> Result<()> {
    let client = mixed_env.test_env.client()?;
    let namespace = cluster.control_plane_namespace();
    let named = json!({"spec": {"platform": {"azure": {"private": {"privateLink": {"natSubnetID": subnet}}}}}});
    for (kind, namespace) in [("HostedCluster", NAMESPACE), ("HostedControlPlane", namespace.as_str())] {
        let api = cluster.api(&client, kind, namespace);
        patch(&api, cluster.name(), named.clone()).await?;
    }
    let services: Api<Service> = Api::namespaced(client, &namespace);
    let touched = Patch::Merge(json!({"metadata": {"labels": {"touched": "true"}}}));
    services
        .patch("private-router", &PatchParams::default(), &touched)
        .await?;
    Ok(())
}
