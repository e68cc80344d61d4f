//! The Events of a cluster's life, which administrators read: one for each change, none without a change.

use std::collections::BTreeMap;

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, NAMESPACE};
use e2e::shared_env::{SOON, SharedEnv, situation};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::json;

/// How often an Event was published, by reporting controller, reason and the last part of the id in its note.
type EventCounts = BTreeMap<String, usize>;

/// The Events of a namespace about an object of that name.
async fn events_of(shared_env: &SharedEnv, namespace: &str, name: &str) -> Result<EventCounts> {
    let api: Api<Event> = Api::namespaced(shared_env.test_env.client()?, namespace);
    let mut all = EventCounts::new();
    for event in api.list(&ListParams::default()).await? {
        if event.regarding.as_ref().and_then(|object| object.name.as_deref()) != Some(name) {
            continue;
        }
        ensure!(event.series.is_none(), "{event:?}");
        let note = event.note.unwrap_or_default();
        let resource = note.split_whitespace().find_map(|word| word.rsplit_once('/'));
        let line = format!(
            "{} {} {}",
            event.reporting_controller.unwrap_or_default(),
            event.reason.unwrap_or_default(),
            resource.map_or(note.as_str(), |(_, name)| name)
        );
        *all.entry(line).or_default() += 1;
    }
    Ok(all)
}

async fn about(shared_env: &SharedEnv, cluster: &HostedCluster) -> Result<EventCounts> {
    events_of(shared_env, &cluster.control_plane_namespace(), "private-router").await
}

fn once(lines: &[String]) -> EventCounts {
    lines.iter().map(|line| (line.clone(), 1)).collect()
}

/// Waits until exactly these Events are there, each once.
async fn exactly(shared_env: &SharedEnv, cluster: &HostedCluster, lines: &[String]) -> Result<()> {
    eventually("the Events are there", SOON, || async {
        let all = about(shared_env, cluster).await?;
        ensure!(all == once(lines), "{all:#?}");
        Ok(())
    })
    .await
}

#[test]
fn every_change_of_a_life_is_one_event() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "told");
        cluster.create(&shared_env.test_env).await?;
        shared_env.heals(&cluster).await?;
        let zone = &cluster.zones()[0];
        let mut lines = vec![
            format!("hyperlink-ho Created {}-pls-nat", cluster.infra_id()),
            format!("hyperlink-ho Created pls-{}", cluster.cluster_id()),
            "hyperlink-cpo Created private-router-pe".to_owned(),
            "hyperlink-cpo Created told.hypershift.local".to_owned(),
            "hyperlink-cpo Created private-router-vnet-link".to_owned(),
            "hyperlink-cpo Created api".to_owned(),
            "hyperlink-cpo Created *.apps".to_owned(),
        ];
        exactly(shared_env, &cluster, &lines).await?;
        let of_hosted = events_of(shared_env, NAMESPACE, "told").await?;
        ensure!(of_hosted == once(&lines[..2]), "{of_hosted:#?}");

        let service = cluster.link_service(&shared_env.test_env);
        let mut body = shared_env.test_env.oracle().resources(&service).await?.remove(0);
        body["properties"]["enableProxyProtocol"] = json!(true);
        shared_env.test_env.oracle().drift_put(&service, &body).await?;
        lines.push(format!("hyperlink-ho Repaired pls-{}", cluster.cluster_id()));
        exactly(shared_env, &cluster, &lines).await?;

        shared_env.reconciles_again(&cluster).await?;
        exactly(shared_env, &cluster, &lines).await?;
        ensure!(shared_env.observed(zone).await?.contains("told"), "the zone is there");
        cluster.delete(&shared_env.test_env, SOON).await?;
        // A namespace that is being deleted takes no more Events; the HostedCluster's namespace does.
        let end = events_of(shared_env, NAMESPACE, "told").await?;
        ensure!(
            end.get("hyperlink-ho Gone nothing of ours is left in Azure") == Some(&1),
            "{end:#?}"
        );
        Ok(())
    });
}

#[test]
fn refusal_of_a_foreign_zone_is_one_warning() {
    situation(async |shared_env| {
        let cluster = HostedCluster::new(&shared_env.test_env, "told-foreign");
        let zone = cluster.zones().remove(0);
        let location = &shared_env.test_env.azure().location;
        let oracle = shared_env.test_env.oracle();
        oracle
            .drift_put(&cluster.resource_group(), &json!({"location": location}))
            .await?;
        oracle
            .drift_put(&zone, &json!({"location": "global", "tags": {"owner": "customer"}}))
            .await?;
        cluster.create(&shared_env.test_env).await?;
        shared_env
            .refuses(&cluster, "AzurePrivateDNSAvailable", "NotOurs")
            .await?;
        shared_env.reconciles_again(&cluster).await?;
        let all = about(shared_env, &cluster).await?;
        let refused: Vec<_> = all.iter().filter(|(line, _)| line.contains("Refused")).collect();
        let expected = "hyperlink-cpo Refused private_dns_zone told-foreign.hypershift.local exists and does not belong to this cluster";
        ensure!(refused == [(&expected.to_owned(), &1)], "{all:#?}");
        cluster.delete(&shared_env.test_env, SOON).await
    });
}
