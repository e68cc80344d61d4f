//! The Services that external-dns reads the host names of a private cluster from.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, ROUTER};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::warnings_with_note;
use e2e::shared_env::{SOON, SharedEnv, patch, situation};

const API: &str = "kube-apiserver-private-external";
const OAUTH: &str = "oauth-private-external";

/// Waits until a Service leads this host name to the cluster's endpoint, or until it is gone.
async fn publishes(shared_env: &SharedEnv, cluster: &HostedCluster, service: &str, host: Option<&str>) -> Result<()> {
    let client = shared_env.test_env.client()?;
    eventually(&format!("{service} publishes {host:?}"), SOON, || async {
        let Some(host) = host else {
            ensure!(cluster.get_service(&client, service).await?.is_none(), "it is there");
            return Ok(());
        };
        let cr = cluster.get_link_service(&client).await?.context("no custom resource")?;
        let address = cr
            .data
            .pointer("/status/privateEndpointIP")
            .cloned()
            .unwrap_or_default();
        let found = cluster.get_service(&client, service).await?.context("no Service")?;
        let observed = json!([found.spec, found.metadata.annotations]);
        ensure!(
            observed[0]["type"] == "ExternalName"
                && observed[0]["externalName"] == address
                && observed[1]["external-dns.alpha.kubernetes.io/hostname"] == host,
            "{observed}"
        );
        Ok(())
    })
    .await
}

fn services(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<Api<Service>> {
    Ok(Api::namespaced(
        shared_env.test_env.client()?,
        &cluster.control_plane_namespace(),
    ))
}

#[test]
fn host_names_are_published_and_withdrawn() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "hosted").with_base_domain("hosted.example.com");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let client = shared_env.test_env.client()?;
        let api = Some("api-hosted.hosted.example.com");
        publishes(shared_env, &cluster, API, api).await?;
        publishes(shared_env, &cluster, OAUTH, Some("oauth-hosted.hosted.example.com")).await?;

        cluster
            .publish(&client, "OAuthServer", Some("oauth-hosted.new.example.com"))
            .await?;
        publishes(shared_env, &cluster, OAUTH, Some("oauth-hosted.new.example.com")).await?;
        // The base domain cannot change any more, and blocks nothing.
        let cr = cluster.get_link_service(&client).await?.context("no custom resource")?;
        ensure!(
            cr.data["spec"]["baseDomain"] == "hosted.example.com",
            "{}",
            cr.data["spec"]
        );
        cluster.publish(&client, "OAuthServer", None).await?;
        publishes(shared_env, &cluster, OAUTH, None).await?;

        // What somebody changes or deletes is repaired.
        let services = services(shared_env, &cluster)?;
        services.delete(API, &DeleteParams::default()).await?;
        publishes(shared_env, &cluster, API, api).await?;
        let wrong = json!({"spec": {"externalName": "192.0.2.1"}});
        services
            .patch(API, &Default::default(), &kube::api::Patch::Merge(wrong))
            .await?;
        publishes(shared_env, &cluster, API, api).await?;

        // A public side publishes by itself.
        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        for (topology, host) in [("PublicAndPrivate", None), ("Private", api)] {
            let turned = json!({"spec": {"platform": {"azure": {"topology": topology}}}});
            patch(&control_planes, cluster.name(), turned).await?;
            publishes(shared_env, &cluster, API, host).await?;
        }
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn host_names_are_withdrawn_with_the_custom_resource() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "withdrawn").with_base_domain("withdrawn.example.com");
        cluster.create(&shared_env.test_env).await?;
        let api = Some("api-withdrawn.withdrawn.example.com");
        publishes(shared_env, &cluster, API, api).await?;
        let before = services(shared_env, &cluster)?.get(API).await?.metadata.uid;
        let client = shared_env.test_env.client()?;
        let custom = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
        custom.delete(ROUTER, &DeleteParams::default()).await?;
        // The endpoint is deleted, and recreated for the next custom resource.
        eventually("the Service is another", SOON, || async {
            let found = services(shared_env, &cluster)?.get_opt(API).await?;
            ensure!(found.is_none_or(|found| found.metadata.uid != before), "it is the same");
            Ok(())
        })
        .await?;
        publishes(shared_env, &cluster, API, api).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[test]
