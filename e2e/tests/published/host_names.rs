//! The Services that external-dns reads the host names of a private cluster from.

use anyhow::{Context, Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, ROUTER};
use k8s_openapi::api::core::v1::Service;
use kube::api::{Api, DeleteParams, PostParams};
use rstest::rstest;
use serde_json::{Value, json};

use crate::told;
use e2e::site::{SOON, Site, patch, situation};

const API: &str = "kube-apiserver-private-external";
const OAUTH: &str = "oauth-private-external";

/// Waits until a Service leads this host name to the cluster's endpoint, or until it is gone.
async fn publishes(site: &Site, cluster: &HostedCluster, service: &str, host: Option<&str>) -> Result<()> {
    let client = site.ground.client()?;
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
        let seen = json!([found.spec, found.metadata.annotations]);
        ensure!(
            seen[0]["type"] == "ExternalName"
                && seen[0]["externalName"] == address
                && seen[1]["external-dns.alpha.kubernetes.io/hostname"] == host,
            "{seen}"
        );
        Ok(())
    })
    .await
}

fn services(site: &Site, cluster: &HostedCluster) -> Result<Api<Service>> {
    Ok(Api::namespaced(
        site.ground.client()?,
        &cluster.control_plane_namespace(),
    ))
}

#[test]
fn host_names_are_published_and_withdrawn() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "hosted").with_base_domain("hosted.example.com");
        cluster.create(&site.ground).await?;
        site.heals(&cluster).await?;
        let client = site.ground.client()?;
        let api = Some("api-hosted.hosted.example.com");
        publishes(site, &cluster, API, api).await?;
        publishes(site, &cluster, OAUTH, Some("oauth-hosted.hosted.example.com")).await?;

        cluster
            .publish(&client, "OAuthServer", Some("oauth-hosted.new.example.com"))
            .await?;
        publishes(site, &cluster, OAUTH, Some("oauth-hosted.new.example.com")).await?;
        // The base domain cannot change any more, and nothing is stuck on it.
        let cr = cluster.get_link_service(&client).await?.context("no custom resource")?;
        ensure!(
            cr.data["spec"]["baseDomain"] == "hosted.example.com",
            "{}",
            cr.data["spec"]
        );
        cluster.publish(&client, "OAuthServer", None).await?;
        publishes(site, &cluster, OAUTH, None).await?;

        // What somebody changes or deletes is put right.
        let services = services(site, &cluster)?;
        services.delete(API, &DeleteParams::default()).await?;
        publishes(site, &cluster, API, api).await?;
        let wrong = json!({"spec": {"externalName": "192.0.2.1"}});
        services
            .patch(API, &Default::default(), &kube::api::Patch::Merge(wrong))
            .await?;
        publishes(site, &cluster, API, api).await?;

        // A public side publishes by itself.
        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        for (topology, host) in [("PublicAndPrivate", None), ("Private", api)] {
            let turned = json!({"spec": {"platform": {"azure": {"topology": topology}}}});
            patch(&control_planes, cluster.name(), turned).await?;
            publishes(site, &cluster, API, host).await?;
        }
        site.heals_and_goes(&cluster).await
    });
}

#[test]
fn host_names_are_withdrawn_with_the_custom_resource() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "withdrawn").with_base_domain("withdrawn.example.com");
        cluster.create(&site.ground).await?;
        let api = Some("api-withdrawn.withdrawn.example.com");
        publishes(site, &cluster, API, api).await?;
        let before = services(site, &cluster)?.get(API).await?.metadata.uid;
        let client = site.ground.client()?;
        let custom = cluster.api(&client, "AzurePrivateLinkService", &cluster.control_plane_namespace());
        custom.delete(ROUTER, &DeleteParams::default()).await?;
        // The endpoint goes, and comes back with the next custom resource.
        eventually("the Service is another", SOON, || async {
            let found = services(site, &cluster)?.get_opt(API).await?;
            ensure!(found.is_none_or(|found| found.metadata.uid != before), "it is the same");
            Ok(())
        })
        .await?;
        publishes(site, &cluster, API, api).await?;
        site.heals_and_goes(&cluster).await
    });
}

