//! How the custom resources follow what a control plane publishes, and by what, while the cluster runs: Services and
//! their load balancers, host names, subscriptions, pauses.

mod host_names;
mod oauth;
mod pause;
mod siblings;
mod spec;

use anyhow::{Result, ensure};
use e2e::eventually;
use e2e::hosted_cluster::HostedCluster;
use e2e::shared_env::{SOON, SharedEnv};
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, ListParams};

/// Waits until a warning on the control plane has this note; returns the number of such warnings.
async fn warnings_with_note(shared_env: &SharedEnv, cluster: &HostedCluster, note: &str) -> Result<usize> {
    let events: Api<Event> = Api::namespaced(shared_env.test_env.client()?, &cluster.control_plane_namespace());
    eventually(&format!("an Event says: {note}"), SOON, || async {
        let all = events.list(&ListParams::default()).await?;
        let about = all.iter().filter(|event| {
            let object = event.regarding.as_ref().and_then(|object| object.kind.as_deref());
            object == Some("HostedControlPlane") && event.type_.as_deref() == Some("Warning")
        });
        let notes: Vec<_> = about.filter_map(|event| event.note.as_deref()).collect();
        ensure!(notes.contains(&note), "{notes:?}");
        Ok(notes.iter().filter(|text| **text == note).count())
    })
    .await
}
