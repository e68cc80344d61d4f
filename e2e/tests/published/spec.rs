//! What changes on a control plane or its Service arrives in the custom resource at once.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE, ROUTER};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, Patch, PatchParams};
use serde_json::{Value, json};

use crate::warnings_with_note;
use e2e::shared_env::{SOON, SharedEnv, patch, situation};

/// Patches `privateLink` on the HostedCluster, as its owner does, and on the HostedControlPlane, as HyperShift does.
async fn link(shared_env: &SharedEnv, cluster: &HostedCluster, with: Value) -> Result<()> {
    let client = shared_env.test_env.client()?;
    let with = json!({"spec": {"platform": {"azure": {"private": {"privateLink": with}}}}});
    let namespace = cluster.control_plane_namespace();
    for (kind, namespace) in [("HostedCluster", NAMESPACE), ("HostedControlPlane", &namespace)] {
        patch(&cluster.api(&client, kind, namespace), cluster.name(), with.clone()).await?;
    }
    Ok(())
}

async fn arrives(shared_env: &SharedEnv, cluster: &HostedCluster, field: &str, value: Value) -> Result<()> {
    let client = shared_env.test_env.client()?;
    eventually(&format!("{field} is {value}"), SOON, || async {
        let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
        let observed = &found.data["spec"][field];
        ensure!(*observed == value, "{observed}");
        Ok(())
    })
    .await
}

/// The subscriptions that may see the Private Link Service, in Azure.
async fn visible_to(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<Vec<String>> {
    let found = shared_env
        .test_env
        .oracle()
        .resources(&cluster.link_service(&shared_env.test_env))
        .await?;
    let list = found.first().context("no service")?["properties"]["visibility"]["subscriptions"].clone();
    Ok(serde_json::from_value(list)?)
}

#[test]
fn subscriptions_follow_the_control_plane_into_azure() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "allowing");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let guest = shared_env.test_env.azure().guest_subscription.clone();
        let (one, two) = (
            "44444444-4444-4444-8444-44444444444a",
            "55555555-5555-4555-8555-555555555555",
        );
        // Given, given twice in two spellings, revoked in part, revoked altogether.
        let nat = shared_env.test_env.create_nat_subnet("allowing").await?;
        for (given, stored) in [
            (json!([one, two]), json!([one, two])),
            (json!([one.to_uppercase(), one, two]), json!([one, two])),
            (json!([two]), json!([two])),
        ] {
            link(shared_env, &cluster, json!({"additionalAllowedSubscriptions": given})).await?;
            arrives(shared_env, &cluster, "additionalAllowedSubscriptions", stored).await?;
        }
        eventually("the revoked subscription sees it no more", SOON, || async {
            let observed = visible_to(shared_env, &cluster).await?;
            ensure!(
                observed.contains(&two.to_owned()) && !observed.contains(&one.to_owned()),
                "{observed:?}"
            );
            Ok(())
        })
        .await?;
        // The field may not be empty; the NAT subnet, unset until now, comes in its place.
        link(
            shared_env,
            &cluster,
            json!({"additionalAllowedSubscriptions": null, "natSubnetID": nat}),
        )
        .await?;
        arrives(shared_env, &cluster, "additionalAllowedSubscriptions", Value::Null).await?;
        arrives(shared_env, &cluster, "natSubnetID", json!(nat)).await?;
        eventually("only the guest sees it", SOON, || async {
            let observed = visible_to(shared_env, &cluster).await?;
            ensure!(observed == [guest.clone()], "{observed:?}");
            Ok(())
        })
        .await?;
        shared_env.heals(&cluster).await?;
        cluster.delete(&shared_env.test_env, SOON).await?;
        shared_env.nothing_is_left_of(&cluster, &[&nat]).await
    });
}

#[test]
fn ids_and_region_in_another_spelling_are_understood() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "spelled").with_base_domain("Spelled.Example.com");
        let (location, vnet) = (&shared_env.test_env.azure().location, cluster.vnet());
        let odd = vnet
            .replace("/resourceGroups/", "/resourcegroups/")
            .replace("Microsoft.Network", "microsoft.network");
        ensure!(odd != vnet);
        let azure = json!({"location": format!(" {}", location.to_uppercase()), "vnetID": odd});
        let odd = json!({"spec": {"platform": {"azure": azure}}});
        let cluster = cluster.with_hosted_cluster(odd.clone()).with_control_plane(odd);
        cluster.create(&shared_env.test_env).await?;
        arrives(shared_env, &cluster, "guestVNetID", json!(vnet)).await?;
        arrives(shared_env, &cluster, "location", json!(location)).await?;
        arrives(shared_env, &cluster, "baseDomain", json!("spelled.example.com")).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn cluster_of_another_cloud_is_refused_by_an_event() {
    situation(async |shared_env| {
        let of = |cloud: &str| json!({"spec": {"platform": {"azure": {"cloud": cloud}}}});
        let cluster = HostedCluster::new(&shared_env.test_env, "abroad").with_control_plane(of("AzureChinaCloud"));
        cluster.create(&shared_env.test_env).await?;
        let note =
            "private-router: CloudMismatch: the cluster is in AzureChinaCloud, this process serves AzurePublicCloud";
        ensure!(warnings_with_note(shared_env, &cluster, note).await? == 1);
        let client = shared_env.test_env.client()?;
        ensure!(cluster.get_link_service(&client).await?.is_none(), "a custom resource");
        shared_env.nobody_asked_about(&cluster).await?;
        let api = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        patch(&api, cluster.name(), of("AzurePublicCloud")).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn service_with_a_host_name_and_no_address_is_waited_for() {
    situation(async |shared_env| {
        // Somebody else's load balancer, which the cloud controller leaves alone.
        let elsewhere = json!({"spec": {"loadBalancerClass": "example.com/other"}});
        let cluster = HostedCluster::new(&shared_env.test_env, "addressless").with_services(elsewhere);
        let (client, namespace) = (shared_env.test_env.client()?, cluster.control_plane_namespace());
        cluster.create(&shared_env.test_env).await?;
        let services: Api<Service> = Api::namespaced(client.clone(), &namespace);
        for (ingress, why) in [
            (
                json!([{"hostname": "lb.example.com"}]),
                "the Service has a host name instead of an address",
            ),
            (json!([]), "the Service has no address yet"),
        ] {
            let status = json!({"status": {"loadBalancer": {"ingress": ingress}}});
            services
                .patch_status(ROUTER, &PatchParams::default(), &Patch::Merge(status))
                .await?;
            eventually(why, SOON, || async {
                let log = std::fs::read_to_string(shared_env.cpo.process().log())?;
                let is_logged = log
                    .lines()
                    .any(|line| line.contains("\"clusters-addressless\"") && line.contains(why));
                ensure!(is_logged, "it is not told");
                Ok(())
            })
            .await?;
            ensure!(cluster.get_link_service(&client).await?.is_none());
        }
        shared_env.nobody_asked_about(&cluster).await?;
        cluster.delete(&shared_env.test_env, SOON).await
    });
}
