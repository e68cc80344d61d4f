//! Alerts on custom resources that make no progress, and on missing processes: they fire while the fault lasts, and no
//! longer.

use std::time::Duration;

use anyhow::{Context, Result};
use e2e::hosted_cluster::HostedCluster;
use e2e::runbook::{quotes_line, quotes_samples_of};
use e2e::shared_env::{SharedEnv, alone};
use serde_json::{Value, json};

use crate::life::{start_cpo, started, watched};
use crate::processes::has_logged;
use crate::prometheus::Prometheus;
use crate::rules::{all_resolve, fire, shortened};

/// Length of a minute of the rules in this test.
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
    alone(async |test_env| {
        let mut shared_env = started(test_env).await?;
        let prometheus = watched(&shared_env, &shortened(shared_env.test_env.dir(), MINUTE)?).await?;
        let named = |name: &str| HostedCluster::new(&shared_env.test_env, name);
        let (waiting, stuck, taken, deleting) = (named("waiting"), named("stuck"), named("taken"), named("going"));
        for cluster in [&deleting, &waiting] {
            cluster.create(&shared_env.test_env).await?;
        }
        for cluster in [&deleting, &waiting] {
            shared_env.heals(cluster).await?;
        }

        let rule = |method: &str, path: &str, answer: Value| json!({"match": {"method": method, "path": path, "times": 1_000_000}, "do": answer});
        let service = stuck.link_service(&shared_env.test_env);
        shared_env
            .faults(json!([
                rule("PUT", &service, json!({"operation": "hang"})),
                rule("DELETE", &deleting.endpoint(), json!({"operation": "hang"})),
            ]))
            .await?;
        let (oracle, zone) = (shared_env.test_env.oracle(), taken.zones().remove(0));
        let group = json!({"location": shared_env.test_env.azure().location});
        oracle.drift_put(&taken.resource_group(), &group).await?;
        let foreign = json!({"location": "global", "tags": {"owner": "customer"}});
        oracle.drift_put(&zone, &foreign).await?;
        for cluster in [&stuck, &taken] {
            cluster.create(&shared_env.test_env).await?;
        }
        approve(&shared_env, &waiting, "Pending").await?;
        let client = shared_env.test_env.client()?;
        let crs = deleting.api(&client, "AzurePrivateLinkService", &deleting.control_plane_namespace());
        crs.delete("private-router", &Default::default()).await?;
        fire(&prometheus, &BY_FAULTS).await?;

        shared_env.faults(json!([])).await?;
        oracle.drift_delete(&zone).await?;
        oracle.drift_delete(&deleting.endpoint()).await?;
        // The operation that hangs in Azure completes.
        let mut body = oracle.resources(&service).await?.remove(0);
        body["properties"]["provisioningState"] = json!("Succeeded");
        oracle.drift_put(&service, &body).await?;
        approve(&shared_env, &waiting, "Approved").await?;
        for cluster in [&waiting, &stuck, &taken] {
            shared_env.heals(cluster).await?;
        }
        all_resolve(&prometheus).await?;

        scopes_file_is_missing(&shared_env, &prometheus).await?;
        shared_env.cpo.stop().await?;
        fire(&prometheus, &["HyperlinkMetricsMissing"]).await?;
        shared_env.cpo = start_cpo(&shared_env.test_env).await?;
        all_resolve(&prometheus).await?;
        shared_env.ho.stop().await?;
        shared_env.cpo.stop().await
    });
}

/// The file of allowed scopes is missing for a while, and what was allowed stays allowed.
async fn scopes_file_is_missing(shared_env: &SharedEnv, prometheus: &Prometheus) -> Result<()> {
    let alert = "HyperlinkAllowedScopesStale";
    let file = shared_env.test_env.dir().join("allow-scopes.json");
    let away = file.with_extension("away");
    std::fs::rename(&file, &away)?;
    fire(prometheus, &[alert]).await?;
    let (_, readyz) = shared_env.cpo.page("/readyz").await?;
    let line = readyz.lines().find(|line| line.contains("allowed scopes"));
    quotes_line(alert, line.context(readyz.clone())?)?;
    quotes_samples_of(alert, &[shared_env.cpo.page("/metrics").await?.1])?;
    has_logged(
        &shared_env.cpo,
        &["the file of allowed scopes is no use, its last good version holds"],
    )?;
    std::fs::rename(&away, &file)?;
    all_resolve(prometheus).await
}

/// Sets the status of the connection of the cluster's endpoint, as the owner of the Private Link Service may.
async fn approve(shared_env: &SharedEnv, cluster: &HostedCluster, status: &str) -> Result<()> {
    let prefix = format!(
        "{}/privateEndpointConnections/",
        cluster.link_service(&shared_env.test_env)
    );
    let mut connection = shared_env.test_env.oracle().resources(&prefix).await?;
    let mut connection = connection.pop().context("no connection")?;
    connection["properties"]["privateLinkServiceConnectionState"]["status"] = json!(status);
    let id = connection["id"].as_str().context("no id")?.to_owned();
    shared_env.test_env.oracle().drift_put(&id, &connection).await
}
