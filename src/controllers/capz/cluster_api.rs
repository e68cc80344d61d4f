//! In which version the API server serves Cluster API's own kinds.

use std::time::Duration;

use kube::{Client, Resource};
use tokio::time::sleep;

use crate::api::capi::Cluster;
use crate::api::capi::version::{self, VERSIONS, version};
use crate::runtime::call::{ReconcileError, within};

/// The version that this process reads is served no more, but another one is.
#[derive(Debug, thiserror::Error)]
#[error("Cluster API is served as {0} now; the next process reads that")]
pub struct VersionChanged(&'static str);

/// Chooses the newest version that is served, before anything is read. If none is, the newest stays.
///
/// # Errors
/// The API server does not answer.
pub async fn choose(kube: &Client) -> Result<(), ReconcileError> {
    for version in VERSIONS {
        if is_served(kube, version).await? {
            version::choose(version);
            break;
        }
    }
    Ok(())
}

/// Waits until another version is served in place of the one that is read.
pub(super) async fn change(kube: &Client, every: Duration) -> VersionChanged {
    loop {
        // A process that stood by may have chosen long ago.
        if matches!(is_served(kube, version()).await, Ok(false)) {
            for other in VERSIONS.into_iter().filter(|other| *other != version()) {
                if matches!(is_served(kube, other).await, Ok(true)) {
                    return VersionChanged(other);
                }
            }
        }
        sleep(every).await;
    }
}

async fn is_served(kube: &Client, version: &str) -> Result<bool, ReconcileError> {
    let (group, plural) = (Cluster::group(&()), Cluster::plural(&()));
    match within(kube.list_api_group_resources(&format!("{group}/{version}"))).await {
        Ok(served) => Ok(served.resources.iter().any(|resource| resource.name == plural)),
        Err(ReconcileError::Kube(kube::Error::Api(status))) if status.code == 404 => Ok(false),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests {
    use rstest::rstest;
    use tokio::time::{Instant, timeout};

    use super::super::tests::{RESYNC, Server};
    use super::*;

    #[rstest]
    #[case::as_it_is_read(&["v1beta1", "v1beta2"], false)]
    #[case::in_no_version(&[], false)]
    #[case::in_another_version(&["v1beta1"], true)]
    #[tokio::test(start_paused = true)]
    async fn cluster_api_in_another_version_ends_the_process_at_once(#[case] served: &[&str], #[case] expected: bool) {
        let server = Server::default();
        server.serve("cluster.x-k8s.io/v1beta2", &["clusterclasses"]);
        for version in served {
            server.serve(&format!("cluster.x-k8s.io/{version}"), &["clusters"]);
        }
        let begin = Instant::now();
        let changed = timeout(3 * RESYNC, change(&server.runtime().kube, RESYNC)).await;
        assert_eq!(changed.is_ok(), expected);
        assert_eq!(begin.elapsed() < RESYNC, expected);
    }
}
