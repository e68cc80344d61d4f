//! CAPZ's private endpoints: one for each entry of the subnets.

use anyhow::{Result, ensure};
use futures::future::{join_all, try_join_all};
use serde_json::{Value, json};

use super::azure_cluster::AzureCluster;
use crate::capz_cluster::entries;
use crate::go_controllers::arm::Arm;

/// Has all private endpoints be as the AzureCluster has them. Returns whether it has any.
pub(super) async fn reconcile(arm: &Arm, cluster: &AzureCluster<'_>) -> Result<bool> {
    let all: Vec<_> = entries(cluster.object).collect();
    let written = all.iter().map(|(subnet, entry)| write(arm, cluster, subnet, entry));
    // All are tried: one that fails keeps no other from being written.
    join_all(written).await.into_iter().collect::<Result<()>>()?;
    Ok(!all.is_empty())
}

/// The names of all private endpoints that were made for the AzureCluster.
pub(super) async fn made(arm: &Arm, cluster: &AzureCluster<'_>) -> Result<Vec<String>> {
    let all = arm.list(&cluster.network_id("privateEndpoints", "")).await?;
    let made = all.iter().filter(|resource| cluster.has_made(resource));
    Ok(made
        .filter_map(|resource| resource["name"].as_str().map(str::to_owned))
        .collect())
}

/// Deletes those that have no entry any more, as the fork does.
pub(super) async fn delete_dropped(arm: &Arm, cluster: &AzureCluster<'_>) -> Result<()> {
    let has_entry = |name: &String| {
        entries(cluster.object)
            .any(|(_, entry)| entry["name"].as_str().is_some_and(|one| name.eq_ignore_ascii_case(one)))
    };
    let made = made(arm, cluster).await?;
    delete(arm, cluster, made.into_iter().filter(|name| !has_entry(name))).await
}

/// Deletes the private endpoints of these names.
pub(super) async fn delete(arm: &Arm, cluster: &AzureCluster<'_>, names: impl Iterator<Item = String>) -> Result<()> {
    let ids = names.map(|name| cluster.network_id("privateEndpoints", &name));
    let deleted = ids.map(|id| async move { arm.delete(&id).await });
    try_join_all(deleted).await.map(drop)
}

async fn write(arm: &Arm, cluster: &AzureCluster<'_>, subnet: &str, entry: &Value) -> Result<()> {
    let id = cluster.network_id("privateEndpoints", entry["name"].as_str().unwrap_or_default());
    let Some(found) = arm.get(&id).await? else {
        return arm.put(&id, &body(cluster, subnet, entry)).await.map(drop);
    };
    let (found, desired) = (target(&found), target(&body(cluster, subnet, entry)));
    ensure!(
        found.eq_ignore_ascii_case(&desired),
        "{id} leads to {found}, not to {desired}"
    );
    Ok(())
}

/// The Private Link Service of the first connection, of whichever list.
fn target(endpoint: &Value) -> String {
    let lists = ["privateLinkServiceConnections", "manualPrivateLinkServiceConnections"];
    let first = lists.iter().find_map(|list| endpoint["properties"][list].get(0));
    let id = first.and_then(|one| one["properties"]["privateLinkServiceId"].as_str());
    id.unwrap_or_default().to_owned()
}

fn body(cluster: &AzureCluster<'_>, subnet: &str, entry: &Value) -> Value {
    let connections = entry["privateLinkServiceConnections"].as_array().into_iter().flatten();
    let connections: Vec<_> = connections
        .map(|connection| {
            let mut properties = json!({"privateLinkServiceId": connection["privateLinkServiceID"]});
            for (given, sent) in [("requestMessage", "requestMessage"), ("groupIDs", "groupIds")] {
                if let Some(value) = connection.get(given) {
                    properties[sent] = value.clone();
                }
            }
            json!({"name": connection["name"], "properties": properties})
        })
        .collect();
    let list = match entry["manualApproval"].as_bool() {
        Some(true) => "manualPrivateLinkServiceConnections",
        _ => "privateLinkServiceConnections",
    };
    let mut properties = json!({"subnet": {"id": cluster.subnet(subnet)}, list: connections});
    if let Some(name) = entry.get("customNetworkInterfaceName") {
        properties["customNetworkInterfaceName"] = name.clone();
    }
    json!({
        "location": entry["location"].as_str().unwrap_or(cluster.location),
        "tags": {cluster.tag(): "owned"},
        "properties": properties,
    })
}
