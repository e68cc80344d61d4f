//! The shipped role in Azure: each of its actions is needed, and where one is missing the cluster shows it until it is
//! granted.

use std::time::Duration;

use anyhow::{Result, bail, ensure};
use e2e::azure_sim::shipped_actions;
use e2e::capz_cluster::{CapzCluster, IdentityType};
use e2e::capz_controllers::{API_SERVER_IP, CONDITION};
use e2e::{CapzEnv, eventually, scenario};
use serde_json::json;

use crate::SOON;
use crate::bad_input::has_reason;
use crate::fleet::{Fleet, workload};

const READ_ENDPOINTS: &str = "Microsoft.Network/privateEndpoints/read";
const READ_INTERFACES: &str = "Microsoft.Network/networkInterfaces/read";

/// The identities that are denied something, one for each action.
const IDENTITIES: [IdentityType; 2] = [
    IdentityType::ServicePrincipal,
    IdentityType::ServicePrincipalCertificate,
];

/// How long it may take until a denied read is repeated, which is a minute later, and shows.
const HEALED: Duration = Duration::from_secs(120);

/// Has Azure deny an action to a client.
async fn deny(env: &CapzEnv, client: &str, action: &str) -> Result<()> {
    match action {
        READ_ENDPOINTS => env.deny(client, &[action]).await,
        // Whether Azure asks for it where a read is expanded is not known, so the simulated one does not by itself.
        READ_INTERFACES => {
            let message = format!("The client does not have authorization to perform action '{action}'.");
            let denial = json!({"status": 403, "code": "AuthorizationFailed", "message": message});
            let reads = json!({"principal": client, "path": "/privateEndpoints/"});
            env.faults(&json!([{"match": reads, "do": denial}])).await
        }
        other => bail!("no case for {other}"),
    }
}

async fn grant_all(env: &CapzEnv) -> Result<()> {
    env.grant_all().await?;
    env.faults(&json!([])).await
}

/// The way from a cluster is reported as denied. What is read with the management cluster's identity does not wait.
async fn is_denied(fleet: &Fleet, cluster: &CapzCluster) -> Result<()> {
    has_reason(fleet, cluster, "AzureDenied").await?;
    eventually("the address of its API server is published", SOON, || async {
        let found = cluster.annotation(&fleet.env, API_SERVER_IP).await?;
        ensure!(found.is_some(), "{} has none", cluster.name());
        Ok(())
    })
    .await
}

#[test]
fn each_missing_action_is_reported_until_it_is_granted() {
    scenario(async {
        let (fleet, [other], hyperlink) = Fleet::serving(["other"]).await?;
        let env = &fleet.env;
        let actions = shipped_actions("capz")?;
        ensure!(actions.len() == IDENTITIES.len(), "{actions:?}");
        let mut denied = Vec::new();
        for (number, (action, identity)) in actions.iter().zip(IDENTITIES).enumerate() {
            deny(env, identity.client_id(), action).await?;
            let cluster = workload(&format!("denied-{number}"), identity);
            cluster.create(env).await?;
            denied.push(cluster);
        }
        for cluster in &denied {
            is_denied(&fleet, cluster).await?;
        }
        other.has_true(env, CONDITION).await?;

        grant_all(env).await?;
        for cluster in &denied {
            eventually("it has healed", HEALED, || cluster.has_true(env, CONDITION)).await?;
            fleet.is_connected(cluster).await?;
        }
        other.has_true(env, CONDITION).await?;
        hyperlink.stop().await?;
        fleet.stop().await
    });
}
