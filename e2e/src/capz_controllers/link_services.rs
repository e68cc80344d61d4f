//! CAPZ's Private Link Services: one for each item of `apiServerLB.privateLinks`.

use anyhow::{Context, Result};
use futures::future::try_join_all;
use serde_json::{Value, json};

use super::azure_cluster::{AzureCluster, texts};
use crate::go_controllers::arm::Arm;

/// Has all Private Link Services be as the AzureCluster has them. Returns whether it has any.
pub(super) async fn reconcile(arm: &Arm, cluster: &AzureCluster<'_>) -> Result<bool> {
    let links = cluster.load_balancer()["privateLinks"].as_array();
    let links: Vec<_> = links.into_iter().flatten().enumerate().collect();
    let written = links.iter().map(|(at, link)| write(arm, cluster, *at, link));
    try_join_all(written).await?;
    Ok(!links.is_empty())
}

async fn write(arm: &Arm, cluster: &AzureCluster<'_>, at: usize, link: &Value) -> Result<()> {
    let id = cluster.network_id("privateLinkServices", &name(cluster, at, link));
    let body = body(cluster, link)?;
    if let Some(found) = arm.get(&id).await?
        && ["visibility", "autoApproval"]
            .iter()
            .all(|list| subscriptions(&found, list) == subscriptions(&body, list))
        && found["properties"]["provisioningState"] == "Succeeded"
    {
        return Ok(());
    }
    arm.put(&id, &body).await.map(drop)
}

/// The name of a link. Which name the fork gives to a link without one is not known.
fn name(cluster: &AzureCluster<'_>, at: usize, link: &Value) -> String {
    let balancer = cluster.load_balancer()["name"].as_str().unwrap_or_default();
    let default = || format!("{balancer}-privatelink-{at}");
    link["name"].as_str().map_or_else(default, str::to_owned)
}

fn subscriptions<'a>(service: &'a Value, list: &str) -> Vec<&'a str> {
    texts(&service["properties"][list]["subscriptions"])
}

fn body(cluster: &AzureCluster<'_>, link: &Value) -> Result<Value> {
    let balancer = cluster.load_balancer()["name"]
        .as_str()
        .context("a load balancer without a name")?;
    let balancer = cluster.network_id("loadBalancers", balancer);
    let frontends = texts(&link["lbFrontendIPConfigNames"]).into_iter();
    let frontends: Vec<_> = frontends
        .map(|name| json!({"id": format!("{balancer}/frontendIPConfigurations/{name}")}))
        .collect();
    let addresses = link["natIpConfigurations"].as_array().into_iter().flatten().enumerate();
    let addresses: Vec<_> = addresses
        .map(|(at, address)| {
            let subnet = cluster.subnet(address["subnet"].as_str().unwrap_or_default());
            json!({"name": format!("natipconfig-{}", at + 1), "properties": {
                "primary": at == 0,
                "privateIPAllocationMethod": address["allocationMethod"],
                "subnet": {"id": subnet}}})
        })
        .collect();
    Ok(json!({
        "location": cluster.location,
        "tags": {cluster.tag(): "owned"},
        "properties": {
            "loadBalancerFrontendIpConfigurations": frontends,
            "ipConfigurations": addresses,
            "visibility": {"subscriptions": texts(&link["allowedSubscriptions"])},
            "autoApproval": {"subscriptions": texts(&link["autoApprovedSubscriptions"])},
            "enableProxyProtocol": link["enableProxyProtocol"].as_bool().unwrap_or(false),
        },
    }))
}
