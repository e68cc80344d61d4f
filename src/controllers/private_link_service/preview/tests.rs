//! What `hyperlink plan -o json` prints for the HO role, scenario by scenario.

use std::sync::Arc;

use serde_json::json;

use super::super::PrivateLinkServiceController;
use super::super::plan::PrivateLinkServiceInputs;
use super::super::samples::{inputs, scoped, settings};
use crate::api::{AzurePrivateLinkService, Reason, Role};
use crate::controllers::azure::Preview;
use crate::controllers::dry_run_samples::{Resources, deleting, dry_run, printed, put, written};
use crate::controllers::samples::{ALIAS, cr, management};
use crate::hypershift::cluster_index::ClusterIndex;
use crate::hypershift::identity::DeletedCluster;
use crate::hypershift::problem::Problem;

const FRONTEND: &str = "a5f2c6c2e8a3c4a7e9a0e0d6b3c1f7a1";

/// The cluster's own objects are gone.
fn gone() -> PrivateLinkServiceInputs {
    PrivateLinkServiceInputs {
        identity: Err(Problem::new(Reason::HostedClusterNotFound, "gone")),
        service: None,
        ..inputs()
    }
}

/// A load balancer with the frontend of the Service, and the network of its nodes.
fn management_cluster() -> Resources {
    let balancer = management("loadBalancers/lb");
    let network = management("virtualNetworks/v");
    let properties = json!({"privateIPAddress": "10.224.0.4", "subnet": {"id": format!("{network}/subnets/lb")}});
    let frontend = json!({"id": format!("{balancer}/frontendIPConfigurations/{FRONTEND}"), "name": FRONTEND,
        "properties": properties});
    let address_space = json!({"addressPrefixes": ["10.224.0.0/16"]});
    vec![
        (
            balancer,
            json!({"properties": {"frontendIPConfigurations": [frontend]}}),
        ),
        (
            network,
            json!({"properties": {"addressSpace": address_space, "subnets": []}}),
        ),
    ]
}

fn new() -> AzurePrivateLinkService {
    cr(json!({}), json!({}))
}

async fn plan(cr: &AzurePrivateLinkService, inputs: &PrivateLinkServiceInputs, resources: Resources) -> Preview {
    let controller = PrivateLinkServiceController::new(scoped(settings()), Arc::new(ClusterIndex::default()));
    dry_run(Role::Ho, &controller, cr, inputs, resources).await
}

/// What the first reconciles make of a new cluster.
async fn complete() -> Resources {
    let mut resources = management_cluster();
    let subnet = put(&plan(&new(), &inputs(), resources.clone()).await);
    resources.extend(subnet);
    let mut service = put(&plan(&new(), &inputs(), resources.clone()).await);
    service[0].1["properties"]["alias"] = json!(ALIAS);
    resources.extend(service);
    resources
}

/// The custom resource in the state that the last of these reconciles leaves.
async fn ready() -> AzurePrivateLinkService {
    written(&new(), &plan(&new(), &inputs(), complete().await).await)
}

#[tokio::test(start_paused = true)]
async fn new_cluster() {
    let plan = plan(&new(), &inputs(), management_cluster()).await;
    insta::assert_json_snapshot!("new_cluster", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn ready_cluster() {
    let plan = plan(&ready().await, &inputs(), complete().await).await;
    assert!(!plan.pending);
    insta::assert_json_snapshot!("ready_cluster", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn teardown() {
    let plan = plan(&deleting(ready().await), &gone(), complete().await).await;
    insta::assert_json_snapshot!("teardown", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn gone_but_not_for_certain() {
    let plan = plan(&deleting(ready().await), &gone(), management_cluster()).await;
    insta::assert_json_snapshot!("gone_but_not_for_certain", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn last_reconcile_of_a_teardown() {
    let nothing_made = PrivateLinkServiceInputs {
        deleted_cluster: DeletedCluster::Unknown,
        ..gone()
    };
    let plan = plan(&deleting(ready().await), &nothing_made, management_cluster()).await;
    insta::assert_json_snapshot!("last_reconcile_of_a_teardown", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn paused_cluster() {
    let paused = PrivateLinkServiceInputs {
        paused: Some(Problem::new(Reason::Provisioning, "the cluster is paused")),
        ..inputs()
    };
    let plan = plan(&new(), &paused, management_cluster()).await;
    insta::assert_json_snapshot!("paused_cluster", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn released_cluster() {
    let plan = plan(&deleting(new()), &inputs(), Vec::new()).await;
    insta::assert_json_snapshot!("released_cluster", printed(&plan));
}
