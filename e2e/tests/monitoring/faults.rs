//! Alerts on custom resources that cannot get on, and on processes that are gone: they fire while the fault lasts, and no longer.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::hosted_cluster::HostedCluster;
use e2e::runbook::{quotes_line, quotes_samples_of};
use e2e::site::{Site, alone};
use serde_json::{Value, json};

use crate::life::{start_cpo, started, watched};
use crate::processes::says;
use crate::prometheus::Prometheus;
use crate::rules::{all_rest, fire, shortened};

/// What a minute of the rules is here.
const MINUTE: Duration = Duration::from_millis(300);

const BY_FAULTS: [&str; 5] = [
    "HyperlinkConnectionWaiting",
    "HyperlinkNotAvailable",
    "HyperlinkOperationStuck",
    "HyperlinkForeignResource",
    "HyperlinkDeletionStuck",
];

#[test]
fn alerts_fire_while_a_fault_lasts_and_no_longer() {
    alone(async |ground| {
        let mut site = started(ground).await?;
        let prometheus = watched(&site, &shortened(site.ground.dir(), MINUTE)?).await?;
        let named = |name: &str| HostedCluster::new(&site.ground, name);
        let (waiting, stuck, taken, going) = (named("waiting"), named("stuck"), named("taken"), named("going"));
        for cluster in [&going, &waiting] {
            cluster.create(&site.ground).await?;
        }
        for cluster in [&going, &waiting] {
            site.heals(cluster).await?;
        }

        let rule = |method: &str, path: &str, answer: Value| json!({"match": {"method": method, "path": path, "times": 1_000_000}, "do": answer});
        let service = stuck.link_service(&site.ground);
        site.faults(json!([
            rule("PUT", &service, json!({"operation": "hang"})),
            rule("DELETE", &going.endpoint(), json!({"operation": "hang"})),
        ]))
        .await?;
        let (oracle, zone) = (site.ground.oracle(), taken.zones().remove(0));
        let group = json!({"location": site.ground.azure().location});
        oracle.drift_put(&taken.resource_group(), &group).await?;
        let foreign = json!({"location": "global", "tags": {"owner": "customer"}});
        oracle.drift_put(&zone, &foreign).await?;
        for cluster in [&stuck, &taken] {
            cluster.create(&site.ground).await?;
        }
        approve(&site, &waiting, "Pending").await?;
        let client = site.ground.client()?;
        let crs = going.api(&client, "AzurePrivateLinkService", &going.control_plane_namespace());
        crs.delete("private-router", &Default::default()).await?;
        fire(&prometheus, &BY_FAULTS).await?;

        site.faults(json!([])).await?;
        oracle.drift_delete(&zone).await?;
        oracle.drift_delete(&going.endpoint()).await?;
        // What hangs in Azure ends there.
        let mut ended = oracle.resources(&service).await?.remove(0);
        ended["properties"]["provisioningState"] = json!("Succeeded");
        oracle.drift_put(&service, &ended).await?;
        approve(&site, &waiting, "Approved").await?;
        for cluster in [&waiting, &stuck, &taken] {
            site.heals(cluster).await?;
        }
        all_rest(&prometheus).await?;

        scopes_file_goes(&site, &prometheus).await?;
        site.cpo.stop().await?;
        fire(&prometheus, &["HyperlinkMetricsMissing"]).await?;
        site.cpo = start_cpo(&site.ground).await?;
        all_rest(&prometheus).await?;
        site.ho.stop().await?;
        site.cpo.stop().await
    });
}

/// The file of allowed scopes is not there for a while, and what was allowed stays so.
async fn scopes_file_goes(site: &Site, prometheus: &Prometheus) -> Result<()> {
    let alert = "HyperlinkAllowedScopesStale";
    let file = site.ground.dir().join("allow-scopes.json");
    let away = file.with_extension("away");
    std::fs::rename(&file, &away)?;
    fire(prometheus, &[alert]).await?;
    let (_, readyz) = site.cpo.page("/readyz").await?;
    let line = readyz.lines().find(|line| line.contains("allowed scopes"));
    quotes_line(alert, line.context(readyz.clone())?)?;
    quotes_samples_of(alert, &[site.cpo.page("/metrics").await?.1])?;
    says(
        &site.cpo,
        &["the file of allowed scopes is no use, its last good version holds"],
    )?;
    std::fs::rename(&away, &file)?;
    all_rest(prometheus).await
}

/// Says this of the connection of the cluster's endpoint, as the owner of the Private Link Service may.
async fn approve(site: &Site, cluster: &HostedCluster, status: &str) -> Result<()> {
    let prefix = format!("{}/privateEndpointConnections/", cluster.link_service(&site.ground));
    let mut connection = site.ground.oracle().resources(&prefix).await?;
    let mut connection = connection.pop().context("no connection")?;
    connection["properties"]["privateLinkServiceConnectionState"]["status"] = json!(status);
    let id = connection["id"].as_str().context("no id")?.to_owned();
    site.ground.oracle().drift_put(&id, &connection).await
}
