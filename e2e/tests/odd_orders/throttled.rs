//! A hand-over while Azure answers no reads: conditions that were True stay True.

use anyhow::{Context, Result, ensure};
use e2e::azure_sim::{CPO_CLIENT, HO_CLIENT};
use e2e::eventually;
use e2e::hosted_cluster::{HostedCluster, conditions};
use e2e::running::Running;
use e2e::shared_env::{SOON, alone, control};
use reqwest::Method;
use serde_json::{Value, json};

#[test]
fn hand_over_while_azure_throttles_reads_reports_no_outage() {
    hand_over(json!({"status": 429, "code": "TooManyRequests", "headers": {"Retry-After": "1"}}));
}

/// Failed reads are reported only after the third failure and two minutes.
#[test]
fn hand_over_while_each_read_of_azure_fails_reports_no_outage() {
    hand_over(json!({"status": 503, "code": "ServiceUnavailable"}));
}

fn hand_over(refused: Value) {
    alone(async move |test_env| {
        let running = Running::processes(&test_env).await?;
        let cluster = HostedCluster::new(&test_env, "unread").with_base_domain("unread.example.com");
        cluster.create(&test_env).await?;
        cluster.becomes_available(&test_env, SOON).await?;
        let client = test_env.client()?;
        let version = async || -> Result<_> {
            let found = cluster.get_link_service(&client).await?.context("no custom resource")?;
            ensure!(conditions(&found).iter().all(|one| one.status == "True"), "{found:?}");
            Ok(found.metadata.resource_version)
        };
        let before = eventually("both roles say so", SOON, version).await?;

        let status = refused["status"].clone();
        let rules = json!([{"match": {"method": "GET", "times": 1_000_000}, "do": refused}]);
        control(&test_env, Method::PUT, "/faults", rules).await?;
        let since = test_env.oracle().last_call().await?;
        let running = running.hand_over(&test_env).await?;
        // A process that reads again has handled the first answer.
        eventually("both roles ask again and again", SOON, || async {
            let calls = test_env.oracle().journal(since).await?;
            for client in [HO_CLIENT, CPO_CLIENT] {
                let own = calls.iter().filter(|call| call.principal.as_deref() == Some(client));
                let refused = own.filter(|call| status == call.status).count();
                ensure!(refused > 6, "{refused} refused reads of {client}");
            }
            Ok(())
        })
        .await?;
        ensure!(version().await? == before, "the custom resource was written");

        control(&test_env, Method::PUT, "/faults", json!([])).await?;
        cluster.delete(&test_env, SOON).await?;
        running.stop().await
    });
}
