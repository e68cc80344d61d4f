//! Helm: an upgrade of the chart of a cluster.

use anyhow::Result;
use kube::api::{DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};

use crate::CapzEnv;
use crate::capz_cluster::CapzCluster;

/// Replaces all subnets of a cluster by those of a chart's values. Entries that the chart does not know are gone.
/// Returns what this has made of the cluster.
///
/// # Errors
///
/// The API server refuses.
pub async fn upgrade(env: &CapzEnv, cluster: &CapzCluster, subnets: &Value) -> Result<DynamicObject> {
    let params = PatchParams {
        field_manager: Some("helm".to_owned()),
        ..PatchParams::default()
    };
    // Helm has no keys of lists for custom resources: its patch holds the whole array.
    let patch = Patch::Merge(json!({"spec": {"networkSpec": {"subnets": subnets}}}));
    let api = cluster.azure_clusters(&env.client()?);
    Ok(api.patch(cluster.name(), &params, &patch).await?)
}
