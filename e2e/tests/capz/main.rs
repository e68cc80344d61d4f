//! Clusters that Cluster API makes on Azure, on a real API server and the simulated Azure: the environment itself.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

mod azure_rights;
mod bad_input;
mod changes;
mod crowd;
mod disturbed;
mod dropped;
mod environment;
mod fleet;
mod gates;
mod isolation;
mod killed;
mod kubeadm;
mod lives;
mod management_cluster;
mod namespaces;
mod plan;
mod provider_configs;
mod rights;
mod take_over;
mod versions;
mod writers;

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use e2e::capz_cluster::CapzCluster;
use e2e::{CapzEnv, eventually};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};
use serde_json::Value;

/// The longest time that a test waits for anything.
const SOON: Duration = Duration::from_secs(60);

/// Waits until a condition of the cluster's AzureCluster is True.
async fn becomes_true(env: &CapzEnv, cluster: &CapzCluster, kind: &str) -> Result<()> {
    eventually(&format!("{kind} is True"), SOON, || cluster.has_true(env, kind)).await
}

/// Waits until the private endpoint of an entry has an address, and its connection this state; returns the address.
async fn endpoint_becomes(env: &CapzEnv, cluster: &CapzCluster, entry: &str, state: &str) -> Result<String> {
    let id = cluster.endpoint(entry);
    eventually(&format!("{id} is {state}"), SOON, || async {
        let found = env.oracle().resources(&id).await?;
        let endpoint = found.first().context("no endpoint")?;
        ensure!(connection_state(endpoint) == Some(state), "{endpoint}");
        let interface = endpoint["properties"]["networkInterfaces"][0]["id"]
            .as_str()
            .context("no interface")?;
        let interface = env.oracle().resources(interface).await?;
        let configuration = interface.first().context("no interface")?["properties"]["ipConfigurations"][0].clone();
        let address = configuration["properties"]["privateIPAddress"]
            .as_str()
            .context("no address")?;
        Ok(address.to_owned())
    })
    .await
}

/// The state of the connection of an endpoint, of whichever list.
fn connection_state(endpoint: &Value) -> Option<&str> {
    let lists = ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"];
    let first = lists.iter().find_map(|list| endpoint["properties"][list].get(0))?;
    first["properties"]["privateLinkServiceConnectionState"]["status"].as_str()
}

/// Waits until Azure has nothing of this id.
async fn is_gone(env: &CapzEnv, id: &str) -> Result<()> {
    eventually(&format!("{id} is gone"), SOON, || async {
        let found = env.oracle().resources(id).await?;
        ensure!(found.is_empty(), "{found:?}");
        Ok(())
    })
    .await
}

/// Waits until an Event with this reason and text is in a namespace.
async fn has_event(env: &CapzEnv, namespace: &str, reason: &str, text: &str) -> Result<()> {
    let events: Api<Event> = Api::namespaced(env.client()?, namespace);
    eventually(&format!("an Event {reason} has {text}"), SOON, || async {
        let all = events.list(&ListParams::default()).await?.items;
        let fits = |event: &Event| {
            event.reason.as_deref() == Some(reason) && event.note.as_deref().is_some_and(|note| note.contains(text))
        };
        ensure!(
            all.iter().any(fits),
            "{:?}",
            all.iter().map(|event| &event.note).collect::<Vec<_>>()
        );
        Ok(())
    })
    .await
}