fn host_name_that_becomes_no_name_is_withdrawn_alone() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "misspelt").with_base_domain("misspelt.example.com");
        cluster.create(&shared_env.test_env).await?;
        let (api, oauth) = (
            "api-misspelt.misspelt.example.com",
            "oauth-misspelt.misspelt.example.com",
        );
        publishes(shared_env, &cluster, API, Some(api)).await?;
        publishes(shared_env, &cluster, OAUTH, Some(oauth)).await?;
        let client = shared_env.test_env.client()?;
        // The API server accepts it.
        cluster
            .publish(&client, "APIServer", Some("-api.misspelt.example.com"))
            .await?;
        publishes(shared_env, &cluster, API, None).await?;
        warnings_with_note(
            shared_env,
            &cluster,
            "host names: the host name of APIServer is not a DNS name: it is not published",
        )
        .await?;
        publishes(shared_env, &cluster, OAUTH, Some(oauth)).await?;
        cluster.publish(&client, "APIServer", Some(api)).await?;
        publishes(shared_env, &cluster, API, Some(api)).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}

#[rstest]
#[case::of_a_cluster_that_is_served("covetous", Value::Null)]
#[case::of_a_cluster_that_is_paused("covetous-asleep", json!("true"))]
fn host_names_are_withdrawn_when_one_is_another_clusters(#[case] name: &str, #[case] paused_until: Value) {
    situation(async |shared_env| {
        let domain = format!("{name}.example.com");
        let cluster = HostedCluster::new(&shared_env.test_env, name).with_base_domain(&domain);
        let rightful = HostedCluster::new(&shared_env.test_env, &format!("{name}-not")).with_base_domain(&domain);
        let (own, theirs) = (format!("api-{name}.{domain}"), format!("oauth-{name}-not.{domain}"));
        rightful.create_namespaces(&shared_env.test_env).await?;
        rightful.create_hosted_cluster(&shared_env.test_env).await?;
        cluster.create(&shared_env.test_env).await?;
        publishes(shared_env, &cluster, API, Some(&own)).await?;
        publishes(shared_env, &cluster, OAUTH, Some(&format!("oauth-{name}.{domain}"))).await?;

        let client = shared_env.test_env.client()?;
        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        let paused = json!({"spec": {"pausedUntil": paused_until}});
        patch(&control_planes, name, paused).await?;
        cluster.publish(&client, "OAuthServer", Some(&theirs)).await?;
        shared_env
            .refuses(&cluster, "AzurePLSCreated", "HostNameClaimed")
            .await?;
        publishes(shared_env, &cluster, OAUTH, None).await?;
        publishes(shared_env, &cluster, API, None).await?;

        // The cluster that had the name is deleted, and nobody else has it.
        rightful.delete_hosted_cluster(&client, SOON).await?;
        patch(&control_planes, name, json!({"spec": {"pausedUntil": null}})).await?;
        publishes(shared_env, &cluster, OAUTH, Some(&theirs)).await?;
        publishes(shared_env, &cluster, API, Some(&own)).await?;
        shared_env.heals_and_is_deleted(&cluster).await?;
        rightful.delete_namespace(&client, SOON).await
    });
}

#[test]
fn service_of_somebody_else_is_not_touched() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "taken").with_base_domain("taken.example.com");
        let client = shared_env.test_env.client()?;
        cluster.create(&shared_env.test_env).await?;
        let theirs: Service = serde_json::from_value(json!({"metadata": {"name": API,
            "labels": {"hypershift.openshift.io/azure-pls-external-private-svc": "true"}},
            "spec": {"type": "ExternalName", "externalName": "theirs.example.com"}}))?;
        let services = services(shared_env, &cluster)?;
        let before = services.create(&PostParams::default(), &theirs).await?;
        publishes(shared_env, &cluster, OAUTH, Some("oauth-taken.taken.example.com")).await?;
        let note = format!("host names: Service {API} exists and does not belong to this cluster");
        let events = warnings_with_note(shared_env, &cluster, &note).await?;
        ensure!(events == 1, "told {events} times");
        // Nor is it withdrawn.
        cluster.publish(&client, "APIServer", None).await?;
        cluster.publish(&client, "OAuthServer", None).await?;
        publishes(shared_env, &cluster, OAUTH, None).await?;
        let after = services.get(API).await?;
        ensure!(
            after.metadata.resource_version == before.metadata.resource_version,
            "{after:?}"
        );
        // When it has gone, its name is free.
        cluster
            .publish(&client, "APIServer", Some("api-taken.taken.example.com"))
            .await?;
        services.delete(API, &DeleteParams::default()).await?;
        publishes(shared_env, &cluster, API, Some("api-taken.taken.example.com")).await?;
        shared_env.heals_and_is_deleted(&cluster).await
    });
}
