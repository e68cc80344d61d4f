//! Changes of a workload cluster and of what it needs: links, approvals, what is deleted before it, the way back.

use std::collections::BTreeMap;

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::{CapzCluster, IdentityType, PrivateLink};
use e2e::capz_controllers::{API_SERVER_IP, FINALIZER, MANAGEMENT_INGRESS_IP, ReferenceOperator};
use e2e::scenario;
use k8s_openapi::api::core::v1::Secret;
use kube::ResourceExt;
use kube::api::{Api, DeleteParams};
use serde_json::{Value, json};

use crate::bad_input::has_reason;
use crate::fleet::{Fleet, NAMESPACE, entry, workload};
use crate::{SOON, endpoint_becomes};

/// The most links of a load balancer.
const MOST_LINKS: usize = 8;

#[test]
fn cluster_ends_though_all_it_needs_is_gone_before() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let all = [
            workload("identity", IdentityType::ServicePrincipal),
            workload("subnets", IdentityType::WorkloadIdentity),
            workload("management", IdentityType::WorkloadIdentity),
            workload("links", IdentityType::WorkloadIdentity),
        ];
        for cluster in &all {
            cluster.create(&fleet.env).await?;
        }
        let hyperlink = fleet.hyperlink("first").await?;
        for cluster in &all {
            fleet.is_connected(cluster).await?;
        }
        let [identity, subnets, management, links] = &all;
        let (env, client) = (&fleet.env, fleet.env.client()?);
        let secrets: Api<Secret> = Api::namespaced(client.clone(), NAMESPACE);
        secrets
            .delete(&identity.secret_name(), &DeleteParams::default())
            .await?;
        identity.delete_object(&identity.identities(&client), SOON).await?;
        identity.delete(env, SOON).await?;

        let none = json!({"spec": {"networkSpec": {"subnets": null}}});
        subnets.patch(env, &none).await?;
        subnets.delete(env, SOON).await?;

        let no_links = json!({"spec": {"networkSpec": {"apiServerLB": null}, "identityRef": null}});
        links.patch(env, &no_links).await?;
        links.delete(env, SOON).await?;
        fleet.has_entries(&[entry(management)]).await?;

        fleet.management.patch(env, &none).await?;
        let own = fleet.management.identities(&client);
        own.delete(fleet.management.name(), &DeleteParams::default()).await?;
        management.delete(env, SOON).await?;
        fleet.has_entries(&[]).await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

/// The links of a cluster as its AzureCluster has them.
pub(crate) async fn links(fleet: &Fleet, cluster: &CapzCluster) -> Result<Vec<Value>> {
    let spec = cluster.get(&fleet.env).await?.data["spec"].clone();
    let links = spec["networkSpec"]["apiServerLB"]["privateLinks"].as_array();
    Ok(links.context("no links")?.clone())
}

pub(crate) async fn set_links(fleet: &Fleet, cluster: &CapzCluster, links: &[Value]) -> Result<()> {
    let patch = json!({"spec": {"networkSpec": {"apiServerLB": {"privateLinks": links}}}});
    cluster.patch(&fleet.env, &patch).await.map(drop)
}

/// The names of the entries for these links.
fn entries_for(links: &[Value]) -> Vec<String> {
    let names = links.iter().filter_map(|link| link["name"].as_str());
    names.map(|name| format!("{name}-privateendpoint")).collect()
}

#[test]
fn entries_follow_the_links_of_a_cluster() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let cluster = workload("many", IdentityType::WorkloadIdentity).with_links(MOST_LINKS);
        let other = workload("other", IdentityType::WorkloadIdentity);
        for cluster in [&cluster, &other] {
            cluster.create(&fleet.env).await?;
        }
        let hyperlink = fleet.hyperlink("first").await?;
        for cluster in [&cluster, &other] {
            fleet.is_connected(cluster).await?;
        }
        let all = links(&fleet, &cluster).await?;
        ensure!(all.len() == MOST_LINKS);
        let with_other = |links: &[Value]| [entries_for(links), vec![entry(&other)]].concat();
        fleet.has_entries(&with_other(&all)).await?;

        // CAPZ would make a second service on the frontend of a link that was renamed.
        fleet.capz.pause();
        let mut renamed = all.clone();
        renamed[3]["name"] = json!("renamed");
        set_links(&fleet, &cluster, &renamed).await?;
        fleet.has_entries(&with_other(&renamed)).await?;

        let mut shrunk = renamed.clone();
        for link in &mut shrunk {
            link["allowedSubscriptions"] = json!([]);
        }
        set_links(&fleet, &cluster, &shrunk).await?;
        fleet.has_entries(&with_other(&[])).await?;
        has_reason(&fleet, &cluster, "LinksNotAllowed").await?;
        ensure!(
            cluster.annotation(&fleet.env, API_SERVER_IP).await?.is_none(),
            "an address of no endpoint"
        );

        set_links(&fleet, &cluster, &all).await?;
        fleet.has_entries(&with_other(&all)).await?;
        fleet.capz.resume();
        fleet.is_connected(&cluster).await?;
        fleet.is_connected(&other).await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn links_of_one_name_have_one_entry() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let one = PrivateLink::new("twice-api-privatelink");
        let nameless = one.clone().with(json!({"name": null}));
        let cluster = workload("twice", IdentityType::WorkloadIdentity);
        let cluster = cluster.with_private_links(&[one.clone(), one, nameless]);
        cluster.create(&fleet.env).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        cluster
            .set_conditions(&fleet.env, &[("PrivateLinksReady", "True")])
            .await?;
        fleet
            .has_entries(&["twice-api-privatelink-privateendpoint".to_owned()])
            .await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

