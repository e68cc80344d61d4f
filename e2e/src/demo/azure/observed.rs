//! What exists of one hosted cluster on Azure: the Service's address, the custom resource and its conditions, the
//! resources in Azure, and which names lead to a Service.

use anyhow::Result;
use kube::api::DynamicObject;
use serde_json::Value;

use super::resource;
use crate::demo::observed::Observed;
use crate::hosted_cluster::{Condition, HostedCluster, conditions};
use crate::test_env::TestEnv;

/// Reads everything once.
pub(super) async fn read(test_env: &TestEnv, client: &kube::Client, cluster: &HostedCluster) -> Result<Observed> {
    let mut observed = Observed::default();
    read_kubernetes(&mut observed, client, cluster).await?;
    let azure = test_env.azure();
    for subscription in [&azure.management_subscription, &azure.guest_subscription] {
        let prefix = format!("/subscriptions/{subscription}");
        for resource in test_env.oracle().resources(&prefix).await? {
            if is_of(cluster, &resource) {
                resource::add(&mut observed, &resource);
            }
        }
    }
    for name in cluster.host_names() {
        let found = test_env.oracle().reachable(&cluster.vnet(), &name).await?;
        let expected = cluster.service_behind(&name);
        observed.add_name(&name, found, &expected);
    }
    Ok(observed)
}

async fn read_kubernetes(observed: &mut Observed, client: &kube::Client, cluster: &HostedCluster) -> Result<()> {
    for name in cluster.services() {
        if let Some(service) = cluster.get_service(client, name).await? {
            let ingress = service
                .status
                .and_then(|status| status.load_balancer)
                .and_then(|status| status.ingress);
            if let Some(address) = ingress.unwrap_or_default().into_iter().find_map(|one| one.ip) {
                observed.add(format!("load balancer of {name}"), format!("gives it {address}"));
            }
        }
        let found = cluster.get_custom_resource(client, name).await?;
        if !found.is_some_and(|found| add_custom_resource(observed, name, &found)) {
            observed.add_lack("the summary condition");
        }
    }
    Ok(())
}

/// Adds a custom resource; returns whether its summary condition is True.
fn add_custom_resource(observed: &mut Observed, name: &str, found: &DynamicObject) -> bool {
    let state = if found.metadata.deletion_timestamp.is_some() {
        "deleting"
    } else {
        "there"
    };
    observed.add(format!("custom resource {name}"), state.into());
    if let Some(alias) = found
        .data
        .pointer("/status/privateLinkServiceAlias")
        .and_then(Value::as_str)
    {
        observed.add(format!("alias in {name}"), alias.to_owned());
    }
    let mut available = false;
    for Condition {
        kind,
        status,
        reason,
        message,
        ..
    } in conditions(found)
    {
        available |= kind == "AzurePrivateLinkServiceAvailable" && status == "True";
        observed.add(
            format!("condition of {name} {kind}"),
            format!("{status} {reason}: {message}"),
        );
    }
    available
}

fn is_of(cluster: &HostedCluster, resource: &Value) -> bool {
    let id = resource["id"].as_str().unwrap_or_default();
    id.contains(&cluster.infra_id()) || id.contains(&cluster.cluster_id())
}