#[test]
fn host_name_that_becomes_no_name_is_withdrawn_alone() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "misspelt").with_base_domain("misspelt.example.com");
        cluster.create(&site.ground).await?;
        let (api, oauth) = (
            "api-misspelt.misspelt.example.com",
            "oauth-misspelt.misspelt.example.com",
        );
        publishes(site, &cluster, API, Some(api)).await?;
        publishes(site, &cluster, OAUTH, Some(oauth)).await?;
        let client = site.ground.client()?;
        // The API server takes it.
        cluster
            .publish(&client, "APIServer", Some("-api.misspelt.example.com"))
            .await?;
        publishes(site, &cluster, API, None).await?;
        told(
            site,
            &cluster,
            "host names: the host name of APIServer is not a DNS name: it is not published",
        )
        .await?;
        publishes(site, &cluster, OAUTH, Some(oauth)).await?;
        cluster.publish(&client, "APIServer", Some(api)).await?;
        publishes(site, &cluster, API, Some(api)).await?;
        site.heals_and_goes(&cluster).await
    });
}

#[rstest]
#[case::of_a_cluster_that_is_served("covetous", Value::Null)]
#[case::of_a_cluster_that_is_paused("covetous-asleep", json!("true"))]
fn host_names_are_withdrawn_when_one_of_them_is_another_clusters(#[case] name: &str, #[case] paused_until: Value) {
    situation(async |site| {
        let domain = format!("{name}.example.com");
        let cluster = HostedCluster::new(&site.ground, name).with_base_domain(&domain);
        let rightful = HostedCluster::new(&site.ground, &format!("{name}-not")).with_base_domain(&domain);
        let (own, theirs) = (format!("api-{name}.{domain}"), format!("oauth-{name}-not.{domain}"));
        rightful.create_namespaces(&site.ground).await?;
        rightful.create_hosted_cluster(&site.ground).await?;
        cluster.create(&site.ground).await?;
        publishes(site, &cluster, API, Some(&own)).await?;
        publishes(site, &cluster, OAUTH, Some(&format!("oauth-{name}.{domain}"))).await?;

        let client = site.ground.client()?;
        let control_planes = cluster.api(&client, "HostedControlPlane", &cluster.control_plane_namespace());
        let paused = json!({"spec": {"pausedUntil": paused_until}});
        patch(&control_planes, name, paused).await?;
        cluster.publish(&client, "OAuthServer", Some(&theirs)).await?;
        site.refuses(&cluster, "AzurePLSCreated", "HostNameClaimed").await?;
        publishes(site, &cluster, OAUTH, None).await?;
        publishes(site, &cluster, API, None).await?;

        // Whose the name was goes, and nobody else has it.
        rightful.delete_hosted_cluster(&client, SOON).await?;
        patch(&control_planes, name, json!({"spec": {"pausedUntil": null}})).await?;
        publishes(site, &cluster, OAUTH, Some(&theirs)).await?;
        publishes(site, &cluster, API, Some(&own)).await?;
        site.heals_and_goes(&cluster).await?;
        rightful.delete_namespace(&client, SOON).await
    });
}

#[test]
fn service_of_somebody_else_is_not_touched() {
    situation(async |site| {
        let cluster = HostedCluster::new(&site.ground, "taken").with_base_domain("taken.example.com");
        let client = site.ground.client()?;
        cluster.create(&site.ground).await?;
        let theirs: Service = serde_json::from_value(json!({"metadata": {"name": API,
            "labels": {"hypershift.openshift.io/azure-pls-external-private-svc": "true"}},
            "spec": {"type": "ExternalName", "externalName": "theirs.example.com"}}))?;
        let services = services(site, &cluster)?;
        let before = services.create(&PostParams::default(), &theirs).await?;
        publishes(site, &cluster, OAUTH, Some("oauth-taken.taken.example.com")).await?;
        let note = format!("host names: Service {API} exists and does not belong to this cluster");
        let events = told(site, &cluster, &note).await?;
        ensure!(events == 1, "told {events} times");
        // Nor is it withdrawn.
        cluster.publish(&client, "APIServer", None).await?;
        cluster.publish(&client, "OAuthServer", None).await?;
        publishes(site, &cluster, OAUTH, None).await?;
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
        publishes(site, &cluster, API, Some("api-taken.taken.example.com")).await?;
        site.heals_and_goes(&cluster).await
    });
}
