//! What `hyperlink plan -o json` prints for the CPO role, scenario by scenario.

use serde_json::json;

use super::super::plan::ControlPlaneState;
use super::super::samples::{BASE, complete, headless, served_state};
use super::super::{PrivateEndpointController, PrivateEndpointInputs};
use crate::api::{AzurePrivateLinkService, Reason, Role};
use crate::controllers::azure::Preview;
use crate::controllers::dry_run_samples::{Resources, deleting, dry_run, printed, written};
use crate::controllers::samples::{ALIAS, cr, guest};
use crate::hypershift::problem::Problem;

/// A custom resource whose other half is ready.
fn with_alias() -> AzurePrivateLinkService {
    let conditions = ["AzureInternalLoadBalancerAvailable", "AzurePLSCreated"].map(|kind| {
        json!({"type": kind, "status": "True", "reason": "AzureSuccess", "message": "m",
            "lastTransitionTime": "2026-01-01T00:00:00Z"})
    });
    cr(
        json!({"privateLinkServiceAlias": ALIAS, "conditions": conditions}),
        json!({}),
    )
}

async fn plan(cr: &AzurePrivateLinkService, state: ControlPlaneState, resources: Resources) -> Preview {
    let controller = PrivateEndpointController {
        allowed: None,
        hosted_clusters: None,
    };
    let inputs = PrivateEndpointInputs { found: None, state };
    dry_run(Role::Cpo, &controller, cr, &inputs, resources).await
}

/// The custom resource in the state that the last reconcile of a new cluster leaves.
async fn ready() -> AzurePrivateLinkService {
    written(&with_alias(), &plan(&with_alias(), served_state(), complete()).await)
}

#[tokio::test(start_paused = true)]
async fn new_cluster() {
    let plan = plan(&with_alias(), served_state(), Vec::new()).await;
    insta::assert_json_snapshot!("new_cluster", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn ready_cluster() {
    let plan = plan(&ready().await, served_state(), complete()).await;
    assert!(!plan.pending);
    insta::assert_json_snapshot!("ready_cluster", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn foreign_zone() {
    let foreign = (guest(BASE), json!({"tags": {"owner": "customer"}, "properties": {}}));
    let plan = plan(&with_alias(), served_state(), vec![foreign]).await;
    insta::assert_json_snapshot!("foreign_zone", printed(&plan));
    assert!(!printed(&plan).to_string().contains("customer"));
}

#[tokio::test(start_paused = true)]
async fn teardown() {
    let plan = plan(&deleting(ready().await), headless(), complete()).await;
    insta::assert_json_snapshot!("teardown", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn gone_but_not_for_certain() {
    let plan = plan(&deleting(ready().await), headless(), Vec::new()).await;
    insta::assert_json_snapshot!("gone_but_not_for_certain", printed(&plan));
}

#[tokio::test(start_paused = true)]
async fn paused_cluster() {
    let paused = ControlPlaneState {
        paused: Some(Problem::new(Reason::Provisioning, "the cluster is paused")),
        ..served_state()
    };
    let plan = plan(&with_alias(), paused, complete()).await;
    insta::assert_json_snapshot!("paused_cluster", printed(&plan));
}