#[test]
fn address_is_published_from_the_first_approval_on() {
    scenario(async {
        let fleet = Fleet::start().await?;
        let link = PrivateLink::new("manual-api-privatelink").approving(&[]);
        let cluster = workload("manual", IdentityType::WorkloadIdentity).with_private_links(&[link]);
        cluster.create(&fleet.env).await?;
        let hyperlink = fleet.hyperlink("first").await?;
        endpoint_becomes(&fleet.env, &fleet.management, &entry(&cluster), "Pending").await?;
        has_reason(&fleet, &cluster, "ConnectionNotApproved").await?;
        let address = async || cluster.annotation(&fleet.env, API_SERVER_IP).await;
        ensure!(address().await?.is_none(), "the address of a pending connection");

        let service = cluster.link_service("manual-api-privatelink");
        fleet.env.decide(&service, "Approved").await?;
        let assigned = endpoint_becomes(&fleet.env, &fleet.management, &entry(&cluster), "Approved").await?;
        fleet.is_connected(&cluster).await?;
        ensure!(address().await?.as_ref() == Some(&assigned));

        // Azure approves a rejected connection never more: somebody has CAPZ make the endpoint again.
        fleet.env.decide(&service, "Rejected").await?;
        has_reason(&fleet, &cluster, "ConnectionNotApproved").await?;
        ensure!(
            address().await?.as_ref() == Some(&assigned),
            "the address is not published any more"
        );
        fleet.management.remove_entry(&fleet.env, &entry(&cluster)).await?;
        let pending = endpoint_becomes(&fleet.env, &fleet.management, &entry(&cluster), "Pending").await?;
        fleet.env.decide(&service, "Approved").await?;
        fleet.is_connected(&cluster).await?;
        ensure!(address().await? == Some(pending));
        hyperlink.stop().await?;
        fleet.stop().await
    });
}

/// What the reference reads of a cluster: finalizers, its annotations, and the whole spec.
pub(crate) async fn read_by_reference(fleet: &Fleet, cluster: &CapzCluster) -> Result<Value> {
    let object = cluster.get(&fleet.env).await?;
    let annotations: BTreeMap<_, _> = [API_SERVER_IP, MANAGEMENT_INGRESS_IP]
        .into_iter()
        .map(|name| (name, object.annotations().get(name)))
        .collect();
    Ok(json!({"finalizers": object.finalizers(), "annotations": annotations, "spec": object.data["spec"]}))
}

#[test]
fn reference_that_comes_back_finds_what_it_would_have_made() {
    scenario(async {
        let (fleet, clusters, hyperlink) = Fleet::serving(["wc-1", "wc-2"]).await?;
        hyperlink.stop().await?;
        let all = || [&fleet.management, &clusters[0], &clusters[1]];
        let mut before = Vec::new();
        for cluster in all() {
            before.push(read_by_reference(&fleet, cluster).await?);
        }
        let reference = ReferenceOperator::new(&fleet.env, &fleet.management).await?;
        for cluster in &clusters {
            ensure!(
                cluster
                    .get(&fleet.env)
                    .await?
                    .finalizers()
                    .iter()
                    .any(|one| one == FINALIZER)
            );
            reference.serve(&fleet.env, cluster).await?;
        }
        for (cluster, before) in all().into_iter().zip(&before) {
            let after = read_by_reference(&fleet, cluster).await?;
            ensure!(after == *before, "{after} is not {before}");
        }
        fleet.stop().await
    });
}
